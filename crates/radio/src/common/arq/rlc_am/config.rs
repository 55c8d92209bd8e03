//! The parameters of the RLC's acknowledged mode, as a scenario has them.

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ModelError, ValueError, above_zero, at_most, within_an_hour};

/// The acknowledged mode of RLC (TS 25.322). What is left out is not configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rlc {
    /// Configured_Tx_Window_Size, at most 4095 (TS 25.331 §10.3.4.23).
    pub window: u32,
    /// MaxDAT: a PDU is not sent for this time (TS 25.322 §9.6).
    pub max_dat: u32,
    /// Whether a PDU in which a packet ends carries the beginning of the next, too. TS 25.322
    /// §9.2.2.8 lets a PDU have several length indicators; a sender that does not use that fills up
    /// with padding.
    #[serde(default = "concatenation")]
    pub concatenation: bool,
    /// What is done about a PDU that reached MaxDAT. Without it, the RLC resets ("no discard after
    /// MaxDAT").
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Discard>,
    /// Timer_RST: how long an answer to a RESET is waited for.
    pub timer_rst: Span,
    /// MaxRST: a RESET that would be sent for this time ends the connection instead.
    pub max_rst: u32,
    /// Whether the last PDU in the buffer polls.
    pub poll_last: bool,
    /// Whether the last PDU that is sent again polls.
    pub poll_last_repeat: bool,
    /// Poll_PDU: one PDU in this number polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_pdus: Option<u32>,
    /// Poll_SDU: the last PDU of one packet in this number polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_packets: Option<u32>,
    /// Poll_Window: what share of the window, in percent, must be used for a PDU to poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_window: Option<u32>,
    /// Timer_Poll: how long an answer to a poll is waited for, before the poll is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_poll: Option<Span>,
    /// Timer_Poll_Prohibit: the time between two polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_poll_prohibit: Option<Span>,
    /// Timer_Poll_Periodic: a poll at least this often while there is something to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_poll_periodic: Option<Span>,
    /// Whether the receiver reports as soon as it finds PDUs missing.
    pub status_missing: bool,
    /// Timer_Status_Prohibit: the time between two status reports of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_status_prohibit: Option<Span>,
}

/// SDU discard with explicit signalling: packets are discarded one by one, and the receiver is
/// informed (MRW). After MaxDAT number of transmissions (TS 25.322 §9.7.3.3) these are the packets
/// with data in the PDU, and all before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discard {
    /// Timer_MRW: how long the sender waits for the answer to a MRW, which reports a discard.
    pub timer_mrw: Span,
    /// MaxMRW: the number of MRWs without an answer after which the RLC resets.
    pub max_mrw: u32,
    /// Timer_Discard: how long after its arrival a packet is discarded that was not delivered (TS
    /// 25.322 §9.7.3.1). TS 25.331 §10.3.4.25 configures either this or MaxDAT; here the first of
    /// the two decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_discard: Option<Span>,
}

const fn concatenation() -> bool {
    true
}

/// Parameters of the RLC that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RlcError {
    /// A single value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Polls that can leave both ends waiting for each other.
    #[error(
        "the loss of the last PDU would never be noticed: set `poll_last`, `poll_last_repeat` and `timer_poll`, or `timer_poll_periodic`"
    )]
    Polls {
        /// The table, dotted, below the bearer's.
        key: String,
    },
}

impl ModelError for RlcError {
    fn field(&self) -> String {
        match self {
            Self::Value(error) => error.field(),
            Self::Polls { key } => key.clone(),
        }
    }
}

/// The largest Transmission_window_size (TS 25.331 §10.3.4.23: `tw4095`): one less than there are
/// sequence numbers of 12 bits.
const LARGEST_WINDOW: u32 = 4095;

