//! Live media over QUIC, in virtual time and on UDP sockets.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use airpath_core::{Direction, Instant, Seed};
use airpath_moq::clock::SharedClock;
use airpath_moq::session::{LARGEST_DATAGRAM, PORT, SessionError, client_config, identity, server_config};
use airpath_moq::{Figures, Publisher, Settings, Subscriber, simulation};
use airpath_quic::Identity;
use airpath_scenario::Scenario;
use quinn::{Endpoint, TokioRuntime};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: moq simulate BEARER [option…]   in virtual time
       moq publish [option…]           on UDP port 4433
       moq subscribe HOST [option…]
BEARER is the name of a preset, or the file of a scenario.
options: --media KEY=VALUE   a setting of the media or of the session, such as video.gop=30
         --set KEY=VALUE     a value of the scenario, such as bearer.bler=0.1
         --json              figures as JSON
docs/moq.md has the keys.";

/// What the command line requests.
#[derive(Debug, Default, PartialEq)]
struct Arguments {
    words: Vec<String>,
    media: Vec<(String, String)>,
    scenario: Vec<(String, String)>,
    json: bool,
}

/// Wrong arguments; the usage is printed with the message.
#[derive(Debug, thiserror::Error)]
#[error("{0}\n{USAGE}")]
struct UsageError(String);

impl Arguments {
    fn read(words: impl IntoIterator<Item = String>) -> std::result::Result<Self, UsageError> {
        let mut arguments = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let list = match word.as_str() {
                "--json" => {
                    arguments.json = true;
                    continue;
                }
                "--media" => &mut arguments.media,
                "--set" => &mut arguments.scenario,
                option if option.starts_with('-') => return Err(UsageError(format!("unknown option {option}"))),
                _ => {
                    arguments.words.push(word);
                    continue;
                }
            };
            let pair = words.next().and_then(|pair| {
                let (key, value) = pair.split_once('=')?;
                Some((key.to_owned(), value.to_owned()))
            });
            list.push(pair.ok_or_else(|| UsageError(format!("{word} needs KEY=VALUE after it")))?);
        }
        Ok(arguments)
    }

    fn print(&self, figures: &Figures) -> Result<()> {
        if self.json {
            println!("{}", serde_json::to_string(figures)?);
        } else {
            println!("{figures}");
        }
        Ok(())
    }
}

fn simulate(bearer: &str, arguments: &Arguments, settings: &Settings) -> Result<()> {
    let is_file = Path::new(bearer).extension().is_some_and(|extension| extension == "toml");
    let (text, folder) = if is_file {
        let text = std::fs::read_to_string(bearer).map_err(|error| format!("{bearer}: {error}"))?;
        (text, Path::new(bearer).parent().unwrap_or(Path::new("")))
    } else {
        // The session ends with the media.
        (format!("format = 1\nduration = \"24 h\"\n[bearer]\npreset = {bearer:?}"), Path::new(""))
    };
    let scenario = Scenario::read(&text, bearer, folder, &arguments.scenario)?;
    let simulated = simulation::run(&scenario, settings)?;
    arguments.print(&simulated.figures)?;
    if !arguments.json {
        println!("{} packets, {} dropped by the path", simulated.packets, simulated.dropped);
    }
    Ok(())
}

// In real time.

/// The clock of this computer. On another one it may differ, and delays with it.
#[expect(clippy::disallowed_methods, reason = "this is the real clock")]
fn real_clock() -> Result<SharedClock> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(SharedClock::starting_at(Instant::from_nanos(u64::try_from(now.as_nanos())?), Arc::new(TokioRuntime)))
}

fn real_identity(direction: Direction) -> Identity {
    identity(direction, |part| Seed::new(1).stream(&format!("{direction:?}/{part}")))
}

async fn publish(settings: Settings) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).map_err(|error| format!("UDP port {PORT}: {error}"))?;
    let mut identity = real_identity(Direction::Down);
    let config = identity.endpoint_config(LARGEST_DATAGRAM);
    let server = server_config(&settings, &mut identity);
    let endpoint = Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime))?;
    Publisher::new(&settings, real_clock()?).serve(endpoint).await;
    Ok(())
}

