//! The constants of BBR, version 3, in which its sources differ.

use crate::config::Bbr3Constants;
use crate::congestion::bbr::UNIT;

/// Gains and shares are in 256ths.
#[derive(Debug)]
pub struct Constants {
    /// Pacing gain that drains the queue of startup.
    pub drain_gain: u64,
    /// Rounds after which the drain ends at the latest.
    pub drain_rounds: Option<u64>,
    /// Pacing gain that drains the queue of a probe for bandwidth.
    pub down_gain: u64,
    /// Losses cut the short-term bounds, and the long-term one, to this part.
    pub loss_cut: u64,
}

/// The branch `v3` of google/bbr, `tcp_bbr.c`.
const LINUX: Constants = Constants {
    drain_gain: UNIT * 1000 / 2885, // bbr_drain_gain
    drain_rounds: None,
    down_gain: UNIT * 91 / 100,       // bbr_pacing_gain
    loss_cut: UNIT - UNIT * 30 / 100, // 1 - bbr_beta
};

/// draft-ietf-ccwg-bbr-06, to the nearest 256th.
const DRAFT_06: Constants = Constants {
    drain_gain: UNIT / 2,              // BBR.DrainPacingGain, 0.5: §2.5, §5.3.2
    drain_rounds: Some(3),             // CheckDrainDone: §5.3.2
    down_gain: (UNIT * 90 + 50) / 100, // 0.90: §5.3.3.1, §5.6.1
    loss_cut: (UNIT * 70 + 50) / 100,  // BBR.Beta, 0.7: §2.8
};

impl Constants {
    pub const fn of(set: Bbr3Constants) -> &'static Self {
        match set {
            Bbr3Constants::Linux => &LINUX,
            Bbr3Constants::Draft06 => &DRAFT_06,
        }
    }
}
