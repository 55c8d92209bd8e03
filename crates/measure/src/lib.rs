//! The workloads of `airpath_app` over real sockets: what `airpath measure` does.
//!
//! A measured figure is the same figure as a simulated one: the ends of a workload run the same
//! code as in virtual time, its milestones are recorded by the same
//! [`Milestones`](airpath_app::bulk::Milestones), and the same functions make the rows of the
//! summary. This crate adds sockets, a clock, and a responder; only a ping by ICMP needs no
//! responder.
//!
//! | module | what |
//! | --- | --- |
//! | [`work`] | the workloads, and their bounds |
//! | [`protocol`], [`token`], [`probe`] | the protocol between a measurement and its responder |
//! | [`serve`] | the responder |
//! | `control`, `lines` | the client's side of the control connection |
//! | `ping`, `bulk`, `datagrams`, `transactions` | the client's end of the workloads |
//! | `quic` | QUIC over a UDP socket as a transport of the workloads |
//! | `page` | a browser |
//! | `terminal`, `voice`, `video` | both ends of a remote terminal, a call, and a video over RTP |
//! | `adaptive` | both ends of a video in segments |
//! | `exchanges` | the loop of a client with exchanges: a terminal, a video in segments |
//! | [`plain_rtp`] | a video over RTP to or from another program |
//! | `rtp` | UDP ports of calls and videos, and the loop that runs one of their ends |
//! | `stream`, `text_stream` | a TCP socket as a transport of counted bytes, and of text |
//! | `tcp_settings`, `tcp_info` | TCP settings and counters of the kernel |
//! | [`clock`], [`offset`] | the clock, and its offset from the responder's |
//! | `record`, `outcome` | the recorded steps, and the summary |

mod adaptive;
mod bulk;
pub mod clock;
mod control;
mod datagrams;
mod error;
mod exchanges;
mod lines;
pub mod offset;
mod outcome;
mod page;
mod ping;
pub mod plain_rtp;
pub mod probe;
pub mod protocol;
mod quic;
mod record;
mod rtp;
pub mod serve;
mod stream;
mod tcp_info;
mod tcp_settings;
mod terminal;
mod text_stream;
pub mod token;
mod transactions;
mod video;
mod voice;
pub mod work;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::{FlowId, Instant, Span};
use airpath_result::{Folder, Summary};
use serde::{Deserialize, Serialize};
use socket2::Socket;

use control::{Control, connect_to_any, resolve_all};
use offset::Offset;
use outcome::Outcome;
use protocol::{IpVersion, PORT, TestRequest};
use record::Record;
use work::Work;

pub use control::{Family, resolve};
pub use error::MeasureError;
pub use serve::Responder;

/// A measurement: the workload and the responder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The responder: name or address, with or without a port.
    pub host: String,
    /// Address family to use.
    #[serde(default)]
    pub family: Family,
    /// The workload.
    pub work: Work,
    /// Ping by ICMP, which every host answers, instead of UDP to a responder.
    #[serde(default)]
    pub icmp: bool,
    /// Time limit; a workload that is not over then is unfinished.
    pub limit: Span,
}

impl Request {
    /// Parses it from JSON.
    ///
    /// # Errors
    /// The key of the invalid value, in the workload its path there, and the reason; without a
    /// position, because the text is generated.
    pub fn from_json(text: &str) -> Result<Self, MeasureError> {
        let read = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text));
        read.map_err(|error| {
            let (key, message) = match work::invalid_key(text) {
                Some(invalid) => invalid,
                None => (error.path().to_string(), error.inner().to_string()),
            };
            let message = message.split(" at line ").next().unwrap_or_default();
            MeasureError::InvalidRequest(match key.as_str() {
                "." => message.to_owned(),
                key => format!("{key}: {message}"),
            })
        })
    }

    /// The request in TOML: `scenario.toml` of the result folder. It is not a scenario that can be
    /// run.
    pub fn to_toml(&self) -> String {
        #[derive(Serialize)]
        struct Written<'a> {
            name: String,
            measurement: &'a Request,
            log: BTreeMap<&'a str, bool>,
        }
        let log = BTreeMap::from([("packets", false), ("tcp", false), ("radio", false), ("app", true)]);
        toml::to_string(&Written { name: self.name(), measurement: self, log }).expect("a request is text and numbers")
    }

    /// The workload and the responder: the name of the result.
    fn name(&self) -> String {
        format!("{} {}", self.work.name(), self.host)
    }
}

/// How a measurement and its caller communicate.
pub struct Hooks<'a> {
    /// Ends it early with the partial result.
    pub stop: &'a AtomicBool,
    /// Receives the completed and the total amount, from any thread.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    /// Receives a note when another program can start.
    pub ready: &'a (dyn Fn(&str) + Sync),
}

