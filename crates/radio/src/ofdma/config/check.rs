//! Checks of the parameters that LTE and NR share.

use airpath_core::{Bytes, Decibel, Probability, Span};
use airpath_link::queue::Queue;

use super::values::{SR_MAX_TRANSMISSIONS, T310, T311};
use super::{Background, Drx, Duplex, Harq, MAX_RETX, Mobile, Rrc, Uplink, UplinkModulation, Values};
use crate::error::{ValueError, above_zero, at_most, between, check_queue, range, within_an_hour};
use crate::ofdma::paging::ExtendedCycles;

/// Refuses what is not a number of milliseconds, from one to an hour.
pub(crate) fn milliseconds(span: Span, table: &str, key: &str) -> Result<(), ValueError> {
    above_zero(!span.is_zero(), table, key)?;
    within_an_hour(span, table, key)?;
    if span.as_nanos().is_multiple_of(Span::from_millis(1).as_nanos()) {
        Ok(())
    } else {
        Err(range(table, key, "whole milliseconds, the length of a subframe (TS 36.211 §4, TS 38.211 §4.3.1)"))
    }
}

/// What controls polls and status reports in the acknowledged mode of the RLC.
pub(crate) struct RlcTimers {
    pub poll_retransmit: Span,
    pub poll_pdu: Option<u32>,
    pub poll_byte: Option<Bytes>,
    pub max_retx: u8,
    pub status_prohibit: Span,
}

impl RlcTimers {
    /// Refuses what the technology does not have, and what contradicts itself.
    pub(crate) fn check(&self, values: &'static Values) -> Result<(), ValueError> {
        values.poll_retransmit.check_span(self.poll_retransmit, "rlc", "t_poll_retransmit")?;
        if let Some(pdus) = self.poll_pdu {
            values.poll_pdu.check(pdus.into(), "rlc", "poll_pdu")?;
        }
        if let Some(bytes) = self.poll_byte {
            values.poll_byte.check_bytes(bytes, "rlc", "poll_byte")?;
        }
        MAX_RETX.check(self.max_retx.into(), "rlc", "max_retx")?;
        values.status_prohibit.check_span(self.status_prohibit, "rlc", "t_status_prohibit")?;
        if self.status_prohibit > self.poll_retransmit {
            let expected = "at most `rlc.t_poll_retransmit`: otherwise a poll is repeated before its report may be \
                            sent (TS 36.322 §5.2.3, TS 38.322 §5.3.4)";
            return Err(range("rlc", "t_status_prohibit", expected));
        }
        Ok(())
    }
}

