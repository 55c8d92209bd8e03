//! A mobile's uplink: its queue, and its temporary block flow (TBF).
//!
//! ```text
//!   none ─► random access ─► assigned on CCCH ────────────────┐
//!     │        └──────────► single block ─► assignment on PACCH ─► transfer ─► none
//!     └─ request in a Packet Downlink Ack/Nack ──┘
//! ```
//!
//! An idle mobile sends an access burst. The assignment on the common channel (CCCH) gives a
//! timeslot (one-phase access), or a single block for a Packet Resource Request (two-phase access).
//! A mobile with a downlink TBF adds its request to the Packet Downlink Ack/Nack for which it is
//! polled (3GPP TS 44.060 §7.1, §8.1.2.5). The network then schedules blocks of its timeslots, and
//! sends Packet Uplink Ack/Nack. With its last blocks the mobile counts down, and accepts no new
//! packets; it acknowledges the final Packet Uplink Ack/Nack (§9.3.2.4). Extended uplink TBF mode
//! keeps the TBF instead (§9.3.1b.2).
//!
//! When the network receives nothing from the mobile it stops to schedule blocks (N3101). The
//! mobile begins again with random access when T3180 expires (§8.1.1.1, §9.3.2.4, recalled).

use airpath_core::{Context, Direction, DropCause, Instant};

use super::adaptation::Adapter;
use super::air::Air;
use super::coding_scheme::CodingScheme;
use super::config::DirectionConfig;
use super::ends::Ends;
use super::multiframe::{block_from, end_of, start_of};
use super::parameters::{ABNORMAL_RELEASE, Parameters};
use super::radio_block::{self, PeriodCounts, Repetition, Transmission};
use crate::common::arq::acknowledged::{Framing, Receiver, Sender, Settings, Status};
use crate::common::arq::rlc_queue::RlcQueue;

const UP: Direction = Direction::Up;

/// Octets of the mobile's identity (TLLI) in each block until the network has confirmed it (TS
/// 44.060 §7.1.2.3).
const CONTENTION_BYTES: u32 = 4;

/// Whether the network has identified the mobile of a new uplink TBF (TS 44.060 §7.1.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    /// One-phase access: each block carries the mobile's identity until the network has confirmed
    /// it.
    Unresolved,
    /// The assignment already named the mobile.
    Resolved,
}

/// The phase of an uplink TBF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no TBF.
    None,
    /// Random access, until that block.
    Access {
        /// The mobile may use the assignment from this block on, or repeats its access burst.
        at: u64,
        /// Whether it received the assignment.
        heard: bool,
    },
    /// It waits for the single block that was assigned to it.
    SingleBlock {
        /// The block, or the first that is free.
        at: u64,
    },
    /// The request waits for a poll of the downlink TBF.
    RequestPending,
    /// The network has not received the request, or the mobile not the assignment.
    AwaitsAssignment {
        /// The mobile requests again from this block on: T3168 expires.
        until: u64,
    },
    /// A Packet Uplink Assignment is to be sent on the PACCH.
    AssignmentPending {
        /// From this block on.
        from: u64,
    },
    /// The mobile has received it.
    Start {
        /// The first block that uses it.
        at: u64,
    },
    /// The TBF carries data.
    Transfer,
    /// The network has given up the TBF. The mobile detects that when a timer expires.
    Abandoned {
        /// From this block on it may begin again.
        until: u64,
    },
}

/// A Packet Uplink Ack/Nack of the network.
#[derive(Clone, Copy, Debug)]
enum AckNack {
    /// It may be sent from that block on.
    Ready { from: u64 },
    /// The mobile received it, and acts on it from that block on.
    Heard { at: u64 },
    /// The final one was sent, and is to be acknowledged.
    Unacknowledged { heard: bool },
}

