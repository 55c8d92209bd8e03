//! Checks of the parameters: what the standard does not have, and what contradicts itself.

use airpath_core::Span;

use super::{Acknowledged, Cell, Config, Rlc, Tdd, Voice};
use crate::common::slots::{Occasions, SlotPattern};
use crate::enumeration::Enumeration;
use crate::error::{ValueError, above_zero, at_most, between, range, within_an_hour};
use crate::lte::{tables, tdd};
use crate::ofdma::ConfigError;
use crate::ofdma::config::{
    Background, RlcTimers, UplinkModulation, Values, carriers, no_configured_grant, outer_loop, pdcp,
};

impl Config {
    /// Refuses what makes no sense.
    pub(in crate::lte) fn check(&self) -> Result<(), ConfigError> {
        self.cell.check()?;
        carriers(self.cell.carriers, MAX_CARRIERS, self.mobile.duplex)?;
        self.mobile.check((2, "UE categories 2 to 5, TS 36.306 Table 4.1-1"), self.cell.tdd.is_some())?;
        check_reports(self.mobile.cqi_period, self.cell.tdd.is_some())?;
        check_processing(self.mobile.processing)?;
        self.check_processes()?;
        self.harq.check()?;
        check_sr_period(self.uplink.sr_period)?;
        if let Some(tdd) = self.cell.tdd {
            check_requests(self.uplink.sr_period, &tdd.pattern())?;
        }
        let modulations = [UplinkModulation::Qam16, UplinkModulation::Qam64];
        self.uplink.check(modulations, "16qam or 64qam (TS 36.306 Table 4.1-2)", &Values::LTE)?;
        no_configured_grant(&self.uplink)?;
        check_rlc(&self.rlc)?;
        if let Some(rrc) = &self.rrc {
            rrc.check(&Values::LTE)?;
        }
        if let Some(drx) = &self.drx {
            drx.check(self.rrc.as_ref().map(|rrc| rrc.inactivity), &Values::LTE)?;
            if self.cell.tdd.is_some() && drx.on < FRAME {
                let expected =
                    "at least 10 ms with TDD, a frame: otherwise the mobile may never listen in a D subframe";
                return Err(range("drx", "on", expected).into());
            }
        }
        pdcp(self.pdcp.discard, self.pdcp.queue.as_ref(), self.drx.as_ref(), &Values::LTE)?;
        if let Some(voice) = &self.voice {
            self.check_voice(voice)?;
        }
        self.conditions.refuse_soft_handover()?;
        Ok(self.conditions.refuse_fading()?)
    }
}

impl Config {
    fn check_processes(&self) -> Result<(), ValueError> {
        let (most, clause) = match self.cell.tdd {
            None => (FDD_PROCESSES, "TS 36.213 §7".to_owned()),
            Some(tdd) => {
                let configuration = tdd.configuration;
                let clause = format!("with `cell.tdd.configuration = {configuration}`, TS 36.213 Table 7-1");
                (tdd.processes().downlink, clause)
            }
        };
        between(self.harq.processes.into(), [1, most.into()], "harq", "processes", clause)
    }

    fn check_voice(&self, voice: &Voice) -> Result<(), ValueError> {
        if voice.dscp.iter().any(|dscp| *dscp > 63) {
            return Err(range("voice", "dscp", "values of 0 to 63 (RFC 2474 §3)"));
        }
        if voice.ports.iter().any(|[first, last]| first > last) {
            return Err(range("voice", "ports", "pairs of a first and a last port, the last not below the first"));
        }
        if voice.dscp.is_empty() && voice.ports.is_empty() {
            let expected = "a value, or ranges in `voice.ports`: otherwise no packet uses the bearer";
            return Err(range("voice", "dscp", expected));
        }
        let values = &Values::LTE;
        values.discard.check_span(voice.discard, "voice", "discard")?;
        if self.drx.as_ref().is_some_and(|drx| voice.discard <= drx.long) {
            let expected = "longer than `drx.long`: otherwise packets are dropped before the mobile listens";
            return Err(range("voice", "discard", expected));
        }
        check_reordering(voice.t_reordering, "voice")?;
        Ok(())
    }
}

/// Processes of the downlink with frequency division duplex (TS 36.213 §7).
const FDD_PROCESSES: u8 = 8;
/// Carriers of a mobile at most.
const MAX_CARRIERS: (u8, &str) = (5, "1 to 5 (TS 36.300 §5.5)");
/// A radio frame, the period of a TDD configuration (TS 36.211 §4.2).
const FRAME: Span = Span::from_millis(10);

/// Refuses a period of scheduling requests that LTE does not have.
pub(crate) fn check_sr_period(period: Span) -> Result<(), ValueError> {
    static PERIODS: Enumeration = Enumeration::millis(&[1, 2, 5, 10, 20, 40, 80], "TS 36.213 Table 10.1.5-1");
    PERIODS.check_span(period, "uplink", "sr_period")
}

