//! Linux 2.4.
//!
//! Sources are `net/ipv4/tcp_input.c` and `include/net/tcp.h` of 2.4.27. Not modelled: detection of
//! lost retransmissions before the timer.

use airpath_core::{Bytes, Span};

use super::{CONGESTION, RECOVERY};
use crate::accurate_ecn::option::EcnOption;
use crate::config::{
    Algorithm, Config, Congestion, Counting, DelayedAck, Floor, IdleRestart, InitialWindow, Limit, Nagle,
    ReceiveBuffer, Recovery, RetransmissionTimeout, Samples, WindowClamp,
};

pub(super) const CONFIG: Config = Config {
    handshake: true,
    opening_segment: false,
    // TCP_SYN_RETRIES.
    opening_retries: 5,
    opening_linear_timeouts: 0,
    // TCP_TIMEWAIT_LEN.
    time_wait: Span::from_secs(60),
    maximum_segment_size: 1460,
    whole_segments: false,
    // sysctl_tcp_window_scaling, sysctl_tcp_timestamps, in jiffies of 10 ms.
    window_scaling: true,
    timestamps: true,
    timestamp_tick: Span::from_millis(10),
    // sysctl_tcp_sack, sysctl_tcp_dsack.
    selective_acknowledgement: true,
    duplicate_reports: true,
    // sysctl_tcp_ecn depends on how the kernel was built; distributions turned it off.
    ecn: false,
    accurate_ecn: false,
    ecn_option: EcnOption::Full,
    ecn_option_beacon: 3,
    // sysctl_tcp_rmem 87380 less a quarter for overhead (sysctl_tcp_adv_win_scale 2);
    // sysctl_tcp_moderate_rcvbuf 0: it does not grow.
    receive_buffer: ReceiveBuffer {
        clamp: WindowClamp::UNLIMITED,
        initial: Bytes::new(65_535),
        // tcp_select_initial_window: four segments of up to 1460 bytes; then tcp_grow_window. The
        // study gprs-proxy saw 5392 bytes.
        first_offer: Limit::at_most(4),
        maximum: Bytes::new(65_535),
    },
    // TCP_DELACK_MAX, TCP_DELACK_MIN, TCP_MAX_QUICKACKS; the second full-sized segment is
    // acknowledged.
    delayed_ack: DelayedAck {
        timeout: Span::from_millis(200),
        minimum: Span::from_millis(40),
        every: 2,
        full_sized: true,
        quick: 16,
        // tcp_grow_window.
        quick_growth: true,
    },
    window_limit: Limit::UNLIMITED,
    // tcp_minshall_check.
    nagle: Nagle::Minshall,
    pacing: false,
    // tcp_init_cwnd: 2 where the path is unknown and the round trip is longer than 20 ms.
    initial_window: InitialWindow::Segments(2),
    initial_window_retries: 0,
    initial_slow_start_threshold: Limit::UNLIMITED,
    // tcp_cwnd_restart, tcp_cwnd_application_limited (RFC 2861).
    idle_restart: IdleRestart::Rfc2861,
    window_validation: true,
    // tcp_cong_avoid counts acknowledgements; tcp_recalc_ssthresh halves the window.
    congestion: Congestion { algorithm: Algorithm::NewReno, counting: Counting::Acknowledgements, ..CONGESTION },
    recovery: Recovery {
        // sysctl_tcp_reordering; tcp_update_reordering.
        duplicate_threshold: 3,
        adaptive_threshold: true,
        // sysctl_tcp_fack.
        forward_acknowledgement: true,
        // tcp_cwnd_down halves the rate, one segment for every two that arrive, as PRR does.
        proportional_reduction: true,
        // sysctl_tcp_frto 0.
        forward_rto: false,
        // tcp_packet_delayed, tcp_try_undo_dsack.
        eifel: true,
        duplicate_undo: true,
        ..RECOVERY
    },
    retransmission_timeout: RetransmissionTimeout {
        // TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_RTO_MAX; the minimum bounds the variation
        // (tcp_rtt_estimator).
        initial: Span::from_secs(3),
        minimum: Span::from_millis(200),
        floor: Floor::Variation,
        maximum: Span::from_secs(120),
        // Jiffies.
        granularity: Span::from_millis(10),
        // TCP_RETR2.
        retries: 15,
        samples: Samples::EveryAck,
    },
};
