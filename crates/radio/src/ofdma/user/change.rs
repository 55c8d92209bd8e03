//! Changes of a mobile's conditions by command.

use airpath_core::{Context, Direction, DropCause, Instant, ModeState};
use airpath_link::command::{BearerCommand, Buffer, Change, CommandError};

use super::User;
use crate::ofdma::plan::Plan;
use crate::ofdma::rrc::State;

impl User {
    /// Whether it can do that, in a cell that messages call `cell`.
    pub fn check(&self, change: &Change, cell: &'static str) -> Result<(), CommandError> {
        change.check()?;
        let foreign = |help| Err(CommandError::Foreign { key: change.kind().name(), what: cell, help });
        match change {
            Change::Outage(_) | Change::Handover { .. } | Change::Bler(_) => Ok(()),
            Change::CarrierToInterference(_) | Change::Environment(_) => self.conditions.check(change),
            Change::Delay(delay) if delay.fixed().is_some() => Ok(()),
            Change::Delay(_) => foreign("its delay is one length of time, not a distribution"),
            Change::Loss(_) => foreign("blocks are lost by the SINR, or with a `bler`"),
            Change::Rate(_) | Change::Channels(_) | Change::Level(_) | Change::Class(_) => {
                foreign("its rate follows from resource blocks, SINR and the other mobiles")
            }
        }
    }

    /// Does what was checked before, in these directions.
    pub fn command(
        &mut self,
        now: Instant,
        command: &BearerCommand,
        directions: &[Direction],
        plan: &mut Plan,
        cx: &mut Context<'_>,
    ) {
        self.clock = now;
        if let Some((span, buffer)) = command.change.interruption() {
            let until = now + span;
            if let Some(begins) = self.rrc.interrupt(self.movement.free_from(now), until) {
                self.promotion_from = begins;
            }
            if buffer == Buffer::Discard {
                for direction in directions {
                    self.channels(*direction).discard(now, DropCause::Handover, cx);
                }
            }
            if matches!(command.change, Change::Handover { .. }) {
                if self.is_empty() {
                    self.release_inactive(now, cx);
                }
                // Without a connection the mobile selects the cell by itself.
                if !matches!(self.rrc.state(), State::Idle | State::Inactive) {
                    self.tracks.mode(now, ModeState::Handover, Some(until), cx);
                }
                self.establish_again(now, until, DropCause::Handover, cx);
            } else {
                self.movement.block(directions, until);
                if directions.contains(&Direction::Up) {
                    self.interrupt_up(now, until, plan, cx);
                }
            }
        }
        match &command.change {
            Change::CarrierToInterference(_) | Change::Environment(_) => {
                self.conditions.command(now, &command.change).expect("it was checked before");
                self.movement.forget_coverage();
            }
            Change::Bler(bler) => {
                directions.iter().for_each(|direction| self.bler[*direction as usize] = Some(*bler));
            }
            Change::Delay(delay) => {
                let delay = delay.fixed().expect("it was checked before");
                directions.iter().for_each(|direction| self.channels(*direction).set_delay(delay));
            }
            _ => {}
        }
        self.prepare(now, plan, cx);
    }
}