impl Hooks<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs a measurement. The result is written to `out` if given.
///
/// # Errors
/// The request is invalid, the responder is unreachable or refuses, or the result cannot be
/// written. Once the measurement has begun, a partial result is written.
pub fn measure(request: &Request, out: Option<PathBuf>, hooks: &Hooks<'_>) -> Result<Summary, MeasureError> {
    let Hooks { stop, progress, .. } = *hooks;
    match &request.work {
        Work::SendRtp(work) => return plain_rtp::send(request, work, out, hooks),
        Work::ReceiveRtp(work) => return plain_rtp::receive(request, work, out, hooks),
        _ => {}
    }
    request.work.check().map_err(MeasureError::InvalidRequest)?;
    if request.icmp {
        return ping_by_icmp(request, out, stop, progress);
    }
    let peers = resolve_all(&request.host, PORT, request.family)?;
    let folder = || out.map(|out| Folder::create(&out, &request.to_toml(), &[])).transpose();
    let Some((connection, peer)) = connect_to_any(&peers, stop)? else {
        return Outcome::new(request, &peers[0]).interrupted(folder()?.as_ref());
    };
    let mut outcome = Outcome::new(request, &peer);
    let setting = |source| MeasureError::Socket { what: "cannot set the socket".into(), source };
    let (sockets, ports) = match &request.work {
        Work::Bulk(bulk) if bulk.quic.is_none() => {
            let local = connection.local_addr().map_err(setting)?.as_socket();
            let local = local.ok_or_else(|| setting(io::ErrorKind::AddrNotAvailable.into()))?;
            bulk::sockets(bulk, peer, local).map_err(setting)?
        }
        _ => (Vec::new(), Vec::new()),
    };
    // Only connections of TCP are identified by their ports.
    let silent = !ports.is_empty();
    let ip = IpVersion::of(peer.ip());
    let test = TestRequest { work: request.work.clone(), ports, ip };
    let folder = folder()?;
    let Some(mut control) = Control::open(connection, peer, &test, stop)? else {
        return outcome.interrupted(folder.as_ref());
    };
    if silent && !control.is_seen_as_it_is() {
        return Err(MeasureError::InvalidRequest(format!(
            "addresses are translated between here and {peer}, so that a download without a request cannot be distinguished from \
             others there; give it one, as in `--request \"100 B\"`"
        )));
    }
    let datagrams = datagram_socket(peer).map_err(MeasureError::socket("cannot make a socket for datagrams"))?;
    let offset = Offset::find(&datagrams, control.session, &control.ready)
        .map_err(|source| MeasureError::Lost { peer, source })?;
    outcome.begin(&control.ready, offset);
    outcome.save_so_far(folder.as_ref())?;
    // The test request of pages is long. Its end may have been sent twice (RFC 8985 §7), and the
    // copy be in a queue before the first SYN: the response to a further request comes after it.
    let is_ready = match request.work {
        Work::Page(_) => control.report().map(drop),
        _ => Ok(()),
    };
    let origin = clock::now();
    let ended = is_ready.and_then(|()| {
        let run = Run { request, peer, ip, origin, sockets, datagrams, offset };
        run.measure(&mut control, hooks, &mut outcome)
    });
    // After a stop the wait for the responder is short.
    if hooks.is_stopped() {
        outcome.stopped();
    }
    if let Err(error) = ended {
        outcome.failed(&error);
    }
    outcome.finish(origin, clock::now(), folder.as_ref())
}

/// A measurement that has begun.
struct Run<'a> {
    request: &'a Request,
    peer: SocketAddr,
    ip: IpVersion,
    origin: Instant,
    /// Sockets of bulk transfers over TCP.
    sockets: Vec<Socket>,
    datagrams: UdpSocket,
    offset: Offset,
}

