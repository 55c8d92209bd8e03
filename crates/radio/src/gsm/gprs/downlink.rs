//! A mobile's downlink: its queues in the network, and its temporary block flow (TBF).
//!
//! ```text
//!          CCCH (idle)                       PACCH
//!   none ─► paging ─► assigned on CCCH ─► assignment ─► acknowledged ─► transfer ─► none
//!     └──────── T3192 is running, or an uplink TBF ──────────┘
//! ```
//!
//! A mobile whose READY timer has expired is paged. It sets up an uplink TBF and responds with an
//! LLC frame, after which the network sends data (TS 23.060 §8.1.4, recalled). An assignment on the
//! common channel (CCCH) gives one timeslot. A Packet Downlink Assignment on the packet data
//! channel (PACCH) follows, which the mobile acknowledges (3GPP TS 44.060 §7.2, TS 44.018 §3.5.3).
//! The network repeats it until it has polled N3105max times, and sets up no TBF for T3195 then.
//! The network polls for Packet Downlink Ack/Nack while it sends; a poll with the last block ends
//! the TBF when all is acknowledged (TS 44.060 §9.3.2.5).

use airpath_core::{Context, Direction, DropCause, Instant, Packet, Span};

use super::adaptation::Adapter;
use super::air::Air;
use super::coding_scheme::CodingScheme;
use super::config::DirectionConfig;
use super::ends::Ends;
use super::multiframe::{end_of, start_of};
use super::parameters::Parameters;
use super::radio_block::{self, PeriodCounts, Repetition};
use crate::common::arq::acknowledged::{Framing, Receiver, Sender, Settings, Status};
use crate::common::arq::rlc_queue::RlcQueue;

const DOWN: Direction = Direction::Down;

/// The phase of a downlink TBF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no TBF.
    None,
    /// The mobile is paged, and responds from that block on.
    Paging {
        /// The block.
        at: u64,
    },
    /// The mobile sets up an uplink TBF and sends an LLC frame, to respond to a page or to update
    /// its cell after a reselection.
    AwaitsCellUpdate,
    /// An assignment was sent on the CCCH.
    AssignedOnCcch {
        /// The block from which the mobile can be addressed on its packet data channel.
        at: u64,
        /// Whether the mobile received it.
        heard: bool,
    },
    /// A Packet Downlink Assignment is to be sent on the PACCH.
    AssignmentPending {
        /// From this block on.
        from: u64,
    },
    /// It was sent; the acknowledgement is due.
    AssignmentSent {
        /// Whether the mobile received it.
        mobile_heard: bool,
    },
    /// The reserved block has passed. From block `at` on the network acts on the result.
    AssignmentAnswerDue {
        /// See above.
        at: u64,
        /// Whether the network received the acknowledgement.
        received: bool,
    },
    /// The TBF carries data.
    Transfer,
}

/// A poll for a Packet Downlink Ack/Nack, sent with a block.
#[derive(Clone, Copy, Debug)]
struct Poll {
    /// Whether the mobile received it.
    heard: bool,
    /// Whether the block had the final block indicator, which ends the TBF.
    is_final: bool,
    /// The block from which the network acts on the response, and whether it received it; set with
    /// the response.
    response: Option<(u64, bool)>,
}

/// How urgently a TBF needs a block of its timeslots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// It has nothing to send.
    None,
    /// It can only repeat blocks that are not acknowledged yet (TS 44.060 §9.1.3).
    Repetition,
    /// It has new data, a reported loss, or a poll to send.
    Data,
}

/// A mobile's downlink.
#[derive(Debug)]
pub struct Downlink {
    /// Packets in the support node (SGSN).
    pub queue: RlcQueue,
    pub sender: Sender,
    receiver: Receiver,
    pub phase: Phase,
    pub scheme: CodingScheme,
    pub adapter: Option<Adapter>,
    repetition: Repetition,
    /// No TBF is set up before this block (T3195).
    not_before: u64,
    poll: Option<Poll>,
    since_poll: u32,
    /// The next block polls, because the response to the last poll had no block.
    is_poll_overdue: bool,
    /// Polls without a response, in a row (N3105).
    unanswered: u32,
    /// Whether the mobile listens on its packet data channel. The network does not detect that it
    /// has missed an assignment on the CCCH.
    pub is_reachable: bool,
    /// The final block was sent: new packets wait for the next TBF.
    is_finishing: bool,
    /// While all is acknowledged: the first such block, and the last block that the TBF sent since.
    idle_since: Option<(u64, u64)>,
    /// The bitmap of the last response.
    status: Status,
    /// The number of transmissions before that response: later ones are not covered.
    reported_transmissions: u64,
}

