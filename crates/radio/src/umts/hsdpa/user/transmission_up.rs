//! A TTI of the uplink.

use airpath_core::{Context, Direction, Instant, RadioEvent};

use super::User;
use crate::conditions::Sample;
use crate::umts::hsdpa::uplink::Uplink;
use crate::umts::r99::errors::TtiErrors;

impl User {
    /// One TTI of the uplink.
    pub(super) fn transmit_up(&mut self, now: Instant, cx: &mut Context<'_>) {
        let sample = self.look_around(now, cx);
        if !self.movement.is_covered() || !self.up.may_send(now) {
            return;
        }
        let exhausted = match &self.up {
            Uplink::Dch(_) => self.transmit_dch(now, &sample, cx),
            Uplink::EDch(_) => self.transmit_e_dch(now, &sample, cx),
        };
        // MaxDAT reached without a discard (`RlcAm::give_up`), or MaxMRW. Next: `begin_reset`.
        if exhausted && !self.resets.is_running() {
            self.begin_reset(now, Direction::Up, cx);
        }
    }

    /// Returns whether the RLC is to reset.
    fn transmit_dch(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) -> bool {
        let Uplink::Dch(up) = &mut self.up else { return false };
        let format = up.formats[0];
        let needs = up.needs(&format);
        let ci = up.ci(sample);
        let is_errored = |errors: &mut TtiErrors| errors.is_errored(now, format.tti, ci, needs);
        let (carried, errored) = up.send(now, &format, &self.down, is_errored, &mut self.dropped);
        up.rlc.lose(now, &mut self.dropped, cx);
        if carried.pdus > 0 {
            self.report_tracks(now, sample, cx);
            let event = RadioEvent {
                direction: Direction::Up,
                user: self.id,
                duration: format.tti,
                pdus: carried.pdus as u16,
                repeated: carried.repeated as u16,
                errored: if errored { carried.pdus as u16 } else { 0 },
                bytes: carried.pdus * self.up.rlc().pdu,
                level: 0,
                control: 0,
            };
            self.up.totals_mut().add(&event);
            cx.radio(now, || event);
        }
        carried.exhausted
    }

    /// Returns whether the RLC is to reset.
    fn transmit_e_dch(&mut self, now: Instant, sample: &Sample, cx: &mut Context<'_>) -> bool {
        let Uplink::EDch(up) = &mut self.up else { return false };
        let sent = up.transmit(now, sample, &self.down, &mut self.dropped);
        up.rlc.lose(now, &mut self.dropped, cx);
        let duration = up.tti();
        self.report_e_dch(now, &sent, cx);
        if sent.pdus > 0 {
            self.report_tracks(now, sample, cx);
            let pdus = sent.pdus as u16;
            let event = RadioEvent {
                direction: Direction::Up,
                user: self.id,
                duration,
                pdus,
                repeated: if sent.is_repeated { pdus } else { 0 },
                errored: if sent.is_errored { pdus } else { 0 },
                bytes: sent.pdus * self.up.rlc().pdu,
                level: sent.level,
                control: 0,
            };
            self.up.totals_mut().add(&event);
            cx.radio(now, || event);
        }
        sent.exhausted
    }
}
