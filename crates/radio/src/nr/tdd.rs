//! TDD patterns of NR (`TDD-UL-DL-Pattern` of TS 38.331, rule in TS 38.213 §11.1).

use std::sync::LazyLock;

use airpath_core::Span;

use super::tables::Numerology;
use crate::common::csv::{rows, value};
use crate::common::slots::{SYMBOLS, Slot, SlotError, SlotPattern};

/// Downlink symbols from which on a special slot carries PDSCH: two of PDCCH and the least three of
/// PDSCH (TS 38.214 Table 5.1.2.1-1, mapping type A).
pub const LEAST_DOWNLINK: u8 = 5;

/// One period of a pattern: downlink from its begin, uplink to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// `dl-UL-TransmissionPeriodicity`.
    pub duration: Span,
    /// `nrofDownlinkSlots`.
    pub downlink_slots: u32,
    /// `nrofDownlinkSymbols`, at the begin of the slot after the downlink slots.
    pub downlink_symbols: u8,
    /// `nrofUplinkSlots`.
    pub uplink_slots: u32,
    /// `nrofUplinkSymbols`, at the end of the slot before the uplink slots.
    pub uplink_symbols: u8,
}

/// Why periods are not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Not a whole number of slots.
    #[error("a period of {duration} is not a whole number of slots of {slot}")]
    Periodicity {
        /// The period.
        duration: Span,
        /// The slot.
        slot: Span,
    },
    /// Too many slots.
    #[error("the downlink and uplink slots are more than the {slots} slots of the period")]
    Overfull {
        /// The slots of the period.
        slots: u64,
    },
    /// In the slots themselves.
    #[error(transparent)]
    Slots(#[from] SlotError),
}

/// The slots of one or two periods that follow each other. A special slot carries downlink data
/// from [`LEAST_DOWNLINK`] symbols on.
///
/// # Errors
/// If a period is not a whole number of slots, its slots do not fit into it, or none of all slots
/// carries downlink or uplink data.
pub fn pattern(numerology: Numerology, periods: &[Period]) -> Result<SlotPattern, PatternError> {
    let slot = numerology.slot();
    let mut all = Vec::new();
    for period in periods {
        let slots = period.duration.as_nanos() / slot.as_nanos();
        if period.duration != slot * slots || slots > 160 {
            return Err(PatternError::Periodicity { duration: period.duration, slot });
        }
        let (down, up) = (u64::from(period.downlink_slots), u64::from(period.uplink_slots));
        let partial = |symbols: u8| u64::from(symbols > 0);
        let (down_end, up_begin) = (down + partial(period.downlink_symbols), up + partial(period.uplink_symbols));
        if down_end + up > slots || down + up_begin > slots {
            return Err(PatternError::Overfull { slots });
        }
        let of = |index: u64| {
            if index < down {
                return Slot::DOWNLINK;
            }
            if index >= slots - up {
                return Slot::UPLINK;
            }
            Slot {
                downlink: if index == down { period.downlink_symbols } else { 0 },
                uplink: if index + 1 == slots - up { period.uplink_symbols } else { 0 },
            }
        };
        all.extend((0..slots).map(of));
    }
    Ok(SlotPattern::tdd(slot, all, LEAST_DOWNLINK)?)
}

/// A pattern of a network or of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its slots as letters.
    pub name: &'static str,
    /// Its numerology.
    pub numerology: Numerology,
    /// Its one or two periods.
    pub periods: Vec<Period>,
}

/// The pattern with this name, such as `DDDSU`; [`all_named`] lists all.
pub fn named(name: &str) -> Option<&'static Named> {
    NAMED.iter().find(|each| each.name == name)
}

/// The patterns that were seen in networks and programs.
pub fn all_named() -> &'static [Named] {
    &NAMED
}

static NAMED: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let row = |[name, spacing, first @ .., d2, s2, ds2, u2, us2, _]: [&'static str; 13]| {
        let numerology = Numerology::of_spacing(value(&format!("{spacing} kHz"))).expect("a numerology");
        let [period, down, down_symbols, up, up_symbols] = first;
        let read = |[period, down, down_symbols, up, up_symbols]: [&str; 5]| Period {
            duration: value(&format!("{period} ms")),
            downlink_slots: value(down),
            downlink_symbols: value(down_symbols),
            uplink_slots: value(up),
            uplink_symbols: value(up_symbols),
        };
        let mut periods = vec![read([period, down, down_symbols, up, up_symbols])];
        if !d2.is_empty() {
            periods.push(read([d2, s2, ds2, u2, us2]));
        }
        Named { name, numerology, periods }
    };
    rows(include_str!("../../data/3gpp/nr_tdd.csv")).map(row).collect()
});

impl Named {
    /// Its slots.
    pub fn pattern(&self) -> SlotPattern {
        pattern(self.numerology, &self.periods).expect("the shipped patterns are sound")
    }
}

/// The slots of a pattern as letters: D, U, S for both directions, F for neither.
pub fn letters(pattern: &SlotPattern) -> String {
    let letter = |slot| match pattern.symbols(slot) {
        Slot { downlink: SYMBOLS, .. } => 'D',
        Slot { uplink: SYMBOLS, .. } => 'U',
        Slot { downlink: 0, uplink: 0 } => 'F',
        _ => 'S',
    };
    (0..pattern.period()).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_patterns_have_the_slots_of_their_names() {
        for each in all_named() {
            let expected = match each.name {
                // The name has the frequency range, and its U symbols are in the S slot.
                "DDDS-FR2" => continue,
                name => name,
            };
            assert_eq!(letters(&each.pattern()), expected);
        }
        assert_eq!(all_named().len(), 7);
        assert!(named("DSUUU").is_none());
    }

    #[test]
    fn the_usual_patterns_share_symbols_alike() {
        for name in ["DDDSU", "DDDDDDDSUU"] {
            let pattern = named(name).expect("a pattern").pattern();
            assert!((pattern.downlink_share() - 0.743).abs() < 0.001, "{name}");
            assert!((pattern.uplink_share() - 0.229).abs() < 0.001, "{name}");
        }
    }

    #[test]
    fn patterns_that_cannot_be_are_refused() {
        let mu = Numerology::new(1).expect("a numerology");
        let period = |millis: &str, downlink_slots, uplink_slots, downlink_symbols, uplink_symbols| Period {
            duration: millis.parse().expect("a span"),
            downlink_slots,
            downlink_symbols,
            uplink_slots,
            uplink_symbols,
        };
        let error = |period| pattern(mu, &[period]).expect_err("refused").to_string();
        assert!(error(period("2.3 ms", 3, 1, 0, 0)).contains("not a whole number of slots of 500 us"));
        assert!(error(period("2.5 ms", 3, 2, 10, 0)).contains("more than the 5 slots"));
        assert!(error(period("2.5 ms", 5, 0, 0, 0)).contains("no slot is a U slot"));
        assert!(error(period("2.5 ms", 0, 4, 4, 0)).contains("5 downlink symbols"));
        assert!(error(period("2.5 ms", 3, 1, 10, 6)).contains("at most 14"));
    }
}
