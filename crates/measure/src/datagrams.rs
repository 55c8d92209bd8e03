//! Datagrams over real sockets, to the responder or from it.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use airpath_app::Datagrams;
use airpath_app::datagrams::{Receiver, Sender};
use airpath_core::{AppStep, Direction, Instant, Span};
use nix::poll::PollFlags;

use crate::clock::{now, wait};
use crate::control::Control;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::ping::is_loss;
use crate::probe::{Kind, Probe};
use crate::record::Record;
use crate::stream::noise;
use crate::work::LARGEST_DATAGRAM;

/// Interval of requests for a stream that has not begun, and for the arrivals at the responder.
const REQUEST_INTERVAL: Span = Span::from_millis(200);

/// Result of a stream.
pub struct Streamed {
    /// Start time.
    pub start: Instant,
    /// Datagrams sent.
    pub sent: u32,
    /// Arrivals, by this clock.
    pub receiver: Receiver,
    /// Duplicates, where the responder counted them.
    pub duplicates: u64,
    /// Whether everything was sent, and everything arrived or timed out.
    pub over: bool,
}

/// Sends the whole stream by `send`, paced over `socket`, until `stop` is true; `sent` receives the
/// number of datagrams sent. A datagram that cannot be sent or is refused on the path is lost.
///
/// # Errors
/// The socket fails.
pub fn stream(
    work: &Datagrams,
    session: u64,
    socket: &UdpSocket,
    send: &dyn Fn(&[u8]) -> io::Result<()>,
    stop: &dyn Fn() -> bool,
    sent: &dyn Fn(u32),
) -> io::Result<Sender> {
    let start = now();
    let mut sender = Sender::new(*work, start);
    let mut datagram = noise()[..work.size as usize].to_vec();
    while !stop() {
        while let Some(sequence) = sender.poll(now()) {
            Probe { kind: Kind::Datagram, session, flow: 0, sequence, sent: now().as_nanos() }.emit(&mut datagram);
            match send(&datagram) {
                Err(error) if !is_loss(&error) => return Err(error),
                _ => {}
            }
        }
        sent(sender.sent());
        match sender.next_due() {
            Some(due) => wait(socket.as_fd(), PollFlags::empty(), Some(due)),
            None => break,
        }
    }
    Ok(sender)
}

/// Runs the client's end of a stream, over a socket connected to the responder.
///
/// # Errors
/// The socket fails, or the responder is lost.
pub fn measure(
    work: &Datagrams,
    socket: &UdpSocket,
    control: &mut Control,
    offset: Offset,
    record: &mut Record<'_>,
) -> Result<Streamed, MeasureError> {
    let start = now();
    record.note(start, AppStep::Started, 0);
    let streamed = match work.direction {
        Direction::Up => up(work, socket, control, offset, record, start),
        Direction::Down => down(work, socket, control, offset, record, start),
    }?;
    let arrivals = streamed.receiver.arrivals().iter().enumerate();
    for (index, arrival) in arrivals {
        let delivered = (index as u64 + 1) * u64::from(work.size);
        record.note(
            arrival.arrived,
            AppStep::Arrived { sequence: arrival.sequence, delay: arrival.delay() },
            delivered,
        );
    }
    Ok(streamed)
}

fn up(
    work: &Datagrams,
    socket: &UdpSocket,
    control: &mut Control,
    offset: Offset,
    record: &Record<'_>,
    start: Instant,
) -> Result<Streamed, MeasureError> {
    let send = |datagram: &[u8]| socket.send(datagram).map(drop);
    let report_sent = |sent: u32| record.progress(sent.into(), work.count());
    let sender = stream(work, control.session, socket, &send, &|| record.is_stopped(), &report_sent);
    let sender = sender.map_err(MeasureError::socket("cannot send datagrams"))?;
    let deadline = now() + work.timeout;
    let mut report = control.report()?;
    while report.received < sender.sent() && now() < deadline && !record.is_stopped() {
        wait(socket.as_fd(), PollFlags::empty(), Some((now() + REQUEST_INTERVAL).min(deadline)));
        report = control.report()?;
    }
    let mut receiver = Receiver::default();
    for (sequence, sent, arrived) in control.arrivals(work.count())? {
        receiver.receive(offset.to_ours(arrived), sequence, Instant::from_nanos(sent));
    }
    let over = !record.is_stopped();
    Ok(Streamed { start, sent: sender.sent(), receiver, duplicates: report.duplicates, over })
}

fn down(
    work: &Datagrams,
    socket: &UdpSocket,
    control: &mut Control,
    offset: Offset,
    record: &Record<'_>,
    start: Instant,
) -> Result<Streamed, MeasureError> {
    let failed = |source| MeasureError::Socket { what: "cannot receive datagrams".into(), source };
    let mut receiver = Receiver::default();
    let mut buffer = vec![0; LARGEST_DATAGRAM as usize];
    let mut next_request = start;
    let mut deadline = start + work.duration + work.timeout;
    while now() < deadline && u64::from(receiver.received()) < work.count() && !record.is_stopped() {
        if receiver.received() == 0 && now() >= next_request {
            let open =
                Probe { kind: Kind::Open, session: control.session, flow: 0, sequence: 0, sent: now().as_nanos() };
            open.emit(&mut buffer);
            match socket.send(&buffer[..crate::probe::HEADER]) {
                Err(error) if !is_loss(&error) => return Err(failed(error)),
                _ => next_request = now() + REQUEST_INTERVAL,
            }
        }
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let arrived = now();
                let probe = Probe::parse(&buffer[..length]);
                let ours = |probe: &Probe| probe.kind == Kind::Datagram && probe.session == control.session;
                let Some(probe) = probe.filter(|each| ours(each) && u64::from(each.sequence) < work.count()) else {
                    continue;
                };
                if receiver.received() == 0 {
                    deadline = arrived + work.duration + work.timeout;
                }
                receiver.receive(arrived, probe.sequence, offset.to_ours(probe.sent));
                record.progress(receiver.received().into(), work.count());
            }
            Err(error) if is_loss(&error) => {
                wait(socket.as_fd(), PollFlags::POLLIN, Some(next_request.max(now() + REQUEST_INTERVAL)))
            }
            Err(error) => return Err(failed(error)),
        }
    }
    let over = !record.is_stopped();
    let duplicates = receiver.duplicates();
    Ok(Streamed { start, sent: control.report()?.sent, receiver, duplicates, over })
}
