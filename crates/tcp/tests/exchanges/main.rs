//! One connection against a script: the segments that it sends, and when, in answer to others.

mod accurate;
mod acknowledgements;
mod closing;
mod flow_control;
mod marks;
mod opening;
mod recovery;
mod script;
mod spurious;

use airpath_core::{Bytes, Span};
use airpath_tcp::{
    Algorithm, Config, Congestion, DelayedAck, Floor, HyStartVariant, InitialWindow, Limit, Nagle, Profile,
    ReceiveBuffer, Recovery, RetransmissionTimeout, WindowClamp,
};

/// Settings for short scripts: segments of 1000 bytes, no options but selective acknowledgement,
/// NewReno from 10 segments, a timeout of exactly 1 s, acknowledgements after 200 ms or two
/// segments.
fn plain() -> Config {
    let base = Profile::Linux6.config();
    Config {
        opening_linear_timeouts: 0,
        maximum_segment_size: 1000,
        window_scaling: false,
        timestamps: false,
        receive_buffer: ReceiveBuffer {
            clamp: WindowClamp::UNLIMITED,
            initial: Bytes::new(10_000),
            first_offer: Limit::UNLIMITED,
            maximum: Bytes::new(10_000),
        },
        delayed_ack: DelayedAck {
            timeout: Span::from_millis(200),
            minimum: Span::from_millis(200),
            every: 2,
            full_sized: false,
            quick: 0,
            quick_growth: false,
        },
        initial_window: InitialWindow::Segments(10),
        initial_window_retries: 0,
        initial_slow_start_threshold: Limit::UNLIMITED,
        nagle: Nagle::Rfc896,
        window_validation: false,
        congestion: Congestion { algorithm: Algorithm::NewReno, hystart: HyStartVariant::Off, ..base.congestion },
        recovery: Recovery {
            rack: false,
            tail_loss_probe: false,
            proportional_reduction: false,
            forward_rto: false,
            eifel: false,
            duplicate_undo: false,
            ..base.recovery
        },
        retransmission_timeout: RetransmissionTimeout {
            minimum: Span::from_secs(1),
            floor: Floor::Timeout,
            ..base.retransmission_timeout
        },
        ..base
    }
}

/// The same without selective acknowledgement.
fn cumulative() -> Config {
    Config { selective_acknowledgement: false, ..plain() }
}
