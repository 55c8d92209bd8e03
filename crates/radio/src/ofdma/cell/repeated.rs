//! Who gets what of a narrowband whose transfers are repeated: a transfer is planned as a whole in
//! the slot in which its control channel begins.
//!
//! In the downlink, the first mobile of a slot has what is left. A further one gets no block that
//! is smaller for want of resource blocks: it would cost the same control channel, and mobiles with
//! half duplex that get blocks in the same slots then wait for their feedback at the same time.

use airpath_core::{Context, Direction, Instant};

use super::{Carrier, Cell, MARGIN};
use crate::common::shared_channel::scheduler::Candidate;

impl Cell {
    /// Grants of the uplink whose MPDCCH begins at `now`.
    pub(super) fn grant_repeated(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Self { plan, users, schedulers, up: candidates, .. } = self;
        let number = plan.number(now);
        if let Some(narrowband) = &mut plan.narrowband {
            narrowband.forget_before(number);
        }
        let fits = |candidate: &Candidate| {
            let user = &users[candidate.user as usize];
            let mode = user.transfer_mode(Direction::Up);
            user.has_process_up(now, plan) && user.uplink_slots(number, mode, plan).is_some()
        };
        candidates.retain(fits);
        while !candidates.is_empty() {
            let index = candidates.swap_remove(schedulers[1].choose(candidates)).user as usize;
            let user = &mut users[index];
            let estimate = user.estimate(Direction::Up, plan);
            let Some((slots, left)) = user.uplink_slots(number, estimate.mode, plan) else { continue };
            let (at, wanted) = (plan.start(slots.data.start), user.wanted_up(plan.first_grant));
            if let Some(format) = plan.allocate(Direction::Up, at, estimate, wanted, left) {
                user.waiting_since[1] = number + 1;
                user.grant(now, at, format, plan, cx);
                user.take_up(number, &slots, format.blocks, plan);
                schedulers[1].served(number, index as u32, format.bits);
                user.had_backlog[1] = user.wanted_up(plan.first_grant) > 0;
            }
        }
    }

    /// Assignments of the downlink whose MPDCCH begins at `now`.
    pub(super) fn assign_repeated(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Self { plan, users, schedulers, carriers, .. } = self;
        let number = plan.number(now);
        let Carrier { repeats, candidates } = &mut carriers[0];
        repeats.sort_unstable_by_key(|(index, _)| (users[*index].waiting_since[0], *index));
        for (index, process) in repeats.drain(..) {
            let user = &mut users[index];
            let Some(format) = user.format_again(process) else { continue };
            let slots = user.downlink_slots(number, format.mode, plan).filter(|(_, left)| *left >= format.blocks);
            if let Some((slots, _)) = slots {
                user.waiting_since[0] = number + 1;
                user.send_again(now, process, plan, cx);
                user.take_down(&slots, format.blocks, plan);
            }
        }
        let fits = |candidate: &Candidate| {
            let user = &users[candidate.user as usize];
            user.downlink_slots(number, user.transfer_mode(Direction::Down), plan).is_some()
        };
        candidates.retain(fits);
        let mut is_first = true;
        while !candidates.is_empty() {
            let index = candidates.swap_remove(schedulers[0].choose(candidates)).user as usize;
            let user = &mut users[index];
            let estimate = user.estimate(Direction::Down, plan);
            let Some((slots, left)) = user.downlink_slots(number, estimate.mode, plan) else { continue };
            let process = user.idle_process(now, 0).expect("a candidate has one");
            let at = plan.start(slots.data.start);
            let wanted = user.waiting_down(now) + MARGIN;
            let format = plan.allocate(Direction::Down, at, estimate, wanted, left);
            let fits = |format: &_| is_first || plan.is_whole(Direction::Down, at, estimate, wanted, format);
            if let Some(format) = format.filter(fits) {
                is_first = false;
                user.waiting_since[0] = number + 1;
                user.send_new(now, process, format, plan, cx);
                user.take_down(&slots, format.blocks, plan);
                schedulers[0].served(number, index as u32, format.bits);
                user.had_backlog[0] = user.waiting_down(now) > 0;
            }
        }
    }
}
