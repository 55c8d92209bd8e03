//! Congestion control: the size of the congestion window.
//!
//! A controller receives what was acknowledged and what was lost, and returns a window. Which
//! segments are retransmitted, and when, is decided elsewhere. A caller installs a controller of
//! its own with [`Connection::set_congestion_control`](crate::Connection::set_congestion_control).

mod cubic;
mod fixed;
mod hystart;
mod hystart_plus_plus;
mod new_reno;
mod westwood;
mod wtcp;

use std::fmt;

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::config::{Algorithm, Config};

pub use cubic::Cubic;
pub use fixed::Fixed;
pub use new_reno::NewReno;
pub use westwood::Westwood;
pub use wtcp::Wtcp;

/// An acknowledgement of new data, outside of a fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Arrival time.
    pub now: Instant,
    /// Cumulatively acknowledged bytes.
    pub bytes: u64,
    /// The round trip that it measured.
    pub round_trip: Option<Span>,
    /// Smoothed round trip.
    pub smoothed_round_trip: Option<Span>,
    /// The oldest unacknowledged byte, counted from the SYN.
    pub acknowledged: u64,
    /// One past the newest byte sent, counted from the SYN.
    pub sent: u64,
    /// Whether the congestion window limited the sender; otherwise the window should not grow.
    pub limited: bool,
}

/// Data that an acknowledgement reports as delivered, also within a fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Arrival time.
    pub now: Instant,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// A duplicate acknowledgement without SACK: a segment was delivered, but not which.
    pub duplicate: bool,
    /// The round trip that it measured.
    pub round_trip: Option<Span>,
    /// When the segment was sent that it echoes, and the receiver's clock in ticks (RFC 7323 §3.2).
    pub timestamps: Option<(Instant, u32)>,
}

/// A signal of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Losses detected from acknowledgements: a fast recovery begins.
    Loss,
    /// The retransmission timer expired: the window falls to one segment.
    Timeout,
    /// ECN echoes of the receiver (RFC 3168 §6.1.2).
    Mark,
}

/// Congestion, when it was detected and with how much outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Congested {
    /// Time of detection.
    pub now: Instant,
    /// The signal.
    pub signal: Signal,
    /// Whether the same recovery has already shrunk the window: the slow-start threshold set then
    /// stays.
    pub again: bool,
    /// Bytes outstanding.
    pub flight_size: u64,
    /// Upper bound of the window besides congestion.
    pub window_limit: u64,
}

/// An algorithm that computes the congestion window, in bytes.
///
/// ```
/// use airpath_core::{Direction, FlowId, Instant};
/// use airpath_tcp::{Acknowledged, Congested, CongestionControl, Connection, Identity, Profile};
///
/// /// Grows by the acknowledged bytes, and falls back to the initial window.
/// #[derive(Debug)]
/// struct Hasty(u64);
///
/// impl CongestionControl for Hasty {
///     fn name(&self) -> &'static str { "hasty" }
///     fn on_ack(&mut self, ack: &Acknowledged) { self.0 += ack.bytes; }
///     fn on_congestion(&mut self, _: &Congested) { self.0 = 15_000; }
///     fn undo(&mut self, _: Instant) {}
///     fn on_idle(&mut self, _: Instant, restart: u64) { self.0 = self.0.min(restart); }
///     fn congestion_window(&self) -> u64 { self.0 }
///     fn slow_start_threshold(&self) -> Option<u64> { None }
/// }
///
/// let id = Identity {
///     flow: FlowId(0),
///     direction: Direction::Up,
///     local_port: 50_000,
///     remote_port: 80,
///     initial_sequence: 0,
/// };
/// let mut connection = Connection::connect(&Profile::Linux6.config(), id, Instant::ZERO);
/// connection.set_congestion_control(Box::new(Hasty(15_000)));
/// assert_eq!(connection.negotiated().congestion_control, "hasty");
/// ```
pub trait CongestionControl: fmt::Debug + Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// New data was acknowledged, outside of a fast recovery.
    fn on_ack(&mut self, ack: &Acknowledged);

    /// An acknowledgement arrived, in any phase and before [`Self::on_ack`] or
    /// [`Self::on_congestion`]: for estimates of the rate.
    #[inline]
    fn on_delivered(&mut self, delivered: &Delivered) {
        let _ = delivered;
    }

    /// Congestion was detected. Before the first signal of an episode, the state is saved for
    /// [`Self::undo`].
    fn on_congestion(&mut self, congested: &Congested);

    /// The last episode was spurious: restore the state before it.
    fn undo(&mut self, now: Instant);

    /// Nothing was sent for one retransmission timeout: the window must not exceed `restart` (RFC
    /// 5681 §4.1).
    fn on_idle(&mut self, now: Instant, restart: u64);

    /// The congestion window.
    fn congestion_window(&self) -> u64;

    /// The slow-start threshold; `None` while it is unlimited.
    fn slow_start_threshold(&self) -> Option<u64>;

    /// The pacing rate, if the algorithm has one. By default the connection derives it from the
    /// window, where pacing is on.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }

    /// The state with which a caller installs its own controller in a connection that was
    /// serialised. The controllers of this crate are serialised with the connection.
    fn state(&self) -> Option<u64> {
        None
    }
}

