//! One direction of the acknowledged mode of RLC by TS 25.322: sender and receiver with polls,
//! status reports and the messages of a reset, whatever carries them.
//!
//! When there is room, [`RlcAm::fill`] takes, in this order: a RESET or its acknowledgement, a
//! status report of the opposite direction's receiver, PDUs that were reported missing, new PDUs,
//! and, if a poll is due and there is nothing else, the last PDU once more (TS 25.322 §11.3.2).
//! What arrives is given to [`RlcAm::receive`] in the order in which it was sent.

mod config;
mod discard;
mod polling;
mod reset;

use std::collections::VecDeque;

use airpath_core::{Context, Direction, DropCause, Instant, Packet, PacketCounters, Seed, Span, earliest};
use airpath_link::Departure;
use airpath_link::queue::Queue;

pub use config::{Discard, Rlc, RlcError};
pub(crate) use polling::{Polling, Reporting};
pub(crate) use reset::{Late, Resets};

use super::acknowledged::{Pdu, Receiver, Reception, Sender, Settings, Status};
use super::rlc_queue::RlcQueue;
use crate::error::{ValueError, check_queue};
use discard::Discarding;
use polling::Sent;

/// One direction.
#[derive(Debug)]
pub(crate) struct RlcAm {
    direction: Direction,
    /// Payload of a PDU.
    pub pdu: u32,
    /// From the receiver to where the bearer ends.
    pub delay: Span,
    window: u64,
    max_dat: u32,
    status_missing: bool,
    pub sender: Sender,
    receiver: Receiver,
    pub polling: Polling,
    pub reporting: Reporting,
    discarding: Discarding,
    /// A RESET or an acknowledgement of one that is to be sent.
    pub control: Option<Control>,
    /// An acknowledgement that is to be sent of a discard in the opposite direction.
    window_moved: Option<Control>,
    /// Whether it has stopped because of a RESET that is not acknowledged.
    pub is_stopped: bool,
    /// Reports in flight, for the sender of the opposite direction.
    reports: VecDeque<Report>,
    /// How many reports were sent.
    reported: u64,
    /// The PDUs of the last report that still wait for STATUS PDUs: the first, and the one after
    /// the last.
    unreported: Option<(u64, u64)>,
    /// Reports to be used again.
    spare: Vec<Status>,
    /// All PDUs of transmissions with lower numbers have come to the receiver, or never will.
    judged: u64,
    pub departures: VecDeque<Departure>,
    pub counters: PacketCounters,
}

/// What a direction is made of.
pub(crate) struct Parameters<'a> {
    pub rlc: &'a Rlc,
    /// What is configured for the opposite direction: its receiver's reports are sent in this one.
    pub opposite: &'a Rlc,
    pub direction: Direction,
    /// Payload of a PDU.
    pub pdu: u32,
    /// Whether that is the largest of PDUs that are as long as their content, without length
    /// indicators (TS 25.322 §9.2.2.7: the extension field marks the end of a packet).
    pub flexible: bool,
    /// Bytes that PDCP adds to a packet.
    pub pdcp_header: u32,
    /// From the receiver to where the bearer ends.
    pub delay: Span,
    pub queue: Option<&'a Queue>,
    /// Time from one transmission opportunity to the next.
    pub tti: Span,
    pub seed: Seed,
    /// The streams are below this path.
    pub path: &'a str,
}

/// A message that is no report: of a reset (TS 25.322 §11.4), or of a discard (§11.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Both ends are reset; `sequence` is the RSN.
    Reset { sequence: u64 },
    /// They have been, after the RESET with this RSN.
    ResetAck { sequence: u64 },
    /// MRW: what comes before a PDU, and the packets that end in the stream up to there, were given
    /// up.
    MoveWindow { sequence: u64, end: u64 },
    /// MRW_ACK: the receiver has skipped what comes before this PDU.
    WindowMoved { sequence: u64 },
}

/// A STATUS PDU in flight, and the number of transmissions before it.
#[derive(Debug)]
struct Report {
    number: u64,
    status: Status,
    judged: u64,
}

/// What was taken to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    /// PDUs, those with control information among them.
    pub pdus: u32,
    /// Of these, packet data.
    pub data: u32,
    /// Of these, sent again.
    pub repeated: u32,
    /// Whether the RLC is to reset: a PDU was due that may not be sent once more, or the message of
    /// a discard.
    pub exhausted: bool,
    /// Whether the last PDU with data polls.
    pub polls: bool,
    /// A message of a reset or a discard.
    pub control: Option<Control>,
    /// STATUS PDUs.
    pub reports: Reports,
    /// The octets of the last of these, with its header. The others are full.
    pub report_octets: u32,
}

