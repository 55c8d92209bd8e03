//! The workloads of `airpath_app` over real sockets: what `airpath measure` does.
//!
//! A figure measured here is the same figure as one simulated: the ends of a workload are run by
//! the code that runs them in virtual time, its milestones are taken by the same
//! [`Milestones`](airpath_app::bulk::Milestones), and the rows of the summary are made by the same
//! functions. What this crate adds are sockets, a clock, and a responder; only a ping by ICMP needs
//! none.
//!
//! | module | what |
//! | --- | --- |
//! | [`order`] | what can be ordered, and within which bounds |
//! | [`protocol`], [`probe`] | what a measurement and its responder say to each other |
//! | [`serve`] | the responder |
//! | `control`, `lines` | the client's side of the conversation |
//! | `ping`, `bulk`, `datagrams`, `transactions` | the client's end of the workloads |
//! | `stream` | a TCP socket as the workloads see a connection |
//! | `tcp_settings`, `tcp_info` | TCP as the kernel has it |
//! | [`clock`], [`offset`] | the clock, and how the responder's differs from it |
//! | `record`, `outcome` | what is kept of all that, and the summary |

mod bulk;
pub mod clock;
mod control;
mod datagrams;
mod error;
mod lines;
pub mod offset;
pub mod order;
mod outcome;
mod ping;
pub mod probe;
pub mod protocol;
mod record;
pub mod serve;
mod stream;
mod tcp_info;
mod tcp_settings;
mod transactions;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::{FlowId, Instant, Span};
use airpath_result::{Folder, Summary};
use serde::{Deserialize, Serialize};

use control::Control;
use offset::Offset;
use order::Work;
use outcome::Outcome;
use protocol::{Order, PORT};
use record::Record;

pub use control::{Family, resolve};
pub use error::MeasureError;
pub use serve::Responder;

/// What to measure, and against whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The responder: name or address, with or without a port.
    pub host: String,
    /// Which of its addresses.
    #[serde(default)]
    pub family: Family,
    /// What to do.
    pub work: Work,
    /// Ping by ICMP, to which every host answers, instead of UDP to a responder.
    #[serde(default)]
    pub icmp: bool,
    /// The longest that it may take; what is not over then is unfinished.
    pub limit: Span,
}

impl Request {
    /// Reads it from JSON.
    ///
    /// # Errors
    /// What is wrong with which value; not where, as nobody has written that text.
    pub fn from_json(text: &str) -> Result<Self, MeasureError> {
        serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            MeasureError::Order(message.split(" at line ").next().unwrap_or_default().to_owned())
        })
    }
}

/// Measures. The result is written to `out` if that is given; `stop` ends it early with what there
/// is by then, and `progress` is told how much of how much is done, from any thread.
///
/// # Errors
/// Where the order makes no sense, the responder cannot be had or refuses, or the result cannot be
/// written. Once the measurement has begun, what there is of it is written.
pub fn measure(
    request: &Request,
    out: Option<PathBuf>,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Summary, MeasureError> {
    request.work.check().map_err(MeasureError::Order)?;
    if request.icmp {
        return ping_by_icmp(request, out, stop, progress);
    }
    let peer = resolve(&request.host, PORT, request.family)?;
    let local = local_address(peer).map_err(MeasureError::socket(format!("cannot find a way to {peer}")))?;
    let mut outcome = Outcome::new(request, &peer);
    let setting = |source| MeasureError::Socket { what: "cannot set the socket".into(), source };
    let (sockets, ports) = match &request.work {
        Work::Bulk(bulk) => bulk::sockets(bulk, peer, local).map_err(setting)?,
        _ => (Vec::new(), Vec::new()),
    };
    let silent = !ports.is_empty();
    let order = Order { work: request.work.clone(), ports };
    let folder = out.map(|out| Folder::create(&out, &outcome.scenario(), &[])).transpose()?;
    let Some(mut control) = Control::open(peer, &order, stop)? else {
        return outcome.interrupted(folder.as_ref());
    };
    if silent && !control.is_seen_as_it_is() {
        return Err(MeasureError::Order(format!(
            "addresses are translated between here and {peer}, so that a download without a request cannot be told from \
             others there; give it one, as in `--request \"100 B\"`"
        )));
    }
    let datagrams = datagram_socket(peer).map_err(MeasureError::socket("cannot make a socket for datagrams"))?;
    let offset = Offset::find(&datagrams, control.order, &control.ready)
        .map_err(|source| MeasureError::Lost { peer, source })?;
    outcome.begin(&control.ready, offset);
    outcome.save_so_far(folder.as_ref())?;
    let origin = clock::now();
    let until = origin + request.limit;
    let record = |flow: usize| Record::new(FlowId(flow as u32), until, stop, progress);
    match &request.work {
        Work::Ping(ping) => {
            let mut record = record(0);
            let mut echo = ping::UdpEcho::new(datagrams, control.order, ping);
            let pinger = ping::ping(ping, &mut echo, &mut record);
            let pinger = pinger.map_err(|source| MeasureError::Lost { peer, source })?;
            outcome.ping(origin, &pinger, record);
        }
        Work::Bulk(bulk) => {
            let records = (0..bulk.flows as usize).map(record).collect();
            let flows = bulk::transfer(bulk, sockets, peer, control.order, records);
            match control.report() {
                Ok(report) => outcome.bulk(origin, bulk, flows, &report, offset),
                Err(error) => {
                    outcome.bulk(origin, bulk, flows, &Default::default(), offset);
                    outcome.failed(&error);
                }
            }
        }
        Work::Datagrams(work) => {
            let mut record = record(0);
            let streamed = datagrams::measure(work, &datagrams, &mut control, offset, &mut record)?;
            outcome.datagrams(origin, work, streamed, record);
        }
        Work::Transactions(exchange) => {
            let mut record = record(0);
            let transacted = transactions::transact(exchange, peer, control.order, &mut record);
            outcome.transactions(origin, exchange, transacted, record);
        }
    }
    if stop.load(Ordering::Relaxed) {
        outcome.stopped();
    }
    outcome.finish(origin, clock::now(), folder.as_ref())
}

/// Measures by ICMP: a ping without a responder.
fn ping_by_icmp(
    request: &Request,
    out: Option<PathBuf>,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Summary, MeasureError> {
    let Work::Ping(ping) = &request.work else {
        return Err(MeasureError::Order(format!("{} cannot go by ICMP, only a ping can", request.work.name())));
    };
    let peer = resolve(&request.host, NO_PORT, request.family)?;
    if peer.port() != NO_PORT {
        let port = peer.port();
        return Err(MeasureError::Order(format!("ICMP knows no ports: leave out `:{port}`, or leave out `--icmp`")));
    }
    let mut echo = ping::IcmpEcho::open(peer.ip(), ping)?;
    let mut outcome = Outcome::new(request, &peer.ip());
    outcome.begin_by_icmp(echo.carrier());
    let folder = out.map(|out| Folder::create(&out, &outcome.scenario(), &[])).transpose()?;
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

/// The port of an address that has none.
const NO_PORT: u16 = 0;

/// The address from which packets to `peer` go. Nothing is sent to find it out.
fn local_address(peer: SocketAddr) -> io::Result<SocketAddr> {
    datagram_socket(peer)?.local_addr()
}

/// A socket for datagrams to and from `peer` alone, which does not block.
fn datagram_socket(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Nanoseconds of our clock as an instant since `origin`.
const fn since(origin: Instant, time: Instant) -> Instant {
    Instant::from_nanos(time.since(origin).as_nanos())
}
