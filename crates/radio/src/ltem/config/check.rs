//! Checks of the parameters: what the standard does not have, and what contradicts itself.

use airpath_core::Span;

use super::{Cell, Config, Coverage, Mobile};
use crate::error::{ValueError, between, range, within_an_hour};
use crate::lte::config::{check_processing, check_reports, check_rlc, check_sr_period};
use crate::lte::tables;
use crate::ofdma::ConfigError;
use crate::ofdma::config::{UplinkModulation, Values, milliseconds, no_configured_grant, outer_loop, pdcp};

impl Config {
    /// Refuses what makes no sense.
    pub(in crate::ltem) fn check(&self) -> Result<(), ConfigError> {
        self.cell.check()?;
        self.mobile.check()?;
        self.coverage.check()?;
        between(self.harq.processes.into(), [1, PROCESSES.into()], "harq", "processes", "mode A, TS 36.213 §7")?;
        self.harq.check()?;
        check_sr_period(self.uplink.sr_period)?;
        self.check_requests()?;
        let modulation = "16qam, the highest of category M1 (TS 36.306 §4.1)";
        self.uplink.check([UplinkModulation::Qam16; 2], modulation, &Values::LTE)?;
        if self.uplink.prescheduling.is_some() {
            let expected = "left out, with its `interval` and `bytes`: mobiles of LTE-M request each grant";
            return Err(range("uplink", "prescheduling", expected).into());
        }
        no_configured_grant(&self.uplink)?;
        check_rlc(&self.rlc)?;
        self.rrc.check(&Values::LTE)?;
        if let Some(drx) = &self.drx {
            drx.check(Some(self.rrc.inactivity), &Values::LTE)?;
        }
        pdcp(self.pdcp.discard, self.pdcp.queue.as_ref(), self.drx.as_ref(), &Values::LTE)?;
        self.conditions.refuse_soft_handover()?;
        Ok(self.conditions.refuse_fading()?)
    }

    /// Refuses requests that last until the next one.
    fn check_requests(&self) -> Result<(), ValueError> {
        let Coverage { a, b, .. } = &self.coverage;
        let longest = b.as_ref().map_or(a.feedback, |b| b.feedback.max(a.feedback));
        if self.uplink.sr_period <= tables::TTI * u64::from(longest) {
            let expected = "longer than the repetitions of a request, `feedback` of `coverage.a` and `coverage.b`";
            return Err(range("uplink", "sr_period", expected));
        }
        if let Some(b) = b
            && self.rrc.inactivity <= b.promotion
        {
            let expected = "longer than `coverage.b.promotion`: otherwise the connection ends before its data is sent";
            return Err(range("rrc", "inactivity", expected));
        }
        Ok(())
    }
}

/// Processes of hybrid ARQ in mode A (TS 36.213 §7; recalled).
const PROCESSES: u8 = 8;
/// The longest processing of the base station: a choice.
const LONGEST_PROCESSING: Span = Span::from_millis(31);

impl Cell {
    fn check(&self) -> Result<(), ValueError> {
        between(self.control_symbols.into(), [1, 4], "cell", "control_symbols", "startSymbolBR, TS 36.331 §6.3.2")?;
        if ![2, 4, 6].contains(&self.control_blocks) {
            return Err(range("cell", "control_blocks", "2, 4 or 6 (TS 36.213 §9.1.5)"));
        }
        if !self.processing.as_nanos().is_multiple_of(tables::TTI.as_nanos()) || self.processing > LONGEST_PROCESSING {
            let expected = "whole milliseconds, at most 31 ms: a subframe is 1 ms (TS 36.211 §4)";
            return Err(range("cell", "processing", expected));
        }
        outer_loop(self.target_bler, self.step, self.max_correction)?;
        within_an_hour(self.delay, "cell", "delay")
    }
}

impl Mobile {
    fn check(&self) -> Result<(), ValueError> {
        check_reports(self.cqi_period, false)?;
        within_an_hour(self.cqi_delay, "mobile", "cqi_delay")?;
        check_processing(self.processing)
    }
}

const CONTROL: [u16; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const MODE_A: [u16; 6] = [1, 2, 4, 8, 16, 32];
const MODE_B: [u16; 15] = [1, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];

impl Coverage {
    fn check(&self) -> Result<(), ValueError> {
        let one_of = |number: u16, allowed: &[u16], table: &str, key: &str, expected: &'static str| {
            if allowed.contains(&number) { Ok(()) } else { Err(range(table, key, expected)) }
        };
        let of_control = "a power of 2 from 1 to 256 (mPDCCH-NumRepetition, TS 36.331 §6.3.2)";
        if !(0.0..=10.0).contains(&self.repetition_loss.get()) {
            return Err(range("coverage", "repetition_loss", "0 to 10 dB"));
        }
        let a = &self.a;
        one_of(a.control, &CONTROL, "coverage.a", "control", of_control)?;
        let expected = "1, 2, 4, 8, 16 or 32 (TS 36.213 Tables 7.1.11-1 and 8.2b)";
        one_of(a.downlink, &MODE_A, "coverage.a", "downlink", expected)?;
        one_of(a.uplink, &MODE_A, "coverage.a", "uplink", expected)?;
        let expected = "1, 2, 4 or 8 (pucch-NumRepetitionCE, TS 36.331 §6.3.2)";
        one_of(a.feedback, &[1, 2, 4, 8], "coverage.a", "feedback", expected)?;
        let Some(b) = &self.b else { return Ok(()) };
        milliseconds(b.promotion, "coverage.b", "promotion")?;
        one_of(b.control, &CONTROL, "coverage.b", "control", of_control)?;
        let expected = "1, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536 or 2048 \
                        (TS 36.213 Tables 7.1.11-2 and 8.2c)";
        one_of(b.downlink, &MODE_B, "coverage.b", "downlink", expected)?;
        one_of(b.uplink, &MODE_B, "coverage.b", "uplink", expected)?;
        let expected = "4, 8, 16 or 32 (pucch-NumRepetitionCE, TS 36.331 §6.3.2)";
        one_of(b.feedback, &[4, 8, 16, 32], "coverage.b", "feedback", expected)?;
        let steps = [
            (a.control, b.control, "control", "at least `coverage.a.control`, for better coverage (TS 36.300 §23.7b)"),
            (
                a.downlink,
                b.downlink,
                "downlink",
                "at least `coverage.a.downlink`, for better coverage (TS 36.300 §23.7b)",
            ),
            (a.uplink, b.uplink, "uplink", "at least `coverage.a.uplink`, for better coverage (TS 36.300 §23.7b)"),
            (
                a.feedback,
                b.feedback,
                "feedback",
                "at least `coverage.a.feedback`, for better coverage (TS 36.300 §23.7b)",
            ),
        ];
        match steps.into_iter().find(|(in_a, in_b, ..)| in_b < in_a) {
            Some((.., key, expected)) => Err(range("coverage.b", key, expected)),
            None => Ok(()),
        }
    }
}
