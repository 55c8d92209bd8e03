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
use crate::order::LARGEST_DATAGRAM;
use crate::ping::is_loss;
use crate::probe::{Kind, Probe};
use crate::record::Record;
use crate::stream::noise;

/// How often a stream that has not begun is asked for, and the responder for what has arrived of
/// one.
const ASK_AGAIN: Span = Span::from_millis(200);

/// What became of a stream.
pub struct Streamed {
    /// When it began.
    pub start: Instant,
    /// Datagrams that were sent.
    pub sent: u32,
    /// What arrived, by our clock.
    pub receiver: Receiver,
    /// Datagrams that arrived again, where the responder counted them.
    pub duplicates: u64,
    /// Whether all was sent, and all arrived or was waited for.
    pub over: bool,
}

/// Sends the whole stream by `send`, paced over `socket`, until `stop` says so; `sent` is told how
/// many went out. That one cannot be sent or is refused by a host on the way loses it.
///
/// # Errors
/// Where the socket fails.
pub fn stream(
    work: &Datagrams,
    order: u64,
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
            Probe { kind: Kind::Datagram, order, flow: 0, sequence, sent: now().as_nanos() }.emit(&mut datagram);
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

/// Runs the client's end of a stream, over a socket that is connected to the responder.
///
/// # Errors
/// Where the socket fails, or the responder is lost.
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
    let told = |sent: u32| record.progress(sent.into(), work.count());
    let sender = stream(work, control.order, socket, &send, &|| record.is_stopped(), &told);
    let sender = sender.map_err(MeasureError::socket("cannot send datagrams"))?;
    let deadline = now() + work.timeout;
    let mut report = control.report()?;
    while report.received < sender.sent() && now() < deadline && !record.is_stopped() {
        wait(socket.as_fd(), PollFlags::empty(), Some((now() + ASK_AGAIN).min(deadline)));
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
    let mut ask_next = start;
    let mut deadline = start + work.duration + work.timeout;
    while now() < deadline && u64::from(receiver.received()) < work.count() && !record.is_stopped() {
        if receiver.received() == 0 && now() >= ask_next {
            let ask = Probe { kind: Kind::Open, order: control.order, flow: 0, sequence: 0, sent: now().as_nanos() };
            ask.emit(&mut buffer);
            match socket.send(&buffer[..crate::probe::HEADER]) {
                Err(error) if !is_loss(&error) => return Err(failed(error)),
                _ => ask_next = now() + ASK_AGAIN,
            }
        }
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let arrived = now();
                let probe = Probe::parse(&buffer[..length]);
                let ours = |probe: &Probe| probe.kind == Kind::Datagram && probe.order == control.order;
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
                wait(socket.as_fd(), PollFlags::POLLIN, Some(ask_next.max(now() + ASK_AGAIN)))
            }
            Err(error) => return Err(failed(error)),
        }
    }
    let over = !record.is_stopped();
    let duplicates = receiver.duplicates();
    Ok(Streamed { start, sent: control.report()?.sent, receiver, duplicates, over })
}
