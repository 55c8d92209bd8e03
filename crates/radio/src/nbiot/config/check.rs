//! Checks of the parameters: what the standard does not have, and what contradicts itself.

use airpath_core::Span;

use super::{Config, Coverage, ReleaseAssistance, Rrc};
use crate::enumeration::Enumeration;
use crate::error::{ValueError, range, within_an_hour};
use crate::nbiot::plan::{LEVELS, PREAMBLE};
use crate::nbiot::tables::{Choice, choices};
use crate::ofdma::ConfigError;
use crate::ofdma::config::{MAX_RETX, check_transmissions, milliseconds};
use crate::ofdma::paging::ExtendedCycles;

/// The largest R_max of NPDCCH (TS 36.331, npdcch-NumRepetitions).
const MOST_CONTROL_REPETITIONS: u64 = 2048;
/// From the end of NPDSCH to its acknowledgement (TS 36.213 §16.4.2).
const FEEDBACK_DELAY: Span = Span::from_millis(12);
static POLL_RETRANSMIT: Enumeration = Enumeration::millis(
    &[
        250, 500, 1000, 2000, 3000, 4000, 6000, 10_000, 15_000, 25_000, 40_000, 60_000, 90_000, 120_000, 180_000,
        300_000,
    ],
    "T-PollRetransmit-NB, TS 36.331 §6.7.3",
);
static PAGING: Enumeration =
    Enumeration::millis(&[1280, 2560, 5120, 10_240], "defaultPagingCycle of PCCH-Config-NB, TS 36.331 §6.7.3");

impl Config {
    /// Refuses what makes no sense.
    pub(in crate::nbiot) fn check(&self) -> Result<(), ConfigError> {
        let carrier = &self.carrier;
        milliseconds(carrier.processing, "carrier", "processing")?;
        if !(0.001..=0.5).contains(&carrier.target_bler.get()) {
            return Err(range("carrier", "target_bler", "0.001 to 0.5").into());
        }
        within_an_hour(carrier.delay, "carrier", "delay")?;
        if self.mobile.processing > FEEDBACK_DELAY {
            let expected = "at most 12 ms: the acknowledgement of a block goes 12 ms after it (TS 36.213 §16.4.2)";
            return Err(range("mobile", "processing", expected).into());
        }
        self.coverage.check()?;
        check_transmissions(self.harq.max_transmissions)?;
        if !(0.0..=10.0).contains(&self.harq.gap.get()) {
            return Err(range("harq", "gap", "0 to 10 dB").into());
        }
        if !(0.0..=5.0).contains(&self.harq.repetition_loss.get()) {
            return Err(range("harq", "repetition_loss", "0 to 5 dB").into());
        }
        POLL_RETRANSMIT.check_span(self.rlc.t_poll_retransmit, "rlc", "t_poll_retransmit")?;
        MAX_RETX.check(self.rlc.max_retx.into(), "rlc", "max_retx")?;
        if let Some(queue) = &self.queue {
            queue.check().map_err(|source| ValueError::Queue { key: "queue".to_owned(), source })?;
        }
        self.rrc.check()?;
        self.conditions.refuse_soft_handover()?;
        Ok(self.conditions.refuse_fading()?)
    }
}

