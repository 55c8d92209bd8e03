//! Checks of the parameters: what the standard does not have, and what contradicts itself.

use airpath_core::Span;

use super::{Acknowledged, Cell, Config, Inactive, Rlc, Rrc, Tdd, Unacknowledged};
use crate::common::slots::{Occasions, Offsets, SYMBOLS, SlotPattern, Timeline};
use crate::enumeration::Enumeration;
use crate::error::{ValueError, above_zero, at_most, between, range, within_an_hour};
use crate::nr::tables::{self, Numerology, ProcessingCapability, Range};
use crate::nr::tdd::{self, Period};
use crate::ofdma::ConfigError;
use crate::ofdma::config::{
    Background, Duplex, RlcTimers, UplinkModulation, Values, carriers, milliseconds, outer_loop, pdcp,
};

impl Config {
    /// The timeline of the cell, if all makes sense.
    pub(in crate::nr) fn check(&self) -> Result<Timeline, ConfigError> {
        let (numerology, timeline) = self.cell.check()?;
        carriers(self.cell.carriers, MAX_CARRIERS, self.mobile.duplex)?;
        self.mobile.check((4, "layers of a code word, TS 38.211 §7.3.1.3"), self.cell.tdd.is_some())?;
        check_reports(self.mobile.cqi_period, numerology)?;
        self.check_processing(numerology)?;
        PROCESSES.check(self.harq.processes.into(), "harq", "processes")?;
        self.harq.check()?;
        let modulations = [UplinkModulation::Qam64, UplinkModulation::Qam256];
        self.uplink.check(modulations, "64qam or 256qam (TS 38.306 §4.2.7.10)", &Values::NR)?;
        check_requests(self.uplink.sr_period, numerology, timeline.pattern())?;
        self.check_configured_grant(numerology, timeline.pattern())?;
        check_rlc(&self.rlc)?;
        bits(self.pdcp.sequence_bits, [12, 18], "pdcp", "12 or 18 (TS 38.323 §6.2.2)")?;
        if let Rlc::Acknowledged(rlc) = &self.rlc
            && self.pdcp.sequence_bits < rlc.sequence_bits
        {
            let expected = "at least `rlc.sequence_bits`: at most half of the numbers may be in flight \
                            (TS 38.323 §5.2.1)";
            return Err(range("pdcp", "sequence_bits", expected).into());
        }
        self.check_reordering()?;
        if let Some(rrc) = &self.rrc {
            rrc.check()?;
        }
        if let Some(drx) = &self.drx {
            drx.check(self.rrc.as_ref().map(|rrc| rrc.inactivity), &Values::NR)?;
            let pattern = timeline.pattern();
            if drx.on < pattern.duration() * pattern.period() {
                let expected = "at least one TDD pattern long: otherwise the mobile may never listen in a D slot";
                return Err(range("drx", "on", expected).into());
            }
        }
        pdcp(self.pdcp.discard, self.pdcp.queue.as_ref(), self.drx.as_ref(), &Values::NR)?;
        self.conditions.refuse_soft_handover()?;
        self.conditions.refuse_fading()?;
        Ok(timeline)
    }

    /// Refuses a mobile that decodes a block after the feedback to it, which the last two symbols
    /// of a slot carry.
    fn check_processing(&self, numerology: Numerology) -> Result<(), ValueError> {
        let slot = numerology.slot();
        let feedback = slot * u64::from(self.cell.k1) - slot * 2 / u64::from(SYMBOLS);
        if self.mobile.processing <= feedback {
            return Ok(());
        }
        let expected = "at most the slots of `cell.k1` less two symbols: the feedback to a block goes then (TS 38.214 \
                        §5.3)";
        Err(range("mobile", "processing", expected))
    }

    /// Refuses a reordering timer of PDCP that the standard does not have, or that expires before
    /// the RLC has missed a packet.
    fn check_reordering(&self) -> Result<(), ValueError> {
        REORDERING.check_span(self.pdcp.t_reordering, "pdcp", "t_reordering")?;
        let (Rlc::Acknowledged(Acknowledged { t_reassembly, .. })
        | Rlc::Unacknowledged(Unacknowledged { t_reassembly, .. })) = &self.rlc;
        if self.pdcp.t_reordering < *t_reassembly {
            let expected = "at least `rlc.t_reassembly`: otherwise PDCP gives a packet up before the RLC has missed it \
                            (TS 38.322 §5.2.3.2.4, TS 38.323 §5.2.2.2)";
            return Err(range("pdcp", "t_reordering", expected));
        }
        Ok(())
    }