impl Run<'_> {
    /// Runs the workload, and adds what this end has of its result to `outcome`.
    ///
    /// # Errors
    /// The workload ended early, with or without a result.
    fn measure(self, control: &mut Control<'_>, hooks: &Hooks<'_>, outcome: &mut Outcome) -> Result<(), MeasureError> {
        let Self { request, peer, ip, origin, sockets, datagrams, offset } = self;
        let until = origin + request.limit;
        let record = |flow: usize| Record::new(FlowId(flow as u32), until, hooks.stop, hooks.progress);
        match &request.work {
            Work::Ping(ping) => {
                let mut record = record(0);
                let mut echo = ping::UdpEcho::new(datagrams, control.session, ping);
                let pinger = ping::ping(ping, &mut echo, &mut record);
                let pinger = pinger.map_err(MeasureError::socket("cannot send or receive datagrams"))?;
                outcome.ping(origin, &pinger, record);
            }
            Work::Bulk(bulk) => {
                let records = (0..bulk.flows as usize).map(record).collect();
                let flows = match &bulk.quic {
                    Some(config) => bulk::transfer_by_quic(bulk, config, peer, &control.ready.quic_ports, records)?,
                    None => bulk::transfer(bulk, sockets, peer, control.session, records),
                };
                match control.report() {
                    Ok(report) => outcome.bulk(origin, bulk, flows, &report, offset),
                    Err(error) => {
                        outcome.bulk(origin, bulk, flows, &Default::default(), offset);
                        return Err(error);
                    }
                }
            }
            Work::Datagrams(work) => {
                let mut record = record(0);
                let streamed = datagrams::measure(work, ip, &datagrams, control, offset, &mut record);
                outcome.datagrams(origin, work, streamed, record)?;
            }
            Work::Transactions(exchange) => {
                let mut record = record(0);
                let transacted = transactions::transact(exchange, peer, control.session, &mut record);
                outcome.transactions(origin, exchange, transacted, record);
            }
            Work::Terminal(terminal) => {
                let mut record = record(0);
                let interacted = terminal::interact(terminal, peer, control.session, &mut record);
                outcome.terminal(origin, terminal, interacted, record);
            }
            Work::Adaptive(video) => {
                let mut record = record(0);
                let played = adaptive::play(video, peer, control.session, &mut record)?;
                outcome.adaptive(origin, played, record);
            }
            Work::Page(load) => {
                let mut record = record(0);
                let loaded = page::browse(load, peer, control.session, origin, &mut record)?;
                outcome.page(origin, loaded, record);
            }
            Work::Voice(work) => {
                let mut record = record(0);
                let called = voice::call(work, peer, control, offset, &mut record)?;
                outcome.call(origin, called, record)?;
            }
            Work::Stream(work) => {
                let mut record = record(0);
                let watched = video::watch(work, peer, control, offset, &mut record)?;
                outcome.stream(origin, watched, record)?;
            }
            Work::SendRtp(_) | Work::ReceiveRtp(_) => unreachable!("they have no responder"),
        }
        Ok(())
    }
}

/// Measures by ICMP: a ping without a responder.
fn ping_by_icmp(
    request: &Request,
    out: Option<PathBuf>,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Summary, MeasureError> {
    let Work::Ping(ping) = &request.work else {
        return Err(MeasureError::InvalidRequest(format!(
            "{} needs a responder: only a ping works with ICMP",
            request.work.name()
        )));
    };
    let peer = resolve(&request.host, NO_PORT, request.family)?;
    if peer.port() != NO_PORT {
        let port = peer.port();
        return Err(MeasureError::InvalidRequest(format!(
            "ICMP has no ports: leave out `:{port}`, or leave out `--icmp`"
        )));
    }
    let mut echo = ping::IcmpEcho::open(peer.ip(), ping)?;
    let mut outcome = Outcome::new(request, &peer.ip());
    outcome.begin_by_icmp(echo.carrier());
    let folder = out.map(|out| Folder::create(&out, &request.to_toml(), &[])).transpose()?;
    outcome.save_so_far(folder.as_ref())?;
    let origin = clock::now();
    let mut record = Record::new(FlowId(0), origin + request.limit, stop, progress);
    let pinger = ping::ping(ping, &mut echo, &mut record);
    let pinger = pinger.map_err(MeasureError::socket(format!("cannot ping {}", peer.ip())))?;
    outcome.ping(origin, &pinger, record);
    if stop.load(Ordering::Relaxed) {
        outcome.stopped();
    }
    outcome.finish(origin, clock::now(), folder.as_ref())
}

/// Port of an address without one.
const NO_PORT: u16 = 0;

/// The local address of packets to `peer`. Nothing is sent.
fn local_address(peer: SocketAddr) -> io::Result<SocketAddr> {
    datagram_socket(peer)?.local_addr()
}

/// A non-blocking socket for datagrams to and from `peer` only.
fn datagram_socket(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Nanoseconds of this clock as an instant since `origin`.
const fn since(origin: Instant, time: Instant) -> Instant {
    Instant::from_nanos(time.since(origin).as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_request_names_the_key() {
        let message = |work: &str, limit: &str| {
            let text = format!(r#"{{"host": "server", "work": {work}, "limit": "{limit}"}}"#);
            Request::from_json(&text).expect_err("it is invalid").to_string()
        };
        let datagrams = |late, size| {
            let rest = r#""direction": "up", "rate": "1 Mbit/s", "duration": "1 s", "timeout": "1 s""#;
            format!(r#"{{"kind": "datagrams", {rest}, "late": "{late}", "size": {size}}}"#)
        };
        assert!(message(&datagrams("3", "1000"), "1 h").starts_with("late: `3` has no unit"));
        let negative = message(&datagrams("3 s", "-1"), "1 h");
        assert_eq!(negative, "size: invalid value: integer `-1`, expected u32");
        assert!(message(&datagrams("3 s", "1000"), "soon").starts_with("limit: `soon` is not a length of time"));
        let bulk = r#"{"kind": "bulk", "flows": 1, "transfer": {"direction": "up", "bytes": "5", "request": "0 B"}}"#;
        assert!(message(bulk, "1 h").starts_with("transfer.bytes: `5` has no unit"));
        assert_eq!(message(r#"{"kind": "ping"}"#, "1 h"), "missing field `size`");
        assert!(message(r#"{"kind": "pong"}"#, "1 h").contains("unknown variant `pong`"));
    }
}