/// Refuses a period of CQI reports that LTE does not have.
pub(crate) fn check_reports(period: Span, is_tdd: bool) -> Result<(), ValueError> {
    static FDD: Enumeration =
        Enumeration::millis(&[2, 5, 10, 20, 32, 40, 64, 80, 128, 160], "TS 36.213 Table 7.2.2-1A");
    static TDD: Enumeration =
        Enumeration::millis(&[1, 5, 10, 20, 40, 80, 160], "with `cell.tdd`, TS 36.213 Table 7.2.2-1C");
    let periods = if is_tdd { &TDD } else { &FDD };
    periods.check_span(period, "mobile", "cqi_period")
}

/// Refuses a mobile that decodes a block after the feedback to it.
pub(crate) fn check_processing(processing: Span) -> Result<(), ValueError> {
    if processing <= tables::TTI * 3 {
        return Ok(());
    }
    let expected = "at most 3 ms: the feedback to a block goes four subframes after it (TS 36.213 §10.2)";
    Err(range("mobile", "processing", expected))
}

/// Refuses a period of scheduling requests without occasions that all are in uplink subframes.
fn check_requests(period: Span, pattern: &SlotPattern) -> Result<(), ValueError> {
    let subframes = period.as_nanos() / tables::TTI.as_nanos();
    if (0..subframes).any(|offset| Occasions::new(subframes, offset).fit(pattern)) {
        return Ok(());
    }
    let expected = "a period whose occasions are in U subframes of `cell.tdd`: 10, 20, 40 or 80 ms, with TDD \
                    configurations 0, 1, 2 and 6 also 5 ms (TS 36.213 Table 10.1.5-1)";
    Err(range("uplink", "sr_period", expected))
}

impl Tdd {
    fn check(self) -> Result<(), ValueError> {
        if self.configuration >= tdd::CONFIGURATIONS {
            let expected = "0 to 6, an uplink-downlink configuration (TS 36.211 Table 4.2-2)";
            return Err(range("cell.tdd", "configuration", expected));
        }
        if self.special >= tdd::SPECIAL_CONFIGURATIONS {
            let expected = "0 to 9, a special subframe configuration (TS 36.211 Table 4.2-1)";
            return Err(range("cell.tdd", "special", expected));
        }
        Ok(())
    }

    fn pattern(self) -> SlotPattern {
        tdd::pattern(self.configuration, self.special).expect("it was checked before")
    }

    fn processes(self) -> tdd::Processes {
        tdd::processes(self.configuration).expect("it was checked before")
    }
}

/// With at most this number of resource blocks, a CFI stands for one more symbol (TS 36.211 Table
/// 6.7-1).
const NARROW: u32 = 10;

impl Cell {
    fn check(&self) -> Result<(), ValueError> {
        let Some(channel) = tables::channel(self.bandwidth) else {
            return Err(range("cell", "bandwidth", "1.4, 3, 5, 10, 15 or 20 MHz (TS 36.101 §5.6)"));
        };
        if let Some(tdd) = self.tdd {
            tdd.check()?;
        }
        let (symbols, source) = if channel.resource_blocks <= NARROW {
            ([2, 4], "for at most 10 resource blocks, TS 36.211 Table 6.7-1")
        } else {
            ([1, 3], "CFI, TS 36.212 §5.3.4")
        };
        between(self.control_symbols.into(), symbols, "cell", "control_symbols", source)?;
        at_most(self.pucch_blocks.into(), u64::from(channel.resource_blocks) - 1, "cell", "pucch_blocks")?;
        above_zero(self.users_per_tti > 0, "cell", "users_per_tti")?;
        if self.processing > Span::from_millis(3) {
            let expected = "at most 3 ms: the feedback to a block of the uplink goes 4 ms after it (TS 36.213 §9.1.2)";
            return Err(range("cell", "processing", expected));
        }
        if !self.processing.as_nanos().is_multiple_of(tables::TTI.as_nanos()) {
            return Err(range("cell", "processing", "whole milliseconds: a subframe is 1 ms (TS 36.211 §4)"));
        }
        outer_loop(self.target_bler, self.step, self.max_correction)?;
        self.background.as_ref().map_or(Ok(()), Background::check)?;
        within_an_hour(self.delay, "cell", "delay")
    }
}

fn check_reordering(span: Span, table: &str) -> Result<(), ValueError> {
    static TIMES: Enumeration =
        Enumeration::millis(&[1600], "T-Reordering, TS 36.331 §6.3.2").and_runs(&[[0, 100, 5], [110, 200, 10]]);
    TIMES.check_span(span, table, "t_reordering")
}

/// Refuses an RLC that LTE does not have.
pub(crate) fn check_rlc(rlc: &Rlc) -> Result<(), ValueError> {
    match rlc {
        Rlc::Acknowledged(Acknowledged {
            t_poll_retransmit,
            poll_pdu,
            poll_byte,
            max_retx,
            t_reordering,
            t_status_prohibit,
        }) => {
            check_reordering(*t_reordering, "rlc")?;
            let timers = RlcTimers {
                poll_retransmit: *t_poll_retransmit,
                poll_pdu: *poll_pdu,
                poll_byte: *poll_byte,
                max_retx: *max_retx,
                status_prohibit: *t_status_prohibit,
            };
            timers.check(&Values::LTE)
        }
        Rlc::Unacknowledged(unacknowledged) => check_reordering(unacknowledged.t_reordering, "rlc"),
    }
}
