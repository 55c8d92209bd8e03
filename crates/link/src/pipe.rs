//! The common link: policer, queue, transmitter, loss and delay in one.

mod change;

use std::collections::VecDeque;

use airpath_core::{Context, DropCause, Instant, Packet, PacketCounters, PacketStep, Seed, Span};

use crate::config::{Config, ConfigError, DEFAULT_PACKETS, Plan};
use crate::delay::DelayLine;
use crate::loss::{Loss, LossProcess};
use crate::policer::TokenBucket;
use crate::queue::Queue;
use crate::queue::drop_tail::{DropTail, Entry};
use crate::queue::{Limits, Managed};
use crate::transmitter::Transmitter;
use crate::{Admission, Change, CommandError, Departure, Link};

/// One direction of a link, as [`Config`] describes it.
///
/// The backlog reported with each accepted packet is what is not completely sent: waiting or in
/// transmission, including that packet. A link without a rate has none.
///
/// Fields are ordered by use, and the struct is aligned to a cache line: thousands of links exceed
/// the cache, and the cost of a packet is the number of lines that it touches.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Pipe {
    line: DelayLine,
    /// Whether packets are lost in transmission. If not, `losses` is not read.
    is_lossy: bool,
    /// Whether packets propagate at once: there is no policer, no rate, no queue management and no
    /// loss, and no change of conditions has been. None of them is then read.
    is_immediate: bool,
    /// The next departure, loss or queue decision.
    next: Instant,
    counters: PacketCounters,
    transmitter: Transmitter,
    policer: Option<Box<TokenBucket>>,
    queue: Waiting,
    losses: Box<Losses>,
    /// The end of the last outage.
    blocked_until: Instant,
}

#[derive(Clone, Debug)]
struct Losses {
    process: LossProcess,
    /// Packets that will be lost at the end of their transmission, in the order of these times.
    coming: VecDeque<(Instant, Packet)>,
}

#[derive(Clone, Debug)]
enum Waiting {
    /// The transmission time of a packet is determined on entry.
    DropTail(DropTail),
    /// The next packet is determined at the start of its transmission. Boxed, so that more of the
    /// common kind fit into the cache.
    Managed(Box<ManagedQueue>),
}

#[derive(Clone, Debug)]
struct ManagedQueue {
    waiting: Managed,
    /// While packets wait: when the first came to the empty queue. What came since then came before
    /// the transmitter was free, so the next transmission begins when it is.
    ready: Instant,
    /// End of the current transmission, and the packet's size.
    sending: (Instant, u32),
}

impl ManagedQueue {
    /// Packets and bytes that are not completely sent.
    fn backlog(&self, now: Instant) -> (u32, u64) {
        let (end, size) = self.sending;
        let (packets, bytes) = if end > now { (1, u64::from(size)) } else { (0, 0) };
        let (waiting_packets, waiting_bytes) = self.waiting.backlog();
        (waiting_packets + packets, waiting_bytes + bytes)
    }

    /// Revokes the packet in transmission: its planned end, and its size.
    fn take_sending(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let sending = Some(self.sending).filter(|(end, _)| *end > now);
        self.sending.0 = self.sending.0.min(now);
        sending
    }
}

impl Plan {
    /// The link in its initial state. Its generator streams are `name/loss`, `name/delay` and
    /// `name/queue` of `seed`.
    pub fn pipe(&self, seed: Seed, name: &str) -> Pipe {
        Pipe::from_plan(self, seed, name)
    }
}

impl Pipe {
    /// The link of `config`. Its generator streams are `name/loss`, `name/delay` and `name/queue`
    /// of `seed`. To make many of a kind, see [`Config::prepare`].
    pub fn new(config: &Config, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        Ok(config.prepare()?.pipe(seed, name))
    }

