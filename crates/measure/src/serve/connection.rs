//! A connection to the responder, by its type.

use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use airpath_app::arrivals::Arrival;
use airpath_app::bulk::{Milestones, Progress};
use airpath_app::transactions::Server;
use airpath_core::{Instant, Span};
use nix::poll::PollFlags;
use socket2::{Domain, Socket};

use super::page;
use super::sessions::{ConnectionSlot, Session, Sessions};
use crate::adaptive;
use crate::clock::{identity, now, wait};
use crate::lines::Lines;
use crate::protocol::{
    ARRIVAL, ControlRequest, ControlResponse, FlowReport, GREETING, HTTP, Ready, TestRequest, greeting, version,
};
use crate::quic::QuicEnd;
use crate::stream::{Stream, run};
use crate::tcp_info::{TcpInfo, kernel_name};
use crate::tcp_settings::{apply, tcp_socket};
use crate::terminal;
use crate::token::SessionToken;
use crate::video;
use crate::voice;
use crate::work::{Bulk, Exchange, LINE_LIMIT, LONGEST, Work};

/// Time limit of the first bytes of a connection, and of each pause before its test request is
/// complete.
const OPENING: Span = Span::from_secs(10);
/// Time limit of a test request, which has the objects of pages: over a slow path it takes a while.
const TEST_REQUEST: Span = Span::from_secs(120);
/// Time that a report waits for flows that are not over.
const LAST_FLOWS: Span = Span::from_secs(5);
/// Idle limit of a control connection: the longest session and its last replies.
const SILENCE: Span = Span::from_secs(2 * 3600 + 60);

/// Serves one connection to its end.
///
/// # Errors
/// The connection is lost, or its client violates the protocol.
pub fn serve(socket: Socket, peer: SocketAddr, sessions: &Sessions, stop: &AtomicBool) -> io::Result<()> {
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let stopped = || stop.load(Ordering::Relaxed);
    socket.set_nonblocking(true)?;
    if let Some((session, flow)) = sessions.expected(peer) {
        serve_flow(socket, &session, flow, 0, &stopped);
        return Ok(());
    }
    let begun = now();
    let silent = || stopped() || (now() >= begun + OPENING && !sessions.has_pages(peer.ip()));
    let Some(opening) = opening(&socket, begun + LONGEST, &silent)? else { return Ok(()) };
    if opening.starts_with(HTTP) {
        return page::serve(socket, opening.to_vec(), now() + OPENING, peer.ip(), sessions, &stopped);
    }
    if opening == *GREETING {
        return serve_control(Lines::new(socket, Vec::new())?, peer, sessions, &stopped);
    }
    let token = SessionToken::from_bytes(opening);
    if let Some((token, session)) = token.and_then(|token| Some((token, sessions.find(token.session, peer.ip())?))) {
        serve_flow(socket, &session, token.flow, SessionToken::LENGTH as u64, &stopped);
    }
    Ok(())
}

/// Reports to the client of a connection above a limit why it is closed.
///
/// # Errors
/// The connection is lost.
pub fn refuse(socket: Socket, why: String, stop: &AtomicBool) -> io::Result<()> {
    let stopped = || stop.load(Ordering::Relaxed);
    socket.set_nonblocking(true)?;
    let until = now() + OPENING;
    let Some(opening) = opening(&socket, until, &stopped)? else { return Ok(()) };
    let answer = if opening.starts_with(HTTP) {
        let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close";
        format!("{head}\r\nContent-Length: {}\r\n\r\n{why}\n", why.len() + 1)
    } else if opening == *GREETING {
        let refused = serde_json::to_string(&ControlResponse::Refused(why)).map_err(io::Error::other)?;
        format!("{}{refused}\n", greeting())
    } else {
        // The bytes of other flows have no meaning.
        return Ok(());
    };
    let lines = Lines::new(socket, Vec::new())?;
    lines.write_bytes(answer.as_bytes())?;
    lines.close(until, &stopped)
}

