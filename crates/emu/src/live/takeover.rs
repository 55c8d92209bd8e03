//! A new process takes over from a running one without losing a connection.
//!
//! ```text
//! new process                                old process
//!   {"take_over": build, configuration}  →     checks both, stops reading packets
//!                                        ←   {"state_bytes": …} with the descriptors: TUN
//!                                            interface, keeper, state, listener of metrics
//!   restores the state
//!   {"ready": {}}                        →
//!                                        ←   {"released": {}}, and ends
//!   forwards packets
//! ```
//!
//! Meanwhile packets wait in the kernel's queue of the TUN interface. If anything fails before
//! `released`, the old process continues, and the new one ends. The connection is that of the
//! control socket, so only the user of the proxy and root can take over.
//!
//! Times of the state count from the start of the first process: its clock is handed over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice, Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use airpath_core::{Direction, FlowId, PacketCounters, RandomStream, Span};
use airpath_path::Hop;
use airpath_path::middlebox::MiddleboxHop;
use airpath_proxy::Proxy;
use airpath_scenario::LiveConfig;
use airpath_wire::segment::Route;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Host;
use super::keeper::Keeper;
use super::metrics::MetricsServer;
use super::router::{Router, SavedRouter};
use crate::clock::Clock;
use crate::control::{self, Offer};
use crate::forwarder::{DropCounters, Forwarder};
use crate::port::Port;
use crate::taps::Taps;
use crate::{LinkError, sys};

/// The version and the hash of the sources: only the same build reads the state.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("AIRPATH_STATE"));

/// How long the two processes wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests to each running proxy for its interface.
const TRIES: usize = 3;

/// A message is a line. A status has one for each mobile.
const LONGEST_MESSAGE: u64 = 16 << 20;

/// The configuration of a new process.
///
/// # Errors
/// If the new process runs another build.
pub fn accept(offer: &Offer) -> Result<LiveConfig, String> {
    if offer.build != BUILD {
        return Err(format!(
            "it is build {BUILD}, and cannot hand its state over to build {}; stop it and start the new one",
            offer.build
        ));
    }
    LiveConfig::read(&offer.configuration, "the new configuration").map_err(|error| error.to_string())
}

/// What is handed over beside descriptors.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    clock: Clock,
    /// Time of day when the clock was zero.
    started: Span,
    router: SavedRouter,
    /// The addresses of the connections, as the mobile sends.
    routes: Vec<(FlowId, Route)>,
    /// Of the proxy as a hop, in the order of [`Direction::BOTH`].
    counters: [PacketCounters; 2],
    /// Packets that have entered, in the order of [`Direction::BOTH`].
    entered: [u64; 2],
    dropped: DropCounters,
    merged_acknowledgements: u64,
    proxy: Vec<u8>,
}

/// Hands over to the process at the other end of `stream`. Returns its number; from then on this
/// process must not forward packets.
///
/// # Errors
/// If the other one does not take over. This process then continues.
pub fn hand_over(
    stream: &UnixStream,
    forwarder: &mut Forwarder<'_>,
    started: Span,
    (keeper, listener): (&Keeper, Option<&TcpListener>),
) -> Result<i32, String> {
    let failed = |error: io::Error| format!("the new process does not take over: {error}");
    let now = forwarder.clock.now();
    if let Some(proxy) = forwarder.proxy_mut(now) {
        proxy.release_queues(now);
    }
    forwarder.deliver().and_then(|_| forwarder.flush()).map_err(failed)?;
    if forwarder.packets_on_path() > 0 {
        return Err("packets wait in the proxy; try again".to_owned());
    }
    let state = postcard::to_stdvec(&State::of(forwarder, started)?).map_err(|error| error.to_string())?;
    let memory = (|| {
        let mut memory = File::from(memfd_create("airpath-state", MFdFlags::MFD_CLOEXEC)?);
        memory.write_all(&state)?;
        Ok(memory)
    })()
    .map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let line = format!("{}\n", json!({ "state_bytes": state.len() }));
    let mut descriptors = vec![forwarder.ports().0.as_raw_fd(), keeper.as_fd().as_raw_fd(), memory.as_raw_fd()];
    descriptors.extend(listener.map(AsRawFd::as_raw_fd));
    let rights = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(line.as_bytes())], &rights, MsgFlags::MSG_NOSIGNAL, None)
        .map_err(|error| failed(error.into()))?;
    let answer = read_message(stream).map_err(failed)?;
    if answer.get("ready").is_none() {
        return Err(format!("the new process does not take over: it answers {answer}"));
    }
    control::send(stream, &json!({ "released": {} })).map_err(failed)?;
    Ok(getsockopt(&stream, PeerCredentials).map_or(0, |peer| peer.pid()))
}

impl State {
    fn of(forwarder: &Forwarder<'_>, started: Span) -> Result<Self, String> {
        let not_a_proxy = "its path is not that of a proxy";
        let Some((_, hop @ Hop::Middlebox(middlebox))) = forwarder.path().hops().next() else {
            return Err(not_a_proxy.to_owned());
        };
        let proxy: &Proxy = middlebox.downcast_ref().ok_or(not_a_proxy)?;
        let route = |flow| forwarder.route(flow, Direction::Up).map(|route| (flow, route));
        Ok(Self {
            clock: forwarder.clock,
            started,
            router: forwarder.router().ok_or(not_a_proxy)?.save(),
            routes: proxy.saved_flows().filter_map(route).collect(),
            counters: Direction::BOTH.map(|direction| hop.counters(direction)),
            entered: forwarder.entered,
            dropped: forwarder.dropped,
            merged_acknowledgements: forwarder.merged_acknowledgements,
            proxy: proxy.save(),
        })
    }
}

