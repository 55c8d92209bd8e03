//! Changes of a carrier's conditions while it runs.
//!
//! The TTI that has begun is over: what it carries arrives, or is repeated. From the next on, the
//! new conditions hold. A repeated block keeps its size, as ever.
//!
//! An interruption of all users lets TTIs pass unused. One user that is interrupted in a shared
//! cell is taken out of the scheduler's sight, and what it has to repeat is set aside until it is
//! back.

use airpath_core::{Context, DropCause, Instant, earliest};
use airpath_link::Departure;
use airpath_link::command::{BearerCommand, Buffer, Change, CommandError};

use super::{Interruption, TransportChannel};

impl TransportChannel {
    /// Whether it can do that.
    pub fn check(&self, change: &Change) -> Result<(), CommandError> {
        change.check()?;
        let foreign = |what, help| Err(CommandError::Foreign { key: change.kind().name(), what, help });
        let levels = self.parameters.levels.as_ref();
        match change {
            Change::Outage(_) | Change::Handover { .. } | Change::Bler(_) => Ok(()),
            Change::Loss(_) => foreign("a radio channel", "it has a `bler`"),
            Change::Delay(delay) => match delay.fixed() {
                Some(_) => Ok(()),
                None => foreign("a radio channel", "its delay is one length of time, not a distribution"),
            },
            Change::Rate(_) | Change::Channels(_) if levels.is_some() => foreign(
                "a radio channel with C/I levels",
                "its rate follows from the `level` or `class` of each mobile",
            ),
            Change::Rate(_) | Change::Channels(_) => self.capacity(change).map(drop),
            Change::Level(level) => match levels {
                None => foreign("a radio channel without C/I levels", "it has `channels` or a `rate`"),
                Some(levels) if levels.always(*level).is_some() => Ok(()),
                Some(levels) => Err(CommandError::NoSuchLevel { level: *level, levels: levels.rates.len() }),
            },
            Change::CarrierToInterference(_) | Change::Environment(_) => {
                foreign("this model of a radio channel", "only a bearer with radio `conditions` has them")
            }
            Change::Class(class) => match levels {
                None => foreign("a radio channel without C/I levels", "it has `channels` or a `rate`"),
                Some(levels) if levels.classes.contains_key(class) => Ok(()),
                Some(levels) => Err(CommandError::NoSuchClass { class: class.clone(), known: levels.class_names() }),
            },
        }
    }

    /// Does what was checked before, for a user or for all. Rate, channels and delay are those of
    /// the carrier, and so of all its users.
    pub fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) {
        self.advance(now, cx);
        let users = match command.user {
            Some(user) => {
                let index = self.index_of(user).expect("it was checked that there is such a user");
                index..index + 1
            }
            None => 0..self.users.len(),
        };
        if let Some((span, buffer)) = command.change.interruption() {
            for index in users.clone() {
                if buffer == Buffer::Discard {
                    self.discard(now, index, cx);
                }
            }
            let until = (now + span).as_nanos().div_ceil(self.parameters.tti.as_nanos());
            if users.len() == self.users.len() {
                self.next_tti = self.next_tti.max(until);
            } else {
                users.for_each(|index| self.interrupt(index, until));
            }
            return;
        }
        match &command.change {
            Change::Bler(bler) => {
                for user in &mut self.users[users] {
                    user.block_errors = self.parameters.errors.with_bler(*bler);
                }
            }
            Change::Rate(_) | Change::Channels(_) => {
                let pdus = self.capacity(&command.change).expect("it was checked before");
                self.parameters.pdus_per_tti = vec![pdus];
                self.candidates.iter_mut().for_each(|candidate| candidate.pdus = pdus);
            }
            Change::Delay(delay) => self.parameters.delay = delay.fixed().expect("it was checked before"),
            Change::Level(_) | Change::Class(_) => {
                let levels = self.parameters.levels.as_ref().expect("it was checked before");
                let up_to = match &command.change {
                    Change::Level(level) => levels.always(*level),
                    Change::Class(class) => levels.distribution(class),
                    _ => None,
                };
                let up_to = up_to.expect("it was checked before");
                self.channels[users].iter_mut().for_each(|channel| channel.set(up_to.clone()));
            }
            Change::Outage(_)
            | Change::Handover { .. }
            | Change::Loss(_)
            | Change::CarrierToInterference(_)
            | Change::Environment(_) => {
                unreachable!("the first two are interruptions, and no carrier has the others")
            }
        }
    }

    /// The PDUs of a TTI at this rate, or with this number of channels.
    fn capacity(&self, change: &Change) -> Result<u32, CommandError> {
        let pdu = self.parameters.pdu;
        let pdus = match change {
            Change::Channels(channels) => u64::from(*channels),
            Change::Rate(rate) => rate.bytes_in(self.parameters.tti).get() / u64::from(pdu),
            _ => unreachable!("no other change is one of capacity"),
        };
        match u16::try_from(pdus) {
            Ok(fit) if fit > 0 => Ok(u32::from(fit)),
            _ => Err(CommandError::Capacity { key: change.kind().name(), pdus, max: u16::MAX.into(), pdu }),
        }
    }

    /// Loses what the far end does not have completely.
    fn discard(&mut self, now: Instant, index: usize, cx: &mut Context<'_>) {
        let due = self.due_after(now);
        let (mut lost, departures) = (Vec::new(), &mut self.departures);
        self.users[index].rlc.reset(
            now,
            |packet| lost.push(packet),
            |packet| departures.push_back(Departure { due, packet }),
        );
        for packet in lost {
            self.counters.lose(&packet, DropCause::Handover);
            cx.drop_packet(now, packet, DropCause::Handover);
        }
        self.leave_if_done(index);
    }

    /// Keeps a user from sending until that TTI.
    fn interrupt(&mut self, index: usize, until: u64) {
        let user = &mut self.users[index];
        if user.is_interrupted {
            let interruption = self.interruptions.iter_mut().find(|other| other.user as usize == index);
            let interruption = interruption.expect("a user that is marked as interrupted is one");
            interruption.until = interruption.until.max(until);
            return;
        }
        user.is_interrupted = true;
        if user.is_candidate {
            user.is_candidate = false;
            self.candidates.retain(|candidate| candidate.user as usize != index);
        }
        let repeats = self.repeats.take_of(index as u32);
        self.interruptions.push(Interruption { user: index as u32, until, repeats });
    }

    /// The next TTI in which something can be sent, or a user is back.
    #[cold]
    pub(super) fn next_active_or_resumed(&self, active: Option<u64>) -> Option<u64> {
        let resumed = self.interruptions.iter().map(|interruption| interruption.until.max(self.next_tti)).min();
        earliest([active, resumed])
    }

    /// Lets those users send again whose interruption ends with TTI `tti`.
    #[cold]
    pub(super) fn resume(&mut self, tti: u64) {
        let mut index = 0;
        while index < self.interruptions.len() {
            if self.interruptions[index].until > tti {
                index += 1;
                continue;
            }
            let Interruption { user, repeats, .. } = self.interruptions.remove(index);
            let user = user as usize;
            self.repeats.put_back(repeats);
            self.users[user].is_interrupted = false;
            if self.users[user].rlc.has_new() {
                self.enlist(user);
            }
        }
    }
}