/// The controllers of this crate, dispatched statically, and a caller's own, dispatched
/// dynamically.
#[derive(Debug, Serialize, Deserialize)]
pub enum Controller {
    NewReno(NewReno),
    Cubic(Box<Cubic>),
    Westwood(Westwood),
    Wtcp(Wtcp),
    Fixed(Fixed),
    #[serde(with = "custom")]
    Custom(Box<dyn CongestionControl>),
}

/// A caller's own controller is not serialised: the caller installs it again.
mod custom {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{CongestionControl, Fixed};

    #[expect(clippy::borrowed_box, reason = "serde passes the field as it is")]
    pub fn serialize<S: Serializer>(_: &Box<dyn CongestionControl>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<dyn CongestionControl>, D::Error> {
        <()>::deserialize(deserializer)?;
        Ok(Box::new(Fixed::new(1, 1)))
    }
}

impl Controller {
    /// Whether it may use [`CongestionControl::on_delivered`].
    #[inline]
    pub const fn estimates_rate(&self) -> bool {
        matches!(self, Self::Westwood(_) | Self::Wtcp(_) | Self::Custom(_))
    }

    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        match config.congestion.algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::new(config, size)),
            Algorithm::Cubic => Self::Cubic(Box::new(Cubic::new(config, size))),
            Algorithm::Westwood => Self::Westwood(Westwood::new(config, size)),
            Algorithm::Wtcp => Self::Wtcp(Wtcp::new(config, size)),
            Algorithm::Fixed => Self::Fixed(Fixed::new(config.congestion.fixed_window, size)),
        }
    }
}

macro_rules! each {
    ($self:expr, $controller:ident => $call:expr) => {
        match $self {
            Controller::NewReno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Westwood($controller) => $call,
            Controller::Wtcp($controller) => $call,
            Controller::Fixed($controller) => $call,
            Controller::Custom($controller) => $call,
        }
    };
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        each!(self, controller => controller.name())
    }
    #[inline]
    fn on_ack(&mut self, ack: &Acknowledged) {
        each!(self, controller => controller.on_ack(ack));
    }
    #[inline]
    fn on_delivered(&mut self, delivered: &Delivered) {
        each!(self, controller => controller.on_delivered(delivered));
    }
    fn on_congestion(&mut self, congested: &Congested) {
        each!(self, controller => controller.on_congestion(congested));
    }
    fn undo(&mut self, now: Instant) {
        each!(self, controller => controller.undo(now));
    }
    fn on_idle(&mut self, now: Instant, restart: u64) {
        each!(self, controller => controller.on_idle(now, restart));
    }
    #[inline]
    fn congestion_window(&self) -> u64 {
        each!(self, controller => controller.congestion_window())
    }
    #[inline]
    fn slow_start_threshold(&self) -> Option<u64> {
        each!(self, controller => controller.slow_start_threshold())
    }
    fn pacing_rate(&self) -> Option<Bitrate> {
        each!(self, controller => controller.pacing_rate())
    }
}
