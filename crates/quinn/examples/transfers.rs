//! One application of quinn under both clocks: a bulk download beside requests and responses.
//!
//! ```text
//! transfers virtual SCENARIO.toml BYTES       # in virtual time, over the bearer of the scenario
//! transfers server                            # on UDP sockets, port 4433
//! transfers client HOST BYTES
//! ```
//!
//! `client` and `virtual` download BYTES bytes, and print the seconds until the end of the bulk
//! download and until the last response. The same code in real time over a bearer:
//!
//! ```text
//! airpath link umts-dch-384 --serve 'transfers server' -- transfers client server 1000000
//! ```

use std::error::Error;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use airpath_core::{Direction, FlowId, Seed};
use airpath_quic::Identity;
use airpath_quic::null_crypto::NullCrypto;
use airpath_quinn::simulate;
use airpath_scenario::Scenario;
use quinn::{Connection, Endpoint, IdleTimeout, Runtime, TokioRuntime, TransportConfig, VarInt};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: transfers virtual SCENARIO.toml BYTES | server | client HOST BYTES";
const PORT: u16 = 4433;
/// Number of requests, each sent after a pause.
const REQUESTS: u32 = 5;
/// Bytes of each response.
const RESPONSE: u32 = 10_000;
/// The pause before a request.
const PAUSE: Duration = Duration::from_millis(200);
/// Largest UDP payload that an end point accepts.
const LARGEST_DATAGRAM: u32 = 1472;

/// Times from the start of the client to the ends of its transfers.
struct Times {
    bulk: Duration,
    requests: Duration,
}

impl Times {
    fn print(&self) {
        let (bulk, requests) = (self.bulk.as_secs_f64(), self.requests.as_secs_f64());
        println!("bulk {bulk:.6} s, requests {requests:.6} s");
    }
}

// The application: nothing below depends on the clock.

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    // A deep queue ends a connection with a larger window: docs/quic.md, "The receive window".
    let window = VarInt::from_u32(3_000_000);
    transport.stream_receive_window(window).receive_window(window);
    // With the offload of real sockets, quinn pads datagrams of a batch to equal sizes.
    transport.enable_segmentation_offload(false);
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(120_000))));
    Arc::new(transport)
}

/// Answers requests, each with the number of bytes that it has.
async fn serve(endpoint: Endpoint, runtime: Arc<dyn Runtime>) {
    while let Some(incoming) = endpoint.accept().await {
        let tasks = Arc::clone(&runtime);
        runtime.spawn(Box::pin(async move {
            if let Err(error) = answer(incoming, tasks).await {
                eprintln!("transfers: {error}");
            }
        }));
    }
}

async fn answer(incoming: quinn::Incoming, runtime: Arc<dyn Runtime>) -> Result<()> {
    let connection = incoming.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        runtime.spawn(Box::pin(async move {
            let mut size = [0; 4];
            if receive.read_exact(&mut size).await.is_ok() {
                // It fails if the client has left.
                let _ = send.write_all(&vec![0; u32::from_be_bytes(size) as usize]).await;
                let _ = send.finish();
            }
        }));
    }
    Ok(())
}

async fn fetch(connection: &Connection, bytes: u32) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let received = receive.read_to_end(bytes as usize).await?.len();
    if received == bytes as usize { Ok(()) } else { Err(format!("{received} bytes instead of {bytes}").into()) }
}

async fn load(connecting: quinn::Connecting, bytes: u32, runtime: Arc<dyn Runtime>) -> Result<Times> {
    let start = runtime.now();
    let connection = connecting.await?;
    let bulk = async {
        fetch(&connection, bytes).await?;
        Ok(runtime.now() - start)
    };
    let requests = async {
        for _ in 0..REQUESTS {
            let mut pause = runtime.new_timer(runtime.now() + PAUSE);
            poll_fn(|cx| pause.as_mut().poll(cx)).await;
            fetch(&connection, RESPONSE).await?;
        }
        Ok(runtime.now() - start)
    };
    let (bulk, requests): (Result<_>, Result<_>) = both(bulk, requests).await;
    connection.close(VarInt::from_u32(0), b"done");
    Ok(Times { bulk: bulk?, requests: requests? })
}

