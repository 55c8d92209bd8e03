//! Changes of a mobile's conditions by command.

use airpath_core::{Context, Direction, DropCause, Instant, ModeState};
use airpath_link::command::{BearerCommand, Buffer, Change, CommandError};

use super::User;

impl User {
    /// Whether it can do that.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        let foreign = |help| Err(CommandError::Foreign { key: change.kind().name(), what: "an HSDPA cell", help });
        match change {
            Change::Outage(_) | Change::Handover { .. } | Change::Bler(_) => Ok(()),
            Change::CarrierToInterference(_) | Change::Environment(_) => self.conditions.check(change),
            Change::Delay(delay) if delay.fixed().is_some() => Ok(()),
            Change::Delay(_) => foreign("its delay is one length of time, not a distribution"),
            Change::Loss(_) => foreign("blocks are lost by its C/I, or with a `bler`"),
            Change::Rate(_) | Change::Channels(_) | Change::Level(_) | Change::Class(_) => {
                foreign("its rate follows from codes, C/I and the other mobiles")
            }
        }
    }

    /// Does what was checked before, in these directions.
    pub fn command(&mut self, now: Instant, command: &BearerCommand, directions: &[Direction], cx: &mut Context<'_>) {
        self.clock = now;
        if let Some((span, buffer)) = command.change.interruption() {
            if buffer == Buffer::Discard {
                self.discard(now, directions, DropCause::Handover, cx);
            }
            let until = now + span;
            for direction in directions {
                match direction {
                    Direction::Down => self.movement.blocked_until = self.movement.blocked_until.max(until),
                    Direction::Up => self.up.block(until),
                }
            }
            if matches!(command.change, Change::Handover { .. }) {
                if directions.contains(&Direction::Down) {
                    self.reset_mac(now, now, cx);
                }
                self.tracks.mode(now, ModeState::Handover, Some(until), cx);
            }
        }
        match &command.change {
            Change::CarrierToInterference(_) | Change::Environment(_) => {
                self.conditions.command(now, &command.change).expect("it was checked before");
                self.up.fade(self.conditions.profile());
                self.forget_coverage();
            }
            Change::Bler(bler) => {
                for direction in directions {
                    match direction {
                        Direction::Down => self.bler = Some(*bler),
                        Direction::Up => self.up.set_bler(*bler),
                    }
                }
            }
            Change::Delay(delay) => {
                let delay = delay.fixed().expect("it was checked before");
                directions.iter().for_each(|direction| self.rlc(*direction).delay = delay);
            }
            _ => {}
        }
        self.send_on(now, cx);
    }
}
