//! A mobile's downlink: what waits for it, and its temporary block flow.
//!
//! ```text
//!          CCCH (idle)                       PACCH
//!   none ─► paging ─► assigned on CCCH ─► assignment ─► acknowledged ─► transfer ─► none
//!     └──────── still listening (T3192), or an uplink flow ──┘
//! ```
//!
//! An assignment on the common channel gives one timeslot, so that one on the packet data channel follows, which
//! the mobile acknowledges (3GPP TS 44.060 §7.2, TS 44.018 §3.5.3). The network polls for bitmaps while it sends; a poll
//! with the last block ends the flow when all is acknowledged (TS 44.060 §9.3.2.5).

use airpath_core::{Context, Direction, DropCause, Instant, Packet, Span};
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

const DOWN: Direction = Direction::Down;

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    None,
    /// The mobile was paged, and answers in that block.
    Paging {
        /// When.
        at: u64,
    },
    /// The answer to the page is under way: the mobile sets an uplink flow up.
    Paged,
    /// An assignment was sent on the common channel.
    Common {
        /// The block from which the mobile can be addressed on its packet data channel.
        at: u64,
        /// Whether it got it.
        heard: bool,
    },
    /// An assignment is to be sent on the packet data channel.
    Assign {
        /// From this block on.
        from: u64,
    },
    /// It was sent, and the acknowledgement is due.
    Assigned {
        /// Whether the mobile got it.
        heard: bool,
    },
    /// It was acknowledged, or not, which the network will know.
    Answered {
        /// From this block on.
        at: u64,
        /// Whether it was.
        heard: bool,
    },
    /// It carries data.
    Transfer,
}

/// A poll that was sent with a block.
#[derive(Clone, Copy, Debug)]
struct Poll {
    /// Whether the mobile got it.
    heard: bool,
    /// Whether it is the one that ends the flow.
    is_final: bool,
    /// When the network knows what came of it; set with the reply.
    answer: Option<(u64, bool)>,
}

/// What a flow could do with a block of its timeslots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Nothing.
    Nothing,
    /// Repeat what was not acknowledged yet, for want of anything better.
    Repeat,
    /// Send.
    Data,
}

/// A mobile's downlink.
#[derive(Debug)]
pub struct Downlink {
    /// What waits in the support node.
    pub queue: RlcQueue,
    pub sender: Sender,
    receiver: Receiver,
    pub phase: Phase,
    pub scheme: CodingScheme,
    pub adapter: Option<Adapter>,
    /// An RLC block of which the second half is to be sent.
    half: Option<Half>,
    /// The network leaves the mobile alone until this block.
    not_before: u64,
    poll: Option<Poll>,
    since_poll: u32,
    /// Polls without an answer, in a row.
    unanswered: u32,
    /// The last block was sent: what comes now waits for the next flow.
    is_finishing: bool,
    /// When there was nothing to do for the first time, and when the flow was given a block last since.
    idle_since: Option<(u64, u64)>,
    /// The block from which the search for something to repeat goes on.
    repeat_from: u64,
    /// The bitmap of the poll that is being answered, and which transmissions it can know of.
    status: Status,
    judged: u64,
}

impl Downlink {
    /// An idle downlink.
    pub fn new((settings, framing): (Settings, Framing), queue: &Queue, way: &Way) -> Self {
        Self {
            queue: RlcQueue::new(queue),
            sender: Sender::new(settings, &Queue::default()).framed(framing),
            receiver: Receiver::new(settings.window),
            phase: Phase::None,
            scheme: way.scheme,
            adapter: way.adaptation.as_ref().map(|config| Adapter::new(config, way.scheme)),
            half: None,
            not_before: 0,
            poll: None,
            since_poll: 0,
            unanswered: 0,
            is_finishing: false,
            idle_since: None,
            repeat_from: 0,
            status: Status::default(),
            judged: 0,
        }
    }

    /// Whether anything is inside that was not delivered.
    pub fn has_data(&self) -> bool {
        !self.queue.is_empty() || self.sender.has_new() || self.sender.has_unacknowledged()
    }

    /// Packets and bytes that wait.
    pub fn backlog(&self, now: Instant) -> (u32, u64) {
        let (queued, sent) = (self.queue.backlog(now), self.sender.backlog(now));
        (queued.0 + sent.0, queued.1 + sent.1)
    }

    /// Whether a flow could be set up in `block`.
    pub fn may_begin(&self, block: u64) -> bool {
        self.phase == Phase::None && block >= self.not_before && self.has_data()
    }

    /// Whether the flow waits for a window that is full.
    pub fn is_stalled(&self) -> bool {
        self.phase == Phase::Transfer && self.sender.is_stalled()
    }

    /// Lets data flow.
    pub fn begin_transfer(&mut self) {
        self.phase = Phase::Transfer;
        self.poll = None;
        self.since_poll = 0;
        self.unanswered = 0;
        self.is_finishing = false;
        self.idle_since = None;
    }

    /// Fetches packets from the support node while the base station has room for them.
    fn feed(&mut self, at: Instant, timing: &Timing, ends: &mut Ends, cx: &mut Context<'_>) {
        while !self.is_finishing && self.sender.backlog(at).1 < timing.base_station_buffer {
            let dropped = |packet| ends.lose(DOWN, at, packet, DropCause::QueueManagement, cx);
            let Some(packet) = self.queue.dequeue(at, dropped) else { break };
            self.sender.enqueue(at, packet);
        }
    }

