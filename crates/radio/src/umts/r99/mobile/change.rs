//! Changes of a mobile's conditions by command.

use airpath_core::{Context, Direction, DropCause, Instant};
use airpath_link::command::{BearerCommand, Buffer, Change, CommandError};

use super::Mobile;
use super::movement::Coverage;
use crate::umts::r99::config::Format;

impl Mobile {
    /// Whether it can do that in a direction.
    pub fn check(&self, direction: Direction, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        let foreign = |what, help| Err(CommandError::Foreign { key: change.kind().name(), what, help });
        match change {
            Change::Outage(_) | Change::Handover { .. } | Change::Bler(_) => Ok(()),
            Change::Loss(_) => foreign("a radio channel", "it has a `bler`"),
            Change::Delay(delay) => match delay.fixed() {
                Some(_) => Ok(()),
                None => foreign("a radio channel", "its delay is one length of time, not a distribution"),
            },
            Change::Rate(_) | Change::Channels(_) if self.switching[direction as usize].is_some() => {
                foreign("a bearer that is switched between formats", "remove `switching` to choose the rate by hand")
            }
            Change::Rate(_) | Change::Channels(_) => self.capacity(direction, change).map(drop),
            Change::CarrierToInterference(_) | Change::Environment(_) => self.conditions.check(change),
            Change::Level(_) | Change::Class(_) => foreign("a dedicated channel", "its C/I follows from `conditions`"),
        }
    }

    /// Does what was checked before, in these directions.
    pub fn command(&mut self, now: Instant, command: &BearerCommand, directions: &[Direction], cx: &mut Context<'_>) {
        self.advance(now, cx);
        if let Some((span, buffer)) = command.change.interruption() {
            let is_handover = matches!(command.change, Change::Handover { .. });
            if is_handover && directions.len() == 2 {
                self.hand_over(now, now, span, buffer.into(), cx);
            } else {
                self.rrc.interrupt(self.free_from(now), now + span);
                for direction in directions {
                    self.interrupt(now, *direction, now + span, buffer, cx);
                }
            }
            self.schedule(now);
            self.report_stall(now, cx);
            return;
        }
        for direction in directions {
            match &command.change {
                Change::Bler(bler) => self.links[*direction as usize].errors.set_target(*bler),
                Change::Rate(_) | Change::Channels(_) => {
                    let pdus = self.capacity(*direction, &command.change).expect("it was checked before");
                    let link = &mut self.links[*direction as usize];
                    let format = Format { pdus, ..link.formats[link.format] };
                    link.formats = vec![format];
                    link.format = 0;
                }
                Change::Delay(delay) => {
                    self.links[*direction as usize].rlc.delay = delay.fixed().expect("it was checked before");
                }
                // Conditions belong to the mobile, whatever the direction: they are applied once.
                Change::CarrierToInterference(_) | Change::Environment(_) if *direction != directions[0] => {}
                Change::CarrierToInterference(_) | Change::Environment(_) => {
                    self.conditions.command(now, &command.change).expect("it was checked before");
                    self.coverage = Coverage::default();
                    self.links.iter_mut().for_each(|link| link.fade(self.conditions.profile()));
                }
                Change::Outage(_) | Change::Handover { .. } | Change::Loss(_) | Change::Level(_) | Change::Class(_) => {
                    unreachable!("the first two are interruptions, and a mobile refuses the others")
                }
            }
        }
    }

    /// The end of an interruption: before it, no transition begins.
    pub(super) fn free_from(&self, now: Instant) -> Instant {
        self.links.iter().fold(now, |from, link| from.max(link.blocked_until))
    }

    fn interrupt(&mut self, now: Instant, direction: Direction, until: Instant, buffer: Buffer, cx: &mut Context<'_>) {
        let link = &mut self.links[direction as usize];
        if buffer == Buffer::Discard {
            link.discard(now, DropCause::Handover, cx);
            self.resets.forget(Some(direction));
        }
        let link = &mut self.links[direction as usize];
        link.blocked_until = link.blocked_until.max(until);
        link.tti_at = None;
    }

    /// The PDUs of a TTI at this rate, or with this number of channels.
    fn capacity(&self, direction: Direction, change: &Change) -> Result<u32, CommandError> {
        let link = &self.links[direction as usize];
        let pdus = match change {
            Change::Channels(channels) => u64::from(*channels),
            Change::Rate(rate) => rate.bytes_in(link.formats[link.format].tti).get() / u64::from(link.rlc.pdu),
            _ => unreachable!("no other change is one of capacity"),
        };
        match u16::try_from(pdus) {
            Ok(fit) if fit > 0 => Ok(u32::from(fit)),
            _ => {
                Err(CommandError::Capacity { key: change.kind().name(), pdus, max: u16::MAX.into(), pdu: link.rlc.pdu })
            }
        }
    }
}
