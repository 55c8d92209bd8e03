//! What the radio log shows of a call: lanes that report what is news.

use airpath_core::{Aspect, Context, Instant, StateEvent, StateValue, UserId};

use crate::conditions::Sample;

/// The lanes of one mobile, with what each last reported.
#[derive(Clone, Debug)]
pub struct Lanes {
    user: UserId,
    scheme: &'static str,
    slots: u32,
    is_introduced: bool,
    link: Option<&'static str>,
    mode: Option<&'static str>,
    cell: Option<u16>,
    /// In whole decibels, as RXQUAL and RXLEV are coarse, too.
    ratio: Option<f64>,
}

impl Lanes {
    /// Lanes that have reported nothing, of a call with this channel coding and so many channels.
    pub const fn new(user: UserId, scheme: &'static str, slots: u32) -> Self {
        Self { user, scheme, slots, is_introduced: false, link: None, mode: None, cell: None, ratio: None }
    }

    /// The state of the link.
    pub fn link(&mut self, now: Instant, name: &'static str, cx: &mut Context<'_>) {
        self.introduce(now, cx);
        if self.link.replace(name) != Some(name) {
            self.report(now, Aspect::Link, StateValue::Name(name), cx);
        }
    }

    /// What the mobile does.
    pub fn mode(&mut self, now: Instant, name: &'static str, cx: &mut Context<'_>) {
        if self.mode.replace(name) != Some(name) {
            self.report(now, Aspect::Mode, StateValue::Name(name), cx);
        }
    }

    /// The number of channels.
    pub fn slots(&mut self, now: Instant, slots: u32, cx: &mut Context<'_>) {
        self.slots = slots;
        self.report(now, Aspect::Slots, StateValue::Number(f64::from(slots)), cx);
    }

    /// What the radio is like.
    pub fn radio(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) {
        if self.cell.replace(sample.cell) != Some(sample.cell) {
            self.report(now, Aspect::Cell, StateValue::Number(f64::from(sample.cell)), cx);
        }
        let ratio = libm::round(sample.carrier_to_interference);
        if self.ratio.replace(ratio) != Some(ratio) {
            self.report(now, Aspect::CarrierToInterference, StateValue::Number(ratio), cx);
        }
    }

    /// Reports what does not change by itself, once.
    fn introduce(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !self.is_introduced {
            self.is_introduced = true;
            self.report(now, Aspect::Scheme, StateValue::Name(self.scheme), cx);
            self.report(now, Aspect::Slots, StateValue::Number(f64::from(self.slots)), cx);
        }
    }

    fn report(&self, now: Instant, aspect: Aspect, value: StateValue, cx: &mut Context<'_>) {
        let user = self.user;
        cx.state(now, || StateEvent { user, direction: None, aspect, value });
    }
}