    fn from_plan(plan: &Plan, seed: Seed, name: &str) -> Self {
        let config = &plan.config;
        let queue = config.queue.clone().unwrap_or_else(|| Queue::of_packets(DEFAULT_PACKETS));
        let managed = Managed::new(&queue, Span::ZERO, config.rate, seed.stream(&format!("{name}/queue")));
        let is_lossy = config.loss != Loss::default();
        let has_transmitter = config.rate.is_some() || plan.recording.is_some();
        Self {
            is_immediate: config.policer.is_none() && !has_transmitter && !is_lossy && managed.is_none(),
            policer: config.policer.map(|policer| Box::new(TokenBucket::new(policer))),
            queue: match managed {
                None => Waiting::DropTail(DropTail::new(Limits::of(&queue))),
                Some(waiting) => Waiting::Managed(Box::new(ManagedQueue {
                    waiting,
                    ready: Instant::ZERO,
                    sending: (Instant::ZERO, 0),
                })),
            },
            transmitter: Transmitter::new(config.rate, plan.recording.as_ref()),
            is_lossy,
            losses: Box::new(Losses {
                process: LossProcess::new(config.loss, seed, &format!("{name}/loss")),
                coming: VecDeque::new(),
            }),
            line: DelayLine::new(config.delay, seed, &format!("{name}/delay")),
            blocked_until: Instant::ZERO,
            next: Instant::FAR_FUTURE,
            counters: PacketCounters::default(),
        }
    }

    /// Processes everything up to and including `now` except departures, in the order of time.
    /// Without losses and queue decisions there is nothing to do.
    #[inline]
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.is_lossy || matches!(self.queue, Waiting::Managed(_)) {
            self.catch_up(now, cx);
            self.settle();
        }
    }

    fn catch_up(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some((ready, start)) = self.next_service()
            && start <= now
        {
            self.lose(start, cx);
            self.serve(ready, start, cx);
        }
        self.lose(now, cx);
    }

    /// Since when a packet of a managed queue can be sent, and the start of the next transmission.
    #[inline]
    fn next_service(&self) -> Option<(Instant, Instant)> {
        match &self.queue {
            Waiting::Managed(queue) if queue.waiting.backlog().0 > 0 => {
                Some((queue.ready, self.transmitter.next_start(queue.ready)))
            }
            Waiting::DropTail(_) | Waiting::Managed(_) => None,
        }
    }

    /// Sends the packet that a managed queue dequeues at `start`, where one waits since `ready`.
    fn serve(&mut self, ready: Instant, start: Instant, cx: &mut Context<'_>) {
        let Waiting::Managed(queue) = &mut self.queue else { return };
        let counters = &mut self.counters;
        let packet = queue.waiting.dequeue(start, |packet| {
            counters.lose(&packet, DropCause::QueueManagement);
            cx.drop_packet(start, packet, DropCause::QueueManagement);
        });
        if let Some(packet) = packet {
            let (_, end) = self.transmitter.send(ready, packet.size);
            queue.sending = (end, packet.size);
            self.launch(end, packet);
        }
    }

    /// The time of the next loss.
    #[inline]
    fn next_loss(&self) -> Option<Instant> {
        if self.is_lossy { self.losses.coming.front().map(|(time, _)| *time) } else { None }
    }

    /// Updates the time of the next event.
    #[inline]
    fn settle(&mut self) {
        let departure = self.line.next_due().unwrap_or(Instant::FAR_FUTURE);
        if self.is_immediate {
            self.next = departure;
            return;
        }
        let loss = self.next_loss().unwrap_or(Instant::FAR_FUTURE);
        let service = self.next_service().map_or(Instant::FAR_FUTURE, |(_, start)| start);
        self.next = departure.min(loss).min(service);
    }

    /// Starts the propagation of a packet whose last bit is sent at `sent`; it was the last to
    /// enter the queue.
    #[inline]
    fn launch(&mut self, sent: Instant, packet: Packet) {
        let event = if self.is_lossy && self.losses.process.is_lost() {
            self.losses.coming.push_back((sent, packet));
            self.line.skip();
            if let Waiting::DropTail(queue) = &mut self.queue {
                queue.lose_last();
            }
            sent
        } else {
            self.line.enter(sent, packet)
        };
        self.next = self.next.min(event);
    }

    /// Drops a packet on entry.
    fn refuse(&mut self, now: Instant, packet: Packet, cause: DropCause, cx: &mut Context<'_>) -> Admission {
        self.counters.lose(&packet, cause);
        cx.drop_packet(now, packet, cause);
        Admission::Dropped(cause)
    }

    /// Drops the packets whose loss is due up to and including `now`.
    fn lose(&mut self, now: Instant, cx: &mut Context<'_>) {
        while self.next_loss().is_some_and(|time| time <= now)
            && let Some((time, packet)) = self.losses.coming.pop_front()
        {
            self.counters.lose(&packet, DropCause::Loss);
            cx.drop_packet(time, packet, DropCause::Loss);
        }
    }
}

