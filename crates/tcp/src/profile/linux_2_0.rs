//! Linux 2.0.
//!
//! Sources are `net/ipv4/tcp_input.c`, `tcp_output.c` and `include/net/tcp.h` of 2.0.3x.
//!
//! Not modelled: the delay of acknowledgements that follows the inter-arrival times (20 ms after a
//! PSH), the quarter of itself and the share of the window by which a timeout exceeds Jacobson's,
//! the window of 512 bytes in a SYN, and a fast recovery that ends at the first new
//! acknowledgement.

use airpath_core::{Bytes, Span};

use super::{CONGESTION, RECOVERY};
use crate::accurate_ecn::option::EcnOption;
use crate::config::{
    Algorithm, Config, Congestion, Counting, DelayedAck, Floor, IdleRestart, InitialWindow, Limit, Nagle, PartialAcks,
    ReceiveBuffer, Recovery, RetransmissionTimeout, Samples, WindowClamp,
};

pub(super) const CONFIG: Config = Config {
    handshake: true,
    opening_segment: false,
    // TCP_SYN_RETRIES.
    opening_retries: 10,
    opening_linear_timeouts: 0,
    // TCP_TIMEWAIT_LEN.
    time_wait: Span::from_secs(60),
    maximum_segment_size: 1460,
    whole_segments: false,
    // tcp_options reads the maximum segment size alone.
    window_scaling: false,
    timestamps: false,
    timestamp_tick: Span::from_millis(10),
    selective_acknowledgement: false,
    duplicate_reports: false,
    ecn: false,
    accurate_ecn: false,
    ecn_option: EcnOption::Full,
    ecn_option_beacon: 3,
    // tcp_new_window: half of SK_RMEM_MAX 32767, in whole multiples of 1024; a kernel with
    // CONFIG_SKB_LARGE offers 31744.
    receive_buffer: ReceiveBuffer {
        clamp: WindowClamp::UNLIMITED,
        initial: Bytes::new(15_360),
        first_offer: Limit::UNLIMITED,
        maximum: Bytes::new(15_360),
    },
    // tcp_queue: at most HZ/2; max_unacked of two segments.
    delayed_ack: DelayedAck {
        timeout: Span::from_millis(500),
        minimum: Span::from_millis(500),
        every: 2,
        full_sized: true,
        quick: 0,
        quick_growth: false,
    },
    window_limit: Limit::UNLIMITED,
    // tcp_send_partial once nothing is outstanding.
    nagle: Nagle::Rfc896,
    pacing: false,
    // cong_window 1, and one more for the acknowledgement of the SYN (tcp_ack).
    initial_window: InitialWindow::Segments(2),
    initial_window_retries: 0,
    initial_slow_start_threshold: Limit::UNLIMITED,
    // tcp_send_skb, after an idle time of one timeout.
    idle_restart: IdleRestart::Rfc5681,
    window_validation: false,
    // tcp_ack; the window is a number of segments.
    congestion: Congestion {
        algorithm: Algorithm::NewReno,
        counting: Counting::Acknowledgements,
        halve_to_whole_segments: true,
        ..CONGESTION
    },
    recovery: Recovery {
        // MAX_DUP_ACKS; 2 in earlier kernels.
        duplicate_threshold: 3,
        limited_transmit: false,
        partial_acks: PartialAcks::Impatient,
        ..RECOVERY
    },
    retransmission_timeout: RetransmissionTimeout {
        // TCP_TIMEOUT_INIT; tcp_rtt_estimator.
        initial: Span::from_secs(3),
        minimum: Span::from_millis(200),
        floor: Floor::Timeout,
        maximum: Span::from_secs(120),
        // Jiffies.
        granularity: Span::from_millis(10),
        // TCP_RETR2.
        retries: 15,
        samples: Samples::EveryAck,
    },
};
