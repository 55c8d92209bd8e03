//! Settings of an era, by name.

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::config::{Algorithm, Config};

/// A named set of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// ns-2.
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

impl Profile {
    /// All.
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
    pub fn config(self) -> Config {
        let linux = Config {
            handshake: true,
            maximum_segment_size: Bytes::new(1460),
            whole_segments: false,
            window_scaling: true,
            timestamps: true,
            sack: true,
            receive_buffer: Bytes::new(6_291_456),
            maximum_window: None,
            initial_window: 10,
            initial_slow_start_threshold: None,
            congestion_control: Algorithm::Cubic,
            count_acknowledgements: false,
            whole_segment_window: false,
            impatient: true,
            limited_transmit: true,
            delayed_ack: Span::from_millis(40),
            ack_every: 2,
            nagle: true,
            initial_rto: Span::from_secs(1),
            min_rto: Span::from_millis(200),
            max_rto: Span::from_secs(120),
            rto_granularity: Span::from_millis(1),
            coarse_clock: false,
            maximum_retransmissions: 15,
        };
        match self {
            Self::Linux6 => linux,
            Self::Linux24 => Config {
                initial_window: 2,
                congestion_control: Algorithm::NewReno,
                initial_rto: Span::from_secs(3),
                receive_buffer: Bytes::new(87_380),
                ..linux
            },
            Self::WindowsXp => Config {
                initial_window: 2,
                congestion_control: Algorithm::NewReno,
                initial_rto: Span::from_secs(3),
                timestamps: false,
                window_scaling: false,
                receive_buffer: Bytes::new(64_240),
                delayed_ack: Span::from_millis(200),
                ..linux
            },
            Self::Ns2NewReno => Config {
                handshake: false,
                whole_segments: true,
                window_scaling: false,
                timestamps: false,
                sack: false,
                receive_buffer: Bytes::new(42 * 1460),
                maximum_window: Some(Bytes::new(42 * 1460)),
                initial_window: 2,
                initial_slow_start_threshold: Some(Bytes::new(40 * 1460)),
                congestion_control: Algorithm::NewReno,
                count_acknowledgements: true,
                whole_segment_window: true,
                delayed_ack: Span::from_millis(100),
                initial_rto: Span::from_secs(6),
                min_rto: Span::from_secs(1),
                max_rto: Span::from_secs(64),
                rto_granularity: Span::from_millis(10),
                coarse_clock: true,
                nagle: false,
                ..linux
            },
        }
    }
}

impl std::str::FromStr for Profile {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or(())
    }
}