impl Link for Pipe {
    #[inline]
    fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.counters.offer(&packet);
        if self.is_immediate {
            report_queued(now, packet, cx, || (0, 0));
            self.next = self.next.min(self.line.enter(now, packet));
            return Admission::Queued;
        }
        self.advance(now, cx);
        if self.policer.as_mut().is_some_and(|bucket| !bucket.admits(now, packet.size)) {
            return self.refuse(now, packet, DropCause::Policer, cx);
        }
        let is_free = self.transmitter.is_free(now);
        let counters = &mut self.counters;
        let refused = match &mut self.queue {
            Waiting::DropTail(queue) => {
                queue.advance(now);
                let has_room = is_free || queue.has_room(packet.size);
                (!has_room).then_some(DropCause::QueueFull)
            }
            Waiting::Managed(queue) => {
                let lost = |packet| {
                    counters.lose(&packet, DropCause::QueueFull);
                    cx.drop_packet(now, packet, DropCause::QueueFull);
                };
                if queue.waiting.backlog().0 == 0 {
                    queue.ready = now;
                }
                queue.waiting.enqueue(now, packet, is_free, lost).err()
            }
        };
        if let Some(cause) = refused {
            return self.refuse(now, packet, cause, cx);
        }
        match &mut self.queue {
            Waiting::DropTail(queue) => {
                let (start, end) = self.transmitter.send(now, packet.size);
                queue.enter(now, Entry { start, end, size: packet.size, lost: false });
                report_queued(now, packet, cx, || queue.backlog(now));
                self.launch(end, packet);
            }
            Waiting::Managed(queue) => report_queued(now, packet, cx, || queue.backlog(now)),
        }
        // It may be sent, or even lost, immediately.
        self.advance(now, cx);
        Admission::Queued
    }

    // Inlined always: a departure returned through memory costs more than the rest of the call.
    #[inline(always)]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure> {
        // One event at a time, so that reported events are in the order of their times.
        while self.next <= now && self.next < Instant::FAR_FUTURE {
            if self.line.next_due() == Some(self.next)
                && let Some(departure) = self.line.leave()
            {
                self.counters.deliver(&departure.packet);
                cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
                self.settle();
                return Some(departure);
            }
            self.catch_up(self.next, cx);
            self.settle();
        }
        None
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        (self.next < Instant::FAR_FUTURE).then_some(self.next)
    }

    fn counters(&self) -> PacketCounters {
        self.counters
    }

    fn check(&self, change: &Change) -> Result<(), CommandError> {
        self.check_change(change)
    }

    fn command(&mut self, now: Instant, change: &Change, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.check_change(change)?;
        self.make_change(now, change, cx);
        Ok(())
    }
}

#[inline]
fn report_queued(now: Instant, packet: Packet, cx: &mut Context<'_>, backlog: impl FnOnce() -> (u32, u64)) {
    cx.packet(now, packet, || {
        let (backlog_packets, backlog_bytes) = backlog();
        PacketStep::Queued { backlog_packets, backlog_bytes }
    });
}
