//! One end's data, seen where it is sent: what holds the sender, and in which round trips the link was full.
//!
//! A round begins when the first byte that was sent in the one before is acknowledged. The round trips that are
//! measured in a round are those of what was sent in the one before; a round is therefore decided when the next is over.

use airpath_core::{Instant, Span};

use super::path::Path;
use super::sends::Sends;
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline};
use super::{Cause, Confidence};
use crate::connection::{Observation, Trigger};

/// The link is full if acknowledgements come with at least this share of the path's rate.
const FULL: f64 = 0.8;

/// The window grows as in slow start if a round sends this many times what it had acknowledged.
const GROWTH: f64 = 1.25;

/// News that a round must bring for its pace to tell anything.
const TELLING: u32 = 4;

/// An acknowledgement that is overdue by less than this says nothing of the radio.
const PATIENCE: Span = Span::from_millis(150);

/// With one segment outstanding the receiver may delay its acknowledgement: RFC 9293 §3.8.6.3 allows 500 ms, and 200 ms are usual.
const DELAYED: Span = Span::from_millis(200);

/// A gap is silence only if it is so many times longer than those that follow it.
const USUAL: u64 = 3;

/// A round trip of data.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Even of the client's, odd of the server's.
    number: u32,
    begin: Instant,
    end: Instant,
    /// It ends when anything beyond this is acknowledged.
    marker: i64,
    sent_before: i64,
    sent: i64,
    delivered_before: u64,
    delivered: u64,
    /// News that came in it, and what part of its time was silence.
    news: u32,
    silence: Span,
    /// What part of its time was silence by the radio's log.
    logged: Span,
    /// Round trips of what was sent in it: the shortest, the longest, their sum, how many.
    shortest: Option<Span>,
    longest: Span,
    sum: Span,
    samples: u32,
    /// The round trip of what arrived late, when it was silent.
    late: Span,
    /// Whether the sender ran out of data.
    starved: bool,
}

impl Round {
    /// What was delivered in it, in bytes per second; silences do not count.
    fn pace(&self) -> f64 {
        let time = self.end.since(self.begin).saturating_sub(self.silence.max(self.logged));
        if time.is_zero() {
            0.0
        } else {
            self.delivered.saturating_sub(self.delivered_before) as f64 / time.as_secs_f64()
        }
    }
}

/// Time-outs without an answer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the timer went off first, the last time but one, and last.
    first: Instant,
    before: Option<Instant>,
    last: Instant,
    count: u32,
    /// The last news before.
    since: (Instant, u64),
    outstanding: u64,
    highest: i64,
    delivered: u64,
    resent: u64,
    needless: bool,
}

/// What one end sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    highest: i64,
    acknowledged: i64,
    delivered: u64,
    /// One past the last byte that the receiver's window allows.
    edge: Option<i64>,
    segment: u32,
    sends: Sends,
    path: Path,
    round: Round,
    /// The round before, which waits for this one's evidence.
    previous: Option<Round>,
    /// When news last came, or data was sent with nothing outstanding; and the frame.
    news: (Instant, u64),
    /// When new data of the other end last came, and its frame: the radio was not silent then.
    heard: (Instant, u64),
    last_send: Instant,
    /// Acknowledged since data was last sent.
    credit: u64,
    starved: bool,
    /// All up to here was sent when a loss was noticed, and is being repaired.
    recovering: Option<i64>,
    waiting: Option<Waiting>,
    /// When the radio was back last, by its log.
    back_at: Instant,
    /// Whether slow start is over.
    steady: bool,
    /// Slow start goes on to this flight, since a loss has set the threshold.
    threshold: Option<u64>,
}

impl Sender {
    /// Of the client (0) or the server (1), so that the numbers of their rounds differ.
    pub(super) fn new(end: u32) -> Self {
        Self { round: Round { number: end, ..Round::default() }, ..Self::default() }
    }

    /// The round trip of the handshake.
    pub(super) fn first_round_trip(&mut self, sample: Span) {
        self.path.round_trip(sample, false);
    }

    /// Whether all that was sent is acknowledged.
    pub(super) fn idle(&self) -> bool {
        self.highest <= self.acknowledged
    }

    /// What the time from now on goes by with.
    pub(super) fn label(&self) -> Label {
        let room = self.edge.map(|edge| edge - self.highest);
        let limit = match () {
            () if self.recovering.is_some() || self.waiting.is_some() => Limit::Recovery,
            () if self.starved => Limit::Application,
            () if room.is_some_and(|room| room < i64::from(self.segment)) => Limit::Receiver,
            () => Limit::Window,
        };
        Label::Limited(limit, self.round.number)
    }

