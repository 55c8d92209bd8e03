//! What a connection to the responder is, and what it does for it.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_app::arrivals::Arrival;
use airpath_app::bulk::{Milestones, Progress};
use airpath_app::transactions::Server;
use airpath_core::{Instant, Span};
use nix::poll::PollFlags;
use socket2::{Domain, Socket};

use super::desk::{Desk, Job};
use crate::clock::{identity, now, wait};
use crate::lines::Lines;
use crate::order::{Bulk, Exchange, LONGEST, Work};
use crate::protocol::{
    ARRIVAL, Answer, FlowReport, GREETING, LINE_LIMIT, Order, Question, Ready, Ticket, greeting, version,
};
use crate::stream::{Stream, run};
use crate::tcp_info::{TcpInfo, kernel_name};
use crate::tcp_settings::{apply, tcp_socket};

/// How long who connects may take to say what for.
const OPENING: Span = Span::from_secs(10);
/// How long a report waits for flows that are not over.
const LAST_FLOWS: Span = Span::from_secs(5);
/// How long a client may be silent on its control connection: for the longest order and its last
/// replies.
const SILENCE: Span = Span::from_secs(2 * 3600 + 60);

/// Serves one connection to its end.
///
/// # Errors
/// Where it is lost, or its other end does not keep to the protocol.
pub fn serve(socket: Socket, peer: SocketAddr, desk: &Desk, stop: &AtomicBool) -> io::Result<()> {
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let stopped = || stop.load(Ordering::Relaxed);
    socket.set_nonblocking(true)?;
    if let Some((job, flow)) = desk.expected(peer) {
        serve_flow(socket, &job, flow, 0, &stopped);
        return Ok(());
    }
    let Some(opening) = opening(&socket, now() + OPENING, &stopped)? else { return Ok(()) };
    if opening == *GREETING {
        return serve_control(Lines::new(socket, Vec::new())?, peer, desk, &stopped);
    }
    let ticket = Ticket::from_bytes(opening);
    if let Some((ticket, job)) = ticket.and_then(|ticket| Some((ticket, desk.find(ticket.order, peer.ip())?))) {
        serve_flow(socket, &job, ticket.flow, Ticket::LENGTH as u64, &stopped);
    }
    Ok(())
}

