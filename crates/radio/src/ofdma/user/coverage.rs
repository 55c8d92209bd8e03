//! A mobile in a narrowband, or with half duplex: its coverage mode, that of each transfer, and
//! what it sends and receives when.

use airpath_core::{Context, Direction, Instant};

use super::User;
use crate::conditions::Sample;
use crate::ofdma::plan::Plan;
use crate::ofdma::repetition::{Coverage, DownlinkSlots, Slots, UplinkSlots};
use crate::ofdma::transport_format::{Estimate, TransportFormat};

impl User {
    /// The connection is set up: the coverage mode follows from the radio now.
    pub(super) fn begin_set_up(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) {
        if let Some(narrowband) = &plan.narrowband {
            self.must_choose_mode = true;
            self.look_around(now, plan, cx);
            self.rrc.set_promotion(narrowband.mode(self.mode).promotion);
        }
    }

    /// Chooses the coverage mode for a SINR downwards in decibels. Nothing is on the air.
    pub(super) fn choose_mode(&mut self, sinr: f64, plan: &Plan) {
        let Some(narrowband) = &plan.narrowband else { return };
        self.mode = narrowband.mode_at(sinr);
        let mode = narrowband.mode(self.mode);
        self.harq_down.iter_mut().for_each(|carrier| carrier.limit(mode.processes));
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.set_request(mode.feedback);
        }
    }

    /// Takes a report of the channel: in a narrowband with the repetitions that the coverage needs
    /// now, at most those of the connection.
    pub(super) fn measure_quality(&mut self, sample: &Sample, plan: &Plan) {
        let mut sinr = self.sinr_of(sample);
        let mut transfer = self.mode;
        if let Some(narrowband) = plan.narrowband.as_ref().filter(|_| sample.covered) {
            transfer = narrowband.mode_at(sample.carrier_to_interference).min(self.mode);
            let gain = narrowband.repetitions(self.coverage(transfer)).gain;
            (0..sinr.len()).for_each(|index| sinr[index] += gain[index]);
        }
        self.quality.measure(sample.covered.then_some(sinr), transfer, plan);
    }

    /// That of a transfer in this coverage mode.
    pub(super) const fn coverage(&self, transfer: u8) -> Coverage {
        Coverage { connection: self.mode, transfer }
    }

    /// The coverage mode of a new block: the reported one, at most that of the connection.
    pub fn transfer_mode(&self, direction: Direction) -> u8 {
        self.quality.mode(direction).min(self.mode)
    }

    /// What the base station of a narrowband expects to get through.
    pub fn estimate(&self, direction: Direction, plan: &Plan) -> Estimate {
        let narrowband = plan.narrowband.as_ref();
        Estimate {
            mode: self.transfer_mode(direction),
            is_qpsk_only: narrowband.is_some_and(|narrowband| narrowband.mode(self.mode).is_qpsk_only),
            ..self.quality.estimate(direction)
        }
    }

    /// Whether a mobile with half duplex can receive in the slot that begins at `now`. In a
    /// narrowband that is looked at with the whole transfer.
    #[inline]
    pub fn can_receive(&self, now: Instant, plan: &Plan) -> bool {
        match &self.occupancy {
            Some(occupancy) if plan.narrowband.is_none() => {
                let slot = plan.number(now);
                occupancy.receives_from(slot) == slot
            }
            _ => true,
        }
    }

    /// A mobile with half duplex sends in the slot that begins at `at`, which is planned at `now`.
    pub(super) fn will_send(&mut self, now: Instant, at: Instant, plan: &Plan) {
        if let Some(occupancy) = self.occupancy.as_mut().filter(|_| plan.narrowband.is_none()) {
            let slot = plan.number(at);
            occupancy.forget_before(plan.number(now));
            occupancy.send(Slots::new(slot, slot + 1), false);
        }
    }

    /// The slots of a downlink transfer in a coverage mode whose MPDCCH begins in slot `slot`, and
    /// the resource blocks that it can have, if the mobile can take part.
    pub fn downlink_slots(&self, slot: u64, mode: u8, plan: &Plan) -> Option<(DownlinkSlots, u32)> {
        let (narrowband, occupancy) = plan.narrowband.as_ref().zip(self.occupancy.as_ref())?;
        let slots = narrowband.downlink(slot, self.coverage(mode));
        let left = narrowband.left_down(&slots);
        let received = Slots::new(slots.control.start, slots.data.end);
        // Asleep after the occasion, the mobile would never get a transfer.
        let waits = occupancy.after_request_in(received).is_some_and(|after| self.listens(plan.start(after)));
        (left > 0 && !waits && occupancy.fits_down(&slots)).then_some((slots, left))
    }

    /// The same of an uplink transfer.
    pub fn uplink_slots(&self, slot: u64, mode: u8, plan: &Plan) -> Option<(UplinkSlots, u32)> {
        let (narrowband, occupancy) = plan.narrowband.as_ref().zip(self.occupancy.as_ref())?;
        let slots = narrowband.uplink(slot, self.coverage(mode));
        let left = narrowband.left_up(&slots);
        let after = occupancy.after_request_in(slots.control);
        let waits = after.is_some_and(|after| self.listens(plan.start(after)));
        (left > 0 && !waits && occupancy.fits_up(&slots)).then_some((slots, left))
    }

    /// A downlink transfer takes resource blocks.
    pub fn take_down(&mut self, slots: &DownlinkSlots, blocks: u32, plan: &mut Plan) {
        if let Some((narrowband, occupancy)) = plan.narrowband.as_mut().zip(self.occupancy.as_mut()) {
            narrowband.take_down(slots, blocks);
            occupancy.forget_before(slots.control.start);
            occupancy.take_down(slots);
        }
    }

    /// An uplink transfer that is planned in slot `slot` takes resource blocks.
    pub fn take_up(&mut self, slot: u64, slots: &UplinkSlots, blocks: u32, plan: &mut Plan) {
        if let Some((narrowband, occupancy)) = plan.narrowband.as_mut().zip(self.occupancy.as_mut()) {
            narrowband.take_up(slots, blocks);
            occupancy.forget_before(slot);
            occupancy.take_up(slots);
        }
    }

    /// The first grant from slot `from` on for a block that is sent again in the same way. Returns
    /// when the block is sent.
    pub(super) fn grant_again(
        &mut self,
        now: Instant,
        from: u64,
        format: &TransportFormat,
        plan: &mut Plan,
    ) -> Instant {
        let &TransportFormat { blocks, mode, .. } = format;
        let slots = |slot| self.uplink_slots(slot, mode, plan);
        let fits = |slot| slots(slot).filter(|(_, left)| *left >= blocks).map(|(slots, _)| slots);
        let slots = (from..).find_map(fits).expect("what is promised ends");
        self.take_up(plan.number(now), &slots, blocks, plan);
        plan.start(slots.data.start)
    }

    /// Whether the mobile can send a request, or the first message of random access, in the slots
    /// from the one that begins at `now` on. Then it does.
    pub(super) fn can_request(&mut self, now: Instant, plan: &Plan) -> bool {
        let slots = self.request_slots(now, plan);
        let Some(occupancy) = &mut self.occupancy else { return true };
        let can_send = occupancy.can_send(slots, false);
        if can_send {
            occupancy.send(slots, false);
        }
        can_send
    }

    /// The slots of a request that is sent from `now` on.
    pub(super) fn request_slots(&self, now: Instant, plan: &Plan) -> Slots {
        let number = plan.number(now);
        let length = plan.narrowband.as_ref().map_or(1, |narrowband| {
            let is_message = self.request.message_at().is_some();
            let message = narrowband.repetitions(self.coverage(self.mode)).uplink;
            if is_message { message } else { narrowband.mode(self.mode).feedback }
        });
        Slots::new(number, number + length)
    }
}