    /// Takes in the answer to a poll that the network has by `block`. Returns whether that ends the flow.
    pub fn take_answer(&mut self, block: u64) -> bool {
        let Some(Poll { is_final, answer: Some((at, received)), .. }) = self.poll else { return false };
        if at > block {
            return false;
        }
        self.poll = None;
        if !received {
            self.unanswered += 1;
            return false;
        }
        self.unanswered = 0;
        self.sender.handle(&self.status, self.judged);
        if let Some(adapter) = &mut self.adapter {
            self.scheme = adapter.decide();
        }
        is_final && !self.sender.has_unacknowledged()
    }

    /// Whether the network gives the flow up: so many polls went unanswered.
    pub fn has_failed(&self, timing: &Timing) -> bool {
        self.unanswered >= timing.max_unanswered
    }

    /// Ends the flow; `until` that block there will be none.
    pub fn release(&mut self, until: u64) {
        self.phase = Phase::None;
        self.poll = None;
        self.half = None;
        self.not_before = until;
        self.unanswered = 0;
    }

    /// Gives up what the base station has, wholly or in part sent.
    pub fn discard(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.reset(|packet| ends.lose(DOWN, at, packet, cause, cx));
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// Gives up what the base station has and was not sent.
    pub fn discard_waiting(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.clear_queue(|packet: Packet| ends.lose(DOWN, at, packet, cause, cx));
    }

    /// Sends anew in the next flow what was sent in part.
    pub fn restart(&mut self) {
        self.sender.restart();
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// What it could do with a block, on the timeslot of its control channel or another.
    #[inline]
    pub fn wants(
        &mut self,
        block: u64,
        is_control: bool,
        timing: &Timing,
        ends: &mut Ends,
        cx: &mut Context<'_>,
    ) -> Want {
        if self.phase != Phase::Transfer {
            return Want::Nothing;
        }
        self.feed(start_of(block), timing, ends, cx);
        if self.half.is_some() || self.sender.has_repeats() || (self.sender.has_new() && self.sender.is_open()) {
            self.idle_since = None;
            return Want::Data;
        }
        let may_poll = is_control && self.poll.is_none();
        if self.sender.has_unacknowledged() {
            return if may_poll { Want::Data } else { Want::Repeat };
        }
        // All is acknowledged: the flow is kept for a time, if at all.
        let (since, last) = *self.idle_since.get_or_insert((block, block));
        if start_of(block).since(start_of(since)) >= timing.delayed_release {
            self.is_finishing = true;
        }
        let is_due = self.is_finishing || start_of(block).since(start_of(last)) >= timing.keep_interval;
        if may_poll && is_due { Want::Data } else { Want::Nothing }
    }

    /// Sends a radio block. Returns whether it polls, so that an uplink block is needed for the answer.
    pub fn send(
        &mut self,
        block: u64,
        is_control: bool,
        timing: &Timing,
        air: &mut Air,
        (ends, burst): (&mut Ends, &mut Burst),
        cx: &mut Context<'_>,
    ) -> bool {
        let at = start_of(block);
        let Self { sender, half, repeat_from, receiver, adapter, .. } = self;
        let dropped = |packet| ends.lose(DOWN, at, packet, DropCause::QueueManagement, cx);
        let filled = radio_block::fill(sender, half, repeat_from, (self.scheme, 0), at, dropped);
        let mut any_received = false;
        for pdu in filled.iter().flat_map(|filled| filled.pdus).flatten() {
            let filled = filled.as_ref().expect("it carries something");
            let attempt = filled.attempt(&pdu);
            let received = air.receives(DOWN, filled.scheme, attempt);
            burst.add(filled.scheme, pdu.attempt, received);
            any_received |= received;
            if let Some(adapter) = adapter.as_mut().filter(|_| attempt == 1) {
                adapter.count(received);
            }
            if filled.completes(&pdu, received, half) {
                receiver.receive(&pdu);
            }
        }
        self.since_poll += 1;
        let end = end_of(block);
        self.sender.hand_over(self.receiver.complete(), |packet| ends.deliver(DOWN, end, packet));
        if filled.is_none() {
            // A dummy frame keeps the flow; it is coded as control blocks are.
            any_received = air.receives_control(DOWN);
            if let Some((_, last)) = &mut self.idle_since {
                *last = block;
            }
        }
        let nothing_new = !self.sender.has_new() && (self.is_finishing || self.queue.is_empty());
        if nothing_new && timing.delayed_release == Span::ZERO {
            self.is_finishing = true;
        }
        let is_due = self.since_poll >= timing.poll_interval || nothing_new || !self.sender.is_open();
        let polls = is_control && self.poll.is_none() && (is_due || self.unanswered > 0);
        if polls {
            // The header of EGPRS, with the poll, is coded by itself and more robustly than the data (3GPP TS 45.003
            // §5.1.5 ff.); GPRS codes them together.
            any_received |= self.scheme.is_egprs() && air.receives_control(DOWN);
            self.poll = Some(Poll { heard: any_received, is_final: self.is_finishing, answer: None });
            self.since_poll = 0;
        }
        polls
    }

    /// The mobile answers the poll, which `gets_through` or not; the network knows `known_at`. Returns whether the
    /// network learns what else the answer says.
    pub fn answer(&mut self, known_at: u64, gets_through: impl FnOnce() -> bool) -> bool {
        let Some(poll) = &mut self.poll else { return false };
        let received = poll.heard && gets_through();
        poll.answer = Some((known_at, received));
        if received {
            self.receiver.report(&mut self.status);
            self.judged = self.sender.transmissions();
        }
        received
    }
}
