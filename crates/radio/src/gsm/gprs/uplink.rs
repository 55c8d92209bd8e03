//! A mobile's uplink: what waits in it, and its temporary block flow.
//!
//! ```text
//!   none ─► random access ─► assigned on CCCH ────────────────┐
//!     │        └──────────► single block ─► assignment on PACCH ─► transfer ─► none
//!     └─ asked for with a downlink bitmap ───────┘
//! ```
//!
//! An idle mobile sends an access burst; the answer on the common channel assigns a timeslot (one-phase) or a single
//! block in which to say more (two-phase). A mobile with a downlink flow asks for an uplink with the bitmap that it
//! sends when it is polled (3GPP TS 44.060 §7.1, §8.1.2.5). Then the network gives it blocks of its timeslots, one
//! after the other, and sends bitmaps; with its last blocks the mobile counts down, and can take nothing new in. The
//! network's last bitmap is acknowledged (§9.3.2.4). Extended uplink TBF mode keeps the flow instead (§9.3.1b.2).

use airpath_core::{Context, Direction, DropCause, Instant};
use airpath_link::queue::Queue;

use super::adaptation::Adapter;
use super::air::Air;
use super::coding_scheme::CodingScheme;
use super::config::Way;
use super::ends::Ends;
use super::mobile::{Burst, Timing};
use super::multiframe::{end_of, start_of};
use super::radio_block::{self, Half};
use crate::common::arq::acknowledged::{Framing, Receiver, Sender, Settings, Status};
use crate::common::arq::rlc_queue::RlcQueue;

const UP: Direction = Direction::Up;

/// Octets of the mobile's identity (TLLI) in each block until the network has confirmed it (TS 44.060 §7.1.2.3).
const CONTENTION_BYTES: u32 = 4;

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    None,
    /// Access burst and answer, until that block.
    Access {
        /// From this block on the mobile may use what was assigned.
        at: u64,
        /// Whether it got the answer; otherwise it begins again then.
        heard: bool,
    },
    /// It waits for the single block that was assigned to it.
    SingleBlock {
        /// The block, or the first that is free.
        at: u64,
    },
    /// It waits for a poll of the downlink.
    Request,
    /// An assignment is to be sent on the packet data channel.
    Assign {
        /// From this block on.
        from: u64,
    },
    /// It has got it.
    Start {
        /// The first block that uses it.
        at: u64,
    },
    /// It carries data.
    Transfer,
}

/// A bitmap of the network's on its way.
#[derive(Clone, Copy, Debug)]
enum Acknowledgement {
    /// It may be sent from that block on.
    Ready { from: u64 },
    /// The mobile got it, and acts on it from that block on.
    Heard { at: u64 },
    /// The last one was sent, and is to be answered.
    Unanswered { heard: bool },
}

/// A mobile's uplink.
#[derive(Debug)]
pub struct Uplink {
    /// What waits until a flow can take it in.
    pub queue: RlcQueue,
    sender: Sender,
    receiver: Receiver,
    pub phase: Phase,
    pub scheme: CodingScheme,
    pub adapter: Option<Adapter>,
    /// An RLC block of which the second half is to be sent.
    half: Option<Half>,
    /// A flow is needed whether there is data or not: the answer to a page.
    pub answers_page: bool,
    /// The network has not confirmed whose flow it is.
    is_contended: bool,
    /// The countdown has begun.
    is_closed: bool,
    acknowledgement: Option<Acknowledgement>,
    /// Whether that bitmap is the last one.
    is_final: bool,
    status: Status,
    judged: u64,
    since_acknowledgement: u32,
    /// Chances to send that nothing came of, in a row.
    unanswered: u32,
    idle_since: Option<(u64, u64)>,
    repeat_from: u64,
}

