//! Datagrams over real sockets, to the responder or from it.

use std::cell::Cell;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use airpath_app::Datagrams;
use airpath_app::arrivals::Arrival;
use airpath_app::datagrams::{Receiver, Sender};
use airpath_core::{AppStep, Direction, Instant, Span};
use nix::poll::PollFlags;

use crate::clock::{now, wait};
use crate::control::Control;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::ping::is_loss;
use crate::probe::{Kind, Probe};
use crate::protocol::IpVersion;
use crate::record::Record;
use crate::stream::noise;
use crate::work::LARGEST_DATAGRAM;

/// Interval of requests for a stream that has not begun, and for the arrivals at the responder.
const REQUEST_INTERVAL: Span = Span::from_millis(200);

/// Result of a stream.
pub struct Streamed {
    /// Start time.
    pub start: Instant,
    /// Datagrams sent; if the responder that sent them is lost, those up to the last one that
    /// arrived.
    pub sent: u32,
    /// Arrivals, by this clock; `None` if the responder that has them is lost.
    pub receiver: Option<Receiver>,
    /// Duplicates, where the responder counted them.
    pub duplicates: u64,
    /// Whether everything was sent, and everything arrived or timed out.
    pub over: bool,
    /// The offset by which the times of the responder were converted.
    pub offset: Offset,
    /// The error that ended the stream early, if any.
    pub ended: Result<(), MeasureError>,
}

/// Sends the whole stream by `send`, paced over `socket`, until `stop` is true; `sent` receives the
/// number of datagrams sent. A datagram that cannot be sent or is refused on the path is lost. The
/// rate includes IP and UDP headers of `headers` bytes.
///
/// # Errors
/// The socket fails.
pub fn stream(
    work: &Datagrams,
    headers: u32,
    session: u64,
    socket: &UdpSocket,
    send: &dyn Fn(&[u8]) -> io::Result<()>,
    stop: &dyn Fn() -> bool,
    sent: &dyn Fn(u32),
) -> io::Result<()> {
    let start = now();
    let mut sender = Sender::new(*work, start).with_headers(headers);
    let mut datagram = noise()[..work.size as usize].to_vec();
    while !stop() {
        while let Some(sequence) = sender.poll(now()) {
            Probe { kind: Kind::Datagram, session, flow: 0, sequence, sent: now().as_nanos() }.emit(&mut datagram);
            match send(&datagram) {
                Err(error) if !is_loss(&error) => {
                    sent(sequence);
                    return Err(error);
                }
                _ => {}
            }
        }
        sent(sender.sent());
        match sender.next_due() {
            Some(due) => wait(socket.as_fd(), PollFlags::empty(), Some(due)),
            None => break,
        }
    }
    Ok(())
}

/// Runs the client's end of a stream, over a socket connected to the responder with `ip`.
pub fn measure(
    work: &Datagrams,
    ip: IpVersion,
    socket: &UdpSocket,
    control: &mut Control<'_>,
    offset: Offset,
    record: &mut Record<'_>,
) -> Streamed {
    let start = now();
    record.note(start, AppStep::Started, 0);
    let Transferred { sent, arrivals, duplicates, ended } = match work.direction {
        Direction::Up => up(work, ip, socket, control, record),
        Direction::Down => down(work, ip, socket, control, record, start),
    };
    let (receiver, offset) = match arrivals {
        Some(arrivals) => {
            let (receiver, offset) = by_this_clock(arrivals.arrivals(), work.direction, offset);
            (Some(receiver), offset)
        }
        None => (None, offset),
    };
    let arrivals = receiver.iter().flat_map(Receiver::arrivals).enumerate();
    for (index, arrival) in arrivals {
        let delivered = (index as u64 + 1) * u64::from(work.size);
        record.note(
            arrival.arrived,
            AppStep::Arrived { sequence: arrival.sequence, delay: arrival.delay() },
            delivered,
        );
    }
    let over = ended.is_ok() && !record.is_stopped();
    Streamed { start, sent, receiver, duplicates, over, offset, ended }
}

