//! One direction of a mobile: the sender at one end, the receiver at the other, and what is on the air between them.
//!
//! In each TTI that it uses, a leg sends, in this order: a RESET or its acknowledgement, a status report of the opposite
//! leg's receiver, PDUs that were reported missing, new PDUs, and, if a poll is due and there is nothing else, the last PDU
//! once more (TS 25.322 §11.3.2).

use std::collections::VecDeque;

use airpath_core::{Cx, Direction, DropCause, Instant, Packet, RadioTotals, Seed, Span, Tally};
use airpath_link::Departure;

use super::config::{self, Format};
use super::errors::BlockErrors;
use super::polling::{Polling, Reporting, Sent};
use crate::ConfigError;
use crate::common::acknowledged::{Pdu, Receiver, Reception, Sender, Settings, Status};
use crate::error::check_queue;

/// One direction of a mobile.
#[derive(Debug)]
pub struct Leg {
    pub direction: Direction,
    pub formats: Vec<Format>,
    /// Which of the formats is in use.
    pub format: usize,
    pub pdu: u32,
    window: u64,
    max_dat: u32,
    status_missing: bool,
    radio_delay: Span,
    pub delay: Span,
    pub errors: BlockErrors,
    pub sender: Sender,
    pub receiver: Receiver,
    pub polling: Polling,
    pub reporting: Reporting,
    /// A RESET or an acknowledgement of one that is to be sent.
    pub control: Option<Control>,
    /// Whether the RLC has stopped because of a RESET that is not acknowledged.
    pub is_stopped: bool,
    /// When the next TTI that is used begins.
    pub tti_at: Option<Instant>,
    /// Nothing is sent before.
    pub blocked_until: Instant,
    blocks: VecDeque<Block>,
    pdus: VecDeque<Pdu>,
    statuses: VecDeque<Report>,
    /// Reports to be used again.
    spare: Vec<Status>,
    /// All PDUs of transmissions with lower numbers have come to the receiver, or never will.
    judged: u64,
    pub departures: VecDeque<Departure>,
    pub tally: Tally,
    pub totals: RadioTotals,
}

/// A message of the reset procedure (TS 25.322 §11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Both ends begin anew.
    Reset,
    /// They have.
    ResetAck,
}

/// What was sent in a TTI, on its way to the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub arrives: Instant,
    pub pdus: u32,
    pub is_errored: bool,
    pub polls: bool,
    pub has_status: bool,
    pub control: Option<Control>,
}

/// A report on its way, and which transmissions it knows of.
#[derive(Debug)]
struct Report {
    status: Status,
    judged: u64,
}

/// What a TTI carried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carried {
    /// PDUs, those with control information among them.
    pub pdus: u32,
    /// Of these, packet data.
    pub data: u32,
    /// Of these, sent again.
    pub repeated: u32,
    /// Whether a PDU was due that may not be sent once more.
    pub exhausted: bool,
}

/// What a block told the leg's receiver.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// A message of the reset procedure.
    pub control: Option<Control>,
    /// Whether it brought a report for the sender of the opposite leg.
    pub has_status: bool,
}

impl Leg {
    /// An idle leg, with its stream of errors.
    pub fn new(
        config: &config::Leg,
        direction: Direction,
        opposite: &config::Leg,
        seed: Seed,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let table = if direction == Direction::Down { "downlink" } else { "uplink" };
        let pdu = config.pdu_size(table)?;
        let settings = Settings {
            window: config.rlc.window.into(),
            packet_overhead: config.pdcp_header.get() as u32,
            // TS 25.322 §9.2.2.8: seven bits and the extension bit in PDUs of up to 126 octets, fifteen in larger ones.
            end_overhead: if pdu <= 126 { 1 } else { 2 },
        };
        let stream = seed.stream(&format!("{path}/{}/errors", direction.name()));
        Ok(Self {
            direction,
            formats: config.formats.clone(),
            format: config.formats.len() - 1,
            pdu,
            window: settings.window,
            max_dat: config.rlc.max_dat,
            status_missing: config.rlc.status_missing,
            radio_delay: config.radio_delay,
            delay: config.delay,
            errors: BlockErrors::new(config.bler, config.burst, config.ci_per_decade.get(), stream),
            sender: Sender::new(settings, &check_queue(config.queue.as_ref(), table)?),
            receiver: Receiver::new(settings.window),
            polling: Polling::new(&config.rlc),
            // A status report is the receiver's: it keeps to what is configured for the direction of the data.
            reporting: Reporting::new(&opposite.rlc),
            control: None,
            is_stopped: false,
            tti_at: None,
            blocked_until: Instant::ZERO,
            blocks: VecDeque::new(),
            pdus: VecDeque::new(),
            statuses: VecDeque::new(),
            spare: Vec::new(),
            judged: 0,
            departures: VecDeque::new(),
            tally: Tally::default(),
            totals: RadioTotals::default(),
        })
    }

