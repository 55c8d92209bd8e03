//! When an idle mobile can be paged (TS 36.304 §7): in its paging occasions, with extended DRX only
//! in those of a time window, and in the power saving mode not at all until it updates its tracking
//! area (TS 23.682 §4.5.4).
//!
//! Nothing is stepped: the next time follows from when the mobile has become idle.

use airpath_core::{Instant, RandomStream, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ValueError, range};

/// Power saving of an idle mobile, beyond its paging cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerSaving {
    /// Extended DRX. Without it, the mobile listens in each paging cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edrx: Option<ExtendedDrx>,
    /// The power saving mode. Without it, an idle mobile can always be paged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psm: Option<PowerSavingMode>,
}

/// Extended DRX of an idle mobile (TS 36.304 §7.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendedDrx {
    /// The cycle (TS 24.008 §10.5.5.32): of LTE and LTE-M 5.12 s to 2621.44 s, that is 44 minutes,
    /// of NB-IoT 20.48 s to 10485.76 s, that is 2.9 hours.
    pub cycle: Span,
    /// The paging time window at the begin of each cycle.
    pub window: Span,
}

/// The power saving mode (TS 24.301 §5.3.11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerSavingMode {
    /// T3324: for how long an idle mobile can be paged after its connection. Then it listens to
    /// nothing.
    pub active: Span,
    /// T3412: after what time without a connection the mobile updates its tracking area, and what
    /// waits for it is sent.
    pub update: Span,
}

/// The extended DRX cycles of a technology (TS 24.008 Table 10.5.5.32).
pub(crate) struct ExtendedCycles {
    /// In units of 5.12 s.
    units: &'static [u64],
    expected: &'static str,
    /// The paging time window has 1 to 16 times this.
    window_unit: Span,
    expected_window: &'static str,
}

impl ExtendedCycles {
    /// Of LTE and LTE-M (mode WB-S1).
    pub const WIDEBAND: Self = Self {
        units: &[1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 64, 128, 256, 512],
        expected: "5.12, 10.24, 20.48, 40.96, 61.44, 81.92, 102.4, 122.88, 143.36, 163.84, 327.68, 655.36, 1310.72 or \
                   2621.44 s (TS 24.008 §10.5.5.32)",
        window_unit: Span::from_millis(1280),
        expected_window: "1.28 to 20.48 s in steps of 1.28 s (TS 24.008 §10.5.5.32)",
    };
    /// Of NB-IoT (mode NB-S1).
    pub const NARROWBAND: Self = Self {
        units: &[4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048],
        expected: "20.48, 40.96, 81.92, 163.84, 327.68, 655.36, 1310.72, 2621.44, 5242.88 or 10485.76 s \
                   (TS 24.008 §10.5.5.32)",
        window_unit: Span::from_millis(2560),
        expected_window: "2.56 to 40.96 s in steps of 2.56 s (TS 24.008 §10.5.5.32)",
    };

    fn has(&self, cycle: Span) -> bool {
        self.units.iter().any(|units| Span::from_millis(units * 5120) == cycle)
    }

    fn has_window(&self, window: Span) -> bool {
        has_value(window, &[self.window_unit], 16)
    }
}

/// Whether a timer has a value of 1 to `most` times one of its units.
fn has_value(timer: Span, units: &[Span], most: u64) -> bool {
    units.iter().any(|unit| {
        let (timer, unit) = (timer.as_nanos(), unit.as_nanos());
        timer.is_multiple_of(unit) && (1..=most).contains(&(timer / unit))
    })
}

/// The units of GPRS timer 2 (TS 24.008 §10.5.7.4).
const ACTIVE_UNITS: [Span; 3] = [Span::from_secs(2), Span::from_secs(60), Span::from_secs(360)];
/// The units of GPRS timer 3 (TS 24.008 §10.5.7.4a).
const UPDATE_UNITS: [Span; 7] = [
    Span::from_secs(2),
    Span::from_secs(30),
    Span::from_secs(60),
    Span::from_secs(600),
    Span::from_secs(3600),
    Span::from_secs(36_000),
    Span::from_secs(320 * 3600),
];
/// The longest time of either in its unit.
const LONGEST: u64 = 31;