    /// Refuses configured grants that the standard does not have, or in slots without uplink.
    fn check_configured_grant(&self, numerology: Numerology, pattern: &SlotPattern) -> Result<(), ValueError> {
        let Some(grant) = &self.uplink.configured_grant else { return Ok(()) };
        let refused = |key, expected| Err(range("uplink.configured_grant", key, expected));
        if numerology.mu() == MILLIMETRE {
            let expected = "15 or 30 kHz with `uplink.configured_grant`: it is not modelled at 120 kHz";
            return Err(range("cell", "spacing", expected));
        }
        let slot = numerology.slot().as_nanos();
        let period = grant.period.as_nanos() / slot;
        let is_allowed = match numerology.mu() {
            0 => GRANT_PERIODS.contains(&period),
            _ => GRANT_PERIODS.contains(&period) || [256, 1280].contains(&period),
        };
        if !is_allowed || !grant.period.as_nanos().is_multiple_of(slot) {
            return refused(
                "period",
                match numerology.mu() {
                    0 => {
                        "1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320 or 640 slots of 1 ms (periodicity, \
                     TS 38.331 §6.3.2)"
                    }
                    _ => {
                        "1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 640 or 1280 slots of 0.5 ms \
                     (periodicity, TS 38.331 §6.3.2)"
                    }
                },
            );
        }
        if !Occasions::new(period, pattern.uplink_from(0)).fit(pattern) {
            return refused("period", "a multiple of the TDD pattern: other grants are not in U slots");
        }
        if let Some(offset) = grant.offset {
            let number = offset.as_nanos() / slot;
            let is_slot = offset.as_nanos().is_multiple_of(slot) && number < period;
            if !is_slot || !Occasions::new(period, number).fit(pattern) {
                return refused("offset", "whole slots to a U slot of the period (timeDomainOffset, TS 38.331 §6.3.2)");
            }
        }
        let most = if self.uplink.modulation == UplinkModulation::Qam256 { 27 } else { 28 };
        if grant.mcs > most {
            return refused("mcs", "0 to 28, with `uplink.modulation = \"256qam\"` to 27 (TS 38.214 §6.1.4.1)");
        }
        above_zero(grant.bytes.get() > 0, "uplink.configured_grant", "bytes")?;
        at_most(grant.bytes.get(), 9000, "uplink.configured_grant", "bytes")?;
        if self.mobile.duplex == Duplex::Half {
            let expected = "full with `uplink.configured_grant`: when a mobile with half duplex may use them is not \
                            modelled";
            return Err(range("mobile", "duplex", expected));
        }
        Ok(())
    }
}

/// nrofHARQ-ProcessesForPDSCH.
static PROCESSES: Enumeration =
    Enumeration::numbers(&[2, 4, 6, 8, 10, 12, 16], "nrofHARQ-ProcessesForPDSCH, TS 38.331 §6.3.2");
/// t-Reordering of PDCP.
static REORDERING: Enumeration = Enumeration::millis(
    &[0, 1, 2, 4, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 500, 750],
    "t-Reordering of PDCP-Config, TS 38.331 §6.3.2",
)
.and_runs(&[[100, 300, 20], [1000, 3000, 250]]);
/// t-Reassembly of the RLC.
static REASSEMBLY: Enumeration =
    Enumeration::millis(&[], "T-Reassembly, TS 38.331 §6.3.2").and_runs(&[[0, 100, 5], [110, 200, 10]]);

fn bits(bits: u8, allowed: [u8; 2], table: &str, expected: &'static str) -> Result<(), ValueError> {
    if allowed.contains(&bits) { Ok(()) } else { Err(range(table, "sequence_bits", expected)) }
}

/// The numerology of FR2 that bearers have: data at 60 kHz, which FR2 allows as well, are left out.
const MILLIMETRE: u8 = 3;

impl Cell {
    /// The resource blocks of the band, if the standard has the bandwidth and the spacing.
    pub(in crate::nr) fn resource_blocks(&self) -> Option<u32> {
        let is_millimetre = Numerology::of_spacing(self.spacing)?.mu() == MILLIMETRE;
        tables::resource_blocks(if is_millimetre { Range::Fr2 } else { Range::Fr1 }, self.bandwidth, self.spacing)
    }

