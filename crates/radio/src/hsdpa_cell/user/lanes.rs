//! The radio log of a mobile.

use airpath_core::{Aspect, Classes, Cx, Direction, Instant, StateEvent, StateValue};

use super::User;
use crate::conditions::Sample;
use crate::hsdpa_cell::transport_block::TransportBlock;

/// Names of the blocks, by their CQI.
const SCHEMES: [&str; 30] = [
    "cqi-1", "cqi-2", "cqi-3", "cqi-4", "cqi-5", "cqi-6", "cqi-7", "cqi-8", "cqi-9", "cqi-10", "cqi-11", "cqi-12",
    "cqi-13", "cqi-14", "cqi-15", "cqi-16", "cqi-17", "cqi-18", "cqi-19", "cqi-20", "cqi-21", "cqi-22", "cqi-23",
    "cqi-24", "cqi-25", "cqi-26", "cqi-27", "cqi-28", "cqi-29", "cqi-30",
];

impl User {
    /// What is so in every TTI.
    pub(super) fn tell_lanes(&mut self, now: Instant, sample: &Sample, cx: &mut Cx<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let connected = StateValue::Name("connected");
        match self.mode_until.take() {
            Some(until) if until > now => self.mode_until = Some(until),
            ended => self.tell(ended.unwrap_or(now), None, Aspect::Mode, connected, cx),
        }
        if !self.resets.is_running() {
            self.tell(now, None, Aspect::Link, connected, cx);
        }
        self.tell(now, None, Aspect::Cell, StateValue::Number(f64::from(sample.cell)), cx);
        // Half a decibel is as much as a measurement report tells.
        let ci = libm::round(2.0 * sample.carrier_to_interference) / 2.0;
        self.tell(now, None, Aspect::CarrierToInterference, StateValue::Number(ci), cx);
    }

    /// The block of a TTI.
    pub(super) fn tell_block(&mut self, now: Instant, cqi: u8, cx: &mut Cx<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let down = Some(Direction::Down);
        self.tell(now, down, Aspect::Scheme, StateValue::Name(SCHEMES[usize::from(cqi) - 1]), cx);
        let codes = f64::from(TransportBlock::of(cqi).codes);
        self.tell(now, down, Aspect::Slots, StateValue::Number(codes), cx);
    }

    /// Reports the value of an aspect, if it is new.
    pub(super) fn tell(
        &mut self,
        time: Instant,
        direction: Option<Direction>,
        aspect: Aspect,
        value: StateValue,
        cx: &mut Cx<'_>,
    ) {
        if let Some(time) = self.lanes.change(time, direction, aspect, value) {
            cx.state(time, || StateEvent { user: self.id, direction, aspect, value });
        }
    }
}