async fn subscribe(host: String, settings: Settings) -> Result<Figures> {
    let addresses = (host.as_str(), PORT).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let address = addresses.into_iter().find(SocketAddr::is_ipv4);
    let address = address.ok_or_else(|| format!("{host} has no IPv4 address"))?;
    let mut identity = real_identity(Direction::Up);
    let config = identity.endpoint_config(LARGEST_DATAGRAM);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let endpoint = Endpoint::new(config, None, socket, Arc::new(TokioRuntime))?;
    let connecting = endpoint.connect_with(client_config(&settings, &mut identity), address, "server")?;
    let reception = Subscriber::receive(&settings, real_clock()?, connecting, &host).await?;
    // Until the close of the connection was sent.
    endpoint.wait_idle().await;
    Ok(Figures::new(&settings, &reception).map_err(SessionError::Violation)?)
}

/// Runs an application as a task among those of quinn, as in virtual time: tokio polls the future
/// of `block_on` after the tasks that are ready.
fn run_real<T: Send + 'static>(application: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async { tokio::spawn(application).await? })
}

fn run(words: impl IntoIterator<Item = String>) -> Result<()> {
    let arguments = Arguments::read(words)?;
    let settings = Settings::read(&arguments.media)?;
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    if let Some((key, _)) = arguments.scenario.first().filter(|_| words.first() != Some(&"simulate")) {
        return Err(UsageError(format!("--set {key} has no effect: only simulate has a scenario")).into());
    }
    if arguments.json && words.first() == Some(&"publish") {
        return Err(UsageError("--json has no effect: the subscriber has the result".to_owned()).into());
    }
    let is_foreign = |key: &str| key.starts_with("quic.") || key.starts_with("tcp.") || key.starts_with("flow");
    if let Some((key, _)) = arguments.scenario.iter().find(|(key, _)| is_foreign(key)) {
        let message = format!("--set {key} has no effect: the settings of QUIC are --media quic.KEY=VALUE");
        return Err(UsageError(message).into());
    }
    match words[..] {
        ["simulate", bearer] => simulate(bearer, &arguments, &settings),
        ["publish"] => run_real(publish(settings)),
        ["subscribe", host] => arguments.print(&run_real(subscribe(host.to_owned(), settings))?),
        _ => Err(UsageError("no command, or not the words that it needs".to_owned()).into()),
    }
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("moq: {error}");
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> std::result::Result<Arguments, UsageError> {
        Arguments::read(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn options_may_stand_anywhere() {
        let arguments = read("simulate --media video.gop=30 gprs-4+1 --set seed=2 --json").expect("it is valid");
        assert_eq!(arguments.words, ["simulate", "gprs-4+1"]);
        assert_eq!(arguments.media, [("video.gop".to_owned(), "30".to_owned())]);
        assert_eq!(arguments.scenario, [("seed".to_owned(), "2".to_owned())]);
        assert!(arguments.json);
    }

    #[test]
    fn wrong_arguments_are_errors_with_the_usage() {
        for (line, message) in [
            ("simulate x --media", "--media needs KEY=VALUE"),
            ("simulate x --set seed", "--set needs KEY=VALUE"),
            ("simulate x --seed 2", "unknown option --seed"),
        ] {
            let error = read(line).expect_err("it is wrong").to_string();
            assert!(error.starts_with(message) && error.contains("usage: moq"), "{error}");
        }
        for line in ["publish --set seed=2", "publish --json", "simulate gprs-4+1 --set quic.congestion=cubic"] {
            let error = run(line.split(' ').map(str::to_owned)).expect_err("an option without effect");
            assert!(error.is::<UsageError>() && error.to_string().contains("has no effect"), "{error}");
        }
        let error = run(["publish".to_owned(), "x".to_owned()]).expect_err("a word too many");
        assert!(error.is::<UsageError>(), "{error}");
        let error = run(["simulate".to_owned(), "no-such-bearer".to_owned()]).expect_err("there is none").to_string();
        assert!(error.contains("no-such-bearer"), "{error}");
    }
}