    fn check(&self) -> Result<(Numerology, Timeline), ValueError> {
        let numerology =
            Numerology::of_spacing(self.spacing).filter(|numerology| [0, 1, MILLIMETRE].contains(&numerology.mu()));
        let Some(numerology) = numerology else {
            let expected = "15 or 30 kHz in FR1, or 120 kHz in FR2 (numerologies 0, 1 and 3 of TS 38.211 §4.2)";
            return Err(range("cell", "spacing", expected));
        };
        let Some(blocks) = self.resource_blocks() else {
            let expected = match numerology.mu() {
                0 => "5, 10, 15, 20, 25, 30, 35, 40, 45 or 50 MHz at 15 kHz (TS 38.101-1 Table 5.3.2-1)",
                MILLIMETRE => "50, 100, 200 or 400 MHz at 120 kHz (TS 38.101-2 Table 5.3.2-1)",
                _ => {
                    "5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90 or 100 MHz at 30 kHz \
                     (TS 38.101-1 Table 5.3.2-1)"
                }
            };
            return Err(range("cell", "bandwidth", expected));
        };
        at_most(self.pucch_blocks.into(), u64::from(blocks) - 1, "cell", "pucch_blocks")?;
        above_zero(self.users_per_slot > 0, "cell", "users_per_slot")?;
        let slot = numerology.slot();
        if !self.processing.as_nanos().is_multiple_of(slot.as_nanos()) || self.processing > slot * LONGEST_PROCESSING {
            let expected = match numerology.mu() {
                0 => "whole slots of 1 ms with `cell.spacing = \"15 kHz\"`, at most 31 (TS 38.211 §4.3.2)",
                1 => "whole slots of 0.5 ms with `cell.spacing = \"30 kHz\"`, at most 31 (TS 38.211 §4.3.2)",
                _ => "whole slots of 0.125 ms with `cell.spacing = \"120 kHz\"`, at most 31 (TS 38.211 §4.3.2)",
            };
            return Err(range("cell", "processing", expected));
        }
        outer_loop(self.target_bler, self.step, self.max_correction)?;
        self.background.as_ref().map_or(Ok(()), Background::check)?;
        within_an_hour(self.delay, "cell", "delay")?;
        let least = |slots: Option<u32>| slots.expect("every numerology has capability 1");
        let least_k1 = least(tables::least_feedback_slots(ProcessingCapability::One, numerology));
        let least_k2 = least(tables::least_uplink_slots(ProcessingCapability::One, numerology));
        let spacing = self.spacing;
        let clause = |clauses| format!("with `cell.spacing = \"{spacing}\"`, {clauses}");
        let k1 = [least_k1.into(), LONGEST_K1.into()];
        between(self.k1.into(), k1, "cell", "k1", clause("dl-DataToUL-ACK of TS 38.331 §6.3.2, TS 38.214 §5.3"))?;
        let k2 = [least_k2.into(), LONGEST_K2.into()];
        between(self.k2.into(), k2, "cell", "k2", clause("k2 of TS 38.331 §6.3.2, TS 38.214 §6.4"))?;
        let pattern = match &self.tdd {
            None if numerology.mu() == MILLIMETRE => {
                let expected = "a pattern at 120 kHz: all bands of FR2 are duplexed in time (TS 38.101-2 §5.2)";
                return Err(range("cell.tdd", "pattern", expected));
            }
            None => SlotPattern::fdd(slot),
            Some(tdd) => tdd.pattern(numerology)?,
        };
        // One more for the slot in which it was received.
        let processing = (self.processing.as_nanos() / slot.as_nanos()) as u32 + 1;
        let offsets = Offsets {
            assignment_to_data: 0,
            data_to_feedback: self.k1.into(),
            feedback_to_attempt: processing,
            grant_to_data: self.k2.into(),
            received_to_grant: processing,
        };
        let timeline = Timeline::new(pattern, offsets);
        check_answers(&timeline)?;
        Ok((numerology, timeline))
    }
}

/// A choice: more than any base station takes.
const LONGEST_PROCESSING: u64 = 31;
/// The largest dl-DataToUL-ACK and k2 (TS 38.331 §6.3.2).
const LONGEST_K1: u32 = 15;
const LONGEST_K2: u32 = 32;
/// Carriers of a mobile at most.
const MAX_CARRIERS: (u8, &str) = (16, "1 to 16 (TS 38.300 §5.4.1)");

