//! What was received in error and is to be sent again, a fixed delay later.

use std::collections::VecDeque;

use super::rlc::Run;

/// The PDUs to be sent again, in the order in which they become due: as the delay is the same for
/// all, that is the order in which they were sent.
#[derive(Clone, Debug)]
pub struct Repeats {
    /// From the TTI of a transmission to the first TTI in which it may be repeated.
    turnaround: u64,
    queue: VecDeque<Repeat>,
}

/// PDUs of one user to be sent again.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// The TTI from which on they may be sent; the same for all of a block, and for no others.
    pub due: u64,
    /// The index of the user.
    pub user: u32,
    /// The level at which they were sent first.
    pub level: u8,
    /// The PDUs and their next attempt.
    pub run: Run,
}

impl Repeats {
    /// None yet.
    pub const fn new(turnaround: u64) -> Self {
        Self { turnaround, queue: VecDeque::new() }
    }

    /// From the TTI of a transmission to the first TTI in which it may be repeated.
    pub const fn turnaround(&self) -> u64 {
        self.turnaround
    }

    /// What becomes due next.
    #[inline]
    pub fn first(&self) -> Option<&Repeat> {
        self.queue.front()
    }

    /// Takes `errored` PDUs of a run that user `user` sent at `level` in TTI `tti`.
    pub fn add(&mut self, tti: u64, user: u32, level: u8, run: Run, errored: u32) {
        let run = Run { pdus: errored, attempt: run.attempt.saturating_add(1), ..run };
        self.queue.push_back(Repeat { due: tti + self.turnaround, user, level, run });
    }

    /// Takes out all of user `user`.
    pub fn take_of(&mut self, user: u32) -> Vec<Repeat> {
        let (taken, kept) = self.queue.iter().partition(|repeat| repeat.user == user);
        self.queue = kept;
        taken.into()
    }

    /// Puts back what was taken out. The PDUs of one block stay together: no two blocks are due in
    /// one TTI.
    pub fn put_back(&mut self, repeats: Vec<Repeat>) {
        for repeat in repeats {
            let place = self.queue.partition_point(|other| other.due <= repeat.due);
            self.queue.insert(place, repeat);
        }
    }

    /// Moves the block that is due first into `block`, as it was sent but for what is no longer
    /// `wanted`. Returns the first of it and its number of PDUs; `None` if no block is due in TTI
    /// `tti`.
    pub fn take_block(
        &mut self,
        tti: u64,
        wanted: impl Fn(&Repeat) -> bool,
        block: &mut Vec<Run>,
    ) -> Option<(Repeat, u32)> {
        while let Some(first) = self.queue.front().copied().filter(|first| first.due <= tti) {
            let mut pdus = 0;
            while let Some(repeat) = self.queue.front().copied().filter(|repeat| repeat.due == first.due) {
                self.queue.pop_front();
                if wanted(&repeat) {
                    pdus += repeat.run.pdus;
                    block.push(repeat.run);
                }
            }
            if pdus > 0 {
                return Some((first, pdus));
            }
        }
        None
    }

    /// Moves up to `room` PDUs that are due into `block`, but for those that are no longer
    /// `wanted`. They belong to one user, which has the channel to itself. Returns the last of them
    /// and their number; `None` if none is due in TTI `tti`.
    pub fn take_pdus(
        &mut self,
        tti: u64,
        room: u32,
        wanted: impl Fn(&Repeat) -> bool,
        block: &mut Vec<Run>,
    ) -> Option<(Repeat, u32)> {
        let mut left = room;
        let mut taken = None;
        while left > 0
            && let Some(repeat) = self.queue.front_mut().filter(|repeat| repeat.due <= tti)
        {
            let pdus = if wanted(repeat) { left.min(repeat.run.pdus) } else { 0 };
            if pdus > 0 {
                left -= pdus;
                block.push(Run { pdus, ..repeat.run });
                taken = Some(*repeat);
            }
            if pdus > 0 && pdus < repeat.run.pdus {
                repeat.run.pdus -= pdus;
            } else {
                self.queue.pop_front();
            }
        }
        taken.map(|repeat| (repeat, room - left))
    }
}
