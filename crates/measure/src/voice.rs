//! A call over real sockets.
//!
//! The responder reports the arrival of each packet. The client repeats these arrivals and its own
//! in an [`End`] for each direction, so that all figures come from the same code, with an offset of
//! the clocks by which no delay is negative.

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
    /// Both ends, by the direction in which they send. If the responder is lost, its end has sent
    /// the packets up to the last one that arrived.
    pub ends: [End; 2],
    /// Whether the arrivals at the responder are known.
    pub has_uplink: bool,
    /// Whether it lasted to its end.
    pub over: bool,
    /// The offset by which the times of the responder were converted.
    pub offset: Offset,
    /// The error that ended the call early, if any.
    pub ended: Result<(), MeasureError>,
}

/// Runs the client's end of a call with the responder at `peer`.
///
/// # Errors
/// The call cannot start.
pub fn call(
    work: &Call,
    peer: SocketAddr,
    control: &mut Control<'_>,
    offset: Offset,
    record: &mut Record<'_>,
) -> Result<Called, MeasureError> {
    let (start, mut ports) = rtp::open(control, offset, peer, PORTS)?;
    record.note(start, AppStep::Started, 0);
    let session = Arc::new(work.session());
    let stop = record.stop_check();
    let end = End::new(Arc::clone(&session), Direction::Up, start);
    let mut caller = Caller { end, sent: Vec::new(), arrived: Vec::new(), record };
    let ended = rtp::run_client(&mut ports, &mut caller, start, &stop);
    let Caller { end: mine, sent, arrived, record } = caller;
    let is_complete = matches!(ended, Ok(true));
    let (reported, ended) = match control.arrivals(sent.len() as u64) {
        Ok(reported) => (Some(reported), ended.map(drop)),
        Err(lost) => (None, ended.and(Err(lost))),
    };
    let corrected = correct(offset, &session, start, &arrived, reported.as_deref().unwrap_or_default());
    // What the other end has sent and received.
    let mut theirs = End::new(Arc::clone(&session), Direction::Down, start);
    match &reported {
        Some(_) if is_complete => while theirs.poll(Instant::FAR_FUTURE).is_some() {},
        Some(_) => {
            // A call that was stopped: packets sent within the longest delay may be in flight.
            let last = now() - mine.received().delays.quantile(1.0).unwrap_or_default();
            while theirs.poll(last).is_some() {}
        }
        None => {
            let packets = arrived.iter().map(|arrival| arrival.number + 1).max().unwrap_or_default();
            send(&mut theirs, packets);
        }
    }
    for (number, _, arrived) in reported.iter().flatten() {
        theirs.receive(corrected.to_ours(*arrived), &sent[*number as usize]);
    }
    // By the corrected offset the other end has started at another time of this clock.
    let mut mine = End::new(Arc::clone(&session), Direction::Up, corrected.to_ours(offset.to_theirs(start)));
    send(&mut mine, sent.len() as u32);
    for Received { time, bytes, .. } in &arrived {
        let Some(arrival) = mine.receive(*time, bytes) else { continue };
        let received = u64::from(mine.received().packets);
        record.note(*time, AppStep::Arrived { sequence: arrival.number, delay: arrival.delay }, received);
        if let Some(spurt) = arrival.spurt {
            let step = AppStep::Playout { sequence: spurt.first, delay: spurt.delay + LOOK_AHEAD };
            record.note(*time, step, received);
        }
    }
    let over = is_complete && ended.is_ok();
    if over {
        record.note(now(), AppStep::Finished, u64::from(mine.received().packets));
    }
    let has_uplink = reported.is_some();
    Ok(Called { start, session, ends: [theirs, mine], has_uplink, over, offset: corrected, ended })
}

/// Sends `packets` packets of `end`, without a path.
fn send(end: &mut End, packets: u32) {
    while end.sent().packets < packets && end.poll(Instant::FAR_FUTURE).is_some() {}
}

/// The offset with which no delay of a call is negative; see [`Offset::corrected`]. `reported` are
/// the packets that arrived at the responder: number, and arrival time by its clock.
fn correct(
    offset: Offset,
    session: &Arc<Session>,
    start: Instant,
    arrived: &[Received],
    reported: &[(u32, u64, u64)],
) -> Offset {
    // When each packet is due by this clock, in order.
    let due = |direction| {
        let mut end = End::new(Arc::clone(session), direction, start);
        let next = || {
            let due = end.next_wakeup(Instant::ZERO);
            end.poll(Instant::FAR_FUTURE).and(due)
        };
        std::iter::from_fn(next).collect::<Vec<Instant>>()
    };
    let least = |direction, arrivals: &mut dyn Iterator<Item = (u32, Instant)>| {
        let due = due(direction);
        arrivals.filter_map(|(number, time)| Some(Offset::delay(*due.get(number as usize)?, time))).min()
    };
    let down = least(Direction::Down, &mut arrived.iter().map(|arrival| (arrival.number, arrival.time)));
    let up = least(Direction::Up, &mut reported.iter().map(|(number, _, time)| (*number, offset.to_ours(*time))));
    offset.corrected(down, up)
}

/// The client's end.
struct Caller<'a, 'b> {
    end: End,
    /// The heads of its packets.
    sent: Vec<Vec<u8>>,
    arrived: Vec<Received>,
    record: &'a mut Record<'b>,
}

/// A packet that arrived at this end.
struct Received {
    time: Instant,
    number: u32,
    bytes: Vec<u8>,
}

impl rtp::End for Caller<'_, '_> {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        let packet = self.end.poll(now)?;
        self.sent.push(packet.head.to_vec());
        Some(Datagram::write(0, packet.head, packet.media, buffer))
    }

    fn receive(&mut self, now: Instant, _: usize, bytes: &[u8]) {
        let Some(arrival) = self.end.receive(now, bytes) else { return };
        self.arrived.push(Received { time: now, number: arrival.number, bytes: bytes.to_vec() });
        let received = u64::from(self.end.received().packets);
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
