//! TCP settings of an era, by name.

mod linux_2_0;
mod linux_2_4;
mod linux_6;
mod ns2_newreno;
mod windows_nt4;
mod windows_xp;

use std::fmt;
use std::str::FromStr;

use airpath_core::Span;
use serde::{Deserialize, Serialize};

use crate::config::{
    Algorithm, Bbr3Constants, Config, Congestion, Counting, CubicGrowth, Halving, HyStartVariant, Limit, PartialAcks,
    Recovery,
};

/// A named set of settings. Each has its own file, with the source of every number; what could not
/// be confirmed is marked there as a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// The one-way agents of ns-2 as of early 2004, `Agent/TCP/Newreno` and `Agent/TCPSink/DelAck`,
    /// with the windows of the study `hsdpa-sim`.
    #[serde(rename = "ns2-newreno")]
    Ns2NewReno,
    /// Windows NT 4.0.
    #[serde(rename = "windows-nt4")]
    WindowsNt4,
    /// Windows XP.
    #[serde(rename = "windows-xp")]
    WindowsXp,
    /// Linux 2.0.
    #[serde(rename = "linux-2.0")]
    Linux20,
    /// Linux 2.4.
    #[serde(rename = "linux-2.4")]
    Linux24,
    /// Linux 6.
    #[serde(rename = "linux-6")]
    Linux6,
}

/// A name without a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown TCP profile `{0}`: use ns2-newreno, windows-nt4, windows-xp, linux-2.0, linux-2.4 or linux-6")]
pub struct UnknownProfile(String);

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 6] =
        [Self::Ns2NewReno, Self::WindowsNt4, Self::WindowsXp, Self::Linux20, Self::Linux24, Self::Linux6];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns2NewReno => "ns2-newreno",
            Self::WindowsNt4 => "windows-nt4",
            Self::WindowsXp => "windows-xp",
            Self::Linux20 => "linux-2.0",
            Self::Linux24 => "linux-2.4",
            Self::Linux6 => "linux-6",
        }
    }

    /// The settings.
    pub const fn config(self) -> Config {
        match self {
            Self::Ns2NewReno => ns2_newreno::CONFIG,
            Self::WindowsNt4 => windows_nt4::CONFIG,
            Self::WindowsXp => windows_xp::CONFIG,
            Self::Linux20 => linux_2_0::CONFIG,
            Self::Linux24 => linux_2_4::CONFIG,
            Self::Linux6 => linux_6::CONFIG,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| UnknownProfile(name.into()))
    }
}

/// Values of the RFCs, for profiles that set nothing else.
const CONGESTION: Congestion = Congestion {
    algorithm: Algorithm::NewReno,
    fixed_window: 10,
    counting: Counting::Bytes,
    slow_start_limit: Limit::UNLIMITED,
    halving: Halving::Window,
    halve_to_whole_segments: false,
    least_window: 2,
    fast_convergence: true,
    reno_friendly: true,
    reno_catch_up: true,
    cubic_growth: CubicGrowth::Rfc9438,
    update_interval: Span::ZERO,
    growth_before_loss: Limit::UNLIMITED,
    hystart: HyStartVariant::Off,
    bbr3_constants: Bbr3Constants::Linux,
};

/// Values of the RFCs, for profiles that set nothing else.
const RECOVERY: Recovery = Recovery {
    duplicate_threshold: 3,
    adaptive_threshold: false,
    forward_acknowledgement: false,
    limited_transmit: true,
    partial_acks: PartialAcks::SlowButSteady,
    burst: Limit::UNLIMITED,
    timeouts_add_up: false,
    zero_window_freezes: false,
    loss_notification: false,
    rack: false,
    tail_loss_probe: false,
    proportional_reduction: false,
    forward_rto: false,
    eifel: false,
    duplicate_undo: false,
};