    /// This end sent a segment.
    pub(super) fn sent(&mut self, observation: &Observation, timeline: &mut Timeline) {
        if observation.length == 0 {
            return;
        }
        let now = observation.time;
        let end = observation.offset + i64::from(observation.length);
        let new = end > self.highest;
        if new {
            if self.idle() {
                self.start(observation);
            }
            self.segment = self.segment.max(observation.length);
            self.sends.sent(end, now);
            self.highest = end;
            self.last_send = now;
            self.credit = 0;
            // A segment that is not full is the end of what the application gave.
            self.starved = observation.length < self.segment;
            self.round.starved |= self.starved;
        }
        if let Some(again) = observation.retransmission {
            self.sent_again(observation, again.trigger, timeline);
        }
    }

    /// The other end acknowledged.
    pub(super) fn answered(&mut self, observation: &Observation, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let Some(acknowledged) = observation.acknowledged else { return };
        let now = observation.time;
        self.edge = self.edge.max(Some(acknowledged.saturating_add_unsigned(observation.window)));
        if self.idle() {
            return;
        }
        let news = observation.delivered.saturating_sub(self.delivered);
        let sample = observation.echo_round_trip.or(observation.round_trip).map(|(sample, _)| sample);
        let needless = observation.needless.is_some_and(|needless| needless.frame != observation.frame);
        if needless {
            self.needless(now, timeline);
        }
        if news == 0 && acknowledged <= self.acknowledged {
            return;
        }
        if let Some(waiting) = self.waiting.take() {
            self.answered_at_last(&waiting, observation, timeline, stalls);
        } else {
            self.overdue(observation, timeline, stalls);
        }
        self.delivered = self.delivered.max(observation.delivered);
        self.acknowledged = self.acknowledged.max(acknowledged);
        self.sends.acknowledged(self.acknowledged);
        self.path.delivered(now, self.delivered);
        if let Some(sample) = sample {
            if self.recovering.is_none() {
                self.path.at_least(news, sample);
            }
            self.path.round_trip(sample, news >= u64::from(self.segment));
            let sent = now - sample;
            let round = match &mut self.previous {
                Some(previous) if sent < previous.end => previous,
                _ => &mut self.round,
            };
            round.shortest = Some(round.shortest.map_or(sample, |shortest| shortest.min(sample)));
            round.longest = round.longest.max(sample);
            round.sum += sample;
            round.samples += 1;
        }
        self.news = (now, observation.frame);
        self.round.news += 1;
        let late = !self.round.silence.is_zero();
        if self.recovering.is_some_and(|until| self.acknowledged >= until) {
            self.recovering = None;
        }
        self.starve(news, timeline);
        if self.idle() {
            self.rest(now, timeline);
        } else if late || self.acknowledged > self.round.marker {
            self.turn(now, timeline);
        }
    }

    /// New data of the other end arrived, whatever it acknowledged.
    pub(super) fn heard(&mut self, observation: &Observation) {
        self.heard = (observation.time, observation.frame);
    }

    /// The radio's log says that nothing was sent the way of the data.
    pub(super) fn silent(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        let inferred = |label: Label| !matches!(label, Label::Known(..));
        timeline.paint(begin, end, Label::Known(Cause::Radio, Confidence::High), inferred);
        self.round.logged += end.since(begin);
        self.back_at = end;
    }

    /// The radio's log says that nothing was sent the other way.
    pub(super) fn unanswered(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        let inferred = |label: Label| !matches!(label, Label::Known(..));
        timeline.paint(begin, end, Label::Unanswered(self.round.number), inferred);
        self.back_at = end;
    }

    /// The connection ended.
    pub(super) fn end(&mut self, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        if let Some(waiting) = self.waiting.take() {
            stalls.push(Stall {
                begin: waiting.since.0,
                end: waiting.last,
                first_frame: waiting.since.1,
                last_frame: waiting.since.1,
                outstanding: waiting.outstanding,
                timeouts: waiting.count,
                fate: Fate::Unknown,
                silent: waiting.last.since(waiting.since.0),
            });
        }
        let now = self.news.0.max(self.last_send);
        self.rest(now, timeline);
    }

