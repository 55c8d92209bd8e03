//! The states of an RRC connection: who has a channel, and when (TS 25.331 §7).
//!
//! ```text
//!            idle_promotion                    more waits than the threshold
//!   IDLE ─────────────────────► CELL_DCH ◄──────────────────────── CELL_FACH ◄──┐ pch.promotion
//!    ▲  └─ or, as configured, ─────────────────────────────────────►  │  ▲      │
//!    │                             │ dch_inactivity                   │  │      │
//!    │                             └──────────────────────────────────┼──┘      │
//!    └────────────── fach_inactivity, or pch.inactivity ◄─── CELL_PCH ◄┘ ────────┘
//! ```

use airpath_core::{Direction, Instant, RrcState};

use super::config::{self, Connected};

/// The RRC connection of one mobile.
#[derive(Clone, Debug)]
pub struct Rrc {
    config: Option<config::Rrc>,
    state: RrcState,
    /// A transition to another state, and its end: nothing is sent meanwhile.
    promotion: Option<(Instant, RrcState)>,
    last_activity: Instant,
}

impl Rrc {
    /// A connection that is always in CELL_DCH, or one that is not there yet.
    pub fn new(config: Option<&config::Rrc>) -> Self {
        let state = if config.is_some() { RrcState::Idle } else { RrcState::CellDch };
        Self { config: config.cloned(), state, promotion: None, last_activity: Instant::ZERO }
    }

    /// The state.
    #[inline]
    pub const fn state(&self) -> RrcState {
        self.state
    }

    /// Whether a transition is running.
    #[inline]
    pub const fn is_promoted(&self) -> bool {
        self.promotion.is_some()
    }

    /// Something was sent.
    #[inline]
    pub const fn active(&mut self, now: Instant) {
        self.last_activity = now;
    }

    /// Triggers a transition if the bytes that wait in a direction need one.
    pub fn waits(&mut self, now: Instant, direction: Direction, bytes: u64) {
        let Some(config) = &self.config else { return };
        if bytes == 0 {
            return;
        }
        let paged = match direction {
            Direction::Down if !config.paging_cycle.is_zero() => now.round_up_to(config.paging_cycle),
            _ => now,
        };
        let threshold = match direction {
            Direction::Down => config.downlink_threshold,
            Direction::Up => config.uplink_threshold,
        };
        let wanted = match self.state {
            RrcState::Idle => Some((paged + config.idle_promotion, config.connects_to.state())),
            RrcState::CellPch => {
                let pch = config.pch.as_ref().expect("only with `pch` is there such a state");
                Some((paged + pch.promotion, RrcState::CellFach))
            }
            RrcState::CellFach if bytes > threshold.get() => Some((now + config.fach_promotion, RrcState::CellDch)),
            RrcState::CellFach | RrcState::CellDch => None,
        };
        match (self.promotion, wanted) {
            // What the mobile has to send does not wait for its page.
            (Some((end, _)), Some((earlier, _))) if earlier < end => self.promotion = wanted,
            (Some(_), _) => {}
            (None, _) => (self.promotion, self.last_activity) = (wanted, now),
        }
    }

    /// Nothing is sent between these times: a transition that is running takes so much longer.
    pub fn interrupt(&mut self, from: Instant, until: Instant) {
        if let Some((end, _)) = self.promotion.as_mut().filter(|_| from < until) {
            *end += until.since(from);
        }
    }

    /// When the state changes if nothing happens: a promotion ends, or a mobile for which nothing
    /// waits has been inactive for long enough.
    #[inline]
    pub fn next_change(&self, is_empty: bool) -> Option<Instant> {
        match self.promotion {
            Some((until, _)) => Some(until),
            None if is_empty => self.inactivity().map(|(at, _)| at),
            None => None,
        }
    }

    /// Does what is due at `now`. Returns whether the state has changed.
    pub fn change(&mut self, now: Instant, is_empty: bool) -> bool {
        let to = match (self.promotion, self.inactivity()) {
            (Some((until, to)), _) if until <= now => to,
            (None, Some((at, to))) if is_empty && at <= now => to,
            _ => return false,
        };
        self.promotion = None;
        self.state = to;
        self.last_activity = now;
        true
    }

    fn inactivity(&self) -> Option<(Instant, RrcState)> {
        let config = self.config.as_ref()?;
        let (span, to) = match (self.state, &config.pch) {
            (RrcState::Idle, _) => return None,
            (RrcState::CellDch, _) => (config.dch_inactivity, RrcState::CellFach),
            (RrcState::CellFach, Some(_)) => (config.fach_inactivity, RrcState::CellPch),
            (RrcState::CellFach, None) => (config.fach_inactivity, RrcState::Idle),
            (RrcState::CellPch, pch) => (pch.as_ref()?.inactivity, RrcState::Idle),
        };
        Some((self.last_activity + span, to))
    }