/// A mobile's uplink.
#[derive(Debug)]
pub struct Uplink {
    /// Packets that no TBF has accepted yet.
    pub queue: RlcQueue,
    sender: Sender,
    receiver: Receiver,
    pub phase: Phase,
    pub scheme: CodingScheme,
    pub adapter: Option<Adapter>,
    repetition: Repetition,
    /// The mobile is to send an LLC frame without data, to respond to a page or to update its cell.
    pub responds_to_page: bool,
    /// The block from which the network has an LLC frame of the mobile, since it was last
    /// [forgotten](Self::forget_heard).
    heard_at: Option<u64>,
    /// Until it is resolved, each block carries the mobile's identity.
    contention: Contention,
    /// The countdown has begun.
    is_closed: bool,
    ack_nack: Option<AckNack>,
    /// Whether that Ack/Nack is the final one.
    is_final: bool,
    status: Status,
    /// The number of transmissions before that Ack/Nack: later ones are not covered.
    reported_transmissions: u64,
    since_ack_nack: u32,
    /// Scheduled blocks from which the network received nothing, in a row (N3101).
    unanswered: u32,
    /// Final Ack/Nacks that were not acknowledged (N3103).
    unacknowledged: u32,
    /// Whether the mobile has received one of them.
    has_heard_final: bool,
    /// Access bursts that were sent in this procedure.
    pub access_bursts: u32,
    /// The last block in which it sent.
    last_sent: u64,
    /// The block from which it requests an assignment again (T3168).
    t3168_expires: u64,
    /// The block since which the TBF is kept without data, as the network sees it, and the last
    /// block that it has scheduled since.
    idle_since: Option<(u64, u64)>,
}

impl Uplink {
    /// An idle uplink.
    pub fn new((settings, framing): (Settings, Framing), queue: RlcQueue, config: &DirectionConfig) -> Self {
        Self {
            queue,
            sender: Sender::new(settings, RlcQueue::unlimited()).framed(framing),
            receiver: Receiver::new(settings.window),
            phase: Phase::None,
            scheme: config.scheme,
            adapter: config.adaptation.as_ref().map(|adaptation| Adapter::new(adaptation, config.scheme)),
            repetition: Repetition::default(),
            responds_to_page: false,
            heard_at: None,
            contention: Contention::Resolved,
            is_closed: false,
            ack_nack: None,
            is_final: false,
            status: Status::default(),
            reported_transmissions: 0,
            since_ack_nack: 0,
            unanswered: 0,
            unacknowledged: 0,
            has_heard_final: false,
            access_bursts: 0,
            last_sent: 0,
            t3168_expires: 0,
            idle_since: None,
        }
    }

    /// Whether it needs a TBF.
    pub fn has_data(&self) -> bool {
        self.responds_to_page || !self.queue.is_empty() || self.sender.has_new() || self.sender.has_unacknowledged()
    }

    /// Whether the window of the TBF is full.
    pub fn is_stalled(&self) -> bool {
        self.phase == Phase::Transfer && self.sender.is_stalled()
    }

    /// The mobile has requested a TBF on a packet data channel, in `block`. The network can send
    /// the assignment from `known_at` on, or has not received the request.
    pub fn request(&mut self, block: u64, known_at: Option<u64>, parameters: &Parameters) {
        self.t3168_expires = block_from(end_of(block) + parameters.t3168);
        self.phase = match known_at {
            Some(from) => Phase::AssignmentPending { from },
            None => Phase::AwaitsAssignment { until: self.t3168_expires },
        };
    }

    /// The mobile has missed the assignment.
    pub const fn miss_assignment(&mut self) {
        self.phase = Phase::AwaitsAssignment { until: self.t3168_expires };
    }

    /// Begins the transfer of data.
    pub fn begin_transfer(&mut self, contention: Contention) {
        self.phase = Phase::Transfer;
        self.contention = contention;
        self.is_closed = false;
        self.is_final = false;
        self.ack_nack = None;
        self.since_ack_nack = 0;
        self.unanswered = 0;
        self.unacknowledged = 0;
        self.has_heard_final = false;
        self.idle_since = None;
    }

    /// The network waits for an LLC frame of the mobile from now on.
    pub const fn forget_heard(&mut self) {
        self.heard_at = None;
    }

    /// Whether the network has received an LLC frame by `block`: any of them responds to a page (TS
    /// 23.060 §8.1.4, recalled).
    pub fn is_heard(&self, block: u64) -> bool {
        self.heard_at.is_some_and(|at| at <= block)
    }

    /// Ends the TBF.
    pub fn release(&mut self) {
        self.phase = Phase::None;
        self.ack_nack = None;
        self.repetition.half = None;
    }

    /// Whether the network releases the TBF abnormally: N3101 or N3103 has reached its limit.
    pub fn has_failed(&self, parameters: &Parameters) -> bool {
        self.unanswered >= parameters.n3101 || self.unacknowledged >= parameters.n3103
    }

    /// The network has released the TBF abnormally. Packets that are not delivered are sent again
    /// from their beginning, in the next TBF.
    pub fn abandon(&mut self) {
        if self.has_heard_final {
            // The mobile has all acknowledgements, and released the TBF before.
            self.sender.handle(&self.status, u64::MAX);
        }
        self.restart();
        self.release();
        if !self.has_heard_final {
            self.phase = Phase::Abandoned { until: block_from(end_of(self.last_sent) + ABNORMAL_RELEASE) };
        }
    }