impl PowerSaving {
    /// Refuses what makes no sense beside a paging cycle, or is no cycle of the technology.
    pub(crate) fn check(&self, paging: Span, cycles: &ExtendedCycles) -> Result<(), ValueError> {
        if let Some(ExtendedDrx { cycle, window }) = &self.edrx {
            let table = "rrc.power_saving.edrx";
            if !cycles.has(*cycle) {
                return Err(range(table, "cycle", cycles.expected));
            }
            if *window < paging || window > cycle {
                let expected = "at least `rrc.paging` and at most `cycle`: the mobile is paged once in a window or \
                                more (TS 36.304 §7.3)";
                return Err(range(table, "window", expected));
            }
            if !cycles.has_window(*window) {
                return Err(range(table, "window", cycles.expected_window));
            }
        }
        if let Some(PowerSavingMode { active, update }) = &self.psm {
            let table = "rrc.power_saving.psm";
            if !active.is_zero() && !has_value(*active, &ACTIVE_UNITS, LONGEST) {
                let expected = "0 s, or 1 to 31 times 2 s, 1 min or 6 min (T3324, TS 24.008 §10.5.7.4)";
                return Err(range(table, "active", expected));
            }
            if !has_value(*update, &UPDATE_UNITS, LONGEST) {
                let expected = "1 to 31 times 2 s, 30 s, 1 min, 10 min, 1 h, 10 h or 320 h (T3412, TS 24.008 \
                                §10.5.7.4a)";
                return Err(range(table, "update", expected));
            }
            if update <= active {
                let expected = "longer than `active`: otherwise the mobile never sleeps (TS 24.301 §5.3.11)";
                return Err(range(table, "update", expected));
            }
        }
        Ok(())
    }
}

/// When one idle mobile can be paged.
#[derive(Clone, Debug)]
pub struct Paging {
    cycle: Span,
    /// Where in the paging cycle its occasion is, and in the extended cycle its window.
    offset: Span,
    edrx_offset: Span,
    power_saving: PowerSaving,
    /// How long before the run it had become idle.
    idle_before: Span,
}

impl Paging {
    /// With its occasion `offset` after multiples of the cycle.
    pub fn new(cycle: Span, offset: Span, power_saving: Option<&PowerSaving>, stream: &mut RandomStream) -> Self {
        let mut drawn = |span: Span| Span::from_nanos(stream.below(span.as_nanos().max(1)));
        let power_saving = power_saving.cloned().unwrap_or_default();
        let edrx_offset = power_saving.edrx.as_ref().map_or(Span::ZERO, |edrx| drawn(edrx.cycle));
        let idle_before = power_saving.psm.as_ref().map_or(Span::ZERO, |psm| drawn(psm.update));
        Self { cycle, offset, edrx_offset, power_saving, idle_before }
    }

    /// The first time after `now` at which a mobile that is idle since then can be reached: by
    /// paging, or because it updates its tracking area. `None`: it was idle before the run.
    /// `update_takes` is how long it is connected for an update.
    pub fn next(&self, now: Instant, since: Option<Instant>, update_takes: Span) -> Instant {
        let occasion = self.occasion(now);
        let Some(psm) = &self.power_saving.psm else { return occasion };
        let period = (psm.update + update_takes).as_nanos();
        let idle_for = match since {
            Some(since) => now.since(since),
            None => now.since(Instant::ZERO) + self.idle_before,
        };
        let phase = idle_for.as_nanos() % period;
        let waits = occasion.since(now).as_nanos();
        if phase + waits < psm.active.as_nanos() {
            return occasion;
        }
        // In the connection of an update, the mobile gets what comes at once.
        now + Span::from_nanos(psm.update.as_nanos().saturating_sub(phase))
    }

    /// The first paging occasion after `now`.
    fn occasion(&self, now: Instant) -> Instant {
        let after = |from: Instant, cycle: Span, offset: Span| {
            let cycle = cycle.as_nanos();
            let phase = (from.as_nanos() + cycle - offset.as_nanos() % cycle) % cycle;
            from + Span::from_nanos(cycle - phase)
        };
        let Some(ExtendedDrx { cycle, window }) = &self.power_saving.edrx else {
            return after(now, self.cycle, self.offset);
        };
        // Windows begin after multiples of the extended cycle, occasions in them after multiples of
        // the paging cycle.
        let next_window = after(now, *cycle, self.edrx_offset);
        let in_this = next_window.as_nanos().checked_sub(cycle.as_nanos()).and_then(|begin| {
            let begin = Instant::from_nanos(begin);
            let at = begin + self.offset;
            let at =
                if at > now { at } else { at + self.cycle * (now.since(at).as_nanos() / self.cycle.as_nanos() + 1) };
            (at < begin + *window).then_some(at)
        });
        in_this.unwrap_or(next_window + self.offset)
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Span::from_secs_f64(seconds)
    }

