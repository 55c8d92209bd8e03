//! The radio log of a mobile: its state tracks, and what happened to its connection. Only changes
//! are reported.

use airpath_core::{
    Aspect, Classes, ConnectionTotals, Context, Direction, Instant, LinkState, ModeState, StateEvent, StateValue,
    UserId,
};

use crate::conditions::Sample;

/// The value that was reported last of each aspect, of the mobile and of each direction.
type Reported = [[Option<(Instant, StateValue)>; 3]; Aspect::ALL.len()];

/// The state tracks of one mobile.
#[derive(Clone, Debug)]
pub struct Tracks {
    user: UserId,
    /// `None` before the first report: without a log a mobile has no memory for it.
    reported: Option<Box<Reported>>,
    /// When the reported mode ends.
    mode_until: Option<Instant>,
    /// Handovers, set-ups and failures, counted with or without a log.
    pub totals: ConnectionTotals,
}

impl Tracks {
    /// Tracks that have reported nothing.
    pub const fn new(user: UserId) -> Self {
        let totals = ConnectionTotals { handovers: 0, set_ups: 0, link_failures: 0 };
        Self { user, reported: None, mode_until: None, totals }
    }

    /// Reports all values again when they are known.
    pub fn forget(&mut self) {
        self.reported = None;
    }

    /// The value that was reported last of an aspect of the mobile.
    fn last(&self, aspect: Aspect) -> Option<StateValue> {
        self.reported.as_ref()?[aspect as usize][0].map(|(_, value)| value)
    }