impl Uplink {
    /// An idle uplink.
    pub fn new((settings, framing): (Settings, Framing), queue: &Queue, way: &Way) -> Self {
        Self {
            queue: RlcQueue::new(queue),
            sender: Sender::new(settings, &Queue::default()).framed(framing),
            receiver: Receiver::new(settings.window),
            phase: Phase::None,
            scheme: way.scheme,
            adapter: way.adaptation.as_ref().map(|config| Adapter::new(config, way.scheme)),
            half: None,
            answers_page: false,
            is_contended: false,
            is_closed: false,
            acknowledgement: None,
            is_final: false,
            status: Status::default(),
            judged: 0,
            since_acknowledgement: 0,
            unanswered: 0,
            idle_since: None,
            repeat_from: 0,
        }
    }

    /// Whether a flow is wanted.
    pub fn has_data(&self) -> bool {
        self.answers_page || !self.queue.is_empty() || self.sender.has_new() || self.sender.has_unacknowledged()
    }

    /// Whether the flow waits for a window that is full.
    pub fn is_stalled(&self) -> bool {
        self.phase == Phase::Transfer && self.sender.is_stalled()
    }

    /// Lets data flow; `is_contended` with one-phase access.
    pub fn begin_transfer(&mut self, is_contended: bool) {
        self.phase = Phase::Transfer;
        self.is_contended = is_contended;
        self.is_closed = false;
        self.is_final = false;
        self.acknowledgement = None;
        self.since_acknowledgement = 0;
        self.unanswered = 0;
        self.idle_since = None;
        self.answers_page = false;
    }

    /// Ends the flow.
    pub fn release(&mut self) {
        self.phase = Phase::None;
        self.acknowledgement = None;
        self.half = None;
    }

    /// Whether the network gives the flow up: so many chances to send went unused.
    pub fn has_failed(&self, timing: &Timing) -> bool {
        self.unanswered >= timing.max_unanswered
    }

    /// Whether a chance to send is worth a block: of a flow that is only kept, now and then.
    #[inline]
    pub fn wants(&mut self, block: u64, timing: &Timing) -> bool {
        if self.phase != Phase::Transfer || self.is_final {
            return false;
        }
        if self.is_closed || !self.queue.is_empty() || self.sender.has_new() || self.sender.has_unacknowledged() {
            self.idle_since = None;
            return true;
        }
        // A flow that is kept: the network knows nothing of what the mobile has, and offers it a block now and then.
        let (since, last) = *self.idle_since.get_or_insert((block, block));
        if start_of(block).since(start_of(since)) >= timing.extended_uplink {
            self.close(block);
            return false;
        }
        start_of(block).since(start_of(last)) >= timing.keep_interval
    }

    /// The network ends a flow that was kept without data.
    fn close(&mut self, block: u64) {
        self.is_closed = true;
        self.acknowledge(block);
    }

    /// Sends a radio block.
    pub fn send(
        &mut self,
        block: u64,
        timing: &Timing,
        air: &mut Air,
        (ends, burst): (&mut Ends, &mut Burst),
        cx: &mut Context<'_>,
    ) {
        let at = start_of(block);
        let less = if self.is_contended { CONTENTION_BYTES } else { 0 };
        self.feed(at, self.scheme.payload() - less, timing, ends, cx);
        let Self { sender, half, repeat_from, receiver, adapter, .. } = self;
        let dropped = |packet| ends.lose(UP, at, packet, DropCause::QueueManagement, cx);
        let filled = radio_block::fill(sender, half, repeat_from, (self.scheme, less), at, dropped);
        let mut any_received = false;
        for pdu in filled.iter().flat_map(|filled| filled.pdus).flatten() {
            let filled = filled.as_ref().expect("it carries something");
            let attempt = filled.attempt(&pdu);
            let received = air.receives(UP, filled.scheme, attempt);
            burst.add(filled.scheme, pdu.attempt, received);
            any_received |= received;
            if let Some(adapter) = adapter.as_mut().filter(|_| attempt == 1) {
                adapter.count(received);
            }
            if filled.completes(&pdu, received, half) {
                receiver.receive(&pdu);
                self.since_acknowledgement += 1;
            }
        }
        if filled.is_none() {
            any_received = air.receives_control(UP);
            if let Some((_, last)) = &mut self.idle_since {
                *last = block;
            }
        }
        self.unanswered = if any_received { 0 } else { self.unanswered + 1 };
        self.sender.hand_over(self.receiver.complete(), |packet| ends.deliver(UP, end_of(block), packet));
        if any_received {
            let is_last = self.is_closed && !self.sender.has_new();
            let is_due = self.is_contended || is_last || self.since_acknowledgement >= timing.ack_interval;
            let is_kept = !self.is_closed && !self.sender.has_new() && self.sender.has_unacknowledged();
            if self.acknowledgement.is_none() && (is_due || is_kept || !self.sender.is_open()) {
                self.acknowledge(timing.network(block));
            }
        }
    }

