//! Steering in front of the two bearers of each mobile: which of them carries a flow.
//!
//! Echo requests of the mobile on each bearer measure its round trip, and whether it is available,
//! as with the performance measurement function of ATSSS (TS 23.501 §5.32.5). Both ends use what
//! the mobile has measured, without a delay.

use airpath_core::{FlowId, Instant, Span, UserId};
use airpath_scenario::Which;
use airpath_scenario::steering::{Addresses, Mode, SteeringConfig};

/// The bearers of all mobiles, and the flows on them.
pub struct Steering {
    config: SteeringConfig,
    mobiles: Vec<[Measured; 2]>,
    flows: Vec<Steered>,
}

/// What the probes of a bearer have measured, and its load.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    round_trip: Option<Span>,
    is_unavailable: bool,
    /// Steered flows that began on it or have changed to it, also ended ones.
    flows: u32,
}

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Steered {
    mobile: usize,
    handling: Handling,
    /// The bearer that was chosen with its first packet, or when there were measurements.
    bearer: Option<Which>,
}

/// Who chooses the interface of the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// The scenario.
    Fixed,
    /// Steering, for each packet.
    Steered,
    /// Steering at the start only.
    Stays,
    /// The ends of the connection: they migrate when the bearer changes.
    Migrates,
}

impl Steering {
    /// Steering of the flows of `mobiles` mobiles, given the mobile of each, whether it is to be
    /// steered, and whether it can migrate.
    pub fn new(config: SteeringConfig, mobiles: usize, flows: impl Iterator<Item = (UserId, bool, bool)>) -> Self {
        let flows = flows.map(|(user, is_steered, can_migrate)| Steered {
            mobile: user.index() % mobiles,
            handling: match (is_steered, config.addresses) {
                (false, _) => Handling::Fixed,
                (true, Addresses::One) => Handling::Steered,
                (true, Addresses::Two) if can_migrate => Handling::Migrates,
                (true, Addresses::Two) => Handling::Stays,
            },
            bearer: None,
        });
        Self { config, mobiles: vec![Default::default(); mobiles], flows: flows.collect() }
    }

    /// Who chooses the interface of the flow with this index.
    pub fn handling(&self, flow: usize) -> Handling {
        self.flows[flow].handling
    }

    /// The interface that carries a flow; `user` is that of the scenario.
    pub fn interface(&mut self, flow: usize, user: UserId) -> UserId {
        let Steered { mobile, handling, bearer } = self.flows[flow];
        if handling == Handling::Fixed {
            return user;
        }
        let bearer = bearer.unwrap_or_else(|| {
            let chosen = self.choose(mobile);
            // Until the probes of its mobile have answers, a flow that can change its bearer does.
            if handling == Handling::Stays || self.has_measured(mobile) {
                self.flows[flow].bearer = Some(chosen);
                self.mobiles[mobile][chosen as usize].flows += 1;
            }
            chosen
        });
        self.user(mobile, bearer)
    }

    /// The interface in whose name an end of a flow acts, whichever carries its packets.
    pub fn owner(&self, flow: usize, user: UserId) -> UserId {
        let Steered { mobile, handling, .. } = self.flows[flow];
        if handling == Handling::Fixed { user } else { self.user(mobile, Which::First) }
    }

    /// The interface whose address the packets of a flow have that `user` carries.
    pub fn addressed(&self, flow: usize, user: UserId) -> UserId {
        if self.flows[flow].handling == Handling::Steered { self.owner(flow, user) } else { user }
    }

    /// The interface of a mobile on a bearer.
    fn user(&self, mobile: usize, bearer: Which) -> UserId {
        UserId::new((bearer as usize * self.mobiles.len() + mobile) as u32)
    }

    /// Whether probes have measured what the choice depends on.
    fn has_measured(&self, mobile: usize) -> bool {
        let is_known = |measured: &Measured| measured.is_unavailable || measured.round_trip.is_some();
        let measured = &self.mobiles[mobile];
        match self.config.mode {
            Mode::ActiveStandby | Mode::LoadBalancing => true,
            Mode::SmallestDelay => measured.iter().all(is_known),
            Mode::PriorityBased => is_known(&measured[self.config.preferred() as usize]),
        }
    }

    /// The bearer of a new flow.
    fn choose(&self, mobile: usize) -> Which {
        let [first, second] = self.mobiles[mobile];
        let preferred = self.config.preferred();
        match (first.is_unavailable, second.is_unavailable) {
            (false, true) => return Which::First,
            (true, false) => return Which::Second,
            (true, true) | (false, false) => {}
        }
        match self.config.mode {
            Mode::ActiveStandby => preferred,
            Mode::SmallestDelay => match (first.round_trip, second.round_trip) {
                (Some(first), Some(second)) if second < first => Which::Second,
                (None, Some(_)) => Which::Second,
                _ => Which::First,
            },
            Mode::LoadBalancing => {
                let (first, second) = (f64::from(first.flows), f64::from(second.flows));
                let wanted = self.config.share.unwrap_or(0.5) * (first + second + 1.0);
                if first < wanted { Which::First } else { Which::Second }
            }
            Mode::PriorityBased => {
                let measured = if preferred == Which::First { first } else { second };
                let is_congested = measured.round_trip.is_some_and(|span| Some(span) > self.config.max_round_trip);
                if is_congested { other(preferred) } else { preferred }
            }
        }
    }

