//! A download as an application of quinn, its configurations, and bearers.

pub mod http3;

use std::path::Path;
use std::sync::Arc;

use airpath_quic::Identity;
use airpath_quic::null_crypto::NullCrypto;
use airpath_quinn::{Finished, Host, simulate};
use airpath_scenario::Scenario;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};

pub const PORT: u16 = 4433;

/// 10 Mbit/s and 40 ms without losses.
pub const WIRED: &str = r#"
    format = 1
    duration = "300 s"
    [bearer]
    model = "wired"
    downlink = { rate = "10 Mbit/s", delay = "20 ms", queue = { bytes = "20 MB" } }
    uplink = { rate = "10 Mbit/s", delay = "20 ms", queue = { bytes = "20 MB" } }
"#;

/// 1 Mbit/s and 100 ms, where 2 % of the packets to the mobile are lost.
pub const LOSSY: &str = r#"
    format = 1
    [bearer]
    model = "wired"
    downlink = { rate = "1 Mbit/s", delay = "50 ms", loss = 0.02 }
    uplink = { rate = "1 Mbit/s", delay = "50 ms" }
"#;

pub fn scenario(text: &str) -> Scenario {
    Scenario::read(text, "s.toml", Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The windows of the flows of the simulator.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(3_000_000);
    transport.stream_receive_window(window).receive_window(window);
    Arc::new(transport)
}

pub fn server_config(identity: &mut Identity) -> ServerConfig {
    let mut config = identity.server_config(Arc::new(NullCrypto::default()));
    config.transport_config(transport());
    config
}

pub fn client_config(identity: &mut Identity) -> ClientConfig {
    let mut config = identity.client_config(Arc::new(NullCrypto::default()));
    config.transport_config(transport());
    config
}

/// Configurations with TLS 1.3.
pub fn tls() -> (ServerConfig, ClientConfig) {
    let (server, client) = airpath_testing::tls();
    let client = QuicClientConfig::try_from(client).expect("it has an initial suite");
    let server = QuicServerConfig::try_from(server).expect("it has an initial suite");
    let mut server = ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(transport());
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(transport());
    (server, client)
}

/// Answers each request, which is a number of 8 bytes, with this number of bytes.
pub async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            let mut size = [0; 8];
            receive.read_exact(&mut size).await.expect("the client sends a request");
            send.write_all(&vec![0; u64::from_be_bytes(size) as usize]).await.expect("the client reads it");
            send.finish().expect("it is open");
        }
    }
}

/// Requests `bytes` bytes from the server; returns the number of bytes that arrived.
pub async fn fetch(endpoint: &Endpoint, config: ClientConfig, host: &Host, bytes: usize) -> usize {
    let connecting = endpoint.connect_with(config, (host.peer(), PORT).into(), "server.test");
    let connection = connecting.expect("the address is valid").await.expect("the server accepts");
    let (mut send, mut receive) = connection.open_bi().await.expect("the server allows a stream");
    send.write_all(&(bytes as u64).to_be_bytes()).await.expect("the server reads it");
    send.finish().expect("it is open");
    receive.read_to_end(bytes).await.expect("the server answers").len()
}

/// A download with null crypto.
pub fn download(scenario: &Scenario, bytes: usize) -> Finished<usize> {
    let server = |host: &Host| server_config(&mut host.identity());
    download_with(scenario, bytes, server, |host| client_config(&mut host.identity()))
}

/// A download with these configurations of the hosts.
pub fn download_with(
    scenario: &Scenario,
    bytes: usize,
    server: impl FnOnce(&Host) -> ServerConfig + 'static,
    client: impl FnOnce(&Host) -> ClientConfig + 'static,
) -> Finished<usize> {
    let server = |host: Arc<Host>| async move {
        let config = server(&host);
        serve(host.endpoint(PORT, Some(config)).expect("the port is free")).await;
    };
    let client = |host: Arc<Host>| async move {
        let config = client(&host);
        let endpoint = host.endpoint(0, None).expect("one is free");
        fetch(&endpoint, config, &host, bytes).await
    };
    let finished = simulate(scenario, server, client).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(finished.output, bytes);
    finished
}
