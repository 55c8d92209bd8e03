//! Every setting of an end point.

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// The settings of an end point. A [`Profile`](crate::Profile) is a set of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether connections open with a handshake and end with FINs; without, both ends are open from the start.
    pub handshake: bool,
    /// Largest payload of a segment, before options take their share.
    pub maximum_segment_size: Bytes,
    /// Whether the last segment of a stream is filled up to the full size, as where packets are counted.
    pub whole_segments: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer selective acknowledgement (RFC 2018).
    pub sack: bool,
    /// Receive buffer: the window that is offered when it is empty.
    pub receive_buffer: Bytes,
    /// The sender's own limit of outstanding data; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_window: Option<Bytes>,
    /// Initial window, in segments.
    pub initial_window: u32,
    /// Initial slow-start threshold; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_slow_start_threshold: Option<Bytes>,
    /// How the congestion window moves.
    pub congestion_control: Algorithm,
    /// Whether the window grows by acknowledgements instead of bytes acknowledged.
    pub count_acknowledgements: bool,
    /// Halve to whole segments.
    pub whole_segment_window: bool,
    /// On a partial acknowledgement restart the retransmission timer only the first time (RFC 6582 §4).
    pub impatient: bool,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Longest delay of an acknowledgement; zero acknowledges at once.
    pub delayed_ack: Span,
    /// Acknowledge at the latest every so many segments.
    pub ack_every: u32,
    /// Hold back small segments while data is outstanding (RFC 896).
    pub nagle: bool,
    /// Time-out before the first measurement.
    pub initial_rto: Span,
    /// Least time-out.
    pub min_rto: Span,
    /// Greatest time-out.
    pub max_rto: Span,
    /// Granularity of the clock (G of RFC 6298).
    pub rto_granularity: Span,
    /// Whether measurements and time-outs are whole ticks of that clock.
    pub coarse_clock: bool,
    /// Retransmissions of one segment before the connection is given up.
    pub maximum_retransmissions: u32,
}

/// How the congestion window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// RFC 5681 and RFC 6582.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// It does not: the maximum window is in force at all times.
    Fixed,
}
