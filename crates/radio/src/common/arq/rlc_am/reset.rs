//! The reset procedure of both ends of the RLC (TS 25.322 §11.4).

use airpath_core::{Direction, Instant, Span};

use super::{Control, Rlc, RlcAm};

/// The resets of an RLC entity, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Resets {
    running: Option<Running>,
    /// RSN of the last RESET that began a procedure, and of the last RESET received. The model
    /// counts the procedures of both ends together; on the air the field is one bit (TS 25.322
    /// §9.2.2.13).
    begun: u64,
    received: u64,
    /// Timer_RST and MaxRST of the sender of each direction.
    limits: [(Span, u32); 2],
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// The direction whose sender began it.
    direction: Direction,
    /// How many RESETs were sent: VT(RST).
    attempts: u32,
    /// When the answer is late: Timer_RST.
    expires: Instant,
}

/// What a late answer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// The same RESET once more, in this direction.
    Again(Direction, Control),
    /// The end of the connection.
    Failed,
}

impl Resets {
    /// None yet. Each end has the parameters of its sender.
    pub const fn new(down: &Rlc, up: &Rlc) -> Self {
        Self {
            running: None,
            begun: 0,
            received: 0,
            limits: [(down.timer_rst, down.max_rst), (up.timer_rst, up.max_rst)],
        }
    }

    /// Whether one is under way.
    #[inline]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// When an answer is late.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        self.running.map(|running| running.expires)
    }

    /// The sender of a direction, whose `rlc` this is, begins one. Next: [`Self::expire`], unless
    /// [`Self::acknowledged`] comes first.
    pub fn begin(&mut self, now: Instant, direction: Direction, rlc: &mut RlcAm) {
        self.running = Some(Running { direction, attempts: 1, expires: now + self.limits[direction as usize].0 });
        self.begun += 1;
        rlc.is_stopped = true;
        rlc.control = Some(Control::Reset { sequence: self.begun });
    }

    /// Whether an answer is late by `now`, and what that leads to. Next: `fail` of the bearer's
    /// mobile after [`Late::Failed`].
    pub fn expire(&mut self, now: Instant) -> Option<Late> {
        let running = self.running.as_mut().filter(|running| running.expires <= now)?;
        let (timer, max) = self.limits[running.direction as usize];
        running.attempts += 1;
        running.expires = now + timer;
        // TS 25.322 §9.6: the maximum number of transmissions is MaxRST − 1.
        // §11.4.5.1: a RESET sent again has the same RSN.
        let again = Late::Again(running.direction, Control::Reset { sequence: self.begun });
        Some(if running.attempts >= max { Late::Failed } else { again })
    }

    /// A RESET has come. Returns whether the entity is to be reset: one with the RSN of the last
    /// is only acknowledged (TS 25.322 §11.4.3).
    pub fn receive(&mut self, sequence: u64) -> bool {
        std::mem::replace(&mut self.received, sequence) != sequence
    }

    /// An answer has come in a direction. Returns the direction that goes on with it: none if the
    /// answer is to an earlier RESET (TS 25.322 §11.4.4).
    pub fn acknowledged(&mut self, direction: Direction, sequence: u64) -> Option<Direction> {
        let is_answered = |running: &mut Running| running.direction == direction.opposite() && sequence == self.begun;
        let running = self.running.take_if(is_answered)?;
        Some(running.direction)
    }

    /// Forgets one that is under way in a direction, or in any.
    pub fn forget(&mut self, direction: Option<Direction>) {
        self.running = self.running.filter(|running| direction.is_some_and(|only| only != running.direction));
    }
}