    /// The network makes a bitmap, which it can send from block `from` on.
    fn acknowledge(&mut self, from: u64) {
        self.receiver.report(&mut self.status);
        self.judged = self.sender.transmissions();
        self.since_acknowledgement = 0;
        self.is_final =
            self.is_closed && !self.sender.has_new() && self.receiver.next_expected() == self.sender.next_sequence();
        self.acknowledgement = Some(Acknowledgement::Ready { from });
    }

    /// Takes packets in while the countdown has not begun, so many that the next block is full, and finds out whether
    /// it begins.
    fn feed(&mut self, at: Instant, payload: u32, timing: &Timing, ends: &mut Ends, cx: &mut Context<'_>) {
        if self.is_closed {
            return;
        }
        let countdown = u64::from(timing.countdown * payload);
        while self.sender.backlog(at).1 <= countdown {
            let dropped = |packet| ends.lose(UP, at, packet, DropCause::QueueManagement, cx);
            let Some(packet) = self.queue.dequeue(at, dropped) else {
                // All that there is fits into the blocks of the countdown.
                self.is_closed = timing.extended_uplink.is_zero();
                return;
            };
            self.sender.enqueue(at, packet);
        }
    }

    /// Whether a bitmap is to be sent in `block`.
    pub fn has_acknowledgement(&self, block: u64) -> bool {
        matches!(self.acknowledgement, Some(Acknowledgement::Ready { from }) if from <= block)
    }

    /// The bitmap is sent, and `heard` or not. Returns whether it is to be answered.
    pub fn send_acknowledgement(&mut self, block: u64, heard: bool) -> bool {
        if self.is_final {
            self.acknowledgement = Some(Acknowledgement::Unanswered { heard });
        } else {
            self.acknowledgement = heard.then_some(Acknowledgement::Heard { at: block + 2 });
        }
        self.is_final
    }

    /// The mobile takes in a bitmap that it has by `block`.
    pub fn take_acknowledgement(&mut self, block: u64) {
        if let Some(Acknowledgement::Heard { at }) = self.acknowledgement
            && at <= block
        {
            self.acknowledgement = None;
            self.is_contended = false;
            self.sender.handle(&self.status, self.judged);
            if let Some(adapter) = &mut self.adapter {
                self.scheme = adapter.decide();
            }
        }
    }

    /// The mobile answers the last bitmap, if it has heard it, and the network hears that or not, and acts from block `known_at` on.
    pub fn answer(&mut self, known_at: u64, gets_through: impl FnOnce() -> bool) {
        let Some(Acknowledgement::Unanswered { heard }) = self.acknowledgement else { return };
        if heard && gets_through() {
            self.sender.handle(&self.status, u64::MAX);
            self.release();
        } else {
            self.unanswered += 1;
            self.acknowledgement = Some(Acknowledgement::Ready { from: known_at });
        }
    }

    /// Sends anew in the next flow what was sent in part.
    pub fn restart(&mut self) {
        self.sender.restart();
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// Gives up what was sent in part.
    pub fn discard(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.reset(|packet| ends.lose(UP, at, packet, cause, cx));
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// Gives up what was taken into the flow and not sent.
    pub fn discard_waiting(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.clear_queue(|packet| ends.lose(UP, at, packet, cause, cx));
    }

    /// Packets and bytes that wait.
    pub fn backlog(&self, now: Instant) -> (u32, u64) {
        let (queued, sent) = (self.queue.backlog(now), self.sender.backlog(now));
        (queued.0 + sent.0, queued.1 + sent.1)
    }
}
