//! A call over real sockets.
//!
//! The responder reports the arrival of each packet; the client repeats these arrivals in an
//! [`End`] of its own, so that all figures come from the same code.

use std::net::SocketAddr;
use std::sync::Arc;

use airpath_app::voice::codec::LOOK_AHEAD;
use airpath_app::voice::{End, Session};
use airpath_core::{AppStep, Direction, Instant};

use crate::clock::now;
use crate::control::Control;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::record::Record;
use crate::rtp::{self, Datagram};
use crate::serve::Session as Measured;
use crate::work::Call;

/// Ports of a call at each end.
const PORTS: usize = 1;

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
    let (start, mut ports) = rtp::open(control, offset, peer, PORTS)?;
    record.note(start, AppStep::Started, 0);
    let session = Arc::new(work.session());
    let stop = record.stop_check();
    let mut caller = Caller { end: End::new(Arc::clone(&session), Direction::Up, start), sent: Vec::new(), record };
    let over = rtp::run_client(&mut ports, &mut caller, start, &stop)?;
    let Caller { end: mine, sent, record } = caller;
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

/// The client's end.
struct Caller<'a, 'b> {
    end: End,
    /// The heads of its packets.
    sent: Vec<Vec<u8>>,
    record: &'a mut Record<'b>,
}

impl rtp::End for Caller<'_, '_> {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        let packet = self.end.poll(now)?;
        self.sent.push(packet.head.to_vec());
        Some(Datagram::write(0, packet.head, packet.media, buffer))
    }

    fn receive(&mut self, now: Instant, _: usize, bytes: &[u8]) {
        let Some(arrival) = self.end.receive(now, bytes) else { return };
        let received = u64::from(self.end.received().packets);
        let step = AppStep::Arrived { sequence: arrival.number, delay: arrival.delay };
        self.record.note(now, step, received);
        if let Some(spurt) = arrival.spurt {
            let step = AppStep::Playout { sequence: spurt.first, delay: spurt.delay + LOOK_AHEAD };
            self.record.note(now, step, received);
        }
        self.record.progress(received, received);
    }

    fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.end.next_wakeup(now)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.end.is_over(now)
    }
}

/// Runs the responder's end of a call that starts at `start` by this clock, in a thread. Returns
/// its port.
///
/// # Errors
/// The reason, as a message for the client.
pub fn respond(session: &Arc<Measured>, local: SocketAddr, work: &Call, start: u64) -> Result<Vec<u16>, String> {
    let (of_call, work) = (Arc::clone(session), work.clone());
    rtp::respond(session, local, PORTS, start, move |start| Callee {
        end: End::new(Arc::new(work.session()), Direction::Down, start),
        session: of_call,
    })
}

/// The responder's end.
struct Callee {
    end: End,
    session: Arc<Measured>,
}

impl rtp::End for Callee {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        let packet = self.end.poll(now)?;
        let datagram = Datagram::write(0, packet.head, packet.media, buffer);
        self.session.has_sent(self.end.sent().packets);
        Some(datagram)
    }

    fn receive(&mut self, now: Instant, _: usize, bytes: &[u8]) {
        if let Some(arrival) = self.end.receive(now, bytes) {
            self.session.receiver().receive(now, arrival.number, Instant::ZERO);
        }
    }

    fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.end.next_wakeup(now)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.end.is_over(now)
    }
}
