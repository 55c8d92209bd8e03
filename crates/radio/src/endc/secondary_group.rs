//! The secondary cell group of one mobile: measured, added and released (TS 37.340 §10.2, §10.3).
//!
//! Nothing is stepped while the radio is constant: the group then waits for a command.

use airpath_core::{Instant, Span};

use super::config::{Addition, Release};
use crate::ofdma::config::RandomAccess;

/// The times of the procedures.
#[derive(Clone, Debug)]
pub struct Parameters {
    pub addition: Addition,
    pub release: Release,
    pub random_access: RandomAccess,
}

/// The group of one mobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondaryGroup {
    /// There is no connection to add it to.
    Absent,
    /// The mobile measures NR.
    Measured {
        /// The next measurement. `None`: nothing changes without a command.
        next: Option<Instant>,
        /// Since when the threshold is reached.
        good_since: Option<Instant>,
    },
    /// It was reported, and is there from `until` on.
    Added { until: Instant },
    /// It is there.
    Active {
        /// The next measurement. `None`: nothing changes without a command.
        next: Option<Instant>,
        /// Since when the signal is too weak.
        weak_since: Option<Instant>,
    },
}

impl SecondaryGroup {
    /// Whether it carries packets.
    pub const fn is_active(&self) -> bool {
        matches!(self, Self::Active { .. })
    }

    /// When it is measured, or there.
    pub const fn next_event(&self) -> Option<Instant> {
        match self {
            Self::Absent => None,
            Self::Measured { next, .. } | Self::Active { next, .. } => *next,
            Self::Added { until } => Some(*until),
        }
    }

    /// A connection of LTE is there from `now` on.
    pub fn configure(&mut self, now: Instant, parameters: &Parameters) {
        *self = Self::Measured { next: Some(now + parameters.addition.measurement), good_since: None };
    }

    /// The group was released, and NR is still measured.
    pub fn fail(&mut self, now: Instant, parameters: &Parameters) {
        *self = Self::Measured { next: Some(now + parameters.addition.measurement_period), good_since: None };
    }

    /// The radio has changed by command.
    pub fn measure_again(&mut self, now: Instant, parameters: &Parameters) {
        if let Self::Measured { next: next @ None, .. } | Self::Active { next: next @ None, .. } = self {
            *next = Some(now + parameters.addition.measurement_period);
        }
    }

    /// NR was measured at `now`: its filtered SINR in decibels, where there is coverage. Returns
    /// whether the radio link has failed.
    pub fn measured(&mut self, now: Instant, sinr: Option<f64>, is_constant: bool, parameters: &Parameters) -> bool {
        let Parameters { addition, release, random_access } = parameters;
        let reaches = |threshold: f64| sinr.is_some_and(|sinr| sinr >= threshold);
        let later = now + addition.measurement_period;
        match self {
            Self::Measured { next, good_since } => {
                let is_good = reaches(addition.threshold.get());
                *good_since = is_good.then(|| good_since.unwrap_or(now));
                *next = (is_good || !is_constant).then_some(later);
                if good_since.is_some_and(|since| now.since(since) >= addition.time_to_trigger) {
                    let configured = now + addition.preparation + addition.reconfiguration;
                    *self = Self::Added { until: after_random_access(configured, random_access) };
                }
            }
            Self::Active { next, weak_since } => {
                let is_weak = !reaches(release.threshold.get());
                *weak_since = is_weak.then(|| weak_since.unwrap_or(now));
                *next = (is_weak || !is_constant).then_some(later);
                return weak_since.is_some_and(|since| now.since(since) >= release.t310);
            }
            Self::Absent | Self::Added { .. } => {}
        }
        false
    }

    /// The addition has ended: the group is there.
    pub fn activate(&mut self, now: Instant, parameters: &Parameters) {
        *self = Self::Active { next: Some(now + parameters.addition.measurement_period), weak_since: None };
    }
}

/// When random access has ended that begins at the first occasion from `from` on (TS 38.321 §5.1).
fn after_random_access(from: Instant, random_access: &RandomAccess) -> Instant {
    let RandomAccess { period, message } = random_access;
    let occasions = from.as_nanos().div_ceil(period.as_nanos());
    Instant::ZERO + Span::from_nanos(occasions * period.as_nanos()) + *message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        let addition = "measurement = \"100 ms\"\nmeasurement_period = \"40 ms\"\nthreshold = \"0 dB\"\n\
                        time_to_trigger = \"40 ms\"\npreparation = \"20 ms\"\nreconfiguration = \"16 ms\"";
        Parameters {
            addition: toml::from_str(addition).expect("an addition"),
            release: toml::from_str("threshold = \"-6 dB\"\nt310 = \"100 ms\"").expect("a release"),
            random_access: toml::from_str("period = \"10 ms\"\nmessage = \"8 ms\"").expect("random access"),
        }
    }

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(Span::from_millis(millis).as_nanos())
    }

    /// The group after measurements of this SINR at each of its times up to `end`, and when it has
    /// failed.
    fn after(mut group: SecondaryGroup, sinr: f64, end: Instant) -> (SecondaryGroup, Option<Instant>) {
        while let Some(now) = group.next_event().filter(|next| *next <= end) {
            if let SecondaryGroup::Added { .. } = group {
                break;
            }
            if group.measured(now, Some(sinr), false, &parameters()) {
                return (group, Some(now));
            }
        }
        (group, None)
    }

    #[test]
    fn a_good_cell_is_added_after_trigger_preparation_reconfiguration_and_random_access() {
        let mut group = SecondaryGroup::Absent;
        assert_eq!(group.next_event(), None);
        group.configure(at(1000), &parameters());
        let (group, _) = after(group, 3.0, at(5000));
        // Measured at 1100 and 1140 ms; ready at 1176; a preamble at 1180.
        assert_eq!(group, SecondaryGroup::Added { until: at(1188) });
    }

    #[test]
    fn a_weak_cell_is_not_added_and_an_active_one_fails_after_t310() {
        let mut group = SecondaryGroup::Absent;
        group.configure(at(0), &parameters());
        let (mut group, _) = after(group, -1.0, at(500));
        assert_eq!(group.next_event(), Some(at(540)));
        group.activate(at(540), &parameters());
        let (group, failed) = after(group, -1.0, at(1000));
        assert_eq!((group.is_active(), failed), (true, None));
        // Weak from 1020 ms on; measured each 40 ms.
        assert_eq!(after(group, -7.0, at(2000)).1, Some(at(1140)));
    }

    #[test]
    fn a_constant_radio_is_not_measured_again_without_a_command() {
        let mut group = SecondaryGroup::Absent;
        group.activate(at(0), &parameters());
        assert!(!group.measured(at(40), Some(3.0), true, &parameters()));
        assert_eq!(group.next_event(), None);
        group.measure_again(at(70), &parameters());
        assert_eq!(group.next_event(), Some(at(110)));
    }
}