/// The first bytes of a connection; `None` if they do not arrive.
fn opening(socket: &Socket, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<[u8; SessionToken::LENGTH]>> {
    let mut bytes = [0; SessionToken::LENGTH];
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

/// Serves the control connection of one session.
fn serve_control(mut lines: Lines, peer: SocketAddr, sessions: &Sessions, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let Some(rest) = lines.read(LINE_LIMIT, now() + OPENING, stop)? else { return Ok(()) };
    let theirs = version(&rest).ok_or(io::ErrorKind::InvalidData)?;
    lines.write_bytes(greeting().as_bytes())?;
    if theirs != crate::protocol::VERSION {
        return Ok(());
    }
    let line = match lines.read_without_pause(LINE_LIMIT, now() + TEST_REQUEST, OPENING, stop) {
        Ok(Some(line)) => line,
        Ok(None) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            let why = format!("a test request must come without a pause of {OPENING}, and within {TEST_REQUEST}");
            return lines.write(&ControlResponse::Refused(why));
        }
        Err(error) => return Err(error),
    };
    let test = match serde_json::from_slice(&line) {
        Ok(ControlRequest::Test(test)) => test,
        Ok(ControlRequest::Report | ControlRequest::Arrivals | ControlRequest::Start(_)) => {
            return lines.write(&ControlResponse::Refused("a test request must come first".into()));
        }
        Err(error) => {
            return lines.write(&ControlResponse::Refused(format!("invalid test request: {error}")));
        }
    };
    let session = match usable(&test, peer).and_then(|()| sessions.take(peer.ip(), *test)) {
        Ok(session) => session,
        Err(why) => return lines.write(&ControlResponse::Refused(why)),
    };
    let sockets = match quic_sockets(&session, sessions, lines.socket()) {
        Ok(sockets) => sockets,
        Err(why) => {
            sessions.end(&session);
            return lines.write(&ControlResponse::Refused(why));
        }
    };
    let ports = sockets.iter().map(|each| each.port).collect();
    thread::scope(|scope| {
        for (flow, each) in sockets.into_iter().enumerate() {
            let session = &session;
            // The flow is over when its session is, which ends with this connection.
            scope.spawn(move || serve_quic(each, session, flow as u32));
        }
        let talked = serve_requests(&mut lines, peer, &session, ports, stop);
        sessions.end(&session);
        talked
    })
}

/// The socket of a flow over QUIC. It counts as a connection.
struct QuicSocket<'a> {
    socket: UdpSocket,
    port: u16,
    _slot: ConnectionSlot<'a>,
}

/// A bound UDP socket for each flow over QUIC of the session, at the address of its control
/// connection.
///
/// # Errors
/// The reason, as a message for the client.
fn quic_sockets<'a>(
    session: &Session,
    sessions: &'a Sessions,
    control: &Socket,
) -> Result<Vec<QuicSocket<'a>>, String> {
    let Work::Bulk(Bulk { flows, quic: Some(_), .. }) = &session.request.work else { return Ok(Vec::new()) };
    let bind = || {
        let local = control.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = UdpSocket::bind((local.ip(), 0))?;
        let port = socket.local_addr()?.port();
        Ok((socket, port))
    };
    let each = |_| {
        let slot = sessions.connection_slot(session.client)?;
        let (socket, port) = bind().map_err(|error: io::Error| format!("it has no UDP port for QUIC: {error}"))?;
        Ok(QuicSocket { socket, port, _slot: slot })
    };
    (0..*flows).map(each).collect()
}

/// Runs the responder's end of a flow over QUIC.
fn serve_quic(bound: QuicSocket<'_>, session: &Session, flow: u32) {
    let QuicSocket { socket, _slot, .. } = bound;
    let Work::Bulk(Bulk { transfer, quic: Some(config), .. }) = &session.request.work else { return };
    let until = now() + LONGEST;
    session.flow(|| {
        let (_, mut role) = transfer.roles();
        let mut milestones = Milestones::default();
        let mut statistics = None;
        let ended = QuicEnd::listen(socket, session.client, config).and_then(|mut end| {
            let ended = end.run(&|| session.is_cancelled() || now() >= until, &mut |now, connection| {
                let progress = role.step(connection);
                milestones.note(now, progress, transfer.bytes);
                progress != Progress::None
            });
            statistics = Some(end.connection.statistics());
            ended
        });
        FlowReport { quic: statistics, ..report(flow, &milestones, ended.err()) }
    });
}

/// The report of a flow without the figures of its transport.
fn report(flow: u32, milestones: &Milestones, error: Option<io::Error>) -> FlowReport {
    let nanos = |mark: Option<Instant>| mark.map(Instant::as_nanos);
    FlowReport {
        flow,
        requested: nanos(milestones.requested),
        first_byte: nanos(milestones.first_byte),
        finished: nanos(milestones.finished),
        delivered: milestones.delivered,
        cause: error.map(|error| error.to_string()),
        ..FlowReport::default()
    }
}