    /// The connection was set up by other means than [`Self::waits`].
    pub fn connect(&mut self, now: Instant) {
        self.promotion = None;
        self.last_activity = now;
        if let Some(config) = &self.config {
            self.state = config.connects_to.state();
        }
    }

    /// The connection is lost.
    pub fn lose(&mut self, now: Instant) {
        self.promotion = None;
        self.last_activity = now;
        if self.config.is_some() {
            self.state = RrcState::Idle;
        }
    }
}

impl Connected {
    const fn state(self) -> RrcState {
        match self {
            Self::CellDch => RrcState::CellDch,
            Self::CellFach => RrcState::CellFach,
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Span;

    use super::*;

    fn config(more: &str) -> config::Rrc {
        let text = r#"
            dch_inactivity = "5 s"
            fach_inactivity = "12 s"
            idle_promotion = "2 s"
            fach_promotion = "1.5 s"
            downlink_threshold = "475 B"
            uplink_threshold = "543 B"
            fach = { tti = "10 ms", pdus = 1 }
            rach = { tti = "20 ms", pdus = 1 }
        "#;
        toml::from_str(&format!("{more}\n{text}")).expect("a configuration")
    }

    fn at(secs: f64) -> Instant {
        Instant::ZERO + Span::from_secs_f64(secs)
    }

    #[test]
    fn promoted_by_data_and_demoted_by_time() {
        let mut rrc = Rrc::new(Some(&config("")));
        assert_eq!((rrc.state(), rrc.next_change(true)), (RrcState::Idle, None));
        rrc.waits(at(1.0), Direction::Up, 40);
        assert_eq!(rrc.next_change(false), Some(at(3.0)));
        assert!(!rrc.change(at(2.0), false) && rrc.is_promoted());
        assert!(rrc.change(at(3.0), false));
        assert_eq!(
            (rrc.state(), rrc.next_change(false), rrc.next_change(true)),
            (RrcState::CellDch, None, Some(at(8.0)))
        );
        rrc.active(at(4.0));
        assert!(!rrc.change(at(8.0), true) && rrc.change(at(9.0), true));
        assert_eq!(rrc.state(), RrcState::CellFach);
        rrc.waits(at(10.0), Direction::Down, 475);
        assert!(!rrc.is_promoted(), "not more than the threshold");
        rrc.waits(at(10.0), Direction::Down, 476);
        assert!(rrc.change(at(11.5), false));
        assert_eq!(rrc.state(), RrcState::CellDch);
        assert!(rrc.change(at(16.5), true) && rrc.change(at(28.5), true));
        assert_eq!((rrc.state(), rrc.next_change(true)), (RrcState::Idle, None));
    }

    #[test]
    fn a_mobile_in_pch_is_paged_at_its_time() {
        let pch = "pch = { inactivity = \"600 s\", promotion = \"300 ms\" }\npaging_cycle = \"640 ms\"\nconnects_to = \"cell-fach\"";
        let mut rrc = Rrc::new(Some(&config(pch)));
        rrc.waits(at(0.1), Direction::Up, 40);
        assert!(rrc.change(at(2.1), false));
        assert_eq!(rrc.state(), RrcState::CellFach);
        assert!(rrc.change(at(14.1), true));
        assert_eq!(rrc.state(), RrcState::CellPch);
        rrc.waits(at(15.0), Direction::Down, 40);
        assert_eq!(rrc.next_change(false), Some(at(24.0 * 0.64 + 0.3)));
        assert!(rrc.change(at(24.0 * 0.64 + 0.3), false));
        assert_eq!(rrc.state(), RrcState::CellFach);
    }

    #[test]
    fn a_mobile_that_is_about_to_be_paged_sends_its_own_data_at_once() {
        let mut rrc = Rrc::new(Some(&config("paging_cycle = \"1.28 s\"")));
        rrc.waits(at(1.5), Direction::Down, 40);
        assert_eq!(rrc.next_change(false), Some(at(2.56 + 2.0)));
        rrc.waits(at(1.6), Direction::Up, 40);
        assert_eq!(rrc.next_change(false), Some(at(1.6 + 2.0)));
        rrc.waits(at(2.0), Direction::Up, 40);
        rrc.waits(at(2.5), Direction::Down, 40);
        assert_eq!(rrc.next_change(false), Some(at(1.6 + 2.0)), "it is set up once");
    }

    #[test]
    fn without_states_it_is_always_there() {
        let mut rrc = Rrc::new(None);
        rrc.waits(at(1.0), Direction::Up, 40);
        assert_eq!((rrc.state(), rrc.next_change(true)), (RrcState::CellDch, None));
    }
}
