//! The frames of one mobile in one direction: the queue, and the window of the Block Ack.

use std::collections::VecDeque;

use airpath_core::{
    Context, DropCause, Instant, Packet, PacketCounters, PacketStep, Probability, RadioEvent, RadioTotals,
    RandomStream, Span,
};
use airpath_link::Departure;

use super::tables::BLOCK_ACK_WINDOW;
use super::timing::Timing;
use crate::common::arq::rlc_queue::RlcQueue;

/// One direction of a mobile.
#[derive(Debug)]
pub struct Flow {
    queue: RlcQueue,
    /// Frames from the oldest one that the receiver has not delivered, at most a window.
    window: VecDeque<Frame>,
    /// Frames of the window on the air, by their number in it.
    sent: Vec<usize>,
    /// Nothing is sent before.
    pub blocked_until: Instant,
    /// Packets.
    pub counters: PacketCounters,
    /// Transmissions.
    pub totals: RadioTotals,
}

/// A frame of the window.
#[derive(Clone, Copy, Debug)]
struct Frame {
    packet: Packet,
    transmissions: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is to be sent.
    Waiting,
    /// The receiver has it, or will at the end of the exchange on the air.
    Received,
    /// It is given up, or will be at the end of the exchange on the air.
    GivenUp,
}

/// An A-MPDU on the air.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its length.
    pub duration: Span,
    /// Frames in it, those sent again, and those in error.
    pub frames: [u16; 3],
    /// Its bytes.
    pub bytes: u32,
}

impl Flow {
    /// No frames, and this queue.
    pub fn new(queue: RlcQueue) -> Self {
        Self {
            queue,
            window: VecDeque::new(),
            sent: Vec::new(),
            blocked_until: Instant::ZERO,
            counters: PacketCounters::default(),
            totals: RadioTotals::default(),
        }
    }

    /// Whether there is something to send.
    pub fn has_frames(&self) -> bool {
        !self.queue.is_empty() || self.window.iter().any(|frame| frame.state == State::Waiting)
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// Why it is dropped instead.
    pub fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Result<(), DropCause> {
        let Self { queue, window, counters, .. } = self;
        counters.offer(&packet);
        let lost = |lost: Packet| {
            counters.lose(&lost, DropCause::QueueFull);
            cx.drop_packet(now, lost, DropCause::QueueFull);
        };
        if let Err(cause) = queue.enqueue(now, packet, lost) {
            counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
            return Err(cause);
        }
        cx.packet(now, packet, || {
            let waiting = window.iter().filter(|frame| frame.state == State::Waiting);
            let (backlog_packets, backlog_bytes) = waiting
                .fold(queue.backlog(), |(packets, bytes), frame| (packets + 1, bytes + u64::from(frame.packet.size)));
            PacketStep::Queued { backlog_packets, backlog_bytes }
        });
        Ok(())
    }

    /// Sends an A-MPDU, and determines which of its frames are in error. `None` if the discipline
    /// of the queue has dropped all that waited.
    pub fn send(
        &mut self,
        now: Instant,
        timing: &Timing,
        bler: Probability,
        most_transmissions: u32,
        errors: &mut RandomStream,
        cx: &mut Context<'_>,
    ) -> Option<Sent> {
        let mut bytes = 0;
        let mut index = 0;
        while self.sent.len() < timing.most_frames && (index < self.window.len() || self.refill(now, cx)) {
            let frame = &self.window[index];
            if frame.state == State::Waiting {
                let more = Timing::frame(frame.packet.size);
                if bytes > 0 && bytes + more > timing.most_bytes {
                    break;
                }
                bytes += more;
                self.sent.push(index);
            }
            index += 1;
        }
        if self.sent.is_empty() {
            return None;
        }
        let mut frames = [self.sent.len() as u16, 0, 0];
        for index in &self.sent {
            let frame = &mut self.window[*index];
            frames[1] += u16::from(frame.transmissions > 0);
            frame.transmissions += 1;
            if !errors.chance(bler) {
                frame.state = State::Received;
                continue;
            }
            frames[2] += 1;
            if frame.transmissions >= most_transmissions {
                frame.state = State::GivenUp;
            }
        }
        Some(Sent { duration: timing.a_mpdu(bytes), frames, bytes: bytes as u32 })
    }

    /// Moves a packet from the queue into the window, if there is one and room.
    fn refill(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        let Self { queue, window, counters, .. } = self;
        if window.len() >= BLOCK_ACK_WINDOW {
            return false;
        }
        let next = queue.dequeue(now, |dropped| {
            counters.lose(&dropped, DropCause::QueueManagement);
            cx.drop_packet(now, dropped, DropCause::QueueManagement);
        });
        window.extend(next.map(|packet| Frame { packet, transmissions: 0, state: State::Waiting }));
        next.is_some()
    }

    /// Counts a transmission.
    pub fn count(&mut self, event: &RadioEvent) {
        self.totals.add(event);
    }

    /// The A-MPDU on the air has ended: packets leave in their order, after `delay`.
    pub fn receive(&mut self, now: Instant, delay: Span, departures: &mut VecDeque<Departure>, cx: &mut Context<'_>) {
        for index in self.sent.drain(..) {
            let Frame { packet, state, .. } = self.window[index];
            if state == State::GivenUp {
                self.counters.lose(&packet, DropCause::AttemptsExhausted);
                cx.drop_packet(now, packet, DropCause::AttemptsExhausted);
            }
        }
        // A shorter delay does not let packets overtake others.
        let due = departures.back().map_or(now + delay, |last| last.due.max(now + delay));
        while let Some(Frame { packet, state, .. }) = self.window.front().copied()
            && state != State::Waiting
        {
            self.window.pop_front();
            if state == State::Received {
                departures.push_back(Departure { due, packet });
            }
        }
    }

    /// Drops all that has not been delivered by the receiver.
    pub fn discard(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Self { queue, window, sent, counters, .. } = self;
        let mut lose = |packet: Packet| {
            counters.lose(&packet, DropCause::Handover);
            cx.drop_packet(now, packet, DropCause::Handover);
        };
        // What was given up before, and is not on the air, is lost already.
        for (index, frame) in window.drain(..).enumerate() {
            if frame.state != State::GivenUp || sent.contains(&index) {
                lose(frame.packet);
            }
        }
        queue.clear(now, lose);
        sent.clear();
    }
}