impl Rlc {
    pub(crate) fn check(&self, table: &str) -> Result<(), RlcError> {
        above_zero(self.window > 0, table, "window")?;
        at_most(self.window.into(), LARGEST_WINDOW.into(), table, "window")?;
        // One transmission, at least.
        above_zero(self.max_dat > 1, table, "max_dat")?;
        above_zero(self.max_rst > 1, table, "max_rst")?;
        above_zero(!self.timer_rst.is_zero(), table, "timer_rst")?;
        if let Some(discard) = &self.discard {
            above_zero(!discard.timer_mrw.is_zero(), table, "discard.timer_mrw")?;
            within_an_hour(discard.timer_mrw, table, "discard.timer_mrw")?;
            above_zero(discard.max_mrw > 0, table, "discard.max_mrw")?;
            above_zero(discard.timer_discard.is_none_or(|span| !span.is_zero()), table, "discard.timer_discard")?;
            within_an_hour(discard.timer_discard.unwrap_or_default(), table, "discard.timer_discard")?;
        }
        above_zero(self.poll_pdus != Some(0), table, "poll_pdus")?;
        above_zero(self.poll_packets != Some(0), table, "poll_packets")?;
        for (timer, key) in [
            (self.timer_poll, "timer_poll"),
            (self.timer_poll_prohibit, "timer_poll_prohibit"),
            (self.timer_poll_periodic, "timer_poll_periodic"),
            (self.timer_status_prohibit, "timer_status_prohibit"),
        ] {
            above_zero(timer.is_none_or(|span| !span.is_zero()), table, key)?;
            within_an_hour(timer.unwrap_or_default(), table, key)?;
        }
        let polls_last = self.poll_last && self.poll_last_repeat && self.timer_poll.is_some();
        if !polls_last && self.timer_poll_periodic.is_none() {
            return Err(RlcError::Polls { key: table.to_owned() });
        }
        within_an_hour(self.timer_rst, table, "timer_rst")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_limits() {
        let check = |more: &str| {
            let text = "window = 100\nmax_dat = 4\ntimer_rst = \"1 s\"\nmax_rst = 4\npoll_last = true\n\
                        poll_last_repeat = true\nstatus_missing = true\ntimer_poll = \"1 s\"\n";
            let mut table: toml::Table = text.parse().expect("toml");
            table.extend(more.parse::<toml::Table>().expect(more));
            let rlc: Rlc = table.try_into().expect(more);
            rlc.check("rlc").map_err(|error| error.field())
        };
        for (accepted, refused, key) in [
            ("window = 1", "window = 0", "rlc.window"),
            ("window = 4095", "window = 4096", "rlc.window"),
            ("max_dat = 2", "max_dat = 1", "rlc.max_dat"),
            ("max_rst = 2", "max_rst = 1", "rlc.max_rst"),
            ("timer_rst = \"1 ns\"", "timer_rst = \"0 s\"", "rlc.timer_rst"),
            ("timer_rst = \"1 h\"", "timer_rst = \"2 h\"", "rlc.timer_rst"),
            ("poll_pdus = 1", "poll_pdus = 0", "rlc.poll_pdus"),
            ("poll_packets = 1", "poll_packets = 0", "rlc.poll_packets"),
            ("timer_poll = \"1 h\"", "timer_poll = \"2 h\"", "rlc.timer_poll"),
            ("timer_poll_prohibit = \"1 ns\"", "timer_poll_prohibit = \"0 s\"", "rlc.timer_poll_prohibit"),
            ("timer_status_prohibit = \"1 h\"", "timer_status_prohibit = \"2 h\"", "rlc.timer_status_prohibit"),
            (
                "discard = { timer_mrw = \"1 h\", max_mrw = 1 }",
                "discard = { timer_mrw = \"2 h\", max_mrw = 1 }",
                "rlc.discard.timer_mrw",
            ),
            (
                "discard = { timer_mrw = \"1 ns\", max_mrw = 1 }",
                "discard = { timer_mrw = \"0 s\", max_mrw = 1 }",
                "rlc.discard.timer_mrw",
            ),
            (
                "discard = { timer_mrw = \"1 s\", max_mrw = 1 }",
                "discard = { timer_mrw = \"1 s\", max_mrw = 0 }",
                "rlc.discard.max_mrw",
            ),
            (
                "discard = { timer_mrw = \"1 s\", max_mrw = 1, timer_discard = \"1 h\" }",
                "discard = { timer_mrw = \"1 s\", max_mrw = 1, timer_discard = \"2 h\" }",
                "rlc.discard.timer_discard",
            ),
            (
                "discard = { timer_mrw = \"1 s\", max_mrw = 1, timer_discard = \"1 ns\" }",
                "discard = { timer_mrw = \"1 s\", max_mrw = 1, timer_discard = \"0 s\" }",
                "rlc.discard.timer_discard",
            ),
            // The loss of the last PDU is noticed by its poll, or by periodic polls.
            ("poll_last = false\ntimer_poll_periodic = \"1 s\"", "poll_last = false", "rlc"),
            ("poll_last_repeat = false\ntimer_poll_periodic = \"1 s\"", "poll_last_repeat = false", "rlc"),
        ] {
            assert_eq!(check(accepted), Ok(()), "{accepted}");
            assert_eq!(check(refused), Err(key.to_owned()), "{refused}");
        }
    }
}