/// A stream whose arrivals have send and arrival times by the clock of each end.
struct Transferred {
    sent: u32,
    arrivals: Option<Receiver>,
    duplicates: u64,
    ended: Result<(), MeasureError>,
}

/// The arrivals with all times by this clock, and the offset with which no delay is negative.
fn by_this_clock(arrivals: &[Arrival], direction: Direction, offset: Offset) -> (Receiver, Offset) {
    let converted = |offset: Offset, arrival: &Arrival| match direction {
        Direction::Down => Arrival { sent: offset.to_ours(arrival.sent.as_nanos()), ..*arrival },
        Direction::Up => Arrival { arrived: offset.to_ours(arrival.arrived.as_nanos()), ..*arrival },
    };
    let delays = arrivals.iter().map(|arrival| converted(offset, arrival));
    let least = delays.map(|arrival| Offset::delay(arrival.sent, arrival.arrived)).min();
    let offset = match direction {
        Direction::Down => offset.corrected(least, None),
        Direction::Up => offset.corrected(None, least),
    };
    let mut receiver = Receiver::default();
    for arrival in arrivals {
        let Arrival { sequence, sent, arrived } = converted(offset, arrival);
        receiver.receive(arrived, sequence, sent);
    }
    (receiver, offset)
}

fn up(
    work: &Datagrams,
    ip: IpVersion,
    socket: &UdpSocket,
    control: &mut Control<'_>,
    record: &Record<'_>,
) -> Transferred {
    let send = |datagram: &[u8]| socket.send(datagram).map(drop);
    let (sent, all) = (Cell::new(0), work.count_with(ip.udp_headers()));
    let report_sent = |count: u32| {
        sent.set(count);
        record.progress(count.into(), all);
    };
    let session = control.session;
    let streamed = stream(work, ip.udp_headers(), session, socket, &send, &|| record.is_stopped(), &report_sent);
    let ended = streamed.map_err(MeasureError::socket("cannot send datagrams"));
    match arrivals_at_responder(work, socket, control, record, sent.get(), all) {
        Ok((arrivals, duplicates)) => Transferred { sent: sent.get(), arrivals: Some(arrivals), duplicates, ended },
        Err(lost) => Transferred { sent: sent.get(), arrivals: None, duplicates: 0, ended: ended.and(Err(lost)) },
    }
}

/// Waits for the last of `sent` datagrams. Returns the arrivals at the responder, and the number of
/// duplicates.
fn arrivals_at_responder(
    work: &Datagrams,
    socket: &UdpSocket,
    control: &mut Control<'_>,
    record: &Record<'_>,
    sent: u32,
    all: u64,
) -> Result<(Receiver, u64), MeasureError> {
    let deadline = now() + work.timeout;
    let mut report = control.report()?;
    while report.received < sent && now() < deadline && !record.is_stopped() {
        wait(socket.as_fd(), PollFlags::empty(), Some((now() + REQUEST_INTERVAL).min(deadline)));
        report = control.report()?;
    }
    let mut arrivals = Receiver::default();
    for (sequence, sent, arrived) in control.arrivals(all)? {
        arrivals.receive(Instant::from_nanos(arrived), sequence, Instant::from_nanos(sent));
    }
    Ok((arrivals, report.duplicates))
}

fn down(
    work: &Datagrams,
    ip: IpVersion,
    socket: &UdpSocket,
    control: &mut Control<'_>,
    record: &Record<'_>,
    start: Instant,
) -> Transferred {
    let mut arrivals = Receiver::default();
    let received = receive(work, ip, socket, control.session, record, start, &mut arrivals);
    let ended = received.map_err(MeasureError::socket("cannot receive datagrams"));
    let (sent, ended) = match control.report() {
        Ok(report) => (report.sent, ended),
        Err(lost) => {
            let last = arrivals.arrivals().iter().map(|arrival| arrival.sequence).max();
            (last.map_or(0, |last| last + 1), ended.and(Err(lost)))
        }
    };
    let duplicates = arrivals.duplicates();
    Transferred { sent, arrivals: Some(arrivals), duplicates, ended }
}