/// Whether this host's kernel supports the requested settings.
fn usable(test: &TestRequest, peer: SocketAddr) -> Result<(), String> {
    match &test.work {
        Work::Bulk(bulk) => {
            tcp_socket(Domain::for_address(peer), &bulk.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Transactions(exchange) => {
            tcp_socket(Domain::for_address(peer), &exchange.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Terminal(terminal) => {
            tcp_socket(Domain::for_address(peer), &terminal.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Adaptive(video) => {
            tcp_socket(Domain::for_address(peer), &video.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Page(load) => {
            tcp_socket(Domain::for_address(peer), &load.tcp).map(drop).map_err(|error| error.to_string())
        }
        Work::Ping(_)
        | Work::Datagrams(_)
        | Work::Voice(_)
        | Work::Stream(_)
        | Work::SendRtp(_)
        | Work::ReceiveRtp(_) => Ok(()),
    }
}

fn serve_requests(
    lines: &mut Lines,
    peer: SocketAddr,
    session: &Arc<Session>,
    quic_ports: Vec<u16>,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    lines.write(&ControlResponse::Ready(Ready {
        session: format!("{:016x}", session.number),
        peer,
        clock: identity(),
        airpath: env!("CARGO_PKG_VERSION").into(),
        kernel: kernel_name(),
        quic_ports,
    }))?;
    while let Some(line) = lines.read(LINE_LIMIT, now() + SILENCE, stop)? {
        match serde_json::from_slice(&line) {
            Ok(ControlRequest::Report) => {
                let until = now() + LAST_FLOWS;
                while !session.is_over() && now() < until && !stop() {
                    wait(lines.socket().as_fd(), PollFlags::empty(), Some(now() + Span::from_millis(1)));
                }
                lines.write(&ControlResponse::Report(session.report()))?;
            }
            Ok(ControlRequest::Arrivals) => {
                let records: Vec<u8> = session.arrivals().iter().flat_map(record).collect();
                lines.write(&ControlResponse::Arrivals((records.len() / ARRIVAL) as u32))?;
                lines.write_bytes(&records)?;
            }
            Ok(ControlRequest::Start(start)) => {
                let local = lines.socket().local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
                let ports = match &session.request.work {
                    Work::Voice(call) => voice::respond(session, local, call, start),
                    Work::Stream(stream) => video::respond(session, local, stream, start),
                    _ => Err("the session has no call and no video".into()),
                };
                lines.write(&ports.map_or_else(ControlResponse::Refused, ControlResponse::Started))?;
            }
            Ok(ControlRequest::Test(_)) => {
                return lines.write(&ControlResponse::Refused("a connection has one session".into()));
            }
            Err(error) => return lines.write(&ControlResponse::Refused(format!("invalid request: {error}"))),
        }
    }
    Ok(())
}

/// The wire format of an arrival.
fn record(arrival: &Arrival) -> [u8; ARRIVAL] {
    let mut record = [0; ARRIVAL];
    record[..4].copy_from_slice(&arrival.sequence.to_be_bytes());
    record[4..12].copy_from_slice(&arrival.sent.as_nanos().to_be_bytes());
    record[12..].copy_from_slice(&arrival.arrived.as_nanos().to_be_bytes());
    record
}

/// Runs the responder's end of a flow over TCP whose first `received` bytes were read before.
fn serve_flow(socket: Socket, session: &Session, flow: u32, received: u64, stop: &dyn Fn() -> bool) {
    let until = now() + LONGEST;
    let stop = || stop() || session.is_cancelled() || now() >= until;
    match &session.request.work {
        Work::Bulk(bulk) if flow < bulk.flows && bulk.quic.is_none() => session.flow(|| {
            let lost = |error: io::Error| FlowReport { flow, cause: Some(error.to_string()), ..FlowReport::default() };
            transfer(socket, bulk, flow, received, &stop).unwrap_or_else(lost)
        }),
        Work::Transactions(exchange) => {
            // The client detects a lost connection itself.
            let _ = answer(socket, exchange, received, &stop);
        }
        Work::Terminal(work) => {
            let _ = terminal::answer(socket, work, &stop);
        }
        Work::Adaptive(video) => {
            let _ = adaptive::answer(socket, video, &stop);
        }
        Work::Bulk(_)
        | Work::Ping(_)
        | Work::Datagrams(_)
        | Work::Page(_)
        | Work::Voice(_)
        | Work::Stream(_)
        | Work::SendRtp(_)
        | Work::ReceiveRtp(_) => {}
    }
}

/// The server's end of a connection with transactions.
fn answer(socket: Socket, exchange: &Exchange, received: u64, stop: &dyn Fn() -> bool) -> io::Result<()> {
    apply(&socket, &exchange.tcp)?;
    let mut stream = Stream::accepted(socket, received)?;
    let mut server = Server::new(exchange.transactions);
    run(&mut stream, stop, &mut |_, end| server.step(end)).map(drop)
}

/// The responder's end of a bulk transfer.
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
    Ok(FlowReport { tcp: TcpInfo::of(stream.socket()), ..report(flow, &milestones, ended.err()) })
}