    /// Data goes out after nothing was outstanding.
    fn start(&mut self, observation: &Observation) {
        self.acknowledged = self.acknowledged.max(observation.offset.min(self.highest));
        self.news = (observation.time, observation.frame);
        self.path.pause();
        self.round = Round {
            number: self.round.number + 2,
            begin: observation.time,
            marker: self.acknowledged,
            sent_before: self.highest,
            delivered_before: self.delivered,
            ..Round::default()
        };
    }

    /// A round is over, and the next begins.
    fn turn(&mut self, now: Instant, timeline: &mut Timeline) {
        self.close(now);
        let closed = self.round;
        if let Some(previous) = self.previous.replace(closed) {
            self.decide(&previous, Some(&closed), timeline);
        }
        self.path.next_round();
        self.round = Round {
            number: closed.number + 2,
            begin: now,
            marker: self.highest,
            sent_before: self.highest,
            delivered_before: self.delivered,
            starved: self.starved,
            ..Round::default()
        };
    }

    /// Nothing is outstanding any more.
    fn rest(&mut self, now: Instant, timeline: &mut Timeline) {
        self.close(now);
        let closed = self.round;
        if self.starved {
            // The last byte has left the bottleneck by now; its acknowledgement is on its way.
            let base = self.path.base().unwrap_or(Span::ZERO);
            let tail = now - base.min(now.since(self.last_send.min(now)));
            let starved = |label: Label| matches!(label, Label::Limited(Limit::Application, _));
            timeline.paint(tail, now, Label::Known(Cause::Application, Confidence::Medium), starved);
            if self.path.latest.is_some_and(|latest| latest > base * 2) {
                timeline.paint(tail - base, tail, Label::Known(Cause::PathRate, Confidence::Medium), starved);
            }
        }
        if let Some(previous) = self.previous.take() {
            self.decide(&previous, Some(&closed), timeline);
        }
        self.decide(&closed, None, timeline);
        self.round.number += 2;
        self.waiting = None;
        self.recovering = None;
    }

    fn close(&mut self, now: Instant) {
        self.round.end = now;
        self.round.sent = self.highest;
        self.round.delivered = self.delivered;
    }

    /// The sender has room and sends nothing: it has run out of data.
    fn starve(&mut self, news: u64, timeline: &mut Timeline) {
        self.credit += news;
        let room = self.edge.is_none_or(|edge| edge - self.highest >= i64::from(self.segment));
        // A sender that halves its window sends nothing for half of it.
        let outstanding = u64::try_from(self.highest - self.acknowledged).unwrap_or(0);
        let much = (3 * u64::from(self.segment)).max(outstanding * 3 / 2);
        if self.starved || self.recovering.is_some() || !room || self.credit < much {
            return;
        }
        self.starved = true;
        self.round.starved = true;
        let (since, rounds) = (self.last_send, [self.round.number, self.round.number.wrapping_sub(2)]);
        for round in rounds {
            let window = Label::Limited(Limit::Window, round);
            timeline
                .paint(since, Instant::FAR_FUTURE, Label::Limited(Limit::Application, round), |label| label == window);
        }
    }