    /// Takes note of a measurement on the interface `user`: the round trip of a probe, or `None` if
    /// none was answered in time. Returns the flows whose ends have to migrate.
    pub fn measured(&mut self, user: UserId, round_trip: Option<Span>) -> Vec<FlowId> {
        let mobiles = self.mobiles.len();
        let (mobile, bearer) = (user.index() % mobiles, user.index() / mobiles);
        let measured = &mut self.mobiles[mobile][bearer];
        if let Some(sample) = round_trip {
            // Smoothed as in RFC 6298 §2.3.
            let smoothed = measured.round_trip.map_or(sample, |smoothed| smoothed / 8 * 7 + sample / 8);
            measured.round_trip = Some(smoothed);
        }
        let was_unavailable = std::mem::replace(&mut measured.is_unavailable, round_trip.is_none());
        if was_unavailable == round_trip.is_none() {
            return Vec::new();
        }
        let [first, second] = self.mobiles[mobile];
        let available = |bearer| match bearer {
            Which::First => !first.is_unavailable,
            Which::Second => !second.is_unavailable,
        };
        let (mode, preferred) = (self.config.mode, self.config.preferred());
        let mut migrating = Vec::new();
        for (flow, index) in self.flows.iter_mut().zip(0..) {
            let Some(bearer) = &mut flow.bearer else { continue };
            if flow.mobile != mobile || flow.handling == Handling::Stays {
                continue;
            }
            let before = *bearer;
            if mode == Mode::ActiveStandby && available(preferred) {
                *bearer = preferred;
            } else if !available(before) && available(other(before)) {
                *bearer = other(before);
            }
            if *bearer != before {
                self.mobiles[mobile][before as usize].flows -= 1;
                self.mobiles[mobile][*bearer as usize].flows += 1;
                if flow.handling == Handling::Migrates {
                    migrating.push(FlowId(index));
                }
            }
        }
        migrating
    }
}

/// What the probes on one bearer have not measured yet.
#[derive(Clone, Copy, Debug)]
pub struct Monitor {
    timeout: Span,
    /// The first probe since the last answer.
    unanswered: Option<Instant>,
}

impl Monitor {
    /// A monitor before the first probe.
    pub const fn new(config: &SteeringConfig) -> Self {
        Self { timeout: config.probe_timeout, unanswered: None }
    }

    /// A probe is sent. Returns whether the bearer is unavailable.
    pub fn send(&mut self, now: Instant) -> bool {
        now >= *self.unanswered.get_or_insert(now) + self.timeout
    }

    /// A probe is answered.
    pub const fn answer(&mut self) {
        self.unanswered = None;
    }
}

const fn other(bearer: Which) -> Which {
    match bearer {
        Which::First => Which::Second,
        Which::Second => Which::First,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: UserId = UserId::new(0);
    const SECOND: UserId = UserId::new(1);
    const MS: Span = Span::from_millis(1);

    fn steering(json: &str, flows: usize) -> Steering {
        let config = serde_json::from_str(json).expect("a table");
        Steering::new(config, 1, std::iter::repeat_n((FIRST, true, true), flows))
    }

    fn chosen(steering: &mut Steering, flows: usize) -> Vec<u32> {
        (0..flows).map(|flow| steering.interface(flow, FIRST).number()).collect()
    }

    #[test]
    fn active_standby_switches_and_returns() {
        let mut steering = steering(r#"{ "mode": "active-standby", "preferred": "second" }"#, 2);
        assert_eq!(chosen(&mut steering, 1), [1]);
        assert!(steering.measured(SECOND, None).is_empty(), "with one address nothing migrates");
        assert_eq!(chosen(&mut steering, 2), [0, 0]);
        steering.measured(SECOND, Some(MS * 90));
        assert_eq!(chosen(&mut steering, 2), [1, 1]);
    }

    #[test]
    fn flows_with_two_addresses_migrate_once_they_have_begun() {
        let mut steering = steering(r#"{ "mode": "active-standby", "addresses": "two" }"#, 2);
        assert_eq!(chosen(&mut steering, 1), [0]);
        assert_eq!(steering.measured(FIRST, None), [FlowId(0)]);
        assert_eq!(chosen(&mut steering, 2), [1, 1]);
        assert_eq!(steering.measured(FIRST, Some(MS)), [FlowId(0), FlowId(1)]);
    }

    #[test]
    fn the_smaller_delay_is_that_of_the_probes() {
        let mut steering = steering(r#"{ "mode": "smallest-delay" }"#, 3);
        steering.measured(FIRST, Some(MS * 50));
        steering.measured(SECOND, Some(MS * 20));
        assert_eq!(chosen(&mut steering, 1), [1]);
        (0..20).for_each(|_| drop(steering.measured(SECOND, Some(MS * 90))));
        assert_eq!(chosen(&mut steering, 2), [1, 0], "a flow stays on its bearer");
        steering.measured(SECOND, None);
        assert_eq!(chosen(&mut steering, 3), [0, 0, 0]);
    }

    #[test]
    fn load_balancing_divides_the_flows() {
        let mut even = steering(r#"{ "mode": "load-balancing" }"#, 4);
        assert_eq!(chosen(&mut even, 4), [0, 1, 0, 1]);
        let mut third = steering(r#"{ "mode": "load-balancing", "share": 0.25 }"#, 8);
        assert_eq!(chosen(&mut third, 8).iter().sum::<u32>(), 6);
    }

    #[test]
    fn the_preferred_bearer_is_left_when_it_is_congested() {
        let mut steering = steering(r#"{ "mode": "priority-based", "max_round_trip": "100 ms" }"#, 2);
        steering.measured(FIRST, Some(MS * 60));
        assert_eq!(chosen(&mut steering, 1), [0]);
        (0..20).for_each(|_| drop(steering.measured(FIRST, Some(MS * 300))));
        assert_eq!(chosen(&mut steering, 2), [0, 1]);
    }
}