    /// Reports the value of an aspect if it has changed and the log wants states. Times of one
    /// aspect never decrease.
    pub fn report(
        &mut self,
        time: Instant,
        direction: Option<Direction>,
        aspect: Aspect,
        value: StateValue,
        cx: &mut Context<'_>,
    ) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let reported = &mut self.reported.get_or_insert_default()[aspect as usize]
            [direction.map_or(0, |direction| 1 + direction as usize)];
        let time = match reported {
            Some((_, last)) if *last == value => return,
            Some((last, _)) => time.max(*last),
            None => time,
        };
        *reported = Some((time, value));
        let user = self.user;
        cx.state(time, || StateEvent { user, direction, aspect, value });
    }

    /// The state of the link.
    pub fn link(&mut self, at: Instant, state: LinkState, cx: &mut Context<'_>) {
        self.report(at, None, Aspect::Link, state.into(), cx);
    }

    /// Whether the link is stalled, while it is up.
    pub fn stalled(&mut self, at: Instant, is_stalled: bool, cx: &mut Context<'_>) {
        let state = if is_stalled { LinkState::Stalled } else { LinkState::Connected };
        let reported = self.last(Aspect::Link);
        if [LinkState::Connected, LinkState::Stalled].into_iter().any(|up| reported == Some(up.into())) {
            self.link(at, state, cx);
        }
    }

    /// The serving cell.
    pub fn cell(&mut self, at: Instant, cell: u16, cx: &mut Context<'_>) {
        self.report(at, None, Aspect::Cell, StateValue::Number(f64::from(cell)), cx);
    }

    /// The mode of the mobile; a handover is counted. It is connected again at `until`, if that is
    /// known.
    pub fn mode(&mut self, at: Instant, state: ModeState, until: Option<Instant>, cx: &mut Context<'_>) {
        self.settle(at, cx);
        self.totals.handovers += u32::from(state == ModeState::Handover);
        // Of two interruptions at a time, the longer one counts.
        self.mode_until = until.map(|until| self.mode_until.map_or(until, |earlier| earlier.max(until)));
        self.report(at, None, Aspect::Mode, state.into(), cx);
    }

    /// Whether the mode stays as it was reported until something happens.
    pub const fn is_settled(&self) -> bool {
        self.mode_until.is_none()
    }

    /// Reports that the mode has ended, if its end is known and not after `now`.
    pub fn settle(&mut self, now: Instant, cx: &mut Context<'_>) {
        if let Some(until) = self.mode_until.take_if(|until| *until <= now) {
            self.report(until, None, Aspect::Mode, ModeState::Connected.into(), cx);
        }
    }

    /// The mobile sends or receives, so its mode is connected, except before the known end of an
    /// interruption.
    pub fn active(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.settle(now, cx);
        if self.is_settled() {
            self.report(now, None, Aspect::Mode, ModeState::Connected.into(), cx);
        }
    }

    /// The mobile sends or receives: its mode is connected, and so is its link, except while its
    /// RLC is reset or stalled.
    pub fn connected(&mut self, now: Instant, is_resetting: bool, cx: &mut Context<'_>) {
        self.active(now, cx);
        let stalled = Some(LinkState::Stalled.into());
        if !is_resetting && self.last(Aspect::Link) != stalled {
            self.link(now, LinkState::Connected, cx);
        }
    }

    /// The serving cell, C/I, and the level where there is one.
    pub fn radio(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) {
        self.cell(now, sample.cell, cx);
        // Resolution of a measurement report: half a decibel.
        let ci = libm::round(2.0 * sample.carrier_to_interference) / 2.0;
        self.report(now, None, Aspect::CarrierToInterference, StateValue::Number(ci), cx);
        if let Some(level) = sample.level {
            // Resolution of the reported power of the pilot channel: TS 25.133 §9.1.1.3.
            self.report(now, None, Aspect::Level, StateValue::Number(libm::round(level)), cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{ComponentId, Event, Memory, Span};

    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(Span::from_millis(millis).as_nanos())
    }

    /// When the mobile is reported as connected after a handover at the beginning, if this happens
    /// after it.
    fn connected_after(until: Option<u64>, then: impl FnOnce(&mut Tracks, &mut Context<'_>)) -> Vec<Instant> {
        let (mut log, mut lost) = (Memory::default(), Vec::new());
        let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
        let mut tracks = Tracks::new(UserId::new(0));
        tracks.mode(at(0), ModeState::Handover, until.map(at), &mut cx);
        then(&mut tracks, &mut cx);
        let is_connected = |event: &Event| {
            matches!(event, Event::State(state)
                if state.aspect == Aspect::Mode && state.value == ModeState::Connected.into())
        };
        log.events.iter().filter(|(_, _, event)| is_connected(event)).map(|(time, _, _)| *time).collect()
    }

    /// The same, if it sends at these times in milliseconds.
    fn connected(until: Option<u64>, sends: &[u64]) -> Vec<Instant> {
        connected_after(until, |tracks, cx| {
            sends.iter().for_each(|millis| tracks.connected(at(*millis), false, cx));
        })
    }

    #[test]
    fn a_handover_ends_without_traffic_before_the_next_mode_and_at_the_end_of_the_run() {
        for next in [ModeState::Handover, ModeState::Idle, ModeState::NoCoverage] {
            assert_eq!(connected_after(Some(50), |tracks, cx| tracks.mode(at(70), next, None, cx)), [at(50)]);
            assert_eq!(connected_after(Some(50), |tracks, cx| tracks.mode(at(40), next, None, cx)), []);
        }
        assert_eq!(connected_after(Some(50), |tracks, cx| tracks.settle(at(49), cx)), []);
        assert_eq!(connected_after(Some(50), |tracks, cx| tracks.settle(at(90), cx)), [at(50)]);
    }

    #[test]
    fn of_two_interruptions_the_longer_one_counts() {
        let twice = |tracks: &mut Tracks, cx: &mut Context<'_>| {
            tracks.mode(at(20), ModeState::Handover, Some(at(40)), cx);
            tracks.connected(at(45), false, cx);
            tracks.connected(at(60), false, cx);
        };
        assert_eq!(connected_after(Some(50), twice), [at(50)]);
    }

    #[test]
    fn a_handover_ends_at_its_end_if_that_is_known_and_else_with_the_first_traffic() {
        assert_eq!(connected(Some(50), &[20, 49]), []);
        assert_eq!(connected(Some(50), &[20, 60, 70]), [at(50)]);
        assert_eq!(connected(Some(50), &[50]), [at(50)]);
        assert_eq!(connected(None, &[20, 60]), [at(20)]);
    }
}
