//! The radio log of a call: its state tracks; only changes are reported.

use airpath_core::{Aspect, Context, Instant, LinkState, ModeState, StateEvent, StateValue, UserId};

use crate::conditions::Sample;

/// The state tracks of one mobile, with the value that each reported last.
#[derive(Clone, Debug)]
pub struct Tracks {
    user: UserId,
    scheme: &'static str,
    slots: u32,
    has_reported_channel: bool,
    link: Option<LinkState>,
    mode: Option<ModeState>,
    cell: Option<u16>,
    /// In whole decibels: RXQUAL and RXLEV have about that resolution.
    ratio: Option<f64>,
}

impl Tracks {
    /// Tracks that have reported nothing, of a call with this channel coding and number of
    /// channels.
    pub const fn new(user: UserId, scheme: &'static str, slots: u32) -> Self {
        Self { user, scheme, slots, has_reported_channel: false, link: None, mode: None, cell: None, ratio: None }
    }

    /// The state of the link.
    pub fn link(&mut self, now: Instant, state: LinkState, cx: &mut Context<'_>) {
        self.report_channel(now, cx);
        if self.link.replace(state) != Some(state) {
            self.report(now, Aspect::Link, state.into(), cx);
        }
    }

    /// The mode of the mobile.
    pub fn mode(&mut self, now: Instant, state: ModeState, cx: &mut Context<'_>) {
        if self.mode.replace(state) != Some(state) {
            self.report(now, Aspect::Mode, state.into(), cx);
        }
    }

    /// A handover has ended, if nothing was reported since it began.
    pub fn handover_ended(&mut self, at: Instant, cx: &mut Context<'_>) {
        if self.mode == Some(ModeState::Handover) {
            self.mode(at, ModeState::Call, cx);
        }
    }

    /// The number of channels.
    pub fn slots(&mut self, now: Instant, slots: u32, cx: &mut Context<'_>) {
        self.slots = slots;
        self.report(now, Aspect::Slots, StateValue::Number(f64::from(slots)), cx);
    }

    /// The serving cell and C/I.
    pub fn radio(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) {
        if self.cell.replace(sample.cell) != Some(sample.cell) {
            self.report(now, Aspect::Cell, StateValue::Number(f64::from(sample.cell)), cx);
        }
        let ratio = libm::round(sample.carrier_to_interference);
        if self.ratio.replace(ratio) != Some(ratio) {
            self.report(now, Aspect::CarrierToInterference, StateValue::Number(ratio), cx);
        }
    }

    /// Reports the channel coding and the number of channels, once.
    fn report_channel(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !self.has_reported_channel {
            self.has_reported_channel = true;
            self.report(now, Aspect::Scheme, StateValue::Name(self.scheme), cx);
            self.report(now, Aspect::Slots, StateValue::Number(f64::from(self.slots)), cx);
        }
    }

    fn report(&self, now: Instant, aspect: Aspect, value: StateValue, cx: &mut Context<'_>) {
        let user = self.user;
        cx.state(now, || StateEvent { user, direction: None, aspect, value });
    }
}