    /// Decides what the time of a round went by with. What was sent in it came to the bottleneck soon after, and the `next` round's
    /// acknowledgements tell how that carried it.
    fn decide(&mut self, round: &Round, next: Option<&Round>, timeline: &mut Timeline) {
        let delivered = round.delivered.saturating_sub(round.delivered_before);
        let carried = next.filter(|next| next.news >= TELLING).unwrap_or(round);
        let pace = carried.pace();
        let base = self.path.base().unwrap_or(Span::ZERO);
        let base_full = self.path.base_full().unwrap_or(Span::ZERO);
        // The queue did not run empty if even the luckiest packet had to wait behind others.
        let serving = self.path.rate().map_or(Span::ZERO, |rate| Span::from_secs_f64(f64::from(self.segment) / rate));
        let margin = (serving * 2).max(base_full / 10);
        // Where nothing was sent, what is sent before drains.
        let shortest = round.shortest.or(self.path.latest);
        let queue = shortest.is_some_and(|shortest| shortest > base_full + margin);
        let standing =
            shortest.is_some_and(|shortest| shortest > base_full + margin.max(base_full / 2).max(DELAYED / 2));
        if standing && !round.starved && carried.news > TELLING && carried.silence.is_zero() {
            self.path.carried(pace);
        }
        let busy = self.path.rate().is_some_and(|rate| pace >= FULL * rate);
        let mean = if round.samples > 0 { round.sum / u64::from(round.samples) } else { shortest.unwrap_or(base) };
        // Or if what was sent at once kept the link busy for longer than a round trip.
        let burst = round.longest > base_full + base + round.silence.max(round.logged);
        let full = busy || queue || burst;
        let long_queue = mean > base_full + base;
        self.judge_growth(round, delivered);
        let window = if self.steady { Cause::CongestionWindow } else { Cause::SlowStart };
        // Where every acknowledgement takes as long as this one did, it was no silence.
        let gap = next
            .filter(|next| next.news > 0)
            .map_or(self.path.gap(), |next| next.end.since(next.begin) / u64::from(next.news));
        let usual = next.and_then(|next| next.shortest).unwrap_or(round.late);
        let silent = round.silence > gap * USUAL || usual + round.silence / 2 < round.late;
        timeline.resolve(round.number, |label| {
            let link = if long_queue { Cause::Queueing } else { Cause::PathRate };
            let sure = if busy && queue { Confidence::High } else { Confidence::Medium };
            match label {
                Label::Silence(_) if silent => (Cause::Radio, Confidence::Medium),
                Label::Unanswered(_) if !full => (Cause::Radio, Confidence::High),
                _ if full => (link, sure),
                Label::Known(cause, confidence) => (cause, confidence),
                Label::Silence(_) | Label::Unanswered(_) | Label::Limited(Limit::Window, _) => {
                    (window, Confidence::Medium)
                }
                Label::Limited(Limit::Application, _) => (Cause::Application, Confidence::Medium),
                Label::Limited(Limit::Receiver, _) => (Cause::ReceiveWindow, Confidence::High),
                Label::Limited(Limit::Recovery, _) => (Cause::Recovery, Confidence::High),
            }
        });
    }

    /// Whether slow start is over. Once a loss has set the threshold, it lasts up to that; before, as long as the window is seen to grow
    /// so fast.
    fn judge_growth(&mut self, round: &Round, delivered: u64) {
        let sent = u64::try_from(round.sent - round.sent_before).unwrap_or(0);
        if let Some(threshold) = self.threshold {
            self.steady |= sent.max(delivered) >= threshold;
        } else if !round.starved && delivered > 0 && sent >= u64::from(self.segment) {
            self.steady = (sent as f64) < GROWTH * delivered as f64;
        }
    }

    /// A loss was noticed: the window is reduced to the threshold, or after a time-out to one segment.
    fn reduce(&mut self, outstanding: u64, to_one: bool) {
        self.threshold = Some(outstanding / 2);
        self.steady = !to_one;
    }

    fn sent_again(&mut self, observation: &Observation, trigger: Trigger, timeline: &mut Timeline) {
        let now = observation.time;
        let front = observation.offset <= self.acknowledged;
        let timer = match trigger {
            Trigger::Timeout => front && now.since(self.news.0) >= self.path.latest.unwrap_or(Span::ZERO),
            Trigger::TailProbe => true,
            Trigger::Fast | Trigger::Unknown => false,
        };
        if !timer {
            if self.waiting.is_none() && self.recovering.is_none() {
                self.turn(now, timeline);
                self.recovering = Some(self.highest);
                self.reduce(u64::try_from(self.highest - self.acknowledged).unwrap_or(0), false);
            }
            if let Some(waiting) = &mut self.waiting {
                waiting.resent += u64::from(observation.length);
            }
            return;
        }
        let outstanding = u64::try_from(self.highest - self.acknowledged).unwrap_or(0);
        let waiting = self.waiting.get_or_insert(Waiting {
            first: now,
            before: None,
            last: now,
            count: 0,
            since: self.last_sign(),
            outstanding,
            highest: self.highest,
            delivered: self.delivered,
            resent: 0,
            needless: false,
        });
        if waiting.count > 0 {
            waiting.before = Some(waiting.last);
        }
        waiting.last = now;
        waiting.count += 1;
        waiting.resent += u64::from(observation.length);
    }

    /// When the next news is due: news come one gap after the other, and a round trip after data was sent. As long as
    /// the other end's data comes, they are in its queue.
    fn due(&self) -> Instant {
        let latest = self.path.latest.unwrap_or(Span::ZERO);
        let due = self.sends.oldest().map_or(self.news.0, |sent| sent + latest);
        due.max(self.news.0 + self.path.gap()).max(self.heard.0)
    }

    /// When anything last came of the other end, and its frame.
    fn last_sign(&self) -> (Instant, u64) {
        self.news.max(self.heard)
    }

