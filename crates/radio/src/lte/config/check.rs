//! Checks of the parameters: what the standard does not have, and what contradicts itself.

use airpath_core::{Probability, Span};

use super::{Acknowledged, Cell, Config, Drx, Harq, Mobile, Pdcp, Rlc, Rrc, Uplink};
use crate::error::{ValueError, above_zero, at_most, check_queue, within_an_hour};
use crate::lte::error::ConfigError;
use crate::lte::rlc_am::LONGEST_TIMER;
use crate::lte::tables::{self, TTI};

impl Config {
    /// Refuses what makes no sense.
    pub(in crate::lte) fn check(&self) -> Result<(), ConfigError> {
        self.cell.check()?;
        self.mobile.check()?;
        self.harq.check()?;
        self.uplink.check()?;
        check_rlc(&self.rlc)?;
        check_pdcp(&self.pdcp)?;
        if let Some(drx) = &self.drx {
            drx.check()?;
            if self.pdcp.discard.is_some_and(|discard| discard <= drx.long) {
                let expected = "longer than `drx.long`: otherwise packets are dropped before the mobile listens";
                return Err(range("pdcp", "discard", expected).into());
            }
        }
        if let Some(rrc) = &self.rrc {
            rrc.check()?;
        }
        Ok(())
    }
}

fn range(table: &str, key: &str, expected: &'static str) -> ValueError {
    ValueError::Range { key: format!("{table}.{key}"), expected }
}

/// Refuses what is not a number of subframes, from one to an hour.
fn subframes(span: Span, table: &str, key: &str) -> Result<(), ValueError> {
    above_zero(!span.is_zero(), table, key)?;
    within_an_hour(span, table, key)?;
    if span.as_nanos().is_multiple_of(TTI.as_nanos()) {
        Ok(())
    } else {
        Err(range(table, key, "whole milliseconds: a subframe is 1 ms (TS 36.211 §4)"))
    }
}

fn within(number: u8, max: u8, table: &str, key: &str) -> Result<(), ValueError> {
    if (1..=max).contains(&number) {
        Ok(())
    } else {
        Err(ValueError::OutOfRange { key: format!("{table}.{key}"), min: 1, max: max.into() })
    }
}

impl Cell {
    fn check(&self) -> Result<(), ConfigError> {
        let Some(channel) = tables::channel(self.bandwidth) else {
            return Err(range("cell", "bandwidth", "1.4, 3, 5, 10, 15 or 20 MHz (TS 36.101 §5.6)").into());
        };
        within(self.control_symbols, 3, "cell", "control_symbols")?;
        at_most(self.pucch_blocks.into(), u64::from(channel.resource_blocks) - 1, "cell", "pucch_blocks")?;
        above_zero(self.users_per_tti > 0, "cell", "users_per_tti")?;
        if self.processing > Span::from_millis(3) {
            let expected = "at most 3 ms: the feedback to a block of the uplink goes 4 ms after it (TS 36.213 §9.1.2)";
            return Err(range("cell", "processing", expected).into());
        }
        if !self.processing.as_nanos().is_multiple_of(TTI.as_nanos()) {
            return Err(range("cell", "processing", "whole milliseconds: a subframe is 1 ms (TS 36.211 §4)").into());
        }
        if self.target_bler == Probability::NEVER || self.target_bler.get() > 0.5 {
            return Err(range("cell", "target_bler", "above 0 and at most 0.5").into());
        }
        if !(0.0..=1.0).contains(&self.step.get()) {
            return Err(range("cell", "step", "0 to 1 dB").into());
        }
        if !(0.0..=20.0).contains(&self.max_correction.get()) {
            return Err(range("cell", "max_correction", "0 to 20 dB").into());
        }
        Ok(within_an_hour(self.delay, "cell", "delay")?)
    }
}

impl Mobile {
    fn check(&self) -> Result<(), ValueError> {
        within(self.layers, 2, "mobile", "layers")?;
        subframes(self.cqi_period, "mobile", "cqi_period")?;
        within_an_hour(self.cqi_delay, "mobile", "cqi_delay")?;
        within_an_hour(self.processing, "mobile", "processing")
    }
}

impl Harq {
    fn check(&self) -> Result<(), ValueError> {
        within(self.processes, 8, "harq", "processes")?;
        // maxHARQ-Tx, TS 36.331 §6.3.2: 1 to 8, 10, 12, 16, 20, 24, 28.
        within(self.max_transmissions, 28, "harq", "max_transmissions")?;
        if !(0.0..=10.0).contains(&self.gap.get()) {
            return Err(range("harq", "gap", "0 to 10 dB"));
        }
        for (key, probability) in [("nack_to_ack", self.nack_to_ack), ("dtx_missed", self.dtx_missed)] {
            if probability.get() > 0.5 {
                return Err(range("harq", key, "at most 0.5"));
            }
        }
        Ok(())
    }
}

