//! The RRC connection of a mobile (TS 36.331 §5, TS 38.331 §5.3): idle, being set up, connected,
//! and in NR inactive.
//!
//! The inactivity timer is not stepped: that the connection was released is found when something
//! happens next.

use airpath_core::{Direction, Instant, RandomStream, Span};

use super::config;
use super::paging::{Paging, PowerSaving};
use super::radio_link::Timers;

/// The parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// After what time without activity the connection is released or suspended.
    pub inactivity: Span,
    /// From idle to connected.
    pub promotion: Span,
    /// The paging cycle.
    pub paging: Span,
    /// Re-establishment after a radio link failure.
    pub re_establishment: Span,
    /// Of a mobile without coverage.
    pub link: Timers,
    /// The state inactive; without it, an inactive connection is released.
    pub inactive: Option<Inactive>,
    /// Of an idle mobile.
    pub power_saving: Option<PowerSaving>,
}

impl From<&config::Rrc> for Parameters {
    fn from(config: &config::Rrc) -> Self {
        let config::Rrc { inactivity, promotion, paging, re_establishment, t310, t311, ref power_saving } = *config;
        Self {
            inactivity,
            promotion,
            paging,
            re_establishment,
            link: Timers { t310, t311 },
            inactive: None,
            power_saving: power_saving.clone(),
        }
    }
}

/// The state inactive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inactive {
    /// From inactive to connected.
    pub resume: Span,
    /// After what time in the state the mobile is idle.
    pub release: Span,
}

/// The connection of one mobile.
#[derive(Clone, Debug)]
pub struct Rrc {
    config: Option<Parameters>,
    /// When the mobile can be paged in the state inactive, and when it is idle.
    paging: Option<[Paging; 2]>,
    /// Since when it is idle; `None`: since before the run.
    idle_since: Option<Instant>,
    /// When the last connection was released or suspended.
    connected_until: Instant,
    state: State,
    last_activity: Instant,
    /// How long the set-up takes that has begun.
    setup: Span,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Idle,
    /// It is suspended.
    Inactive,
    /// It is set up until then: all data waits.
    Promotion(Instant),
    /// It is there.
    Connected,
}

impl Rrc {
    /// An idle mobile, or, without a configuration, one that is always connected.
    /// Its paging occasion is `offset` after multiples of the cycle.
    pub fn new(config: Option<Parameters>, offset: Span, stream: &mut RandomStream) -> Self {
        let state = if config.is_some() { State::Idle } else { State::Connected };
        let paging = config.as_ref().map(|config| {
            let Parameters { paging, power_saving, .. } = config;
            [None, power_saving.as_ref()].map(|power_saving| Paging::new(*paging, offset, power_saving, stream))
        });
        Self {
            config,
            paging,
            idle_since: None,
            connected_until: Instant::ZERO,
            state,
            last_activity: Instant::ZERO,
            setup: Span::ZERO,
        }
    }

    /// A set-up takes this long from now on.
    pub const fn set_promotion(&mut self, promotion: Span) {
        if let Some(config) = &mut self.config {
            config.promotion = promotion;
        }
    }

    /// The state.
    #[inline]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Something was sent or received.
    #[inline]
    pub fn active(&mut self, now: Instant) {
        self.last_activity = self.last_activity.max(now);
    }

    /// When an active connection is released or suspended, if nothing happens before.
    pub fn released_at(&self) -> Option<Instant> {
        self.config.as_ref().map(|config| self.last_activity + config.inactivity)
    }

    /// Releases or suspends the connection if nothing has happened for long enough. Returns when
    /// that was, and the state before. Called until it returns nothing.
    pub fn release(&mut self, now: Instant) -> Option<(Instant, State)> {
        let config = self.config.as_ref()?;
        let suspended_at = self.released_at()?;
        let (at, next) = match (self.state, config.inactive) {
            (State::Connected, None) => (suspended_at, State::Idle),
            (State::Connected, Some(_)) => (suspended_at, State::Inactive),
            (State::Inactive, Some(inactive)) => (suspended_at + inactive.release, State::Idle),
            _ => return None,
        };
        (at <= now).then(|| {
            if next == State::Idle {
                self.idle_since = Some(at);
            }
            if self.state == State::Connected {
                self.connected_until = at;
            }
            (at, std::mem::replace(&mut self.state, next))
        })
    }

    /// The connection is lost with the radio link.
    pub const fn lose(&mut self, at: Instant) {
        (self.state, self.idle_since, self.connected_until) = (State::Idle, Some(at), at);
    }

    /// Whether it was connected at `at`, which is not before the last connection.
    pub fn was_connected(&self, at: Instant) -> bool {
        self.state == State::Connected || at < self.connected_until
    }

    /// Something waits to be sent in a direction. Returns when paging ends and the promotion
    /// begins, if that is new.
    pub fn waits(&mut self, now: Instant, direction: Direction) -> Option<Instant> {
        let config = self.config.as_ref().filter(|_| self.state != State::Connected)?;
        let from = match direction {
            Direction::Up => now,
            Direction::Down => {
                let [inactive, idle] = self.paging.as_ref().expect("with a configuration");
                let paging = if self.state == State::Inactive { inactive } else { idle };
                paging.next(now, self.idle_since, config.promotion)
            }
        };
        match (self.state, config.inactive) {
            (State::Idle, _) => self.setup = config.promotion,
            (State::Inactive, Some(inactive)) => self.setup = inactive.resume,
            _ => {}
        }
        let until = from + self.setup;
        match self.state {
            State::Connected => return None,
            State::Promotion(earlier) if earlier <= until => return None,
            State::Promotion(_) | State::Idle | State::Inactive => self.state = State::Promotion(until),
        }
        Some(from)
    }

