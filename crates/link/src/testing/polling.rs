//! The times at which a check polls what it checks, between its inputs.

use airpath_core::{Direction, Instant, RandomStream, Seed, Span};

use crate::Departure;

/// Times at which a bearer or a path is polled between its arrivals.
#[derive(Clone, Copy, Debug)]
pub enum Polling {
    /// At every wake-up.
    OnTime,
    /// At every wake-up, and at random times between: early polls must be harmless.
    Early(u64),
    /// Rarely, at random times.
    Late(u64),
    /// Only at the horizon, when all packets are pushed.
    AtEnd,
}

/// The clock of a check.
#[derive(Debug)]
pub struct PollClock {
    polling: Polling,
    stream: RandomStream,
    now: Instant,
}

impl PollClock {
    /// A clock at zero.
    pub fn new(polling: Polling) -> Self {
        let seed = match polling {
            Polling::Early(seed) | Polling::Late(seed) => seed,
            Polling::OnTime | Polling::AtEnd => 0,
        };
        Self { polling, stream: Seed::new(seed).stream("testing/polling"), now: Instant::ZERO }
    }

    /// Whether it polls at every wake-up and at no other time.
    pub const fn is_on_time(&self) -> bool {
        matches!(self.polling, Polling::OnTime)
    }

    fn between(&mut self, until: Instant) -> Instant {
        self.now + Span::from_nanos(self.stream.below(until.since(self.now).as_nanos() + 1))
    }
}

/// A check that polls, by the policy of its clock.
pub trait Polls {
    /// The clock.
    fn clock(&mut self) -> &mut PollClock;

    /// The next wake-up of what is checked.
    fn next_wakeup(&self) -> Option<Instant>;

    /// All departures so far.
    fn departures(&self) -> &[(Direction, Departure)];

    /// Takes and checks what leaves until `now`.
    fn poll(&mut self, now: Instant);

    /// Polls by the policy until `until`, the time of the next input.
    ///
    /// # Panics
    /// If a departure is earlier than the wake-up at which it was taken.
    fn run_until(&mut self, until: Instant) {
        match self.clock().polling {
            Polling::OnTime => self.run_on_time(until),
            Polling::Early(_) => {
                while self.clock().stream.below(2) == 0 {
                    let extra = self.clock().between(until);
                    self.run_on_time(extra);
                    self.poll_at(extra);
                }
                self.run_on_time(until);
            }
            Polling::Late(_) => {
                if self.clock().stream.below(4) == 0 {
                    let at = self.clock().between(until);
                    self.poll_at(at);
                }
            }
            Polling::AtEnd => {}
        }
        self.clock().now = until;
    }

    #[doc(hidden)]
    fn run_on_time(&mut self, until: Instant) {
        while let Some(wakeup) = self.next_wakeup()
            && wakeup <= until
        {
            let before = self.departures().len();
            let now = wakeup.max(self.clock().now);
            self.poll_at(now);
            let early = self.departures()[before..].iter().find(|(_, departure)| departure.due < wakeup);
            assert!(early.is_none(), "the next wake-up was {wakeup}, but {early:?} left earlier");
        }
    }

    #[doc(hidden)]
    fn poll_at(&mut self, now: Instant) {
        self.poll(now);
        self.clock().now = now;
    }
}