    /// Whether there is anything to send at `now`.
    #[inline]
    pub fn has_something(&self, now: Instant) -> bool {
        self.control.is_some() || self.reporting.is_due(now) || (!self.is_stopped && self.has_data(now))
    }

    #[inline]
    fn has_data(&self, now: Instant) -> bool {
        (self.sender.has_new() && self.sender.is_open())
            || self.sender.has_repeats()
            || (self.polling.is_due(now) && self.sender.has_unacknowledged())
    }

    /// Whether the far end has all packets, handed over by now or not.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tally.queued.packets == self.departures.len() as u64
    }

    /// When something happens next that is the leg's own.
    #[inline]
    pub fn next_event(&self, after: Instant) -> Option<Instant> {
        let arrives = self.blocks.front().map(|block| block.arrives);
        let polling = if self.is_stopped { None } else { self.polling.next_timer(after) };
        [self.tti_at, arrives, polling, self.reporting.next_timer(after)].into_iter().flatten().min()
    }

    /// Sends a TTI's worth of what there is, and of the reports of `receiving`, the opposite leg. Errors are drawn by
    /// `is_errored`; `dropped` is called for packets that the queue drops instead of sending them.
    pub fn send(
        &mut self,
        now: Instant,
        format: &Format,
        receiving: &Self,
        is_errored: impl FnOnce(&mut BlockErrors) -> bool,
        dropped: &mut Vec<Packet>,
    ) -> (Carried, bool) {
        let mut carried = Carried::default();
        let control = self.control.take();
        carried.pdus += u32::from(control.is_some());
        let has_status = carried.pdus < format.pdus && self.reporting.is_due(now);
        if has_status {
            self.reporting.sent(now);
            let mut status = self.spare.pop().unwrap_or_default();
            receiving.receiver.report(&mut status);
            // A report is one PDU (TS 25.322 §9.2.2.11): header, acknowledgement and the bitmap's own take six octets.
            status.shorten(u64::from(self.pdu.saturating_sub(6).max(1)) * 8);
            self.statuses.push_back(Report { status, judged: receiving.judged });
            carried.pdus += 1;
        }
        let polls = !self.is_stopped && self.send_data(now, format.pdus, &mut carried, dropped);
        if carried.pdus == 0 {
            return (carried, false);
        }
        let errored = is_errored(&mut self.errors);
        let arrives = now + format.tti + self.radio_delay;
        // After a change of format a block may be shorter: it does not overtake.
        let arrives = self.blocks.back().map_or(arrives, |last| arrives.max(last.arrives));
        let block = Block { arrives, pdus: carried.data, is_errored: errored, polls, has_status, control };
        self.blocks.push_back(block);
        (carried, errored)
    }

    /// Sends packet data. Returns whether its last PDU polls.
    fn send_data(&mut self, now: Instant, room: u32, carried: &mut Carried, dropped: &mut Vec<Packet>) -> bool {
        let before = carried.pdus;
        while carried.pdus < room
            && let Some(peeked) = self.sender.peek_repeat()
        {
            // TS 25.322 §9.6: the maximum number of transmissions is MaxDAT − 1.
            if peeked.attempt >= self.max_dat {
                carried.exhausted = true;
                break;
            }
            let pdu = self.sender.next_repeat().expect("it was just seen");
            self.pdus.push_back(pdu);
            carried.pdus += 1;
            carried.repeated += 1;
        }
        let last_repeat = carried.repeated > 0 && !self.sender.has_repeats();
        let mut new = 0;
        while carried.pdus < room
            && let Some(pdu) = self.sender.next_new(now, self.pdu, 0, |packet| dropped.push(packet))
        {
            self.pdus.push_back(pdu);
            carried.pdus += 1;
            new += 1;
        }
        // What the window does not let go is not available for transmission, either.
        let last = new > 0 && !(self.sender.has_new() && self.sender.is_open());
        if carried.pdus == before && room > before && self.polling.is_due(now) && !carried.exhausted {
            // Of the PDUs that may carry the poll, the last one that was sent tells most.
            let last = self.sender.repeat_from(self.sender.next_sequence().saturating_sub(1));
            let repeated = if last.is_some() { last } else { self.sender.repeat_from(0) };
            carried.exhausted = repeated.is_some_and(|pdu| pdu.attempt >= self.max_dat);
            if let Some(pdu) = repeated.filter(|_| !carried.exhausted) {
                self.pdus.push_back(pdu);
                carried.pdus += 1;
                carried.repeated += 1;
            }
        }
        carried.data = carried.pdus - before;
        if carried.data == 0 {
            return false;
        }
        let used = self.sender.next_sequence() - self.sender.first_unacknowledged();
        self.polling.sent(
            now,
            Sent {
                pdus: carried.data,
                last,
                last_repeat,
                window_percent: used * 100 / self.window,
                ended: self.sender.ended(),
                next_sequence: self.sender.next_sequence(),
                transmissions: self.sender.transmissions(),
            },
        )
    }

    /// The next block that has come by `now`, and what it tells. `asks` is set if it asks for a report.
    pub fn receive(&mut self, now: Instant, asks: &mut bool) -> Option<Received> {
        let block = *self.blocks.front().filter(|block| block.arrives <= now)?;
        self.blocks.pop_front();
        let mut progress = false;
        for pdu in self.pdus.drain(..block.pdus as usize) {
            self.judged = pdu.transmission + 1;
            if block.is_errored {
                continue;
            }
            match self.receiver.receive(&pdu) {
                Reception::Gap => {
                    *asks |= self.status_missing;
                    progress = true;
                }
                Reception::New => progress = true,
                Reception::Useless => {}
            }
        }
        if progress {
            let due = block.arrives + self.delay;
            let due = self.departures.back().map_or(due, |last| due.max(last.due));
            let Self { sender, receiver, departures, .. } = self;
            sender.hand_over(receiver.complete(), |packet| departures.push_back(Departure { due, packet }));
        }
        *asks |= block.polls && !block.is_errored;
        if block.is_errored {
            if block.has_status {
                let report = self.statuses.pop_front().expect("a block with a report has one");
                self.spare.push(report.status);
            }
            return Some(Received { control: None, has_status: false });
        }
        Some(Received { control: block.control, has_status: block.has_status })
    }

    /// Gives the sender of the opposite leg the report that has just come with a block.
    pub fn hand_report_to(&mut self, opposite: &mut Self) {
        let Report { status, judged } = self.statuses.pop_front().expect("a block with a report has one");
        opposite.sender.handle(&status, judged);
        opposite.polling.answered(status.next_expected.max(status.to), judged, opposite.sender.has_unacknowledged());
        self.spare.push(status);
    }

    /// Begins anew with what was never sent; the rest is lost.
    pub fn reset(&mut self, now: Instant, cause: DropCause, cx: &mut Cx<'_>) {
        cx.direction = self.direction;
        let tally = &mut self.tally;
        self.sender.reset(|packet| {
            tally.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
        });
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
        self.polling.reset();
    }

    /// Loses all that was not delivered, what was never sent included.
    pub fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Cx<'_>) {
        self.reset(now, cause, cx);
        let tally = &mut self.tally;
        self.sender.clear_queue(|packet| {
            tally.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
        });
        self.control = None;
        self.is_stopped = false;
    }

    /// Counts packets that the queue dropped instead of sending them.
    pub fn lose(&mut self, now: Instant, dropped: &mut Vec<Packet>, cx: &mut Cx<'_>) {
        cx.direction = self.direction;
        for packet in dropped.drain(..) {
            self.tally.lose(&packet, DropCause::QueueManagement);
            cx.drop_packet(now, packet, DropCause::QueueManagement);
        }
    }
}