    /// Whether the network schedules a block for it: always while it has data, at intervals while
    /// the TBF is only kept.
    #[inline]
    pub fn has_demand(&mut self, block: u64, parameters: &Parameters) -> bool {
        if self.phase != Phase::Transfer || self.is_final {
            return false;
        }
        let has_data = self.has_data();
        if self.is_closed || (self.idle_since.is_none() && has_data) {
            return true;
        }
        // A TBF without data is kept: the network is not informed of new data in the mobile, and
        // schedules blocks at intervals. The first of them with data ends that in `send` (TS 44.060
        // §9.3.1b.2).
        let (since, last) = *self.idle_since.get_or_insert((block, block));
        if start_of(block).since(start_of(since)) >= parameters.extended_uplink {
            self.close(block);
            return false;
        }
        start_of(block).since(start_of(last)) >= parameters.keep_interval
    }

    /// The network ends a TBF that was kept without data.
    fn close(&mut self, block: u64) {
        self.is_closed = true;
        self.acknowledge(block);
    }

    /// Sends a radio block. The TBF has `slots` timeslots.
    pub fn send(
        &mut self,
        (block, slots): (u64, u8),
        parameters: &Parameters,
        air: &mut Air,
        (ends, counts): (&mut Ends, &mut PeriodCounts),
        cx: &mut Context<'_>,
    ) {
        let at = start_of(block);
        self.last_sent = block;
        let less = if self.contention == Contention::Unresolved { CONTENTION_BYTES } else { 0 };
        self.feed(at, self.scheme.payload() - less, slots, parameters, ends, cx);
        // No LLC frame is added during the countdown. Those that are sent in it respond to a page.
        let sent = if self.responds_to_page && !(self.is_closed && self.sender.has_new()) {
            Some(self.send_page_response(block, parameters, air, counts))
        } else {
            let Self { sender, repetition, receiver, adapter, .. } = self;
            let dropped = |packet| ends.lose(UP, at, packet, DropCause::QueueManagement, cx);
            let filled = radio_block::fill(sender, repetition, (self.scheme, less), at, dropped);
            filled.as_ref().map(|filled| filled.transmit(UP, repetition, receiver, adapter.as_mut(), air, counts))
        };
        self.since_ack_nack += sent.map_or(0, |sent| sent.completed);
        let mut any_received = sent.is_some_and(|sent| sent.any_received);
        if sent.is_none() {
            any_received = air.receives_control(UP);
            counts.control += 1;
        }
        if sent.is_some() && any_received {
            self.idle_since = None;
        } else if let Some((_, last)) = &mut self.idle_since {
            *last = block;
        }
        self.unanswered = if any_received { 0 } else { self.unanswered + 1 };
        let mut is_delivered = false;
        self.sender.hand_over(self.receiver.complete(), |packet| {
            is_delivered = true;
            ends.deliver(UP, end_of(block), packet);
        });
        if is_delivered {
            self.heard_at.get_or_insert(parameters.network_response(block));
        }
        if any_received {
            let is_last = self.is_closed && !self.sender.has_new();
            let is_due =
                self.contention == Contention::Unresolved || is_last || self.since_ack_nack >= parameters.ack_interval;
            let is_kept = !self.is_closed && !self.sender.has_new() && self.sender.has_unacknowledged();
            if self.ack_nack.is_none() && (is_due || is_kept || !self.sender.is_open()) {
                self.acknowledge(parameters.network_response(block));
            }
        }
    }

    /// Sends an LLC frame without data. Its 6 octets fit into an RLC block of any scheme. The
    /// mobile repeats it until the network has it.
    fn send_page_response(
        &mut self,
        block: u64,
        parameters: &Parameters,
        air: &mut Air,
        counts: &mut PeriodCounts,
    ) -> Transmission {
        let received = air.receives(UP, self.scheme, 1);
        counts.add(self.scheme, 1, received);
        if received {
            self.responds_to_page = false;
            self.heard_at.get_or_insert(parameters.network_response(block));
        }
        Transmission { any_received: received, completed: u32::from(received) }
    }

    /// The network makes a Packet Uplink Ack/Nack, which it can send from block `from` on.
    fn acknowledge(&mut self, from: u64) {
        self.receiver.report(&mut self.status);
        self.reported_transmissions = self.sender.transmissions();
        self.since_ack_nack = 0;
        self.is_final =
            self.is_closed && !self.sender.has_new() && self.receiver.next_expected() == self.sender.next_sequence();
        self.ack_nack = Some(AckNack::Ready { from });
    }

