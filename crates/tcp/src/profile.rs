//! Settings of an era, by name.

use std::fmt;
use std::str::FromStr;

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::config::{
    Algorithm, Config, Congestion, Counting, DelayedAck, Floor, Halving, InitialWindow, Limit, PartialAcks,
    ReceiveBuffer, Recovery, RetransmissionTimeout, Samples,
};

/// A named set of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// The one-way agents of ns-2 as of early 2004, `Agent/TCP/Newreno` and `Agent/TCPSink/DelAck`, with the windows of
    /// the study `hsdpa-sim`.
    #[serde(rename = "ns2-newreno")]
    Ns2NewReno,
    /// Windows XP.
    #[serde(rename = "windows-xp")]
    WindowsXp,
    /// Linux 2.4.
    #[serde(rename = "linux-2.4")]
    Linux24,
    /// Linux 6.
    #[serde(rename = "linux-6")]
    Linux6,
}

/// A name that no profile has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no TCP profile `{0}`: there are ns2-newreno, windows-xp, linux-2.4 and linux-6")]
pub struct UnknownProfile(String);

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Ns2NewReno, Self::WindowsXp, Self::Linux24, Self::Linux6];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns2NewReno => "ns2-newreno",
            Self::WindowsXp => "windows-xp",
            Self::Linux24 => "linux-2.4",
            Self::Linux6 => "linux-6",
        }
    }

    /// Its settings.
    pub const fn config(self) -> Config {
        match self {
            Self::Ns2NewReno => NS2_NEWRENO,
            Self::WindowsXp => WINDOWS_XP,
            Self::Linux24 => LINUX_2_4,
            Self::Linux6 => LINUX_6,
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

/// Defaults of ns-2 (`tcl/lib/ns-default.tcl`, `tcp/tcp.cc`, `tcp-newreno.cc`, `tcp-sink.cc`), with what they were in
/// February 2004 where that file dates a change, and with the windows of the study.
const NS2_NEWRENO: Config = Config {
    handshake: false,
    opening_segment: false,
    opening_retries: 6,
    time_wait: Span::ZERO,
    // packetSize_ 1460 and 40 bytes of headers (useHeaders_).
    maximum_segment_size: 1460,
    // Agents count packets, and send whole ones.
    whole_segments: true,
    window_scaling: true,
    timestamps: false,
    timestamp_tick: Span::from_millis(10),
    selective_acknowledgement: false,
    duplicate_reports: false,
    ecn: false,
    // The sink takes everything: window_limit stands for window_.
    receive_buffer: ReceiveBuffer { initial: Bytes::new(1 << 30), maximum: Bytes::new(1 << 30) },
    // Agent/TCPSink/DelAck: interval_ 100 ms; of two segments at most one waits.
    delayed_ack: DelayedAck {
        timeout: Span::from_millis(100),
        minimum: Span::from_millis(100),
        every: 2,
        full_sized: false,
        quick: 0,
    },
    // The study: windows of 2 (windowInit_) to 42 (window_) packets.
    window_limit: Limit::at_most(42),
    nagle: false,
    pacing: false,
    initial_window: InitialWindow::Segments(2),
    initial_slow_start_threshold: Limit::at_most(40),
    // slow_start_restart_ acts on a time-out only.
    idle_restart: false,
    // control_increase_ 0.
    window_validation: false,
    congestion: Congestion {
        algorithm: Algorithm::NewReno,
        counting: Counting::Acknowledgements,
        // windowd() is the least of cwnd_ and window_.
        halving: Halving::Window,
        // precisionReduce_ false until 2006/01/24.
        halve_to_whole_segments: true,
        ..CONGESTION
    },
    recovery: Recovery {
        duplicate_threshold: 3,
        // singledup_ 1 since 2001/11/28.
        limited_transmit: true,
        // newreno_changes1_ 1 since 2003/05/05.
        partial_acks: PartialAcks::Impatient,
        // send_much(…, 2) in fast recovery.
        burst: Limit::at_most(2),
        // slowdown(CLOSE_SSTHRESH_HALF) with every time-out.
        timeouts_add_up: true,
        ..RECOVERY
    },
    retransmission_timeout: RetransmissionTimeout {
        // rtxcur_init_ 6.0 until 2006/01/21.
        initial: Span::from_secs(6),
        // minrto_ 1 until 2004/10/14.
        minimum: Span::from_secs(1),
        floor: Floor::Timeout,
        // maxrto_ 60.
        maximum: Span::from_secs(60),
        // tcpTick_ 0.01 since 2002/03/07.
        granularity: Span::from_millis(10),
        // An agent never gives up; this is as long as matters.
        retries: u32::MAX,
        samples: Samples::OneAtATime,
    },
};

const WINDOWS_XP: Config = Config { ..LINUX_6 };
const LINUX_2_4: Config = Config { ..LINUX_6 };

const LINUX_6: Config = Config {
    handshake: true,
    opening_segment: false,
    opening_retries: 6,
    time_wait: Span::from_secs(60),
    maximum_segment_size: 1460,
    whole_segments: false,
    window_scaling: true,
    timestamps: true,
    timestamp_tick: Span::from_millis(1),
    selective_acknowledgement: true,
    duplicate_reports: true,
    ecn: false,
    receive_buffer: ReceiveBuffer { initial: Bytes::new(65_535), maximum: Bytes::new(6_291_456) },
    delayed_ack: DelayedAck {
        timeout: Span::from_millis(200),
        minimum: Span::from_millis(40),
        every: 2,
        full_sized: true,
        quick: 16,
    },
    window_limit: Limit::UNLIMITED,
    nagle: true,
    pacing: false,
    initial_window: InitialWindow::Segments(10),
    initial_slow_start_threshold: Limit::UNLIMITED,
    idle_restart: true,
    window_validation: true,
    congestion: Congestion { algorithm: Algorithm::Cubic, hystart: true, ..CONGESTION },
    recovery: Recovery {
        rack: true,
        tail_loss_probe: true,
        proportional_reduction: true,
        forward_rto: true,
        eifel: true,
        duplicate_undo: true,
        ..RECOVERY
    },
    retransmission_timeout: RetransmissionTimeout {
        initial: Span::from_secs(1),
        minimum: Span::from_millis(200),
        floor: Floor::Variation,
        maximum: Span::from_secs(120),
        granularity: Span::from_millis(1),
        retries: 15,
        samples: Samples::EveryAck,
    },
};

/// The RFCs, where a profile says nothing else.
const CONGESTION: Congestion = Congestion {
    algorithm: Algorithm::NewReno,
    fixed_window: 10,
    counting: Counting::Bytes,
    slow_start_limit: Limit::UNLIMITED,
    halving: Halving::Window,
    halve_to_whole_segments: false,
    fast_convergence: true,
    reno_friendly: true,
    hystart: false,
};

/// The RFCs, where a profile says nothing else.
const RECOVERY: Recovery = Recovery {
    duplicate_threshold: 3,
    adaptive_threshold: false,
    forward_acknowledgement: false,
    limited_transmit: true,
    partial_acks: PartialAcks::SlowButSteady,
    burst: Limit::UNLIMITED,
    timeouts_add_up: false,
    rack: false,
    tail_loss_probe: false,
    proportional_reduction: false,
    forward_rto: false,
    eifel: false,
    duplicate_undo: false,
};