/// Consecutive STATUS PDUs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reports {
    /// The number of the first.
    first: u64,
    count: u32,
}

impl Reports {
    /// The one with this number.
    pub const fn one(number: u64) -> Self {
        Self { first: number, count: 1 }
    }

    /// Their numbers.
    pub fn numbers(self) -> std::ops::Range<u64> {
        self.first..self.first + u64::from(self.count)
    }
}

/// Octets of a report before its bitmap: header, acknowledgement and the bitmap's own (TS 25.322
/// §9.2.2.11).
const REPORT_HEADER: u32 = 6;

impl RlcAm {
    /// An idle one.
    pub fn new(parameters: &Parameters<'_>) -> Result<Self, ValueError> {
        let Parameters { rlc, opposite, direction, pdu, flexible, pdcp_header, delay, queue, tti, seed, path } =
            *parameters;
        let settings = Settings {
            window: rlc.window.into(),
            packet_overhead: pdcp_header,
            // TS 25.322 §9.2.2.8: seven bits and the extension bit in PDUs of up to 126 octets,
            // fifteen in larger ones.
            end_overhead: match pdu {
                _ if flexible => 0,
                ..=126 => 1,
                _ => 2,
            },
        };
        let table = if direction == Direction::Down { "downlink" } else { "uplink" };
        let path = format!("{path}/{}", direction.name());
        let sender = Sender::new(settings, RlcQueue::new(&check_queue(queue, table)?, tti, seed, &path));
        Ok(Self {
            direction,
            pdu,
            delay,
            window: settings.window,
            max_dat: rlc.max_dat,
            status_missing: rlc.status_missing,
            sender: if rlc.concatenation { sender } else { sender.without_concatenation() },
            receiver: Receiver::new(settings.window),
            polling: Polling::new(rlc),
            // A status report is the receiver's: it keeps to what is configured for the direction
            // of the data.
            reporting: Reporting::new(opposite),
            discarding: Discarding::new(rlc.discard),
            control: None,
            window_moved: None,
            is_stopped: false,
            reports: VecDeque::new(),
            reported: 0,
            unreported: None,
            spare: Vec::new(),
            judged: 0,
            departures: VecDeque::new(),
            counters: PacketCounters::default(),
        })
    }

