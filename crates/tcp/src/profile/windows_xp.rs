//! Windows XP.
//!
//! A name in brackets is that of the value below `Tcpip\\Parameters` in the registry. Defaults are
//! those that Microsoft documents for Windows 2000 and Windows Server 2003; XP lies between them.

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
    // [TcpMaxConnectRetransmissions] 2.
    opening_retries: 2,
    opening_linear_timeouts: 0,
    // [TcpTimedWaitDelay] 240 s.
    time_wait: Span::from_secs(240),
    maximum_segment_size: 1460,
    whole_segments: false,
    // [Tcp1323Opts]: neither windows over 64 KB nor timestamps unless the peer offers them
    // (Microsoft, "Description of Windows TCP features", KB 224829).
    window_scaling: false,
    timestamps: false,
    timestamp_tick: Span::from_millis(100),
    // [SackOpts] 1 (KB 224829).
    selective_acknowledgement: true,
    duplicate_reports: false,
    ecn: false,
    accurate_ecn: false,
    ecn_option: EcnOption::Full,
    ecn_option_beacon: 3,
    // 64 KB on fast links, rounded down to whole segments: 44 × 1460 (KB 224829). On links of 1 to
    // 100 Mbit/s it is 17520.
    receive_buffer: ReceiveBuffer {
        clamp: WindowClamp::UNLIMITED,
        initial: Bytes::new(64_240),
        first_offer: Limit::UNLIMITED,
        maximum: Bytes::new(64_240),
    },
    // Every second segment, or after [TcpDelAckTicks] 2 of 100 ms.
    delayed_ack: DelayedAck {
        timeout: Span::from_millis(200),
        minimum: Span::from_millis(200),
        every: 2,
        full_sized: false,
        quick: 0,
        quick_growth: false,
    },
    window_limit: Limit::UNLIMITED,
    nagle: Nagle::Rfc896,
    pacing: false,
    // Slow start from two segments (RFC 2581 §3.1).
    initial_window: InitialWindow::Segments(2),
    initial_window_retries: 0,
    initial_slow_start_threshold: Limit::UNLIMITED,
    idle_restart: IdleRestart::Rfc5681,
    // A choice, as for every stack before RFC 2861.
    window_validation: false,
    congestion: Congestion { algorithm: Algorithm::NewReno, counting: Counting::Acknowledgements, ..CONGESTION },
    recovery: Recovery {
        // [TcpMaxDupAcks] 2.
        duplicate_threshold: 2,
        // A choice: no document mentions RFC 3042 for it.
        limited_transmit: false,
        ..RECOVERY
    },
    retransmission_timeout: RetransmissionTimeout {
        // [TcpInitialRtt] 3 s.
        initial: Span::from_secs(3),
        // A choice: later Windows documents 300 ms (`MinRto`).
        minimum: Span::from_millis(300),
        floor: Floor::Timeout,
        // A choice: five retries do not reach it.
        maximum: Span::from_secs(240),
        // A choice: the tick of the timers, as for [TcpDelAckTicks], would be 100 ms; round trips
        // are measured with a finer resolution.
        granularity: Span::from_millis(10),
        // [TcpMaxDataRetransmissions] 5.
        retries: 5,
        samples: Samples::OneAtATime,
    },
};