impl Downlink {
    /// An idle downlink.
    pub fn new((settings, framing): (Settings, Framing), queue: RlcQueue, config: &DirectionConfig) -> Self {
        Self {
            queue,
            sender: Sender::new(settings, RlcQueue::unlimited()).framed(framing),
            receiver: Receiver::new(settings.window),
            phase: Phase::None,
            scheme: config.scheme,
            adapter: config.adaptation.as_ref().map(|adaptation| Adapter::new(adaptation, config.scheme)),
            repetition: Repetition::default(),
            not_before: 0,
            poll: None,
            since_poll: 0,
            is_poll_overdue: false,
            unanswered: 0,
            is_reachable: false,
            is_finishing: false,
            idle_since: None,
            status: Status::default(),
            reported_transmissions: 0,
        }
    }

    /// Whether any packet is not delivered yet.
    pub fn has_data(&self) -> bool {
        !self.queue.is_empty() || self.sender.has_new() || self.sender.has_unacknowledged()
    }

    /// Packets and bytes that wait.
    pub fn backlog(&self) -> (u32, u64) {
        let (queued, sent) = (self.queue.backlog(), self.sender.backlog());
        (queued.0 + sent.0, queued.1 + sent.1)
    }

    /// Whether a TBF may be set up in `block`.
    pub fn may_begin(&self, block: u64) -> bool {
        self.phase == Phase::None && block >= self.not_before && self.has_data()
    }

    /// Whether the window of the TBF is full.
    pub fn is_stalled(&self) -> bool {
        self.phase == Phase::Transfer && self.sender.is_stalled()
    }

    /// Begins the transfer of data.
    pub fn begin_transfer(&mut self) {
        self.phase = Phase::Transfer;
        self.poll = None;
        self.since_poll = 0;
        self.is_poll_overdue = false;
        self.unanswered = 0;
        self.is_finishing = false;
        self.idle_since = None;
    }

    /// Fetches packets from the support node while the base station has room for them.
    fn feed(&mut self, at: Instant, parameters: &Parameters, ends: &mut Ends, cx: &mut Context<'_>) {
        while !self.is_finishing && self.sender.backlog().1 < parameters.base_station_buffer {
            let dropped = |packet| ends.lose(DOWN, at, packet, DropCause::QueueManagement, cx);
            let Some(packet) = self.queue.dequeue(at, dropped) else { break };
            self.sender.enqueue(at, packet, |_| {}).expect("a queue without limits");
        }
    }

    /// Handles the response to a poll that the network has by `block`. Returns whether that ends
    /// the TBF.
    pub fn handle_ack_nack(&mut self, block: u64) -> bool {
        let Some(Poll { is_final, response: Some((at, received)), .. }) = self.poll else { return false };
        if at > block {
            return false;
        }
        self.poll = None;
        if !received {
            self.unanswered += 1;
            return false;
        }
        self.unanswered = 0;
        self.sender.handle(&self.status, self.reported_transmissions);
        if let Some(adapter) = &mut self.adapter {
            self.scheme = adapter.decide();
        }
        is_final && !self.sender.has_unacknowledged()
    }

    /// An assignment was not acknowledged: the network repeats it, on the CCCH if the mobile has
    /// missed it there (as osmo-pcu does, tbf_dl.cpp). Returns whether N3105 has reached its limit.
    pub fn repeat_assignment(&mut self, block: u64, parameters: &Parameters) -> bool {
        self.unanswered += 1;
        self.phase = if self.is_reachable { Phase::AssignmentPending { from: block } } else { Phase::None };
        self.has_failed(parameters)
    }

    /// Whether the network releases the TBF abnormally: N3105 has reached its limit.
    pub fn has_failed(&self, parameters: &Parameters) -> bool {
        self.unanswered >= parameters.n3105
    }

    /// Ends the TBF. A new one may be set up at once.
    pub fn release(&mut self) {
        self.release_until(0);
    }

    /// Ends the TBF. No other is set up before the block `not_before`.
    pub fn release_until(&mut self, not_before: u64) {
        self.phase = Phase::None;
        self.poll = None;
        self.repetition.half = None;
        self.not_before = not_before;
        self.unanswered = 0;
    }

