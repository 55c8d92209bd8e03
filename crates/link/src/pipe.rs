//! The common link: queue, transmitter, loss and delay in one.

mod change;

use std::collections::VecDeque;

use airpath_core::{Context, DropCause, Instant, Packet, PacketCounters, PacketStep, Seed};

use crate::config::{Config, ConfigError, Plan};
use crate::delay::DelayLine;
use crate::loss::{Loss, LossProcess};
use crate::queue::codel::CoDel;
use crate::queue::drop_tail::{DropTail, Entry};
use crate::queue::{Discipline, Limits};
use crate::transmitter::Transmitter;
use crate::{Admission, Change, CommandError, Departure, Link};

/// One direction of a link, as [`Config`] describes it.
///
/// The backlog that it reports with each packet that it takes is what is not completely sent:
/// waiting or in transmission, that packet included. A link without a rate never has any.
///
/// The fields stand in the order in which they are needed together, and a link begins with a cache
/// line: thousands of links do not fit into a cache, and then a packet costs what it touches of
/// them.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Pipe {
    line: DelayLine,
    /// Whether packets are lost in transmission. If not, nobody looks into `losses`.
    is_lossy: bool,
    transmitter: Transmitter,
    /// When something happens next, be it a departure, a loss or a decision of the queue.
    next: Instant,
    queue: Waiting,
    counters: PacketCounters,
    losses: Box<Losses>,
    /// The end of the last outage.
    blocked_until: Instant,
}

#[derive(Clone, Debug)]
struct Losses {
    process: LossProcess,
    /// Packets that will be lost when they are sent, in the order of these times.
    coming: VecDeque<(Instant, Packet)>,
}

#[derive(Clone, Debug)]
enum Waiting {
    /// When a packet is sent is known as it comes: nothing is left to do later.
    DropTail(DropTail),
    /// Which packet is sent is known when one can be. In a box, so that of the common kind more fit
    /// into the cache.
    CoDel(Box<CoDel>),
}

impl Pipe {
    /// The link of `config`. Its generator streams are `name/loss` and `name/delay` of `seed`. To
    /// make many of a kind, see [`Config::prepare`].
    pub fn new(config: &Config, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        Ok(config.prepare()?.pipe(seed, name))
    }

    pub(crate) fn from_plan(plan: &Plan, seed: Seed, name: &str) -> Self {
        let config = &plan.config;
        let queue = config.queue.clone().unwrap_or_default();
        let limits = Limits::of(&queue);
        Self {
            queue: match queue.discipline {
                Discipline::DropTail => Waiting::DropTail(DropTail::new(limits)),
                Discipline::CoDel(settings) => Waiting::CoDel(Box::new(CoDel::new(settings, limits))),
            },
            transmitter: Transmitter::new(config.rate, plan.recording.as_ref()),
            is_lossy: config.loss != Loss::default(),
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

    /// Does all that happens inside up to and including `now` but for departures, in the order of
    /// time. Without losses and decisions of the queue there is nothing to do.
    #[inline]
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.is_lossy || matches!(self.queue, Waiting::CoDel(_)) {
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

    /// Since when the packet waits that a CoDel queue gives out next, and when it does.
    #[inline]
    fn next_service(&self) -> Option<(Instant, Instant)> {
        match &self.queue {
            Waiting::DropTail(_) => None,
            Waiting::CoDel(queue) => queue.head_entered().map(|ready| (ready, self.transmitter.next_start(ready))),
        }
    }

    /// Sends the packet that a CoDel queue gives out at `start`, where one waits since `ready`.
    fn serve(&mut self, ready: Instant, start: Instant, cx: &mut Context<'_>) {
        let Waiting::CoDel(queue) = &mut self.queue else { return };
        let counters = &mut self.counters;
        let packet = queue.dequeue(start, |packet| {
            counters.lose(&packet, DropCause::QueueManagement);
            cx.drop_packet(start, packet, DropCause::QueueManagement);
        });
        if let Some(packet) = packet {
            let (_, end) = self.transmitter.send(ready, packet.size);
            queue.sending(end, packet.size);
            self.launch(end, packet);
        }
    }

    /// When the next packet is lost of those that will be.
    #[inline]
    fn next_loss(&self) -> Option<Instant> {
        if self.is_lossy { self.losses.coming.front().map(|(time, _)| *time) } else { None }
    }

    /// Finds out when something happens next.
    #[inline]
    fn settle(&mut self) {
        let departure = self.line.next_due().unwrap_or(Instant::FAR_FUTURE);
        let loss = self.next_loss().unwrap_or(Instant::FAR_FUTURE);
        let service = self.next_service().map_or(Instant::FAR_FUTURE, |(_, start)| start);
        self.next = departure.min(loss).min(service);
    }

    /// Lets a packet on its way whose last bit is out at `sent`; it was the last to enter the
    /// queue.
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

    /// Loses what is to be lost up to and including `now`.
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
        self.advance(now, cx);
        let has_room = match &mut self.queue {
            Waiting::DropTail(queue) => {
                queue.advance(now);
                queue.has_room(packet.size)
            }
            Waiting::CoDel(queue) => queue.has_room(packet.size),
        };
        if !has_room && !self.transmitter.is_free(now) {
            self.counters.lose(&packet, DropCause::QueueFull);
            cx.drop_packet(now, packet, DropCause::QueueFull);
            return Admission::Dropped(DropCause::QueueFull);
        }
        match &mut self.queue {
            Waiting::DropTail(queue) => {
                let (start, end) = self.transmitter.send(now, packet.size);
                queue.enter(now, Entry { start, end, size: packet.size, lost: false });
                report_queued(now, packet, cx, || queue.backlog(now));
                self.launch(end, packet);
            }
            Waiting::CoDel(queue) => {
                queue.enter(now, packet);
                report_queued(now, packet, cx, || queue.backlog(now));
            }
        }
        // It may be sent, or even lost, at once.
        self.advance(now, cx);
        Admission::Queued
    }

    // Always: a departure that is handed on through memory costs more than the rest of the call.
    #[inline(always)]
    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure> {
        // One thing after the other, so that the events come in the order of their times.
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