    /// Takes a packet to send. Packets that give way to it in a full queue are dropped.
    ///
    /// # Errors
    /// Why the queue drops the packet instead.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Result<(), DropCause> {
        let Self { sender, counters, .. } = self;
        sender.enqueue(now, packet, |packet| {
            counters.lose(&packet, DropCause::QueueFull);
            cx.drop_packet(now, packet, DropCause::QueueFull);
        })
    }

    /// Whether there is anything to send at `now`.
    #[inline]
    pub fn has_something(&self, now: Instant) -> bool {
        self.control.is_some()
            || self.reporting.is_due(now)
            || self.unreported.is_some()
            || self.window_moved.is_some()
            || (!self.is_stopped && (self.discarding.is_due() || self.has_data(now)))
    }

    #[inline]
    fn has_data(&self, now: Instant) -> bool {
        (self.sender.has_new() && self.sender.is_open())
            || self.sender.has_repeats()
            || (self.polling.is_due(now) && self.sender.has_unacknowledged())
    }

    /// Whether the window alone is why nothing is sent: there is data, and VT(S) = VT(MS) forbids
    /// new PDUs (TS 25.322 §9.4).
    #[inline]
    pub fn is_stalled(&self, now: Instant) -> bool {
        self.sender.is_stalled() && !self.is_stopped && !self.has_something(now)
    }

    /// Whether the far end has all packets, handed over by now or not.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.counters.queued.packets == self.departures.len() as u64
    }

    /// The next expiry of a timer.
    #[inline]
    pub fn next_timer(&self, after: Instant) -> Option<Instant> {
        let polling = if self.is_stopped { None } else { self.polling.next_timer(after) };
        let [cut, waiting] = self.late_at();
        earliest([polling, self.reporting.next_timer(after), self.discarding.next_timer(), cut, waiting])
    }

    /// When the oldest packet that is cut, and the oldest that is not, have waited for too long. A
    /// packet that is cut waits for the end of the discard before.
    #[inline]
    fn late_at(&self) -> [Option<Instant>; 2] {
        let Some(timer) = self.discarding.timer() else { return [None, None] };
        let [cut, waiting] = self.sender.oldest().map(|entered| entered.map(|entered| entered + timer));
        [cut.filter(|_| !self.is_stopped && !self.discarding.is_running()), waiting]
    }

    /// Handles the timers that expired by `now`.
    pub fn expire(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.polling.expire(now);
        self.discarding.expire(now);
        if self.late_at().into_iter().flatten().any(|at| at <= now) {
            self.discard_late(now, cx);
        }
    }

    /// Discards the packets that have waited for too long (TS 25.322 §9.7.3.1). Without a PDU on
    /// the air they go without a message.
    fn discard_late(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Some(timer) = self.discarding.timer() else { return };
        let is_too_late = |entered: Instant| entered + timer <= now;
        let Self { sender, discarding, .. } = self;
        if !self.is_stopped && !discarding.is_running() {
            let lost = &mut discarding.lost;
            if let Some((next, end)) =
                sender.give_up_late(is_too_late, |packet| lost.push((packet, DropCause::Discarded)))
            {
                discarding.begin(next, end);
            }
        }
        while let Some(packet) = sender.drop_late(now, is_too_late) {
            discarding.lost.push((packet, DropCause::Discarded));
        }
        self.lose(now, &mut Vec::new(), cx);
    }

    /// Takes up to `room` PDUs to be sent, those with data go into `pdus`. `receiving` is
    /// the opposite direction, which a report may describe; `dropped` gets packets that the queue
    /// drops instead of sending them.
    pub fn fill(
        &mut self,
        now: Instant,
        room: u32,
        receiving: &Self,
        pdus: &mut VecDeque<Pdu>,
        dropped: &mut Vec<Packet>,
    ) -> Carried {
        let mut carried =
            Carried { control: self.control.take().or_else(|| self.window_moved.take()), ..Carried::default() };
        carried.pdus += u32::from(carried.control.is_some());
        self.send_discard(now, room, &mut carried);
        self.fill_reports(now, room, &receiving.receiver, receiving.judged, &mut carried);
        carried.polls = !self.is_stopped && self.fill_data(now, room, &mut carried, pdus, dropped);
        // One that has just begun, perhaps with nothing else to send.
        self.send_discard(now, room, &mut carried);
        carried
    }

    /// Adds the STATUS PDUs of a report of `receiver`, as many as the report takes and as there is
    /// room for. The others are sent when there is room again (TS 25.322 §11.5.2, recalled).
    fn fill_reports(&mut self, now: Instant, room: u32, receiver: &Receiver, judged: u64, carried: &mut Carried) {
        carried.reports.first = self.reported;
        if carried.pdus < room && self.unreported.is_none() && self.reporting.is_due(now) {
            self.reporting.sent(now);
            self.unreported = Some((0, receiver.highest()));
        }
        while carried.pdus < room
            && let Some((from, to)) = self.unreported
        {
            let mut status = self.spare.pop().unwrap_or_default();
            receiver.report_from(from, &mut status);
            status.shorten(to.saturating_sub(status.from));
            status.shorten(u64::from(self.pdu.saturating_sub(REPORT_HEADER).max(1)) * 8);
            self.unreported = (status.to < to).then_some((status.to, to));
            carried.report_octets = REPORT_HEADER + (status.to - status.from).div_ceil(8) as u32;
            self.reports.push_back(Report { number: self.reported, status, judged });
            carried.reports.count += 1;
            carried.pdus += 1;
            self.reported += 1;
        }
    }

    /// Adds the MRW of a discard, if one is pending and there is room for it.
    fn send_discard(&mut self, now: Instant, room: u32, carried: &mut Carried) {
        if self.is_stopped || carried.control.is_some() || carried.pdus >= room {
            return;
        }
        match self.discarding.message(now) {
            Ok(message) => {
                carried.pdus += u32::from(message.is_some());
                carried.control = message;
            }
            Err(()) => carried.exhausted = true,
        }
    }

    /// Takes packet data. Returns whether its last PDU polls.
    fn fill_data(
        &mut self,
        now: Instant,
        room: u32,
        carried: &mut Carried,
        pdus: &mut VecDeque<Pdu>,
        dropped: &mut Vec<Packet>,
    ) -> bool {
        let before = carried.pdus;
        while carried.pdus < room
            && let Some(peeked) = self.sender.peek_repeat()
        {
            // TS 25.322 §9.6: the maximum number of transmissions is MaxDAT − 1. Next: `give_up`.
            if peeked.attempt >= self.max_dat {
                if self.give_up(peeked.sequence, carried) {
                    continue;
                }
                break;
            }
            let pdu = self.sender.next_repeat().expect("it was just seen");
            pdus.push_back(pdu);
            carried.pdus += 1;
            carried.repeated += 1;
        }
        let last_repeat = carried.repeated > 0 && !self.sender.has_repeats();
        let mut new = 0;
        while carried.pdus < room
            && let Some(pdu) = self.sender.next_new(now, self.pdu, 0, |packet| dropped.push(packet))
        {
            pdus.push_back(pdu);
            carried.pdus += 1;
            new += 1;
        }
        // What the window does not let go is not available for transmission, either.
        let last = new > 0 && !(self.sender.has_new() && self.sender.is_open());
        if carried.pdus == before && room > before && self.polling.is_due(now) && !carried.exhausted {
            // Of the PDUs that may carry the poll, the one sent last gives the most complete
            // report.
            let last = self.sender.repeat_from(self.sender.next_sequence().saturating_sub(1));
            let repeated = if last.is_some() { last } else { self.sender.repeat_from(0) };
            match repeated {
                Some(pdu) if pdu.attempt >= self.max_dat => {
                    self.give_up(pdu.sequence, carried);
                }
                Some(pdu) => {
                    pdus.push_back(pdu);
                    carried.pdus += 1;
                    carried.repeated += 1;
                }
                None => {}
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

    /// A PDU reached MaxDAT. Returns whether its packets were discarded: if not, it waits for the
    /// end of a discard before, or the RLC is to reset.
    ///
    /// Next: [`Discarding::begin`], or `exhausted`, on which the bearer calls [`Resets::begin`].
    fn give_up(&mut self, sequence: u64, carried: &mut Carried) -> bool {
        if !self.discarding.is_configured() {
            carried.exhausted = true;
        }
        if !self.discarding.is_configured() || self.discarding.is_running() {
            return false;
        }
        let Self { sender, discarding, .. } = self;
        let lost = &mut discarding.lost;
        let (next, end) = sender.give_up(sequence, |packet| lost.push((packet, DropCause::AttemptsExhausted)));
        discarding.begin(next, end);
        true
    }

    /// A message of a discard has come in this direction, at `at`: `opposite` has the answer to
    /// give, or the sender that waits for it. Those of a reset are not for here.
    pub fn take_discard(&mut self, at: Instant, message: Control, opposite: &mut Self) {
        match message {
            Control::MoveWindow { sequence, end } => {
                self.receiver.skip(sequence, end);
                self.deliver(at);
                opposite.window_moved = Some(Control::WindowMoved { sequence });
            }
            Control::WindowMoved { sequence } => {
                if opposite.discarding.answered(sequence) {
                    opposite.sender.skipped();
                }
            }
            Control::Reset { .. } | Control::ResetAck { .. } => {
                unreachable!("a reset concerns the connection, not a direction")
            }
        }
    }

    /// A PDU will not come, and no PDU that was sent before it.
    #[inline]
    pub fn miss(&mut self, pdu: &Pdu) {
        self.judged = pdu.transmission + 1;
    }

    /// Takes a PDU; no PDU that was sent before it will come after it. `polled` is set if a report
    /// on missing PDUs is due. Returns whether it brought anything, so that [packets may be
    /// complete](Self::deliver).
    #[inline]
    pub fn receive(&mut self, pdu: &Pdu, polled: &mut bool) -> bool {
        self.miss(pdu);
        match self.receiver.receive(pdu) {
            Reception::Gap => {
                *polled |= self.status_missing;
                true
            }
            Reception::New => true,
            Reception::Useless => false,
        }
    }

    /// Lets go the packets that are complete at `at`.
    pub fn deliver(&mut self, at: Instant) {
        let due = at + self.delay;
        let due = self.departures.back().map_or(due, |last| due.max(last.due));
        let Self { sender, receiver, departures, .. } = self;
        sender.hand_over(receiver.complete(), |packet| departures.push_back(Departure { due, packet }));
    }

    /// Gives the sender of the opposite direction the report with this number. Those with lower
    /// numbers were lost.
    pub fn hand_report_to(&mut self, number: u64, opposite: &mut Self) {
        while let Some(report) = self.reports.pop_front() {
            let Report { number: its, status, judged } = report;
            if its == number {
                opposite.sender.handle(&status, judged);
                let reported = status.next_expected.max(status.to);
                opposite.polling.answered(reported, judged, opposite.sender.has_unacknowledged());
            }
            self.spare.push(status);
            if its == number {
                break;
            }
        }
    }

    /// Restarts with packets that were never sent; all others are lost.
    pub fn reset(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        cx.direction = self.direction;
        let counters = &mut self.counters;
        self.sender.reset(|packet| {
            counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
        });
        self.receiver.restart(self.sender.next_sequence(), self.sender.cut());
        self.polling.reset();
        self.discarding.reset();
        self.window_moved = None;
        self.unreported = None;
    }

    /// Restarts with packets that were never sent, without a reset procedure (TS 25.322 §9.7.7);
    /// the rest is lost.
    pub fn re_establish(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.reset(now, cause, cx);
        self.control = None;
        self.is_stopped = false;
    }

    /// Loses all that was not delivered, what was never sent included.
    pub fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.re_establish(now, cause, cx);
        let counters = &mut self.counters;
        self.sender.clear_queue(now, |packet| {
            counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
        });
    }

    /// Counts packets that the queue dropped instead of sending them, and those that were
    /// discarded.
    pub fn lose(&mut self, now: Instant, dropped: &mut Vec<Packet>, cx: &mut Context<'_>) {
        cx.direction = self.direction;
        let dropped = dropped.drain(..).map(|packet| (packet, DropCause::QueueManagement));
        for (packet, cause) in dropped.chain(self.discarding.lost.drain(..)) {
            self.counters.lose(&packet, cause);
            cx.drop_packet(now, packet, cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Slot, UserId};

    use super::*;

    fn rlc_am(direction: Direction) -> RlcAm {
        let text = r#"
            window = 2047
            max_dat = 10
            timer_rst = "1 s"
            max_rst = 4
            poll_last = false
            poll_last_repeat = false
            status_missing = false
        "#;
        let rlc: Rlc = toml::from_str(text).expect("an RLC");
        let parameters = Parameters {
            rlc: &rlc,
            opposite: &rlc,
            direction,
            pdu: 40,
            flexible: false,
            pdcp_header: 0,
            delay: Span::ZERO,
            queue: None,
            tti: Span::from_millis(10),
            seed: Seed::new(1),
            path: "rlc",
        };
        RlcAm::new(&parameters).expect("sound parameters")
    }

    #[test]
    fn a_long_report_takes_several_status_pdus() {
        let (mut down, mut up) = (rlc_am(Direction::Down), rlc_am(Direction::Up));
        let now = Instant::ZERO;
        let packet =
            Packet { id: 0, size: 40_000, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
        let mut lost = Vec::new();
        down.enqueue(now, packet, &mut Context::new(None, &mut lost, Default::default())).expect("room");
        let (mut pdus, mut dropped) = (VecDeque::new(), Vec::new());
        down.fill(now, 2000, &up, &mut pdus, &mut dropped);
        let sent = pdus.len();
        assert!(sent > 900);
        // Every other PDU is lost, so the bitmap has more than 900 bits. One PDU carries 272.
        let mut polled = false;
        for pdu in pdus.drain(..) {
            if pdu.sequence % 2 == 0 {
                down.miss(&pdu);
            } else {
                down.receive(&pdu, &mut polled);
            }
        }
        up.reporting.trigger();
        let mut fill = |up: &mut RlcAm, down: &RlcAm, room| up.fill(now, room, down, &mut pdus, &mut dropped);
        let first = fill(&mut up, &down, 3);
        assert_eq!((first.pdus, first.report_octets, first.reports.numbers()), (3, 40, 0..3));
        assert!(up.has_something(now), "the rest waits for room");
        let second = fill(&mut up, &down, 3);
        assert_eq!((second.pdus, second.reports.numbers()), (1, 3..4));
        assert!(!up.has_something(now));
        for number in [0, 1, 2, 3] {
            up.hand_report_to(number, &mut down);
        }
        let mut repeats = 0;
        while down.sender.next_repeat().is_some() {
            repeats += 1;
        }
        assert_eq!(repeats, sent.div_ceil(2));
    }
}