    /// Drops the packets of the base station that are sent, wholly or in part.
    pub fn drop_in_flight(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.reset(|packet| ends.lose(DOWN, at, packet, cause, cx));
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// Drops the packets of the base station that are not sent yet.
    pub fn drop_unsent(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.clear_queue(at, |packet: Packet| ends.lose(DOWN, at, packet, cause, cx));
    }

    /// Drops the packets of the support node.
    pub fn drop_in_support_node(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.queue.clear(at, |packet| ends.lose(DOWN, at, packet, cause, cx));
    }

    /// Sends packets that are not delivered again from their beginning, in the next TBF.
    pub fn restart(&mut self) {
        self.sender.restart();
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// How urgently it needs a block; polls are sent on the timeslot of its control channel only.
    #[inline]
    pub fn demand(
        &mut self,
        block: u64,
        is_control: bool,
        parameters: &Parameters,
        ends: &mut Ends,
        cx: &mut Context<'_>,
    ) -> Demand {
        if self.phase != Phase::Transfer {
            return Demand::None;
        }
        self.feed(start_of(block), parameters, ends, cx);
        if self.repetition.half.is_some()
            || self.sender.has_repeats()
            || (self.sender.has_new() && self.sender.is_open())
        {
            self.idle_since = None;
            return Demand::Data;
        }
        let may_poll = is_control && self.poll.is_none();
        if self.sender.has_unacknowledged() {
            return if may_poll { Demand::Data } else { Demand::Repetition };
        }
        // All is acknowledged: delayed release keeps the TBF for a time (TS 44.060 §9.3.1a).
        let (since, last) = *self.idle_since.get_or_insert((block, block));
        if start_of(block).since(start_of(since)) >= parameters.delayed_release {
            self.is_finishing = true;
        }
        let is_due = self.is_finishing || start_of(block).since(start_of(last)) >= parameters.keep_interval;
        if may_poll && is_due { Demand::Data } else { Demand::None }
    }

    /// Sends a radio block. Returns whether it polls, so that an uplink block must be reserved for
    /// the response.
    pub fn send(
        &mut self,
        block: u64,
        is_control: bool,
        parameters: &Parameters,
        air: &mut Air,
        (ends, counts): (&mut Ends, &mut PeriodCounts),
        cx: &mut Context<'_>,
    ) -> bool {
        let at = start_of(block);
        let Self { sender, repetition, receiver, adapter, .. } = self;
        let dropped = |packet| ends.lose(DOWN, at, packet, DropCause::QueueManagement, cx);
        let filled = radio_block::fill(sender, repetition, (self.scheme, 0), at, dropped);
        let sent =
            filled.as_ref().map(|filled| filled.transmit(DOWN, repetition, receiver, adapter.as_mut(), air, counts));
        self.since_poll += 1;
        let end = end_of(block);
        self.sender.hand_over(self.receiver.complete(), |packet| ends.deliver(DOWN, end, packet));
        let mut any_received = sent.is_some_and(|sent| sent.any_received);
        if sent.is_none() {
            // A dummy block keeps the TBF; it has the coding of control blocks.
            any_received = air.receives_control(DOWN);
            counts.control += 1;
            if let Some((_, last)) = &mut self.idle_since {
                *last = block;
            }
        }
        let is_drained = !self.sender.has_new() && (self.is_finishing || self.queue.is_empty());
        if is_drained && parameters.delayed_release == Span::ZERO {
            self.is_finishing = true;
        }
        let is_due = self.since_poll >= parameters.poll_interval || is_drained || !self.sender.is_open();
        let polls = is_control && self.poll.is_none() && (is_due || self.unanswered > 0 || self.is_poll_overdue);
        if polls {
            // The header of EGPRS, with the poll, is coded by itself and more robustly than the
            // data (3GPP TS 45.003 §5.1.5 ff.); GPRS codes them together.
            any_received |= self.scheme.is_egprs() && air.receives_control(DOWN);
            self.poll = Some(Poll { heard: any_received, is_final: self.is_finishing, response: None });
            self.since_poll = 0;
            self.is_poll_overdue = false;
        }
        polls
    }

    /// The block for the response has gone to a call: the network polls again with the next block.
    pub fn cancel_poll(&mut self) {
        self.poll = None;
        self.is_poll_overdue = true;
    }

    /// Whether the mobile has received the poll.
    pub fn has_heard_poll(&self) -> bool {
        self.poll.as_ref().is_some_and(|poll| poll.heard)
    }

    /// The mobile responds to the poll with a Packet Downlink Ack/Nack. `draw_reception` draws
    /// whether the network receives it; the network acts on it from block `known_at` on. Returns
    /// whether it is received.
    pub fn send_ack_nack(&mut self, known_at: u64, draw_reception: impl FnOnce() -> bool) -> bool {
        let Some(poll) = &mut self.poll else { return false };
        let received = poll.heard && draw_reception();
        poll.response = Some((known_at, received));
        if received {
            self.receiver.report(&mut self.status);
            self.reported_transmissions = self.sender.transmissions();
        }
        received
    }
}
