//! The RRC connection of a mobile (TS 36.331 §5): idle, being set up, connected.
//!
//! The inactivity timer is not stepped: that the connection was released is found when something
//! happens next.

use airpath_core::{Direction, Instant, Span};

use super::config;

/// The connection of one mobile.
#[derive(Clone, Debug)]
pub struct Rrc {
    config: Option<config::Rrc>,
    /// Where in the paging cycle the mobile's occasion is.
    paging_offset: Span,
    state: State,
    last_activity: Instant,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Idle,
    /// It is set up until then: all data waits.
    Promotion(Instant),
    /// It is there.
    Connected,
}

impl Rrc {
    /// An idle mobile, or, without a configuration, one that is always connected.
    pub const fn new(config: Option<config::Rrc>, paging_offset: Span) -> Self {
        let state = if config.is_some() { State::Idle } else { State::Connected };
        Self { config, paging_offset, state, last_activity: Instant::ZERO }
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

    /// Releases the connection if nothing has happened for long enough. Returns when that was.
    pub fn release(&mut self, now: Instant) -> Option<Instant> {
        let config = self.config.as_ref().filter(|_| self.state == State::Connected)?;
        let at = self.last_activity + config.inactivity;
        (at <= now).then(|| {
            self.state = State::Idle;
            at
        })
    }

    /// Something waits to be sent in a direction. Returns when paging ends and the promotion
    /// begins, if that is new.
    pub fn waits(&mut self, now: Instant, direction: Direction) -> Option<Instant> {
        let config = self.config.as_ref()?;
        let from = match direction {
            Direction::Up => now,
            Direction::Down => {
                // The first occasion after `now`.
                let cycle = config.paging.as_nanos();
                let phase = (now.as_nanos() + cycle - self.paging_offset.as_nanos() % cycle) % cycle;
                now + Span::from_nanos(cycle - phase)
            }
        };
        let until = from + config.promotion;
        match self.state {
            State::Connected => return None,
            State::Promotion(earlier) if earlier <= until => return None,
            State::Promotion(_) | State::Idle => self.state = State::Promotion(until),
        }
        Some(from)
    }

    /// When the set-up ends.
    #[inline]
    pub const fn next_change(&self) -> Option<Instant> {
        match self.state {
            State::Promotion(until) => Some(until),
            State::Idle | State::Connected => None,
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

    /// How long it takes to establish the connection again.
    pub fn re_establishment(&self) -> Span {
        self.config.as_ref().map_or(DEFAULT_RE_ESTABLISHMENT, |config| config.re_establishment)
    }
}

/// For bearers without `rrc`: a choice.
const DEFAULT_RE_ESTABLISHMENT: Span = Span::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn rrc() -> Rrc {
        let text = r#"
            inactivity = "10 s"
            promotion = "260 ms"
            paging = "1.28 s"
            re_establishment = "200 ms"
        "#;
        Rrc::new(Some(toml::from_str(text).expect("a configuration")), Span::from_millis(40))
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
        assert_eq!((rrc.release(at(99_000)), rrc.state()), (Some(at(15_000)), State::Idle));
    }
}
