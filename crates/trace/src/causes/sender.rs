//! One end's data, seen where it is sent: what holds the sender.
//!
//! A round begins when the first byte that was sent in the one before is acknowledged: the growth of the window is judged by rounds.

use airpath_core::{Instant, Span};

use super::bottleneck::{Bottleneck, Carried};
use super::stall::{Fate, Stall};
use super::timeline::{Label, Limit, Timeline};
use super::{Cause, Confidence};
use airpath_observe::{Observation, Trigger};

/// What a sender sends so soon after an acknowledgement had waited for it.
const AT_ONCE: Span = Span::from_millis(10);

/// After a pause of a retransmission timer's length a sender begins with its initial window; few timers are shorter than this.
const PAUSE: Span = Span::from_millis(200);

/// A round trip of data.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Even; those of what is received are odd.
    number: u32,
    /// It ends when anything beyond this is acknowledged.
    marker: i64,
    sent_before: i64,
    /// What was outstanding at most, in it and in the one before: as much as the window allowed, or more.
    window: u64,
    window_before: u64,
    /// Acknowledgements of news.
    acknowledgements: u64,
    /// Whether the sender ran out of data.
    starved: bool,
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
    spurious: bool,
    /// Bytes that were sent last.
    length: u32,
}

/// What one end sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// Nothing is outstanding any more, since the last acknowledgement.
    resting: bool,
    highest: i64,
    acknowledged: i64,
    delivered: u64,
    /// One past the last byte that the receiver's window allows.
    edge: Option<i64>,
    segment: u32,
    bottleneck: Bottleneck,
    round: Round,
    /// What was outstanding at most since the window last began anew or was reduced.
    most: u64,
    /// When news last came, or data was sent with nothing outstanding; and the frame.
    news: (Instant, u64),
    /// When new data of the other end last came, and its frame: the radio was not silent then.
    heard: (Instant, u64),
    last_send: Instant,
    /// When news first came after data was last sent.
    room_since: Option<Instant>,
    /// Acknowledged since data was last sent.
    credit: u64,
    starved: bool,
    /// All up to here was sent when a loss was noticed, and is being repaired.
    recovering: Option<i64>,
    waiting: Option<Waiting>,
    /// Time-outs after which one acknowledgement has come, which may be for what was sent first or for what was sent again.
    doubt: Option<(Waiting, Observation)>,
    /// When the radio was back last, by its log.
    back_at: Instant,
    /// Whether slow start is over.
    steady: bool,
    /// Slow start goes on to this flight, since a loss has set the threshold.
    threshold: Option<u64>,
}

impl Sender {
    /// The link through which its data goes.
    pub(super) fn bottleneck(&mut self) -> &mut Bottleneck {
        &mut self.bottleneck
    }

    /// What has arrived by now, if that is known.
    pub(super) fn passed(&mut self, now: Instant, timeline: &mut Timeline) {
        let window = Limit::of_window(self.steady);
        while let Some(arrival) = self.bottleneck.next_arrival(now) {
            if let Some(waiting) = &mut self.waiting {
                // What was sent before the timer went off still arrives.
                waiting.spurious |= arrival.sent < waiting.first;
            }
            self.bottleneck.arrived(&arrival, self.segment, self.heard.0, window, timeline);
        }
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
        let rest = self.resting && observation.length < self.segment && now.since(self.news.0) < AT_ONCE;
        // In slow start the window may have been full to the byte until there was news; later it has room for a rest.
        let since = if self.steady { Some(self.last_send) } else { self.room_since };
        if rest && let Some(since) = since {
            // Nagle's algorithm held it until all was acknowledged.
            timeline.paint(since, now, Label::Limited(Limit::Application, self.round.number), is_window);
        }
        self.rested(timeline);
        let end = observation.offset + i64::from(observation.length);
        let new = end > self.highest;
        if new {
            if self.idle() {
                self.start(observation);
            }
            self.segment = self.segment.max(observation.length);
            self.highest = end;
            self.round.window = self.round.window.max(self.outstanding());
            self.most = self.most.max(self.outstanding());
            self.last_send = now;
            self.room_since = None;
            self.credit = 0;
            // A segment that is not full is the end of what the application gave, or all that the receiver's window has room for.
            self.starved = observation.length < self.segment && self.edge.is_none_or(|edge| end < edge);
            self.round.starved |= self.starved;
        }
        if let Some(again) = observation.retransmission {
            self.sent_again(observation, again.trigger);
        }
    }