/// Refuses a period of channel reports that the standard does not have.
fn check_reports(period: Span, numerology: Numerology) -> Result<(), ValueError> {
    let slot = numerology.slot().as_nanos();
    let slots = period.as_nanos() / slot;
    if period.as_nanos().is_multiple_of(slot) && [4, 5, 8, 10, 16, 20, 40, 80, 160, 320].contains(&slots) {
        return Ok(());
    }
    let expected = match numerology.mu() {
        0 => "4, 5, 8, 10, 16, 20, 40, 80, 160 or 320 slots of 1 ms (CSI-ReportPeriodicityAndOffset, TS 38.331 §6.3.2)",
        MILLIMETRE => {
            "4, 5, 8, 10, 16, 20, 40, 80, 160 or 320 slots of 0.125 ms (CSI-ReportPeriodicityAndOffset, \
             TS 38.331 §6.3.2)"
        }
        _ => {
            "4, 5, 8, 10, 16, 20, 40, 80, 160 or 320 slots of 0.5 ms (CSI-ReportPeriodicityAndOffset, \
             TS 38.331 §6.3.2)"
        }
    };
    Err(range("mobile", "cqi_period", expected))
}

/// Refuses a pattern whose feedback or grants the control channel cannot signal.
fn check_answers(timeline: &Timeline) -> Result<(), ValueError> {
    let pattern = timeline.pattern();
    let mut down = (0..pattern.period()).filter(|slot| pattern.carries_downlink(*slot));
    if down.any(|slot| timeline.feedback(slot) - slot > LONGEST_K1.into()) {
        let expected = "a U slot at most 15 slots after each slot with data, K1 included: HARQ feedback cannot come \
                        later (dl-DataToUL-ACK, TS 38.331 §6.3.2)";
        return Err(range("cell.tdd", "pattern", expected));
    }
    let mut all = (0..pattern.period()).flat_map(|slot| timeline.granted(slot).map(move |uplink| uplink - slot));
    if all.any(|distance| distance > LONGEST_K2.into()) {
        let expected = "a D slot at most 32 slots before each U slot, K2 included (TS 38.331 §6.3.2)";
        return Err(range("cell.tdd", "pattern", expected));
    }
    Ok(())
}

/// Slots of the periods of configured grants at each spacing (periodicity, TS 38.331 §6.3.2).
const GRANT_PERIODS: [u64; 16] = [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640];

/// What the patterns of TDD divide (TS 38.213 §11.1).
const REPETITION: Span = Span::from_millis(20);

impl Tdd {
    fn pattern(&self, numerology: Numerology) -> Result<SlotPattern, ValueError> {
        let refused = |expected| Err(range("cell.tdd", "pattern", expected));
        let has_only = |letters: &str| self.pattern.chars().all(|letter| letters.contains(letter));
        if !self.pattern.is_empty() && has_only("DS") {
            return refused("a pattern with a U slot: HARQ feedback and uplink data need one (TS 38.213 §9.2.3)");
        }
        let count = self.pattern.len();
        let whole = self.period(&self.pattern, numerology).map(|period| vec![period]);
        let halves = (1..count).filter_map(|at| {
            let (first, second) = self.pattern.split_at_checked(at)?;
            Some(vec![self.period(first, numerology)?, self.period(second, numerology)?])
        });
        let Some(periods) = whole.into_iter().chain(halves).next() else {
            return refused(
                "one or two times D slots, at most one S slot and U slots, as DDDSU, each of 0.5, 0.625, 1, 1.25, \
                 2, 2.5, 3, 4, 5 or 10 ms (TDD-UL-DL-Pattern, TS 38.331 §6.3.2)",
            );
        };
        let duration = periods.iter().fold(Span::ZERO, |sum, period| sum + period.duration);
        if !REPETITION.as_nanos().is_multiple_of(duration.as_nanos()) {
            return refused("a duration that divides 20 ms, of both patterns together (TS 38.213 §11.1)");
        }
        at_most(self.special_downlink.into(), u64::from(SYMBOLS) - 1, "cell.tdd", "special_downlink")?;
        if self.special_downlink > 0 && !self.pattern.contains('S') {
            return Err(range("cell.tdd", "special_downlink", "0, or left out: the pattern has no S slot"));
        }
        match tdd::pattern(numerology, &periods) {
            Ok(pattern) => Ok(pattern),
            Err(_) => refused("a pattern with a D slot, or an S slot with 5 downlink symbols: data need one"),
        }
    }