    fn paging(text: &str) -> Paging {
        let power_saving: PowerSaving = toml::from_str(text).expect("power saving");
        power_saving.check(Span::from_millis(1280), &ExtendedCycles::NARROWBAND).expect("sound");
        let mut stream = Seed::new(1).stream("offsets");
        let mut paging = Paging::new(Span::from_millis(1280), Span::from_millis(40), Some(&power_saving), &mut stream);
        (paging.edrx_offset, paging.idle_before) = (Span::from_secs(5), Span::ZERO);
        paging
    }

    #[test]
    fn with_extended_drx_a_mobile_is_paged_in_its_window_only() {
        let paging = paging("edrx = { cycle = \"20.48 s\", window = \"2.56 s\" }");
        let next = |seconds| paging.next(at(seconds), None, Span::ZERO);
        assert_eq!([0.0, 5.0, 5.039].map(next), [at(5.04); 3]);
        assert_eq!([5.04, 6.0].map(next), [at(6.32); 2]);
        assert_eq!([6.32, 7.0, 25.0].map(next), [at(25.52); 3]);
    }

    #[test]
    fn in_the_power_saving_mode_a_mobile_is_reached_when_it_updates() {
        let paging = paging("psm = { active = \"10 s\", update = \"1 h\" }");
        let since = Some(at(100.0));
        let next = |seconds| paging.next(at(seconds), since, Span::from_secs(2));
        // Occasions at 40 ms after multiples of 1.28 s.
        assert_eq!(next(100.0), at(101.16));
        assert_eq!(next(105.0), at(106.28));
        assert_eq!(next(109.9), at(3700.0), "the next occasion is after T3324");
        assert_eq!(next(3699.0), at(3700.0));
        assert_eq!(next(3701.0), at(3701.0), "it is connected");
        assert_eq!(next(3702.0), at(3703.08), "it can be paged again");
        assert_eq!(next(3720.0), at(7302.0));
    }

    #[test]
    fn power_saving_that_contradicts_itself_is_refused() {
        let cases = [
            ("edrx = { cycle = \"1 s\", window = \"2 s\" }", "rrc.power_saving.edrx.cycle"),
            ("edrx = { cycle = \"20.48 s\", window = \"1 s\" }", "rrc.power_saving.edrx.window"),
            ("edrx = { cycle = \"20.48 s\", window = \"30 s\" }", "rrc.power_saving.edrx.window"),
            ("psm = { active = \"10 s\", update = \"10 s\" }", "rrc.power_saving.psm.update"),
            ("psm = { active = \"4 h\", update = \"10 h\" }", "rrc.power_saving.psm.active"),
            ("psm = { active = \"1 h\", update = \"8001 h\" }", "rrc.power_saving.psm.update"),
        ];
        for (text, key) in cases {
            let power_saving: PowerSaving = toml::from_str(text).expect("power saving");
            let check = |cycles| power_saving.check(Span::from_millis(1280), cycles);
            let error = check(&ExtendedCycles::WIDEBAND).expect_err(text);
            assert_eq!(crate::ModelError::field(&error), key);
        }
    }

    #[test]
    fn each_technology_has_its_own_extended_cycles() {
        let edrx = |cycle: &str| -> PowerSaving {
            toml::from_str(&format!("edrx = {{ cycle = \"{cycle}\", window = \"2.56 s\" }}")).expect("power saving")
        };
        for (cycle, wideband, narrowband) in
            [("5.12 s", true, false), ("61.44 s", true, false), ("20.48 s", true, true), ("10485.76 s", false, true)]
        {
            let is_there = |cycles| edrx(cycle).check(Span::from_millis(1280), cycles).is_ok();
            let found = (is_there(&ExtendedCycles::WIDEBAND), is_there(&ExtendedCycles::NARROWBAND));
            assert_eq!(found, (wideband, narrowband), "{cycle}");
        }
    }
}
