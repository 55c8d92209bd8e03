//! The one-way agents of ns-2, `Agent/TCP/Newreno` and `Agent/TCPSink/DelAck`.
//!
//! Names ending in `_` are those of ns-2. Defaults are those of `tcl/lib/ns-default.tcl` in ns-2
//! 2.35, as of February 2004 where that file dates a change, as in the study `hsdpa-sim`. For those
//! of 2.35 itself set `opening_segment = true`, `retransmission_timeout.minimum = "200 ms"`,
//! `retransmission_timeout.initial = "3 s"` and `congestion.halve_to_whole_segments = false`.

use airpath_core::{Bytes, Span};

use super::{CONGESTION, RECOVERY};
use crate::accurate_ecn::option::EcnOption;
use crate::config::{
    Algorithm, Config, Congestion, Counting, DelayedAck, Floor, Halving, IdleRestart, InitialWindow, Limit, Nagle,
    PartialAcks, ReceiveBuffer, Recovery, RetransmissionTimeout, Samples, WindowClamp,
};

pub(super) const CONFIG: Config = Config {
    handshake: false,
    opening_segment: false,
    opening_retries: 6,
    opening_linear_timeouts: 0,
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
    accurate_ecn: false,
    ecn_option: EcnOption::Full,
    ecn_option_beacon: 3,
    // The sink accepts everything: window_limit stands for window_.
    receive_buffer: ReceiveBuffer {
        clamp: WindowClamp::UNLIMITED,
        initial: Bytes::new(1 << 30),
        first_offer: Limit::UNLIMITED,
        maximum: Bytes::new(1 << 30),
    },
    // Agent/TCPSink/DelAck: interval_ 100 ms; at most one segment waits.
    delayed_ack: DelayedAck {
        timeout: Span::from_millis(100),
        minimum: Span::from_millis(100),
        every: 2,
        full_sized: false,
        quick: 0,
        quick_growth: false,
    },
    // The study: windows of 2 (windowInit_) to 42 (window_) packets.
    window_limit: Limit::at_most(42),
    nagle: Nagle::Off,
    pacing: false,
    initial_window: InitialWindow::Segments(2),
    initial_window_retries: 0,
    initial_slow_start_threshold: Limit::at_most(40),
    // slow_start_restart_ acts on a timeout only.
    idle_restart: IdleRestart::Off,
    // control_increase_ 0.
    window_validation: false,
    congestion: Congestion {
        algorithm: Algorithm::NewReno,
        counting: Counting::Acknowledgements,
        // windowd() is the least of cwnd_ and window_.
        halving: Halving::Window,
        // precisionReduce_ false until 2006/01/24.
        halve_to_whole_segments: true,
        // slowdown() keeps ssthresh_ at 2 or more, but not cwnd_.
        least_window: 1,
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
        // slowdown(CLOSE_SSTHRESH_HALF) with every timeout.
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
        // An agent never aborts; this value is effectively infinite.
        retries: u32::MAX,
        samples: Samples::OneAtATime,
    },
};
