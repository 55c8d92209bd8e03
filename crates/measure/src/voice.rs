//! A call over real sockets.
//!
//! RTP packets have no room for the header of [`crate::probe`], so a call has UDP ports of its own.
//! The client requests the responder's port on the control connection, with the time at which the
//! call starts, and sends to it from one port. The responder sends to the address from which the
//! first datagram of the client came. It reports the arrival of each packet; the client repeats
//! these arrivals in an [`End`] of its own, so that all figures come from the same code.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use airpath_app::voice::codec::LOOK_AHEAD;
use airpath_app::voice::{End, Session};
use airpath_core::{AppStep, Direction, Instant, Span};
use nix::poll::PollFlags;

use crate::clock::{now, wait};
use crate::control::Control;
use crate::datagram_socket;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::ping::is_loss;
use crate::record::Record;
use crate::serve::Session as Measured;
use crate::stream::noise;
use crate::work::Call;

/// From the request of the call to its start, so that both ends are ready; and two round trips.
const LEAD: Span = Span::from_millis(500);
/// Latest start that a responder accepts.
const LATEST: Span = Span::from_secs(60);
/// Interval of the client's datagrams before the start, which open the path to it.
const OPENING: Span = Span::from_millis(100);
/// Longest datagram that is sent or received.
const LONGEST: usize = 2048;

/// Result of a call.
pub struct Called {
    /// When it started.
    pub start: Instant,
    /// The call, as both ends have it.
    pub session: Arc<Session>,
    /// Both ends, by the direction in which they send.
    pub ends: [End; 2],
    /// Whether it lasted to its end.
    pub over: bool,
}

/// Runs the client's end of a call with the responder at `peer`.
///
/// # Errors
/// The socket fails, or the responder is lost.
pub fn call(
    work: &Call,
    peer: SocketAddr,
    control: &mut Control,
    offset: Offset,
    record: &mut Record<'_>,
) -> Result<Called, MeasureError> {
    let start = now() + LEAD + control.round_trip() * 2;
    let port = control.call(offset.to_theirs(start))?;
    let socket = datagram_socket(SocketAddr::new(peer.ip(), port));
    let socket = socket.map_err(MeasureError::socket("cannot make a socket for the call"))?;
    record.note(start, AppStep::Started, 0);
    let session = Arc::new(work.session());
    let mut mine = End::new(Arc::clone(&session), Direction::Up, start);
    let mut sent = Vec::new();
    let over = talk(&socket, &mut mine, start, &mut sent, record);
    let over = over.map_err(MeasureError::socket("cannot send or receive packets of the call"))?;
    // What the other end has sent and received.
    let mut theirs = End::new(Arc::clone(&session), Direction::Down, start);
    // A call that was stopped: packets sent within the longest delay may be in flight.
    let last = match over {
        true => Instant::FAR_FUTURE,
        false => now() - mine.received().delays.quantile(1.0).unwrap_or_default(),
    };
    while theirs.poll(last).is_some() {}
    for (number, _, arrived) in control.arrivals(sent.len() as u64)? {
        theirs.receive(offset.to_ours(arrived), &sent[number as usize]);
    }
    if over {
        record.note(now(), AppStep::Finished, u64::from(mine.received().packets));
    }
    Ok(Called { start, session, ends: [theirs, mine], over })
}

/// Sends and receives until the call is over; the heads of the packets go to `sent`. Returns
/// whether it is over.
fn talk(
    socket: &UdpSocket,
    end: &mut End,
    start: Instant,
    sent: &mut Vec<Vec<u8>>,
    record: &mut Record<'_>,
) -> io::Result<bool> {
    let mut buffer = [0; LONGEST];
    let mut opening = now();
    loop {
        let time = now();
        if end.is_over(time) || record.is_stopped() {
            return Ok(end.is_over(time));
        }
        if opening <= time && time < start {
            ignore_loss(socket.send(&[0]))?;
            opening += OPENING;
        }
        while let Some(length) = packet(end, time, &mut buffer) {
            sent.push(buffer[..length.head].to_vec());
            ignore_loss(socket.send(&buffer[..length.all]))?;
        }
        loop {
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if is_loss(&error) => break,
                Err(error) => return Err(error),
            };
            let arrived = now();
            let Some(arrival) = end.receive(arrived, &buffer[..length]) else { continue };
            let received = u64::from(end.received().packets);
            let step = AppStep::Arrived { sequence: arrival.number, delay: arrival.delay };
            record.note(arrived, step, received);
            if let Some(spurt) = arrival.spurt {
                let step = AppStep::Playout { sequence: spurt.first, delay: spurt.delay + LOOK_AHEAD };
                record.note(arrived, step, received);
            }
            record.progress(received, received);
        }
        let next = end.next_wakeup(time);
        let until = if time < start { next.min(Some(opening)) } else { next };
        wait(socket.as_fd(), PollFlags::POLLIN, until);
    }
}

/// Lengths of a packet.
struct Length {
    head: usize,
    all: usize,
}

/// Writes the next packet of `end` to `buffer`, if one is due.
fn packet(end: &mut End, time: Instant, buffer: &mut [u8; LONGEST]) -> Option<Length> {
    let packet = end.poll(time)?;
    let (head, all) = (packet.head.len(), packet.head.len() + packet.media as usize);
    buffer[..head].copy_from_slice(packet.head);
    buffer[head..all].copy_from_slice(&noise()[..all - head]);
    Some(Length { head, all })
}

/// A datagram that cannot be sent, or is refused on the path, is lost.
fn ignore_loss(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if !is_loss(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Runs the responder's end of a call that starts at `start` by this clock, in a thread. Returns
/// its port.
///
/// # Errors
/// The reason, as a message for the client.
pub fn respond(session: &Arc<Measured>, local: SocketAddr, work: &Call, start: u64) -> Result<u16, String> {
    let start = Instant::from_nanos(start);
    if start > now() + LATEST {
        return Err(format!("the call would start in more than {LATEST}"));
    }
    if !session.begins_to_stream() {
        return Err("a session has one call".into());
    }
    let failed = |error: io::Error| format!("it has no socket for the call: {error}");
    let socket = UdpSocket::bind(SocketAddr::new(local.ip(), 0)).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let port = socket.local_addr().map_err(failed)?.port();
    let (session, work) = (Arc::clone(session), work.clone());
    thread::spawn(move || {
        // A socket error ends the call; the client detects how much of it arrived.
        let _ = serve(&socket, &session, &work, start);
    });
    Ok(port)
}

fn serve(socket: &UdpSocket, session: &Measured, work: &Call, start: Instant) -> io::Result<()> {
    let mut end = End::new(Arc::new(work.session()), Direction::Down, start);
    let mut client: Option<SocketAddr> = None;
    let mut buffer = [0; LONGEST];
    while !end.is_over(now()) && !session.is_cancelled() {
        let time = now();
        while let Some(length) = packet(&mut end, time, &mut buffer) {
            if let Some(client) = client {
                ignore_loss(socket.send_to(&buffer[..length.all], client))?;
            }
            session.has_sent(end.sent().packets);
        }
        loop {
            let (length, from) = match socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if is_loss(&error) => break,
                Err(error) => return Err(error),
            };
            if from.ip().to_canonical() != session.client {
                continue;
            }
            client.get_or_insert(from);
            let arrived = now();
            if let Some(arrival) = end.receive(arrived, &buffer[..length]) {
                session.receiver().receive(arrived, arrival.number, Instant::ZERO);
            }
        }
        wait(socket.as_fd(), PollFlags::POLLIN, end.next_wakeup(time));
    }
    Ok(())
}