impl Coverage {
    fn check(&self) -> Result<(), ValueError> {
        let Self {
            lowest,
            control_repetitions,
            downlink_repetitions,
            uplink_repetitions,
            preamble_repetitions,
            random_access_period,
            tones,
        } = self;
        let refused = |key, expected| Err(range("coverage", key, expected));
        if lowest.is_empty() || lowest.len() > LEVELS {
            return refused("lowest", "one to three levels (TS 36.331, NPRACH-ParametersList-NB)");
        }
        if lowest.windows(2).any(|pair| pair[0] <= pair[1]) {
            return refused("lowest", "falling: the first level is that of the best coverage");
        }
        let lengths = [
            ("control_repetitions", control_repetitions.len()),
            ("downlink_repetitions", downlink_repetitions.len()),
            ("uplink_repetitions", uplink_repetitions.len()),
            ("preamble_repetitions", preamble_repetitions.len()),
            ("random_access_period", random_access_period.len()),
            ("tones", tones.len()),
        ];
        if let Some((key, _)) = lengths.into_iter().find(|(_, length)| *length != lowest.len()) {
            return refused(key, "as many values as `coverage.lowest` has levels");
        }
        if control_repetitions.iter().any(|number| !number.is_power_of_two() || *number > MOST_CONTROL_REPETITIONS) {
            return refused("control_repetitions", "1, 2, 4, 8, … or 2048 (npdcch-NumRepetitions, TS 36.331)");
        }
        let all_in = |numbers: &[u64], of| numbers.iter().all(|number| choices(of).contains(number));
        if !all_in(downlink_repetitions, Choice::DownlinkRepetitions) {
            let expected = "1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536 or 2048 (TS 36.213 Table \
                            16.4.1.3-2)";
            return refused("downlink_repetitions", expected);
        }
        if !all_in(uplink_repetitions, Choice::UplinkRepetitions) {
            return refused("uplink_repetitions", "1, 2, 4, 8, 16, 32, 64 or 128 (TS 36.213 Table 16.5.1.1-3)");
        }
        if !all_in(preamble_repetitions, Choice::PreambleRepetitions) {
            return refused("preamble_repetitions", "1, 2, 4, 8, 16, 32, 64 or 128 (TS 36.331, NPRACH-ConfigSIB-NB)");
        }
        let repetitions = [
            ("control_repetitions", control_repetitions),
            ("downlink_repetitions", downlink_repetitions),
            ("uplink_repetitions", uplink_repetitions),
            ("preamble_repetitions", preamble_repetitions),
        ];
        if let Some((key, _)) = repetitions.into_iter().find(|(_, numbers)| !numbers.is_sorted()) {
            return refused(key, "no fewer in a level than in the one before, for better coverage (TS 36.300 §23.7b)");
        }
        for (period, repetitions) in random_access_period.iter().zip(preamble_repetitions) {
            if !choices(Choice::RandomAccessPeriod).iter().any(|millis| *period == Span::from_millis(*millis)) {
                let expected = "40, 80, 160, 240, 320, 640, 1280 or 2560 ms (TS 36.331, NPRACH-ConfigSIB-NB)";
                return refused("random_access_period", expected);
            }
            if PREAMBLE * *repetitions > *period {
                let expected = "longer than a preamble of 5.6 ms with its repetitions (TS 36.211 §10.1.6)";
                return refused("random_access_period", expected);
            }
        }
        Ok(())
    }
}

impl Rrc {
    fn check(&self) -> Result<(), ValueError> {
        if self.setup.is_empty() || !self.setup.len().is_multiple_of(2) || self.setup.len() > 16 {
            let expected = "an even number of messages, at most 16: to the mobile and from it in turn";
            return Err(range("rrc", "setup", expected));
        }
        if self.setup.iter().any(|bytes| bytes.get() == 0 || bytes.get() > 9000) {
            return Err(range("rrc", "setup", "sizes of 1 to 9000 bytes"));
        }
        milliseconds(self.inactivity, "rrc", "inactivity")?;
        milliseconds(self.release, "rrc", "release")?;
        PAGING.check_span(self.paging, "rrc", "paging")?;
        if self.release_assistance != ReleaseAssistance::Off && self.release > self.inactivity {
            let expected = "at most `rrc.inactivity`: release assistance shortens a connection";
            return Err(range("rrc", "release", expected));
        }
        self.power_saving
            .as_ref()
            .map_or(Ok(()), |power_saving| power_saving.check(self.paging, &ExtendedCycles::NARROWBAND))
    }
}