/// Runs two futures at the same time until both have ended.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut outputs, mut other) = (None, None);
    poll_fn(|cx| {
        use std::task::Poll::{Pending, Ready};
        if outputs.is_none()
            && let Ready(output) = first.as_mut().poll(cx)
        {
            outputs = Some(output);
        }
        if other.is_none()
            && let Ready(output) = second.as_mut().poll(cx)
        {
            other = Some(output);
        }
        if outputs.is_some() && other.is_some() { Ready(()) } else { Pending }
    })
    .await;
    (outputs.expect("it has ended"), other.expect("it has ended"))
}

fn server_config(identity: &mut Identity) -> quinn::ServerConfig {
    let mut config = identity.server_config(Arc::new(NullCrypto::default()));
    config.transport_config(transport());
    config
}

fn client_config(identity: &mut Identity) -> quinn::ClientConfig {
    let mut config = identity.client_config(Arc::new(NullCrypto::default()));
    config.transport_config(transport());
    config
}

// The two clocks.

fn run_virtual(scenario: &Path, bytes: u32) -> Result<Times> {
    let text = std::fs::read_to_string(scenario).map_err(|error| format!("{}: {error}", scenario.display()))?;
    let folder = scenario.parent().unwrap_or(Path::new(""));
    let scenario = Scenario::read(&text, &scenario.display().to_string(), folder, &[])?;
    let finished = simulate(
        &scenario,
        |host| async move {
            let config = server_config(&mut host.identity());
            let endpoint = host.endpoint(PORT, Some(config)).expect("the port is free");
            serve(endpoint, host).await;
        },
        |host| async move {
            let config = client_config(&mut host.identity());
            let endpoint = host.endpoint(0, None)?;
            load(endpoint.connect_with(config, (host.peer(), PORT).into(), "server")?, bytes, host).await
        },
    )?;
    finished.output
}

/// An end point of tokio, and the identity that configured it.
fn real_endpoint(socket: UdpSocket, direction: Direction) -> Result<(Endpoint, Identity)> {
    let mut identity =
        Identity::new(FlowId(0), direction, |part| Seed::new(1).stream(&format!("{direction:?}/{part}")));
    let config = identity.endpoint_config(LARGEST_DATAGRAM);
    let server = (direction == Direction::Down).then(|| server_config(&mut identity));
    Ok((Endpoint::new(config, server, socket, Arc::new(TokioRuntime))?, identity))
}

async fn run_server() -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).map_err(|error| format!("port {PORT}: {error}"))?;
    let (endpoint, _) = real_endpoint(socket, Direction::Down)?;
    serve(endpoint, Arc::new(TokioRuntime)).await;
    Ok(())
}

async fn run_client(host: String, bytes: u32) -> Result<Times> {
    let addresses = (host.as_str(), PORT).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let address = addresses.into_iter().find(SocketAddr::is_ipv4);
    let address = address.ok_or_else(|| format!("{host} has no IPv4 address"))?;
    let (endpoint, mut identity) = real_endpoint(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, Direction::Up)?;
    let config = client_config(&mut identity);
    load(endpoint.connect_with(config, address, "server")?, bytes, Arc::new(TokioRuntime)).await
}

/// Runs an application as a task among those of quinn, as in virtual time: tokio polls the future
/// of `block_on` after the tasks that are ready.
fn run_real<T: Send + 'static>(application: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async { tokio::spawn(application).await? })
}

fn run(arguments: &[&str]) -> Result<()> {
    let times = match arguments {
        ["virtual", scenario, bytes] => run_virtual(Path::new(scenario), bytes.parse()?)?,
        ["client", host, bytes] => run_real(run_client((*host).to_owned(), bytes.parse()?))?,
        ["server"] => return run_real(run_server()),
        _ => return Err(USAGE.into()),
    };
    times.print();
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("transfers: {error}");
            ExitCode::FAILURE
        }
    }
}
