//! Parallel bulk transfers over real sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use airpath_app::bulk::{Milestones, Progress};
use airpath_core::{AppEvent, AppStep, Direction, Instant};
use airpath_quic::Config;
use serde_json::Value;
use socket2::{Domain, Socket};

use crate::clock::now;
use crate::error::MeasureError;
use crate::quic::QuicEnd;
use crate::record::Record;
use crate::stream::{Stream, run};
use crate::tcp_info::TcpInfo;
use crate::tcp_settings::{in_force, tcp_socket};
use crate::token::SessionToken;
use crate::work::Bulk;

/// A transfer as observed at this end.
pub struct Transferred {
    /// Start time.
    pub start: Instant,
    /// Time at which this end stopped.
    pub end: Instant,
    /// Times of the transfer's steps.
    pub milestones: Milestones,
    /// Error that ended the connection, if any.
    pub cause: Option<String>,
    /// This end of the connection, as reported by its kernel.
    pub tcp: Option<TcpInfo>,
    /// This end of a connection of QUIC.
    pub quic: Option<airpath_quic::Statistics>,
    /// TCP settings of this end, without those that only the sender of a download has.
    pub settings: Value,
    /// Its steps.
    pub steps: Vec<(Instant, AppEvent)>,
}

/// A socket for each flow; those of silent flows are bound, so that their ports can be announced.
///
/// # Errors
/// The kernel rejects a setting.
pub fn sockets(bulk: &Bulk, peer: SocketAddr, local: SocketAddr) -> io::Result<(Vec<Socket>, Vec<u16>)> {
    let (mut sockets, mut ports) = (Vec::new(), Vec::new());
    for _ in 0..bulk.flows {
        let socket = tcp_socket(Domain::for_address(peer), &bulk.tcp)?;
        if bulk.is_silent() {
            socket.bind(&SocketAddr::new(local.ip(), 0).into())?;
            let bound = socket.local_addr()?.as_socket().map(|bound| bound.port());
            ports.push(bound.ok_or(io::ErrorKind::AddrNotAvailable)?);
        }
        sockets.push(socket);
    }
    Ok((sockets, ports))
}

/// Runs all flows of the session to their end. `records` has one for each.
pub fn transfer(
    bulk: &Bulk,
    sockets: Vec<Socket>,
    peer: SocketAddr,
    session: u64,
    records: Vec<Record<'_>>,
) -> Vec<Transferred> {
    let flows = sockets.into_iter().zip(records).collect();
    each(bulk, flows, &|flow, (socket, record), progress| {
        one(bulk, socket, peer, SessionToken { session, flow: flow as u32 }, record, progress)
    })
}

/// The same over QUIC; `ports` are the responder's, one for each flow.
///
/// # Errors
/// The responder has not announced its ports.
pub fn transfer_by_quic(
    bulk: &Bulk,
    config: &Config,
    peer: SocketAddr,
    ports: &[u16],
    records: Vec<Record<'_>>,
) -> Result<Vec<Transferred>, MeasureError> {
    if ports.len() != records.len() {
        return Err(MeasureError::NotAResponder { peer });
    }
    let peers = ports.iter().map(|port| SocketAddr::new(peer.ip(), *port));
    let flows = peers.zip(records).collect();
    Ok(each(bulk, flows, &|_, (peer, record), progress| one_by_quic(bulk, config, peer, record, progress)))
}

/// Reports that more bytes were moved.
type More<'a> = dyn Fn(u64, &Record<'_>) + 'a;

/// Runs `one` for each of `flows` in a thread of its own. Returns the results in their order.
fn each<T: Send>(
    bulk: &Bulk,
    flows: Vec<T>,
    one: &(dyn Fn(usize, T, &More<'_>) -> Transferred + Sync),
) -> Vec<Transferred> {
    let (done, all) = (AtomicU64::new(0), u64::from(bulk.flows) * bulk.transfer.bytes.get());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (flow, parts) in flows.into_iter().enumerate() {
            let (done, results) = (&done, &results);
            scope.spawn(move || {
                let result = one(flow, parts, &|more, record| {
                    record.progress(done.fetch_add(more, Ordering::Relaxed) + more, all);
                });
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((flow, result));
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(flow, _)| *flow);
    results.into_iter().map(|(_, result)| result).collect()
}

fn one_by_quic(
    bulk: &Bulk,
    config: &Config,
    peer: SocketAddr,
    mut record: Record<'_>,
    progress: &More<'_>,
) -> Transferred {
    let (mut role, _) = bulk.transfer.roles();
    let mut milestones = Milestones::default();
    let start = now();
    record.note(start, AppStep::Started, 0);
    let (mut reported, mut quic) = (0, None);
    let ended = QuicEnd::connect(peer, config).and_then(|mut end| {
        let mut steps = Vec::new();
        let ended = end.run(&|| record.is_stopped(), &mut |now, connection| {
            let step = role.step(connection);
            let noted = milestones.note(now, step, bulk.transfer.bytes);
            steps.extend(noted.into_iter().flatten().map(|step| (now, step, milestones.delivered)));
            let moved = match bulk.transfer.direction {
                Direction::Down => milestones.delivered,
                Direction::Up if connection.stream_count() > 0 => bulk.transfer.bytes.get() - connection.unsent(),
                Direction::Up => 0,
            };
            progress(moved - reported, &record);
            reported = moved;
            step != Progress::None
        });
        quic = Some(end.connection.statistics());
        steps.into_iter().for_each(|(time, step, delivered)| record.note(time, step, delivered));
        ended
    });
    let end = now();
    let cause = ended.err().map(|error| error.to_string());
    if cause.is_some() && milestones.finished.is_none() {
        milestones.aborted = Some(end);
        record.note(end, AppStep::Aborted, milestones.delivered);
    }
    let settings = airpath_result::summary::quic_settings(config);
    Transferred { start, end, milestones, cause, tcp: None, quic, settings, steps: record.into_steps() }
}

fn one(
    bulk: &Bulk,
    socket: Socket,
    peer: SocketAddr,
    token: SessionToken,
    mut record: Record<'_>,
    progress: &More<'_>,
) -> Transferred {
    let settings = in_force(&socket);
    let (mut role, _) = bulk.transfer.roles();
    let mut milestones = Milestones::default();
    let start = now();
    record.note(start, AppStep::Started, 0);
    let (mut reported, mut tcp) = (0, None);
    let ended = Stream::connect(socket, peer).and_then(|mut stream| {
        if !bulk.is_silent() {
            stream.begin_with(&token.to_bytes());
        }
        let mut steps = Vec::new();
        let ended = run(&mut stream, &|| record.is_stopped(), &mut |now, end| {
            let step = role.step(end);
            let noted = milestones.note(now, step, bulk.transfer.bytes);
            steps.extend(noted.into_iter().flatten().map(|step| (now, step, milestones.delivered)));
            let moved = match bulk.transfer.direction {
                Direction::Down => milestones.delivered,
                Direction::Up => end.taken(),
            };
            progress(moved - reported, &record);
            reported = moved;
            step != Progress::None
        });
        tcp = TcpInfo::of(stream.socket());
        steps.into_iter().for_each(|(time, step, delivered)| record.note(time, step, delivered));
        ended
    });
    let end = now();
    let cause = ended.err().map(|error| error.to_string());
    if cause.is_some() && milestones.finished.is_none() {
        milestones.aborted = Some(end);
        record.note(end, AppStep::Aborted, milestones.delivered);
    }
    Transferred { start, end, milestones, cause, tcp, quic: None, settings, steps: record.into_steps() }
}