/// Refuses a number of carriers that a mobile cannot have; `limit` is the highest, and how messages
/// state it with its clause.
pub(crate) fn carriers(number: u8, limit: (u8, &'static str), duplex: Duplex) -> Result<(), ValueError> {
    if !(1..=limit.0).contains(&number) {
        return Err(range("cell", "carriers", limit.1));
    }
    if number > 1 && duplex == Duplex::Half {
        let expected = "1 with `mobile.duplex = \"half\"`: such mobiles have one carrier (TS 38.306 §4.2.21)";
        return Err(range("cell", "carriers", expected));
    }
    Ok(())
}

/// Refuses an outer loop that cannot work.
pub(crate) fn outer_loop(target: Probability, step: Decibel, max_correction: Decibel) -> Result<(), ValueError> {
    if target == Probability::NEVER || target.get() > 0.5 {
        return Err(range("cell", "target_bler", "above 0 and at most 0.5"));
    }
    if !(0.0..=1.0).contains(&step.get()) {
        return Err(range("cell", "step", "0 to 1 dB"));
    }
    if !(0.0..=20.0).contains(&max_correction.get()) {
        return Err(range("cell", "max_correction", "0 to 20 dB"));
    }
    Ok(())
}

/// Refuses a discard timer or a queue that makes no sense.
pub(crate) fn pdcp(
    discard: Option<Span>,
    queue: Option<&Queue>,
    drx: Option<&Drx>,
    values: &'static Values,
) -> Result<(), ValueError> {
    if let Some(discard) = discard {
        values.discard.check_span(discard, "pdcp", "discard")?;
        if drx.is_some_and(|drx| discard <= drx.long) {
            let expected = "longer than `drx.long`: otherwise packets are dropped before the mobile listens";
            return Err(range("pdcp", "discard", expected));
        }
    }
    check_queue(queue, "pdcp").map(drop)
}

impl Background {
    /// Refuses what makes no sense.
    pub(crate) fn check(&self) -> Result<(), ValueError> {
        let table = "cell.background";
        for (key, share) in [("downlink", self.downlink), ("uplink", self.uplink)] {
            if share.get() > MOST_BACKGROUND {
                return Err(range(table, key, "at most 0.95: the mobiles need the rest"));
            }
        }
        for (key, span) in [("on", self.on), ("off", self.off)] {
            if let Some(span) = span {
                milliseconds(span, table, key)?;
            }
        }
        match (self.on, self.off) {
            (Some(_), None) => Err(ValueError::Needs { key: format!("{table}.on"), needs: "cell.background.off" }),
            (None, Some(_)) => Err(ValueError::Needs { key: format!("{table}.off"), needs: "cell.background.on" }),
            _ => Ok(()),
        }
    }
}

/// The largest share of resource blocks of other users.
const MOST_BACKGROUND: f64 = 0.95;

impl Mobile {
    /// Refuses what makes no sense, with this number of layers at most and its clause, in a cell
    /// with TDD or not. The period of the CQI and the processing are checked apart.
    pub(crate) fn check(&self, layers: (u8, &str), is_tdd: bool) -> Result<(), ValueError> {
        if is_tdd && self.duplex == Duplex::Half {
            let expected = "full with `cell.tdd`: each slot has one direction there anyway";
            return Err(range("mobile", "duplex", expected));
        }
        between(self.layers.into(), [1, layers.0.into()], "mobile", "layers", layers.1)?;
        within_an_hour(self.cqi_delay, "mobile", "cqi_delay")
    }
}

/// Refuses a number of transmissions of a block that no base station has.
pub(crate) fn check_transmissions(number: u8) -> Result<(), ValueError> {
    between(number.into(), [1, 28], "harq", "max_transmissions", "the largest maxHARQ-Tx, TS 36.331 §6.3.2")
}

impl Harq {
    /// Refuses what makes no sense. The number of processes is checked apart.
    pub(crate) fn check(&self) -> Result<(), ValueError> {
        check_transmissions(self.max_transmissions)?;
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
    /// Refuses what makes no sense. The period of scheduling requests is checked apart.
    pub(crate) fn check(
        &self,
        modulations: [UplinkModulation; 2],
        expected: &'static str,
        values: &'static Values,
    ) -> Result<(), ValueError> {
        if !modulations.contains(&self.modulation) {
            return Err(range("uplink", "modulation", expected));
        }
        SR_MAX_TRANSMISSIONS.check(self.sr_max_transmissions.into(), "uplink", "sr_max_transmissions")?;
        above_zero(self.first_grant.get() > 0, "uplink", "first_grant")?;
        at_most(self.first_grant.get(), 9000, "uplink", "first_grant")?;
        if let Some(prescheduling) = &self.prescheduling {
            milliseconds(prescheduling.interval, "uplink.prescheduling", "interval")?;
            above_zero(prescheduling.bytes.get() > 0, "uplink.prescheduling", "bytes")?;
            at_most(prescheduling.bytes.get(), 9000, "uplink.prescheduling", "bytes")?;
        }
        if self.configured_grant.is_some() && self.prescheduling.is_some() {
            let expected = "left out with `uplink.configured_grant`: mobiles have grants without a request there";
            return Err(range("uplink", "prescheduling", expected));
        }
        values.periodic_bsr.check_span(self.periodic_bsr, "uplink", "periodic_bsr")?;
        values.retx_bsr.check_span(self.retx_bsr, "uplink", "retx_bsr")?;
        values.random_access.check_span(self.random_access.period, "uplink.random_access", "period")?;
        milliseconds(self.random_access.message, "uplink.random_access", "message")?;
        if self.retx_bsr <= self.periodic_bsr {
            let expected = "longer than `uplink.periodic_bsr`: otherwise each report is requested again";
            return Err(range("uplink", "retx_bsr", expected));
        }
        Ok(())
    }
}

/// Refuses configured grants, which LTE does not have.
pub(crate) fn no_configured_grant(uplink: &Uplink) -> Result<(), ValueError> {
    if uplink.configured_grant.is_some() {
        let expected =
            "left out, with its `period`, `offset`, `mcs` and `bytes`: only NR has such grants (TS 38.321 §5.8.2)";
        return Err(range("uplink", "configured_grant", expected));
    }
    Ok(())
}

impl Drx {
    /// Refuses what makes no sense in a connection that is released after `inactivity`, if it is.
    pub(crate) fn check(&self, inactivity: Option<Span>, values: &'static Values) -> Result<(), ValueError> {
        values.drx_on.check_span(self.on, "drx", "on")?;
        values.drx_inactivity.check_span(self.inactivity, "drx", "inactivity")?;
        values.drx_long.check_span(self.long, "drx", "long")?;
        if self.on > self.long {
            return Err(range("drx", "on", "at most `drx.long`: the mobile listens once in a cycle"));
        }
        if inactivity.is_some_and(|inactivity| self.inactivity >= inactivity) {
            let expected = "shorter than `rrc.inactivity`: otherwise the connection is released before DRX begins \
                            (TS 36.321 §5.7, TS 38.321 §5.7); `drx = false` is a mobile without DRX";
            return Err(range("drx", "inactivity", expected));
        }
        match (self.short, self.short_count) {
            (Some(short), Some(count)) => {
                values.drx_short.check_span(short, "drx", "short")?;
                if short < self.on || !self.long.as_nanos().is_multiple_of(short.as_nanos()) || short == self.long {
                    let expected =
                        "at least `drx.on`, and a fraction of `drx.long` (TS 36.331 §6.3.2, TS 38.331 §6.3.2)";
                    return Err(range("drx", "short", expected));
                }
                let clause = "drxShortCycleTimer, TS 36.331 §6.3.2 and TS 38.331 §6.3.2";
                between(count.into(), [1, 16], "drx", "short_count", clause)
            }
            (None, None) => Ok(()),
            (Some(_), None) => Err(ValueError::Needs { key: "drx.short".to_owned(), needs: "drx.short_count" }),
            (None, Some(_)) => Err(ValueError::Needs { key: "drx.short_count".to_owned(), needs: "drx.short" }),
        }
    }
}

impl Rrc {
    /// Refuses what makes no sense.
    pub(crate) fn check(&self, values: &'static Values) -> Result<(), ValueError> {
        milliseconds(self.inactivity, "rrc", "inactivity")?;
        milliseconds(self.promotion, "rrc", "promotion")?;
        values.paging.check_span(self.paging, "rrc", "paging")?;
        milliseconds(self.re_establishment, "rrc", "re_establishment")?;
        T310.check_span(self.t310, "rrc", "t310")?;
        T311.check_span(self.t311, "rrc", "t311")?;
        if self.inactivity <= self.promotion {
            let expected = "longer than `rrc.promotion`: otherwise the connection ends before its data is sent";
            return Err(range("rrc", "inactivity", expected));
        }
        self.power_saving
            .as_ref()
            .map_or(Ok(()), |power_saving| power_saving.check(self.paging, &ExtendedCycles::WIDEBAND))
    }
}