/// What another process has handed over beside its descriptors. It waits for [`Self::confirm`].
#[derive(Debug)]
pub struct TakenOver {
    /// The process.
    pub process: i32,
    state: State,
    stream: UnixStream,
}

/// Takes over from the proxy that runs on the interface of `config`.
///
/// # Errors
/// If there is none, or it does not hand over and continues.
pub fn request(config: &LiveConfig) -> Result<(Host, TakenOver), LinkError> {
    let (process, stream) = find(&config.device)?;
    let refused = |reason: String| LinkError::TakeOver { process, reason };
    let failed = |error: io::Error| refused(error.to_string());
    let offer = Offer { build: BUILD.to_owned(), configuration: config.to_toml() };
    control::send(&stream, &json!({ "take_over": offer })).map_err(failed)?;
    let (line, descriptors) = sys::receive_descriptors(&stream).map_err(failed)?;
    let answer: Value = serde_json::from_slice(&line).map_err(|error| refused(error.to_string()))?;
    if let Some(error) = answer["error"].as_str() {
        return Err(refused(error.to_owned()));
    }
    let mut descriptors = descriptors.into_iter();
    let (Some(interface), Some(keeper), Some(memory)) = (descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return Err(refused("it has not sent its descriptors".to_owned()));
    };
    let state = read_state(memory).map_err(failed)?;
    let state: State = postcard::from_bytes(&state).map_err(|error| refused(error.to_string()))?;
    let host = Host {
        port: Port::of_tun(interface),
        keeper: Keeper::of_descriptor(keeper),
        metrics: MetricsServer::of(descriptors.next().map(TcpListener::from)).map_err(failed)?,
        clock: state.clock,
        started: state.started,
    };
    Ok((host, TakenOver { process, state, stream }))
}

impl TakenOver {
    /// The router and the proxy. The observer of `taps` numbers the connections, as far as it can,
    /// or else the router from `first_connection` on.
    ///
    /// # Errors
    /// If the state is not that of a proxy.
    pub fn restore(
        &self,
        config: &LiveConfig,
        sequences: RandomStream,
        (first_connection, taps): (u32, &mut Taps),
    ) -> Result<(Router, MiddleboxHop), LinkError> {
        let State { clock, router, routes, counters, proxy, .. } = &self.state;
        let now = clock.now();
        let mut router = Router::restore(config, first_connection, router.clone(), now);
        let mut adopt = |route| {
            let observed = taps.observer.as_mut().and_then(|observer| observer.adopt(now, route));
            observed.unwrap_or_else(|| router.adopt(route))
        };
        let flows: BTreeMap<FlowId, FlowId> = routes.iter().map(|(old, route)| (*old, adopt(route))).collect();
        let restored = Proxy::restore(config.proxy.clone(), sequences, now, proxy, |old| flows.get(&old).copied());
        let restored = restored.map_err(|reason| LinkError::TakeOver { process: self.process, reason })?;
        let mut hop = MiddleboxHop::new(Box::new(restored));
        hop.restore_counters(*counters);
        Ok((router, hop))
    }

    /// Continues the counters of the forwarder, and lets the other process end.
    ///
    /// # Errors
    /// If it has not ended; then this process must not forward packets.
    pub fn confirm(self, forwarder: &mut Forwarder<'_>) -> Result<(), LinkError> {
        let Self { stream, process, state } = self;
        forwarder.entered = state.entered;
        forwarder.dropped = state.dropped;
        forwarder.merged_acknowledgements = state.merged_acknowledgements;
        let failed = |reason: String| LinkError::TakeOver { process, reason };
        let answer = control::send(&stream, &json!({ "ready": {} })).and_then(|()| read_message(&stream));
        match answer.map_err(|error| failed(error.to_string()))? {
            answer if answer.get("released").is_some() => Ok(()),
            answer => Err(failed(format!("it answers {answer}"))),
        }
    }
}

fn read_state(memory: OwnedFd) -> io::Result<Vec<u8>> {
    let (mut memory, mut state) = (File::from(memory), Vec::new());
    memory.seek(SeekFrom::Start(0))?;
    memory.read_to_end(&mut state)?;
    Ok(state)
}

fn read_message(stream: &UnixStream) -> io::Result<Value> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_MESSAGE)).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|_| io::Error::other("it has ended"))
}

/// The control socket of the proxy on the interface `device`, and its process.
fn find(device: &str) -> Result<(i32, UnixStream), LinkError> {
    let listed = std::fs::read_to_string("/proc/net/unix").map_err(LinkError::host("no proxy can be found"))?;
    let name = format!("@{}", control::NAME);
    let processes = listed.lines().filter_map(|line| line.rsplit_once(&name)?.1.parse().ok());
    let own = std::process::id().cast_signed();
    let others: BTreeSet<i32> = processes.filter(|process| *process != own).collect();
    // A proxy closes the connection of a client whose request is late.
    for process in std::iter::repeat_n(others, TRIES).flatten() {
        let Ok(stream) = connect(process) else { continue };
        let status = control::send(&stream, &json!({ "status": {} })).and_then(|()| read_message(&stream));
        if status.is_ok_and(|status| status["proxy"]["device"] == device)
            && let Ok(stream) = connect(process)
        {
            return Ok((process, stream));
        }
    }
    Err(LinkError::NoProxy(device.to_owned()))
}

/// The control socket of a process of this user or of root.
fn connect(process: i32) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(format!("{}{process}", control::NAME))?)?;
    let user = getsockopt(&stream, PeerCredentials)?.uid();
    if user != 0 && user != nix::unistd::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