    /// The other end acknowledged.
    pub(super) fn answered(&mut self, observation: &Observation, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        let Some(acknowledged) = observation.acknowledged else { return };
        let now = observation.time;
        self.edge = self.edge.max(Some(acknowledged.saturating_add_unsigned(observation.window)));
        self.rested(timeline);
        if self.idle() {
            return;
        }
        if let Some((waiting, first)) = self.doubt.take() {
            // What was sent only once, before the timer went off, gets through: so did the rest (RFC 5682).
            let held = observation.news.is_some_and(|news| news.last < waiting.first);
            self.answered_at_last(&waiting, held, &first, timeline, stalls);
        }
        let news = observation.delivered.saturating_sub(self.delivered);
        if observation.spurious.is_some_and(|spurious| spurious.frame != observation.frame) {
            self.spurious(now, timeline);
        }
        if news == 0 && acknowledged <= self.acknowledged {
            return;
        }
        if let Some((sample, _)) = observation.echo_round_trip.or(observation.round_trip) {
            self.bottleneck.path.round_trip(sample, news / u64::from(self.segment.max(1)));
        }
        if let Some(waiting) = self.waiting.take() {
            match self.was_held(&waiting, observation) {
                Some(held) => self.answered_at_last(&waiting, held, observation, timeline, stalls),
                None => self.doubt = Some((waiting, observation.clone())),
            }
        } else {
            let carried = self.bottleneck.told(observation, self.delivered, self.segment, false);
            self.overdue(carried, observation, timeline, stalls);
            self.bottleneck.carried(carried, Limit::of_window(self.steady), timeline);
        }
        self.delivered = self.delivered.max(observation.delivered);
        self.acknowledged = self.acknowledged.max(acknowledged);
        self.bottleneck.path.delivered(now);
        self.news = (now, observation.frame);
        if self.recovering.is_some_and(|until| self.acknowledged >= until) {
            self.recovering = None;
        }
        self.room_since = self.room_since.or(Some(now));
        self.starve(news, timeline);
        if self.idle() {
            self.resting = true;
        } else if self.acknowledged > self.round.marker {
            self.turn(timeline);
        } else {
            self.round.acknowledgements += 1;
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
        self.back_at = end;
    }

    /// The radio's log says that nothing was sent the other way.
    pub(super) fn unanswered(&mut self, begin: Instant, end: Instant, timeline: &mut Timeline) {
        let inferred = |label: Label| !matches!(label, Label::Known(..));
        timeline.paint(begin, end, Label::Unanswered, inferred);
        self.back_at = end;
    }

    /// The connection ended.
    pub(super) fn end(&mut self, timeline: &mut Timeline, stalls: &mut Vec<Stall>) {
        if let Some((waiting, first)) = self.doubt.take() {
            self.answered_at_last(&waiting, false, &first, timeline, stalls);
        }
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
        self.rest(timeline);
    }

    /// Data goes out after nothing was outstanding.
    fn start(&mut self, observation: &Observation) {
        // After a pause the window begins anew (RFC 5681 §4.1).
        let pause = observation.time.since(self.news.0.max(self.last_send));
        let outdated = pause > PAUSE.max(self.bottleneck.path.latest.unwrap_or(Span::ZERO));
        self.steady &= !outdated || self.threshold.is_some();
        self.acknowledged = self.acknowledged.max(observation.offset.min(self.highest));
        self.news = (observation.time, observation.frame);
        self.bottleneck.path.pause();
        if outdated {
            self.most = 0;
        }
        self.round = Round {
            number: self.round.number + 2,
            marker: self.acknowledged,
            sent_before: self.highest,
            ..Round::default()
        };
    }

    /// A round is over, and the next begins.
    fn turn(&mut self, timeline: &mut Timeline) {
        self.judge_growth();
        let limit = Limit::of_window(self.steady);
        timeline.judge(self.round.number, limit);
        self.round = Round {
            number: self.round.number + 2,
            marker: self.highest,
            sent_before: self.highest,
            window: self.outstanding(),
            window_before: self.round.window,
            acknowledgements: 1,
            starved: self.starved,
        };
    }

    /// Nothing has been outstanding since the last acknowledgement, and what followed at once has been seen.
    fn rested(&mut self, timeline: &mut Timeline) {
        if std::mem::take(&mut self.resting) {
            self.rest(timeline);
        }
    }

    /// Nothing is outstanding any more.
    fn rest(&mut self, timeline: &mut Timeline) {
        self.turn(timeline);
        self.bottleneck.rest(Limit::of_window(self.steady), timeline);
        self.waiting = None;
        self.recovering = None;
    }

    /// The sender has room and sends nothing: it has run out of data.
    fn starve(&mut self, news: u64, timeline: &mut Timeline) {
        self.credit += news;
        let room = self.edge.is_none_or(|edge| edge - self.highest >= i64::from(self.segment));
        // A sender that halves its window sends nothing for half of it.
        let outstanding = self.outstanding();
        let much = (3 * u64::from(self.segment)).max(outstanding * 3 / 2);
        if self.starved || self.recovering.is_some() || !room || self.credit < much {
            return;
        }
        self.starved = true;
        self.round.starved = true;
        let application = Label::Limited(Limit::Application, self.round.number);
        timeline.paint(self.last_send, Instant::FAR_FUTURE, application, is_window);
    }

    /// Whether slow start is over. Once a loss has set the threshold, it lasts up to that; before, as long as the window grows by about a segment
    /// with each acknowledgement.
    fn judge_growth(&mut self) {
        let Round { window, window_before, acknowledgements, starved, sent_before, .. } = self.round;
        let segment = u64::from(self.segment);
        if let Some(threshold) = self.threshold {
            self.steady |= window.max(window_before) >= threshold;
        } else if !starved && window_before > 0 && self.highest - sent_before >= i64::from(self.segment) {
            self.steady = window.saturating_sub(window_before) * 2 < acknowledgements * segment;
        }
    }

    /// Bytes that are sent and not acknowledged.
    fn outstanding(&self) -> u64 {
        u64::try_from(self.highest - self.acknowledged).unwrap_or(0)
    }

    /// A loss was noticed: the window is reduced to the threshold, or after a time-out to one segment.
    fn reduce(&mut self, outstanding: u64, to_one: bool) {
        // Most systems halve the window, which is more than what is outstanding when the application has no more (RFC 5681 §3.1 halves that).
        let window = if self.starved { outstanding.max(self.most) } else { outstanding };
        self.threshold = Some((window / 2).max(2 * u64::from(self.segment)));
        self.most = 0;
        self.steady = !to_one;
    }

    fn sent_again(&mut self, observation: &Observation, trigger: Trigger) {
        let now = observation.time;
        let front = observation.offset <= self.acknowledged;
        let timer = match trigger {
            // What nothing asked for after a round trip without news is the timer's, whatever its estimate.
            Trigger::Timeout | Trigger::Unknown => {
                front && now.since(self.news.0) >= self.bottleneck.path.latest.unwrap_or(Span::ZERO)
            }
            Trigger::TailProbe => true,
            Trigger::Fast => false,
        };
        let outstanding = self.outstanding();
        if !timer {
            if self.waiting.is_none() && self.recovering.is_none() {
                self.recovering = Some(self.highest);
                self.reduce(outstanding, false);
            }
            if let Some(waiting) = &mut self.waiting {
                waiting.resent += u64::from(observation.length);
            }
            return;
        }
        let waiting = self.waiting.get_or_insert(Waiting {
            first: now,
            before: None,
            last: now,
            count: 0,
            since: self.news.max(self.heard),
            outstanding,
            highest: self.highest,
            delivered: self.delivered,
            resent: 0,
            spurious: false,
            length: 0,
        });
        if waiting.count > 0 {
            waiting.before = Some(waiting.last);
        }
        waiting.last = now;
        waiting.count += 1;
        waiting.resent += u64::from(observation.length);
        waiting.length = observation.length;
    }

    /// News came that were late, without any time-out.
    fn overdue(
        &mut self,
        carried: Option<Carried>,
        observation: &Observation,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let heard = self.heard.0;
        let Some((begin, end)) = carried.and_then(|carried| self.bottleneck.silence(carried, heard)) else { return };
        let outstanding = self.outstanding();
        let alone = outstanding <= u64::from(self.segment);
        if !self.bottleneck.is_long(begin, end, alone) {
            return;
        }
        if !self.bottleneck.is_exact() {
            self.bottleneck.suspect(begin, end, timeline);
        }
        // What comes in a burst after a silence was late, but nobody waited any more.
        let since = self.news.max(self.heard);
        if !self.bottleneck.is_long(since.0, observation.time, alone) {
            return;
        }
        stalls.push(Stall {
            begin: since.0,
            end: observation.time,
            first_frame: since.1,
            last_frame: observation.frame,
            outstanding,
            timeouts: 0,
            fate: Fate::Held,
            silent: end.since(begin),
        });
    }

    /// Whether what was outstanding at a time-out had been held back and not lost, if the first acknowledgement after it tells.
    fn was_held(&self, waiting: &Waiting, observation: &Observation) -> Option<bool> {
        let now = observation.time;
        let measure = self.bottleneck.path.measure();
        let transmission = measure.service.saturating_mul(u64::from(waiting.length)) / u64::from(self.segment.max(1));
        let soonest = (measure.base + transmission) * 4 / 5;
        if waiting.spurious || now.since(waiting.last) < soonest {
            return Some(true);
        }
        if let Some((sample, _)) = observation.echo_round_trip {
            return Some(sample > now.since(waiting.first));
        }
        if observation.delivered.saturating_sub(waiting.delivered) > waiting.resent {
            return Some(true);
        }
        // All that there was is acknowledged: nothing more will tell.
        (observation.acknowledged >= Some(self.highest)).then_some(false)
    }

    /// The first news after time-outs: what was outstanding had been held back, or lost.
    fn answered_at_last(
        &mut self,
        waiting: &Waiting,
        held: bool,
        observation: &Observation,
        timeline: &mut Timeline,
        stalls: &mut Vec<Stall>,
    ) {
        let now = observation.time;
        let carried = self.bottleneck.told(observation, waiting.delivered, self.segment, held);
        let known = |label: Label| matches!(label, Label::Limited(..));
        // Nothing was on the link any more once it was done with what it had carried last.
        let begin = self.bottleneck.done().unwrap_or(waiting.since.0);
        let mut paint = |from, to, cause, confidence| timeline.paint(from, to, Label::Known(cause, confidence), known);
        let silent;
        if !held && self.back_at > waiting.since.0 && self.back_at < waiting.last {
            paint(self.back_at, waiting.last, Cause::Timer, Confidence::High);
            silent = self.back_at.since(begin);
        } else if held {
            let heard = self.heard.0;
            let silence =
                carried.and_then(|carried| self.bottleneck.silence(Carried { first: begin, ..carried }, heard));
            let (begin, end) = silence.unwrap_or((now, now));
            if !self.bottleneck.is_exact() {
                paint(begin, end, Cause::Radio, Confidence::Medium);
            }
            silent = end.since(begin);
        } else if let Some(before) = waiting.before {
            // The last but one was lost, too: the path came back somewhere between.
            let back = before + waiting.last.since(before) / 2;
            paint(begin, back, Cause::Radio, Confidence::Low);
            paint(back, waiting.last, Cause::Timer, Confidence::Low);
            silent = back.since(begin);
        } else {
            paint(waiting.since.0, waiting.first, Cause::Timer, Confidence::Medium);
            silent = Span::ZERO;
        }
        self.bottleneck.carried(carried, Limit::of_window(self.steady), timeline);
        if !held {
            self.recovering = Some(waiting.highest).filter(|until| self.acknowledged < *until);
        }
        // That the timer went off too early a sender without timestamps does not know.
        if !held || observation.echo_round_trip.is_none() {
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

    /// A copy arrived in vain: the link was busy with it for as long as it takes for a segment.
    fn spurious(&mut self, now: Instant, timeline: &mut Timeline) {
        if let Some(waiting) = &mut self.waiting {
            waiting.spurious = true;
        }
        self.bottleneck.spurious(now, timeline);
    }
}

/// Whether the sender's own window is taken to hold it.
fn is_window(label: Label) -> bool {
    matches!(label, Label::Limited(Limit::Window | Limit::SlowStart | Limit::CongestionWindow, _))
}
