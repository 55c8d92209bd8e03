//! The radio log of a mobile of UMTS, with or without HSDPA: its lanes, of which only changes are told.

use airpath_core::{Aspect, Context, Direction, Instant, StateEvent, StateValue, UserId};

use crate::conditions::Sample;

/// The lanes of one mobile, with the values that were told last of each aspect: of the mobile, and of its directions.
#[derive(Clone, Debug)]
pub struct Tracks {
    user: UserId,
    told: [[Option<(Instant, StateValue)>; 3]; Aspect::ALL.len()],
    /// When the mode that was told last ends.
    mode_until: Option<Instant>,
}

impl Tracks {
    /// Nothing told.
    pub const fn new(user: UserId) -> Self {
        Self { user, told: [[None; 3]; Aspect::ALL.len()], mode_until: None }
    }

    /// Tells the value of an aspect, if it is new. Times of one aspect never go back.
    pub fn tell(
        &mut self,
        time: Instant,
        direction: Option<Direction>,
        aspect: Aspect,
        value: StateValue,
        cx: &mut Context<'_>,
    ) {
        let told = &mut self.told[aspect as usize][direction.map_or(0, |direction| 1 + direction as usize)];
        let time = match told {
            Some((_, last)) if *last == value => return,
            Some((last, _)) => time.max(*last),
            None => time,
        };
        *told = Some((time, value));
        let user = self.user;
        cx.state(time, || StateEvent { user, direction, aspect, value });
    }

    /// The state of the link.
    pub fn link(&mut self, at: Instant, name: &'static str, cx: &mut Context<'_>) {
        self.tell(at, None, Aspect::Link, StateValue::Name(name), cx);
    }

    /// The serving cell.
    pub fn cell(&mut self, at: Instant, cell: u16, cx: &mut Context<'_>) {
        self.tell(at, None, Aspect::Cell, StateValue::Number(f64::from(cell)), cx);
    }

    /// What the mobile does, until another time if that is known: it is connected then.
    pub fn mode(&mut self, at: Instant, name: &'static str, until: Option<Instant>, cx: &mut Context<'_>) {
        self.mode_until = until;
        self.tell(at, None, Aspect::Mode, StateValue::Name(name), cx);
    }

    /// The mobile sends or is sent to, so that it is connected, and its link is, but while its RLC resets.
    pub fn connected(&mut self, now: Instant, is_resetting: bool, cx: &mut Context<'_>) {
        match self.mode_until.take() {
            Some(until) if until > now => self.mode_until = Some(until),
            ended => self.mode(ended.unwrap_or(now), "connected", None, cx),
        }
        if !is_resetting {
            self.link(now, "connected", cx);
        }
    }

    /// What its radio is like.
    pub fn radio(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) {
        self.cell(now, sample.cell, cx);
        // Half a decibel is as much as a measurement report tells.
        let ci = libm::round(2.0 * sample.carrier_to_interference) / 2.0;
        self.tell(now, None, Aspect::CarrierToInterference, StateValue::Number(ci), cx);
    }
}