    /// A pattern from its letters; `None` if it is none.
    fn period(&self, letters: &str, numerology: Numerology) -> Option<Period> {
        let count = |letter| letters.bytes().filter(|each| *each == letter).count();
        let (down, special, up) = (count(b'D'), count(b'S'), count(b'U'));
        let ordered = "D".repeat(down) + &"S".repeat(special) + &"U".repeat(up);
        let duration = numerology.slot() * letters.len() as u64;
        // dl-UL-TransmissionPeriodicity; 0.625 and 1.25 ms are no whole slots of FR1.
        let durations = [500, 625, 1000, 1250, 2000, 2500, 3000, 4000, 5000, 10_000].map(Span::from_micros);
        (ordered == letters && special <= 1 && durations.contains(&duration)).then_some(Period {
            duration,
            downlink_slots: down as u32,
            downlink_symbols: if special > 0 { self.special_downlink } else { 0 },
            uplink_slots: up as u32,
            // Feedback and requests use U slots alone.
            uplink_symbols: 0,
        })
    }
}

/// Refuses a period of scheduling requests that the standard does not have, or with occasions in
/// slots without uplink.
fn check_requests(period: Span, numerology: Numerology, pattern: &SlotPattern) -> Result<(), ValueError> {
    let slot = numerology.slot().as_nanos();
    let slots = period.as_nanos() / slot;
    let (allowed, expected): (&[u64], _) = match numerology.mu() {
        0 => (
            &[1, 2, 4, 5, 8, 10, 16, 20, 40, 80],
            "1, 2, 4, 5, 8, 10, 16, 20, 40 or 80 slots of 1 ms (SchedulingRequestResourceConfig, TS 38.331 §6.3.2)",
        ),
        MILLIMETRE => (
            &[1, 2, 4, 8, 16, 40, 80, 160, 320, 640],
            "1, 2, 4, 8, 16, 40, 80, 160, 320 or 640 slots of 0.125 ms \
             (SchedulingRequestResourceConfig, TS 38.331 §6.3.2)",
        ),
        _ => (
            &[1, 2, 4, 5, 8, 10, 16, 20, 40, 80, 160],
            "1, 2, 4, 5, 8, 10, 16, 20, 40, 80 or 160 slots of 0.5 ms \
             (SchedulingRequestResourceConfig, TS 38.331 §6.3.2)",
        ),
    };
    if !period.as_nanos().is_multiple_of(slot) || !allowed.contains(&slots) {
        return Err(range("uplink", "sr_period", expected));
    }
    if !Occasions::new(slots, pattern.uplink_from(0)).fit(pattern) {
        let expected = "a multiple of the TDD pattern: other occasions are not in U slots (TS 38.213 §9.2.4)";
        return Err(range("uplink", "sr_period", expected));
    }
    Ok(())
}

fn check_rlc(rlc: &Rlc) -> Result<(), ValueError> {
    let reassembly = |span: Span| REASSEMBLY.check_span(span, "rlc", "t_reassembly");
    match rlc {
        Rlc::Acknowledged(Acknowledged {
            sequence_bits,
            t_poll_retransmit,
            poll_pdu,
            poll_byte,
            max_retx,
            t_reassembly,
            t_status_prohibit,
        }) => {
            let expected = "12 or 18 with `rlc.mode = \"acknowledged\"` (TS 38.322 §6.2.3.3)";
            bits(*sequence_bits, [12, 18], "rlc", expected)?;
            reassembly(*t_reassembly)?;
            let timers = RlcTimers {
                poll_retransmit: *t_poll_retransmit,
                poll_pdu: *poll_pdu,
                poll_byte: *poll_byte,
                max_retx: *max_retx,
                status_prohibit: *t_status_prohibit,
            };
            timers.check(&Values::NR)
        }
        Rlc::Unacknowledged(Unacknowledged { sequence_bits, t_reassembly }) => {
            let expected = "6 or 12 with `rlc.mode = \"unacknowledged\"` (TS 38.322 §6.2.3.3)";
            bits(*sequence_bits, [6, 12], "rlc", expected)?;
            reassembly(*t_reassembly)
        }
    }
}

impl Rrc {
    fn check(&self) -> Result<(), ValueError> {
        self.connection().check(&Values::NR)?;
        if let Some(Inactive { resume, release }) = &self.inactive {
            milliseconds(*resume, "rrc.inactive", "resume")?;
            milliseconds(*release, "rrc.inactive", "release")?;
            if *resume > self.promotion {
                let expected = "at most `rrc.promotion`: a connection that is resumed needs less signalling";
                return Err(range("rrc.inactive", "resume", expected));
            }
        }
        Ok(())
    }

    /// What it has in common with that of LTE.
    pub(crate) fn connection(&self) -> crate::ofdma::config::Rrc {
        let Self { inactivity, promotion, paging, re_establishment, t310, t311, .. } = *self;
        crate::ofdma::config::Rrc { inactivity, promotion, paging, re_establishment, t310, t311, power_saving: None }
    }
}