/// Receives the stream from the responder: `arrivals` with send times by the responder's clock.
fn receive(
    work: &Datagrams,
    ip: IpVersion,
    socket: &UdpSocket,
    session: u64,
    record: &Record<'_>,
    start: Instant,
    arrivals: &mut Receiver,
) -> io::Result<()> {
    let all = work.count_with(ip.udp_headers());
    let mut buffer = vec![0; LARGEST_DATAGRAM as usize];
    let mut next_request = start;
    let mut deadline = start + work.duration + work.timeout;
    while now() < deadline && u64::from(arrivals.received()) < all && !record.is_stopped() {
        if arrivals.received() == 0 && now() >= next_request {
            let open = Probe { kind: Kind::Open, session, flow: 0, sequence: 0, sent: now().as_nanos() };
            open.emit(&mut buffer);
            match socket.send(&buffer[..crate::probe::HEADER]) {
                Err(error) if !is_loss(&error) => return Err(error),
                _ => next_request = now() + REQUEST_INTERVAL,
            }
        }
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let arrived = now();
                let probe = Probe::parse(&buffer[..length]);
                let ours = |probe: &Probe| probe.kind == Kind::Datagram && probe.session == session;
                let Some(probe) = probe.filter(|each| ours(each) && u64::from(each.sequence) < all) else {
                    continue;
                };
                if arrivals.received() == 0 {
                    deadline = arrived + work.duration + work.timeout;
                }
                arrivals.receive(arrived, probe.sequence, Instant::from_nanos(probe.sent));
                record.progress(arrivals.received().into(), all);
            }
            Err(error) if is_loss(&error) => {
                wait(socket.as_fd(), PollFlags::POLLIN, Some(next_request.max(now() + REQUEST_INTERVAL)))
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each 10 ms a datagram; the responder's clock is an hour ahead, the estimate 20 ms wrong.
    fn streamed(direction: Direction, delays: [u64; 4]) -> (Vec<u64>, f64) {
        let (theirs, error) = (Span::from_secs(3600), Span::from_millis(20));
        let estimate = match direction {
            Direction::Down => theirs - error,
            Direction::Up => theirs + error,
        };
        let offset = Offset::Estimated {
            nanos: estimate.as_nanos().into(),
            round_trip: Span::from_millis(50),
            exchanges: 8,
            correction: 0,
        };
        let arrivals = (0..).zip(delays).map(|(sequence, delay)| {
            let sent = Instant::ZERO + Span::from_secs(1) + Span::from_millis(10) * u64::from(sequence);
            let arrived = sent + Span::from_millis(delay);
            match direction {
                Direction::Down => Arrival { sequence, sent: sent + theirs, arrived },
                Direction::Up => Arrival { sequence, sent, arrived: arrived + theirs },
            }
        });
        let (receiver, offset) = by_this_clock(&arrivals.collect::<Vec<_>>(), direction, offset);
        let delays = receiver.delays().iter().map(|delay| delay.as_nanos() / 1_000_000).collect();
        (delays, offset.to_json()["correction_s"].as_f64().unwrap_or_default())
    }

    #[test]
    fn an_error_of_the_offset_changes_no_difference_of_delays() {
        // The true delays are 5 to 35 ms: by the estimate, some would be negative.
        for (direction, sign) in [(Direction::Down, 1.0), (Direction::Up, -1.0)] {
            let (delays, correction) = streamed(direction, [35, 5, 10, 20]);
            assert_eq!(delays, [30, 0, 5, 15], "{direction:?}");
            assert_eq!(correction, sign * 0.015, "{direction:?}");
            // Here all are above the error.
            assert_eq!(streamed(direction, [35, 25, 30, 40]), (vec![15, 5, 10, 20], 0.0), "{direction:?}");
        }
    }
}