    /// Nothing is sent between these times: a set-up that goes on takes so much longer, and what
    /// would page the mobile in between does so in a later cycle. Returns when the set-up begins,
    /// if that has changed.
    pub fn interrupt(&mut self, from: Instant, until: Instant) -> Option<Instant> {
        let (State::Promotion(end), Some(config)) = (self.state, &self.config) else { return None };
        let begins = Instant::ZERO + end.since(Instant::ZERO).saturating_sub(self.setup);
        if begins >= until || from >= until {
            return None;
        }
        if begins <= from {
            self.state = State::Promotion(until + end.since(from));
            return None;
        }
        let cycles = until.since(begins).as_nanos().div_ceil(config.paging.as_nanos());
        let begins = begins + config.paging.saturating_mul(cycles);
        self.state = State::Promotion(begins + self.setup);
        Some(begins)
    }

    /// When the set-up ends.
    #[inline]
    pub const fn next_change(&self) -> Option<Instant> {
        match self.state {
            State::Promotion(until) => Some(until),
            State::Idle | State::Inactive | State::Connected => None,
        }
    }

    /// Ends the set-up if it is time. Returns whether it was.
    pub fn change(&mut self, now: Instant) -> bool {
        match self.state {
            State::Promotion(until) if until <= now => {
                self.state = State::Connected;
                self.last_activity = now;
                true
            }
            _ => false,
        }
    }

    /// The timers of the radio link of a connection that can be lost.
    pub fn link_timers(&self) -> Option<Timers> {
        self.config.as_ref().filter(|_| self.state == State::Connected).map(|config| config.link)
    }

    /// How long it takes to establish the connection again.
    pub fn re_establishment(&self) -> Span {
        self.config.as_ref().map_or(DEFAULT_RE_ESTABLISHMENT, |config| config.re_establishment)
    }
}

/// For bearers without `rrc`: a choice.
const DEFAULT_RE_ESTABLISHMENT: Span = Span::from_millis(200);

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    const fn parameters() -> Parameters {
        Parameters {
            inactivity: Span::from_secs(10),
            promotion: Span::from_millis(260),
            paging: Span::from_millis(1280),
            re_establishment: Span::from_millis(200),
            link: Timers { t310: Span::from_secs(1), t311: Span::from_secs(3) },
            inactive: None,
            power_saving: None,
        }
    }

    fn rrc() -> Rrc {
        with(parameters())
    }

    fn with(parameters: Parameters) -> Rrc {
        Rrc::new(Some(parameters), Span::from_millis(40), &mut Seed::new(1).stream("offsets"))
    }

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn uplink_data_connects_at_once_and_downlink_data_waits_for_paging() {
        let mut rrc = rrc();
        assert_eq!(rrc.waits(at(100), Direction::Down), Some(at(1320)));
        assert_eq!(rrc.next_change(), Some(at(1580)));
        assert_eq!(rrc.waits(at(200), Direction::Up), Some(at(200)));
        assert_eq!(rrc.waits(at(210), Direction::Down), None);
        assert!(!rrc.change(at(459)) && rrc.change(at(460)));
        assert_eq!(rrc.state(), State::Connected);
    }

    #[test]
    fn a_connection_ends_after_inactivity() {
        let mut rrc = rrc();
        rrc.waits(at(0), Direction::Up);
        assert!(rrc.change(at(260)));
        rrc.active(at(5000));
        assert_eq!(rrc.release(at(14_999)), None);
        let released = Some((at(15_000), State::Connected));
        assert_eq!((rrc.release(at(99_000)), rrc.state()), (released, State::Idle));
        assert_eq!(rrc.release(at(99_000)), None);
        assert!(rrc.was_connected(at(14_999)) && !rrc.was_connected(at(15_000)));
        rrc.waits(at(99_000), Direction::Up);
        assert!(!rrc.was_connected(at(99_000)) && rrc.change(at(99_260)) && rrc.was_connected(at(99_260)));
    }

    #[test]
    fn a_suspended_connection_resumes_faster_until_it_is_released() {
        let inactive = Inactive { resume: Span::from_millis(30), release: Span::from_secs(20) };
        let mut rrc = with(Parameters { inactive: Some(inactive), ..parameters() });
        rrc.waits(at(0), Direction::Up);
        assert_eq!(rrc.next_change(), Some(at(260)), "from idle");
        assert!(rrc.change(at(260)));
        assert_eq!(rrc.release(at(11_000)), Some((at(10_260), State::Connected)));
        assert_eq!((rrc.release(at(11_000)), rrc.state()), (None, State::Inactive));
        rrc.waits(at(11_000), Direction::Up);
        assert_eq!(rrc.next_change(), Some(at(11_030)), "from inactive");
        assert!(rrc.change(at(11_030)));
        assert_eq!(rrc.release(at(99_000)), Some((at(21_030), State::Connected)));
        assert_eq!(rrc.release(at(99_000)), Some((at(41_030), State::Inactive)));
        assert_eq!((rrc.release(at(99_000)), rrc.state()), (None, State::Idle));
    }
}
