//! Linux 6.
//!
//! Sources are the defaults in `include/net/tcp.h` and `Documentation/networking/ip-sysctl.rst`.
//! Not modelled: ACK compression and segmentation offload.

use airpath_core::{Bytes, Span};

use super::{CONGESTION, RECOVERY};
use crate::accurate_ecn::option::EcnOption;
use crate::config::{
    Algorithm, Config, Congestion, CubicGrowth, DelayedAck, Floor, HyStartVariant, IdleRestart, InitialWindow, Limit,
    Nagle, ReceiveBuffer, Recovery, RetransmissionTimeout, Samples, WindowClamp,
};

pub(super) const CONFIG: Config = Config {
    handshake: true,
    opening_segment: false,
    // TCP_SYN_RETRIES.
    opening_retries: 6,
    // tcp_syn_linear_timeouts, since 6.5.
    opening_linear_timeouts: 4,
    // TCP_TIMEWAIT_LEN.
    time_wait: Span::from_secs(60),
    maximum_segment_size: 1460,
    whole_segments: false,
    // tcp_window_scaling, tcp_timestamps (in ticks of 1 ms), tcp_sack, tcp_dsack.
    window_scaling: true,
    timestamps: true,
    timestamp_tick: Span::from_millis(1),
    selective_acknowledgement: true,
    duplicate_reports: true,
    // tcp_ecn 2: accepts ECN, but does not initiate it.
    ecn: false,
    accurate_ecn: false,
    // tcp_ecn_option 2, tcp_ecn_option_beacon 3.
    ecn_option: EcnOption::Full,
    ecn_option_beacon: 3,
    // tcp_rmem 131072 to 6291456 with tcp_moderate_rcvbuf, half for overhead
    // (tcp_adv_win_scale 1; since 6.6 the share is measured). The first window has whole segments
    // (tcp_select_initial_window).
    receive_buffer: ReceiveBuffer {
        clamp: WindowClamp::UNLIMITED,
        initial: Bytes::new(64_240),
        first_offer: Limit::at_most(44),
        maximum: Bytes::new(3_145_728),
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
    // Only with the queue discipline fq, or BBR, which always paces.
    pacing: false,
    // TCP_INIT_CWND.
    initial_window: InitialWindow::Segments(10),
    // tcp_init_transfer.
    initial_window_retries: 1,
    initial_slow_start_threshold: Limit::UNLIMITED,
    // tcp_slow_start_after_idle; tcp_is_cwnd_limited.
    idle_restart: IdleRestart::Rfc2861,
    window_validation: true,
    congestion: Congestion {
        algorithm: Algorithm::Cubic,
        // bictcp_update uses one factor for Reno's window estimate, whatever the window was before.
        reno_catch_up: false,
        // Windows are whole segments (tcp_reno_ssthresh, cubictcp_recalc_ssthresh).
        halve_to_whole_segments: true,
        // bictcp_update, cubictcp_cwnd_event.
        cubic_growth: CubicGrowth::Linux,
        // HZ / 32 in bictcp_update.
        update_interval: Span::from_micros(31_250),
        // 5 % a round trip while last_max_cwnd is unknown.
        growth_before_loss: Limit::at_most(20),
        // hystart and hystart_detect of net/ipv4/tcp_cubic.c: Reno has none.
        hystart: HyStartVariant::Linux,
        ..CONGESTION
    },
    recovery: Recovery {
        // tcp_recovery 1, tcp_early_retrans 3.
        rack: true,
        // tcp_check_sack_reordering; with RACK it is only reported.
        adaptive_threshold: true,
        tail_loss_probe: true,
        // tcp_cwnd_reduction.
        proportional_reduction: true,
        // tcp_frto 2.
        forward_rto: true,
        // tcp_packet_delayed, tcp_try_undo_dsack.
        eifel: true,
        duplicate_undo: true,
        ..RECOVERY
    },
    retransmission_timeout: RetransmissionTimeout {
        // TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_RTO_MAX; the minimum bounds the variation
        // (tcp_rtt_estimator).
        initial: Span::from_secs(1),
        minimum: Span::from_millis(200),
        floor: Floor::Variation,
        maximum: Span::from_secs(120),
        granularity: Span::from_micros(1),
        // tcp_retries2.
        retries: 15,
        // sack_rtt_us in tcp_ack_update_rtt and tcp_clean_rtx_queue.
        samples: Samples::EverySack,
    },
};