    /// Accepts packets before the countdown. Begins the countdown when all packets fit into its
    /// blocks.
    fn feed(
        &mut self,
        at: Instant,
        payload: u32,
        slots: u8,
        parameters: &Parameters,
        ends: &mut Ends,
        cx: &mut Context<'_>,
    ) {
        if self.is_closed {
            return;
        }
        // The countdown value of a block is the number of blocks after it, divided by NTS·K and
        // rounded upwards. The countdown begins when that is at most BS_CV_MAX (§9.3.1.1,
        // recalled).
        let after_first = u64::from(parameters.countdown) * u64::from(slots) * u64::from(self.scheme.blocks());
        while self.sender.unsent_bytes().div_ceil(u64::from(payload)) <= after_first + 1 {
            let dropped = |packet| ends.lose(UP, at, packet, DropCause::QueueManagement, cx);
            let Some(packet) = self.queue.dequeue(at, dropped) else {
                // All packets fit into the blocks of the countdown.
                self.is_closed = parameters.extended_uplink.is_zero();
                return;
            };
            self.sender.enqueue(at, packet, |_| {}).expect("a queue without limits");
        }
    }

    /// Whether a Packet Uplink Ack/Nack is to be sent in `block`.
    pub fn has_ack_nack(&self, block: u64) -> bool {
        matches!(self.ack_nack, Some(AckNack::Ready { from }) if from <= block)
    }

    /// Sends the Packet Uplink Ack/Nack; `heard` is true if the mobile receives it. Returns
    /// whether it is the final one, which is to be acknowledged.
    pub fn send_ack_nack(&mut self, block: u64, heard: bool) -> bool {
        if self.is_final {
            self.ack_nack = Some(AckNack::Unacknowledged { heard });
        } else {
            self.ack_nack = heard.then_some(AckNack::Heard { at: block + 2 });
        }
        self.is_final
    }

    /// The mobile handles a Packet Uplink Ack/Nack that it has by `block`.
    pub fn handle_ack_nack(&mut self, block: u64) {
        if let Some(AckNack::Heard { at }) = self.ack_nack
            && at <= block
        {
            self.ack_nack = None;
            self.contention = Contention::Resolved;
            self.sender.handle(&self.status, self.reported_transmissions);
            if let Some(adapter) = &mut self.adapter {
                self.scheme = adapter.decide();
            }
        }
    }

    /// The block for the acknowledgement of the final Ack/Nack has gone to a call: the network
    /// repeats the Ack/Nack.
    pub const fn repeat_final(&mut self, block: u64) {
        self.ack_nack = Some(AckNack::Ready { from: block });
    }

    /// The mobile acknowledges the final Ack/Nack, if it has received it. `draw_reception` draws
    /// whether the network receives that; otherwise the network repeats the Ack/Nack from block
    /// `known_at` on.
    pub fn acknowledge_final(&mut self, known_at: u64, draw_reception: impl FnOnce() -> bool) {
        let Some(AckNack::Unacknowledged { heard }) = self.ack_nack else { return };
        self.has_heard_final |= heard;
        if heard && draw_reception() {
            self.sender.handle(&self.status, u64::MAX);
            self.release();
        } else {
            self.unacknowledged += 1;
            self.ack_nack = Some(AckNack::Ready { from: known_at });
        }
    }

    /// Sends packets that are not delivered again from their beginning, in the next TBF.
    pub fn restart(&mut self) {
        self.sender.restart();
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// Drops the packets that are sent in part.
    pub fn drop_in_flight(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.reset(|packet| ends.lose(UP, at, packet, cause, cx));
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
    }

    /// Drops the packets that the TBF has accepted and not sent.
    pub fn drop_unsent(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.sender.clear_queue(at, |packet| ends.lose(UP, at, packet, cause, cx));
    }

    /// Drops the packets that no TBF has accepted yet.
    pub fn drop_in_queue(&mut self, at: Instant, cause: DropCause, ends: &mut Ends, cx: &mut Context<'_>) {
        self.queue.clear(at, |packet| ends.lose(UP, at, packet, cause, cx));
    }

    /// Packets and bytes that wait.
    pub fn backlog(&self) -> (u32, u64) {
        let (queued, sent) = (self.queue.backlog(), self.sender.backlog());
        (queued.0 + sent.0, queued.1 + sent.1)
    }
}