impl Uplink {
    fn check(&self) -> Result<(), ValueError> {
        if ![1, 2, 5, 10, 20, 40, 80].map(Span::from_millis).contains(&self.sr_period) {
            return Err(range("uplink", "sr_period", "1, 2, 5, 10, 20, 40 or 80 ms (TS 36.213 Table 10.1.5-1)"));
        }
        if ![4, 8, 16, 32, 64].contains(&self.sr_max_transmissions) {
            let expected = "4, 8, 16, 32 or 64 (dsr-TransMax, TS 36.331 §6.3.2)";
            return Err(range("uplink", "sr_max_transmissions", expected));
        }
        above_zero(self.first_grant.get() > 0, "uplink", "first_grant")?;
        at_most(self.first_grant.get(), 9000, "uplink", "first_grant")?;
        if let Some(prescheduling) = &self.prescheduling {
            subframes(prescheduling.interval, "uplink.prescheduling", "interval")?;
            above_zero(prescheduling.bytes.get() > 0, "uplink.prescheduling", "bytes")?;
            at_most(prescheduling.bytes.get(), 9000, "uplink.prescheduling", "bytes")?;
        }
        subframes(self.periodic_bsr, "uplink", "periodic_bsr")?;
        subframes(self.retx_bsr, "uplink", "retx_bsr")?;
        subframes(self.random_access.period, "uplink.random_access", "period")?;
        subframes(self.random_access.message, "uplink.random_access", "message")?;
        if self.retx_bsr <= self.periodic_bsr {
            let expected = "longer than `uplink.periodic_bsr`: otherwise each report is requested again";
            return Err(range("uplink", "retx_bsr", expected));
        }
        Ok(())
    }
}

fn check_rlc(rlc: &Rlc) -> Result<(), ValueError> {
    let timer = |span: Span, key: &str| {
        subframes(span, "rlc", key)?;
        if span > LONGEST_TIMER { Err(range("rlc", key, "at most 4 s (TS 36.331 §6.3.2)")) } else { Ok(()) }
    };
    match rlc {
        Rlc::Acknowledged(Acknowledged {
            t_poll_retransmit,
            poll_pdu,
            poll_byte,
            max_retx,
            t_reordering,
            t_status_prohibit,
        }) => {
            timer(*t_poll_retransmit, "t_poll_retransmit")?;
            timer(*t_reordering, "t_reordering")?;
            if !t_status_prohibit.is_zero() {
                timer(*t_status_prohibit, "t_status_prohibit")?;
            }
            if poll_pdu.is_some_and(|pdus| ![4, 8, 16, 32, 64, 128, 256].contains(&pdus)) {
                let expected = "4, 8, 16, 32, 64, 128 or 256, or left out for infinity (TS 36.331 §6.3.2)";
                return Err(range("rlc", "poll_pdu", expected));
            }
            above_zero(poll_byte.is_none_or(|bytes| bytes.get() > 0), "rlc", "poll_byte")?;
            if ![1, 2, 3, 4, 6, 8, 16, 32].contains(max_retx) {
                return Err(range("rlc", "max_retx", "1, 2, 3, 4, 6, 8, 16 or 32 (TS 36.331 §6.3.2)"));
            }
            Ok(())
        }
        Rlc::Unacknowledged(unacknowledged) => timer(unacknowledged.t_reordering, "t_reordering"),
    }
}

fn check_pdcp(pdcp: &Pdcp) -> Result<(), ValueError> {
    if let Some(discard) = pdcp.discard {
        subframes(discard, "pdcp", "discard")?;
    }
    check_queue(pdcp.queue.as_ref(), "pdcp").map(drop)
}

impl Drx {
    fn check(&self) -> Result<(), ValueError> {
        subframes(self.on, "drx", "on")?;
        subframes(self.inactivity, "drx", "inactivity")?;
        subframes(self.long, "drx", "long")?;
        if self.on > self.long {
            return Err(range("drx", "on", "at most `drx.long`: the mobile listens once in a cycle"));
        }
        match (self.short, self.short_count) {
            (Some(short), Some(count)) => {
                subframes(short, "drx", "short")?;
                if short < self.on || !self.long.as_nanos().is_multiple_of(short.as_nanos()) || short == self.long {
                    let expected = "at least `drx.on`, and a fraction of `drx.long` (TS 36.331 §6.3.2)";
                    return Err(range("drx", "short", expected));
                }
                let (min, max) = (1, 16);
                if !(min..=max).contains(&u64::from(count)) {
                    return Err(ValueError::OutOfRange { key: "drx.short_count".to_owned(), min, max });
                }
                Ok(())
            }
            (None, None) => Ok(()),
            (Some(_), None) => Err(ValueError::Needs { key: "drx.short".to_owned(), needs: "drx.short_count" }),
            (None, Some(_)) => Err(ValueError::Needs { key: "drx.short_count".to_owned(), needs: "drx.short" }),
        }
    }
}

impl Rrc {
    fn check(&self) -> Result<(), ValueError> {
        subframes(self.inactivity, "rrc", "inactivity")?;
        subframes(self.promotion, "rrc", "promotion")?;
        subframes(self.paging, "rrc", "paging")?;
        subframes(self.re_establishment, "rrc", "re_establishment")?;
        if self.inactivity <= self.promotion {
            let expected = "longer than `rrc.promotion`: otherwise the connection ends before its data is sent";
            return Err(range("rrc", "inactivity", expected));
        }
        Ok(())
    }
}