    /// The way back from the radio, about: news tell what was so long ago.
    fn back(&self) -> Span {
        self.path.base().unwrap_or(Span::ZERO) / 2
    }

    /// When the radio fell silent and when it was back, if news that were due only came `now`.
    fn silence(&self, now: Instant) -> (Instant, Instant) {
        let half = self.path.gap() / 2;
        let earlier = |time: Instant, span: Span| time - span.min(time.since(Instant::ZERO));
        let begin = earlier(self.due(), half + self.back());
        (begin, earlier(now, half + self.back()).max(begin))
    }

    /// News came that were late, without any time-out.
    fn overdue(&mut self, observation: &Observation, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let now = observation.time;
        if self.path.latest.is_none() {
            return;
        }
        let outstanding = u64::try_from(self.highest - self.acknowledged).unwrap_or(0);
        let alone = outstanding <= u64::from(self.segment);
        let patience = PATIENCE.max(self.path.gap()) + if alone { DELAYED } else { Span::ZERO };
        if now <= self.due() + patience {
            return;
        }
        let (begin, end) = self.silence(now);
        let round = self.round.number;
        timeline.paint(begin, end, Label::Silence(round), |label| matches!(label, Label::Limited(..)));
        self.round.silence += end.since(begin);
        self.round.late = self.sends.oldest().map_or(Span::ZERO, |sent| now.since(sent));
        let since = self.last_sign();
        stalls.push(Stall {
            begin: since.0,
            end: now,
            first_frame: since.1,
            last_frame: observation.frame,
            outstanding,
            timeouts: 0,
            fate: Fate::Held,
            silent: end.since(begin),
        });
    }

    /// The first news after time-outs: was what was outstanding held back, or lost?
    fn answered_at_last(
        &mut self,
        waiting: &Waiting,
        observation: &Observation,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let now = observation.time;
        let base = self.path.base().unwrap_or(Span::ZERO);
        let told = observation.delivered.saturating_sub(waiting.delivered);
        let original = observation.echo_round_trip.map(|(sample, _)| sample > now.since(waiting.first));
        let held =
            waiting.needless || now.since(waiting.last) < base * 4 / 5 || original.unwrap_or(told > waiting.resent);
        let (begin, end) = self.silence(now);
        let known = |label: Label| matches!(label, Label::Limited(..));
        let silent;
        if !held && self.back_at > waiting.since.0 && self.back_at < waiting.last {
            timeline.paint(self.back_at, waiting.last, Label::Known(Cause::Timer, Confidence::High), known);
            silent = self.back_at.since(begin);
        } else if held {
            timeline.paint(begin, end, Label::Silence(self.round.number), known);
            self.round.late = self.sends.oldest().map_or(Span::ZERO, |sent| now.since(sent));
            silent = end.since(begin);
        } else if let Some(before) = waiting.before {
            // The last but one was lost, too: the path came back somewhere between.
            let back = before + waiting.last.since(before) / 2;
            timeline.paint(begin, back, Label::Known(Cause::Radio, Confidence::Low), known);
            timeline.paint(back, waiting.last, Label::Known(Cause::Timer, Confidence::Low), known);
            silent = back.since(begin);
        } else {
            timeline.paint(begin, waiting.first, Label::Known(Cause::Timer, Confidence::Medium), known);
            silent = Span::ZERO;
        }
        let painted = now.since(begin).min(now.since(self.round.begin));
        self.round.silence += painted;
        if !held {
            self.recovering = Some(waiting.highest);
            self.reduce(waiting.outstanding, true);
        }
        let since = waiting.since.max(self.heard);
        stalls.push(Stall {
            begin: since.0,
            end: now,
            first_frame: since.1,
            last_frame: observation.frame,
            outstanding: waiting.outstanding,
            timeouts: waiting.count,
            fate: if held { Fate::Held } else { Fate::Lost },
            silent,
        });
    }

    /// A copy arrived in vain: the path was busy with it for as long as it takes to carry a segment.
    fn needless(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some(waiting) = &mut self.waiting {
            waiting.needless = true;
        }
        let Some(rate) = self.path.rate() else { return };
        let carrying = Span::from_secs_f64(f64::from(self.segment) / rate);
        let begin = now - carrying.min(now.since(self.news.0));
        timeline.paint(begin, now, Label::Known(Cause::Needless, Confidence::Medium), |label| {
            matches!(label, Label::Limited(..))
        });
    }
}