/// The first bytes of a connection; `None` if they do not come.
fn opening(socket: &Socket, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<[u8; Ticket::LENGTH]>> {
    let mut bytes = [0; Ticket::LENGTH];
    let mut read = 0;
    while read < bytes.len() {
        match (&mut &*socket).read(&mut bytes[read..]) {
            Ok(0) => return Ok(None),
            Ok(length) => read += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if stop() || now() >= until {
                    return Ok(None);
                }
                wait(socket.as_fd(), PollFlags::POLLIN, Some(until));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(bytes))
}

/// The conversation about one order.
fn serve_control(mut lines: Lines, peer: SocketAddr, desk: &Desk, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let Some(rest) = lines.read(LINE_LIMIT, now() + OPENING, stop)? else { return Ok(()) };
    let theirs = version(&rest).ok_or(io::ErrorKind::InvalidData)?;
    lines.write_bytes(greeting().as_bytes())?;
    if theirs != crate::protocol::VERSION {
        return Ok(());
    }
    let Some(line) = lines.read(LINE_LIMIT, now() + OPENING, stop)? else { return Ok(()) };
    let order = match serde_json::from_slice(&line) {
        Ok(Question::Order(order)) => order,
        Ok(Question::Report | Question::Arrivals) => {
            return lines.write(&Answer::Refused("there is no order yet".into()));
        }
        Err(error) => return lines.write(&Answer::Refused(format!("it does not understand the order: {error}"))),
    };
    let job = match usable(&order, peer).and_then(|()| desk.take(peer.ip(), order)) {
        Ok(job) => job,
        Err(why) => return lines.write(&Answer::Refused(why)),
    };
    let talked = converse(&mut lines, peer, &job, stop);
    desk.end(&job);
    talked
}

/// Whether this host can do what the order wants of its kernel.
fn usable(order: &Order, peer: SocketAddr) -> Result<(), String> {
    match &order.work {
        Work::Bulk(bulk) => {
            tcp_socket(Domain::for_address(peer), &bulk.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Transactions(exchange) => {
            tcp_socket(Domain::for_address(peer), &exchange.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Ping(_) | Work::Datagrams(_) => Ok(()),
    }
}

fn converse(lines: &mut Lines, peer: SocketAddr, job: &Job, stop: &dyn Fn() -> bool) -> io::Result<()> {
    lines.write(&Answer::Ready(Ready {
        ticket: format!("{:016x}", job.number),
        peer,
        clock: identity(),
        airpath: env!("CARGO_PKG_VERSION").into(),
        kernel: kernel_name(),
    }))?;
    while let Some(line) = lines.read(LINE_LIMIT, now() + SILENCE, stop)? {
        match serde_json::from_slice(&line) {
            Ok(Question::Report) => {
                let until = now() + LAST_FLOWS;
                while !job.is_over() && now() < until && !stop() {
                    wait(lines.socket().as_fd(), PollFlags::empty(), Some(now() + Span::from_millis(1)));
                }
                lines.write(&Answer::Report(job.report()))?;
            }
            Ok(Question::Arrivals) => {
                let records: Vec<u8> = job.receiver().arrivals().iter().flat_map(record).collect();
                lines.write(&Answer::Arrivals((records.len() / ARRIVAL) as u32))?;
                lines.write_bytes(&records)?;
            }
            Ok(Question::Order(_)) => return lines.write(&Answer::Refused("one connection is for one order".into())),
            Err(error) => return lines.write(&Answer::Refused(format!("it does not understand: {error}"))),
        }
    }
    Ok(())
}

/// An arrival as it is sent.
fn record(arrival: &Arrival) -> [u8; ARRIVAL] {
    let mut record = [0; ARRIVAL];
    record[..4].copy_from_slice(&arrival.sequence.to_be_bytes());
    record[4..12].copy_from_slice(&arrival.sent.as_nanos().to_be_bytes());
    record[12..].copy_from_slice(&arrival.arrived.as_nanos().to_be_bytes());
    record
}

/// Runs the responder's end of a flow over TCP, of which it has read `received` bytes.
fn serve_flow(socket: Socket, job: &Job, flow: u32, received: u64, stop: &dyn Fn() -> bool) {
    let until = now() + LONGEST;
    let stop = || stop() || job.is_cancelled() || now() >= until;
    match &job.order.work {
        Work::Bulk(bulk) if flow < bulk.flows => job.flow(|| {
            let lost = |error: io::Error| FlowReport { flow, cause: Some(error.to_string()), ..FlowReport::default() };
            transfer(socket, bulk, flow, received, &stop).unwrap_or_else(lost)
        }),
        Work::Transactions(exchange) => {
            // The client sees for itself that a connection is lost.
            let _ = answer(socket, exchange, received, &stop);
        }
        Work::Bulk(_) | Work::Ping(_) | Work::Datagrams(_) => {}
    }
}

/// The answering end of one connection with transactions.
fn answer(socket: Socket, exchange: &Exchange, received: u64, stop: &dyn Fn() -> bool) -> io::Result<()> {
    apply(&socket, &exchange.tcp)?;
    let mut stream = Stream::accepted(socket, received)?;
    let mut server = Server::new(exchange.transactions);
    run(&mut stream, stop, &mut |_, end| server.step(end)).map(drop)
}

/// One end of a bulk transfer.
fn transfer(socket: Socket, bulk: &Bulk, flow: u32, received: u64, stop: &dyn Fn() -> bool) -> io::Result<FlowReport> {
    apply(&socket, &bulk.tcp)?;
    let mut stream = Stream::accepted(socket, received)?;
    let (_, mut role) = bulk.transfer.roles();
    let mut milestones = Milestones::default();
    let ended = run(&mut stream, stop, &mut |now, end| {
        let progress = role.step(end);
        milestones.note(now, progress, bulk.transfer.bytes);
        progress != Progress::None
    });
    let nanos = |mark: Option<Instant>| mark.map(Instant::as_nanos);
    Ok(FlowReport {
        flow,
        requested: nanos(milestones.requested),
        first_byte: nanos(milestones.first_byte),
        finished: nanos(milestones.finished),
        delivered: milestones.delivered,
        tcp: TcpInfo::of(stream.socket()),
        cause: ended.err().map(|error| error.to_string()),
    })
}
