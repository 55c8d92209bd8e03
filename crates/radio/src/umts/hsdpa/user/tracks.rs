//! The radio log of a mobile.

use airpath_core::{Aspect, Classes, Context, Direction, HarqState, Instant, StateValue};

use super::User;
use crate::conditions::Sample;
use crate::umts::hsdpa::e_dch::link::Transmission;

/// Names of the blocks, by their CQI.
const SCHEMES: [&str; 30] = [
    "cqi-1", "cqi-2", "cqi-3", "cqi-4", "cqi-5", "cqi-6", "cqi-7", "cqi-8", "cqi-9", "cqi-10", "cqi-11", "cqi-12",
    "cqi-13", "cqi-14", "cqi-15", "cqi-16", "cqi-17", "cqi-18", "cqi-19", "cqi-20", "cqi-21", "cqi-22", "cqi-23",
    "cqi-24", "cqi-25", "cqi-26", "cqi-27", "cqi-28", "cqi-29", "cqi-30",
];

impl User {
    /// What is so in every TTI.
    pub(super) fn report_tracks(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        self.tracks.connected(now, self.resets.is_running(), cx);
        self.tracks.radio(now, sample, cx);
    }

    /// Whether the window of the RLC is why nothing is sent: downwards when the base station has
    /// nothing left, either.
    pub(super) fn report_stall(&mut self, now: Instant, cx: &mut Context<'_>) {
        if cx.wants(Classes::STATE) {
            let down = self.down.is_stalled(now) && !self.has_blocks();
            self.tracks.stalled(now, down || self.up.rlc().is_stalled(now), cx);
        }
    }

    /// What the data of an E-DCH wait for, and whether one of its blocks is to be sent again.
    pub(super) fn report_wait(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let Some(e_dch) = self.up.e_dch() else { return };
        let harq = if e_dch.has_repeats() { HarqState::Repeat } else { HarqState::None };
        let wait = e_dch.wait(now);
        self.tracks.report(now, Some(Direction::Up), Aspect::Wait, wait.into(), cx);
        self.tracks.report(now, Some(Direction::Up), Aspect::Harq, harq.into(), cx);
    }

    /// What a TTI of an E-DCH is used for: scheduling information, or data by a grant.
    pub(super) fn report_e_dch(&mut self, now: Instant, sent: &Transmission, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) || (sent.pdus == 0 && !sent.is_request) {
            return;
        }
        let scheme = StateValue::Name(if sent.is_request { "scheduling-information" } else { "grant" });
        self.tracks.report(now, Some(Direction::Up), Aspect::Scheme, scheme, cx);
    }

    /// The block of a TTI.
    pub(super) fn report_block(&mut self, now: Instant, cqi: u8, codes: u8, cx: &mut Context<'_>) {
        if !cx.wants(Classes::STATE) {
            return;
        }
        let down = Some(Direction::Down);
        self.tracks.report(now, down, Aspect::Scheme, StateValue::Name(SCHEMES[usize::from(cqi) - 1]), cx);
        self.tracks.report(now, down, Aspect::Slots, StateValue::Number(codes.into()), cx);
    }
}
