//! Congestion control: the size of the congestion window.
//!
//! A controller receives what was acknowledged and what was lost, and returns a window. Which
//! segments are retransmitted, and when, is decided elsewhere. A caller installs a controller of
//! its own with [`Connection::set_congestion_control`](crate::Connection::set_congestion_control).

mod bbr;
mod bbr3;
mod copa;
mod cubic;
mod fixed;
mod hystart;
mod hystart_plus_plus;
mod ledbat;
mod new_reno;
mod prague;
mod vegas;
mod westwood;
mod wtcp;

use std::fmt;

use airpath_core::{Bitrate, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::accurate_ecn::EcnMode;
use crate::config::{Algorithm, Config};

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use copa::Copa;
pub use cubic::Cubic;
pub use fixed::Fixed;
pub use ledbat::Ledbat;
pub use new_reno::NewReno;
pub use prague::Prague;
pub use vegas::Vegas;
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

/// An acknowledgement, for a controller that takes over ([`CongestionControl::takes_over`]): its
/// delivery rate sample and the state of the connection after it. Counts are in segments.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Arrival time.
    pub now: Instant,
    /// Segments delivered so far, the SYN included.
    pub total_delivered: u64,
    /// Segments marked as lost so far.
    pub total_lost: u64,
    /// Time of the last delivery.
    pub delivered_at: Instant,
    /// Segments delivered since the sampled segment was sent. `None` without a newly delivered
    /// segment.
    pub delivered: Option<u64>,
    /// Time in which they were delivered. `None` if it is shorter than the least round trip.
    pub interval: Option<Span>,
    /// Segments delivered before the sampled segment was sent.
    pub prior_delivered: u64,
    /// Segments marked as lost since the sampled segment was sent.
    pub lost: u64,
    /// Segments in flight when it was sent, with it.
    pub sent_in_flight: u64,
    /// Whether the application, not the network, limited the rate.
    pub app_limited: bool,
    /// The round trip of the last delivered segment.
    pub round_trip: Option<Span>,
    /// Whether the receiver probably delayed the acknowledgement.
    pub ack_delayed: bool,
    /// Newly delivered segments.
    pub acknowledged: u64,
    /// Segments with CE marks that the receiver newly reports, with accurate ECN.
    pub marked: u64,
    /// Newly lost segments.
    pub losses: u64,
    /// Segments in flight.
    pub in_flight: u64,
    /// The same before the acknowledgement.
    pub prior_in_flight: u64,
    /// The least round trip of the last minutes.
    pub least_round_trip: Option<Span>,
    /// Smoothed round trip.
    pub smoothed_round_trip: Option<Span>,
    /// Earliest departure of the next segment.
    pub departure: Instant,
    /// Whether a fast recovery is in progress.
    pub recovery: bool,
    /// Whether the losses of a timeout are being repaired.
    pub timed_out: bool,
}

/// A segment that is marked as lost, for a controller that takes over. Counts are in segments.
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// In flight when it was sent, with it.
    pub in_flight: u64,
    /// Marked as lost since then, with it.
    pub lost: u64,
    /// Delivered so far.
    pub delivered: u64,
    /// Whether the application, not the network, limited the rate at which it was sent.
    pub app_limited: bool,
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
///     fn on_idle(&mut self, _: Instant, window: u64, _: u64) { self.0 = self.0.min(window); }
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

    /// Whether it takes over: it sets window and pacing rate itself with each acknowledgement
    /// ([`Self::on_rate_sample`]). The window is then not reduced proportionally (PRR) nor after
    /// idle times, and the connection always paces. Constant over the life of a controller.
    fn takes_over(&self) -> bool {
        false
    }

    /// The connection is open; the round trip of the SYN, if it was measured. Random choices of the
    /// controller depend on `seed` alone.
    fn on_established(&mut self, now: Instant, round_trip: Option<Span>, seed: u64) {
        let _ = (now, round_trip, seed);
    }

    /// An acknowledgement was processed. Only for controllers that take over; after
    /// [`Self::on_ack`] and [`Self::on_congestion`].
    fn on_rate_sample(&mut self, sample: &RateSample) {
        let _ = sample;
    }

    /// Reductions of the window for marks so far, of a controller that decides about them in
    /// [`Self::on_rate_sample`]. It receives no [`Signal::Mark`], and a loss after a mark is a
    /// [`Signal::Loss`] as any other.
    fn mark_reductions(&self) -> Option<u64> {
        None
    }

    /// A segment was marked as lost. Only for controllers that take over; before the
    /// [`Self::on_rate_sample`] of the acknowledgement that shows it, or of the next one.
    fn on_segment_lost(&mut self, now: Instant, lost: &LostSegment) {
        let _ = (now, lost);
    }

    /// Whether every segment is paced in full: otherwise the first ten of a connection are not, and
    /// a late departure shortens the next gap, as in Linux. For controllers that measure the
    /// separation of segments.
    fn paces_strictly(&self) -> bool {
        false
    }

    /// Full segments have `size` payload bytes from now on: larger ones do not fit the path.
    /// Segments in flight were divided.
    fn on_segment_size(&mut self, size: u32) {
        let _ = size;
    }

    /// The timer has expired, and everything outstanding was marked as lost: `lost` segments since
    /// the connection was opened. After [`Self::on_congestion`].
    fn on_timeout_losses(&mut self, lost: u64) {
        let _ = lost;
    }

    /// A segment is sent while none is in flight, `idle` after the last one. Whether the
    /// application limits the sender is known of controllers that take over.
    fn on_transmission_start(&mut self, now: Instant, idle: Span, app_limited: bool) {
        let _ = (now, idle, app_limited);
    }

    /// Whether the last acknowledgement was processed in a state in which the controller itself
    /// keeps the rate low: samples of what is in flight are then application-limited.
    fn limits_itself(&self) -> bool {
        false
    }

    /// Segments that leave together, with pacing: `segments` by pacing rate and round trip. Linux
    /// sends at least two (`tcp_min_tso_segs`). `rate` is the pacing rate in bit/s.
    fn pacing_aggregate(&self, segments: u32, rate: u64) -> u32 {
        let _ = rate;
        segments.max(2)
    }

    /// Congestion was detected. Before the first signal of an episode, the state is saved for
    /// [`Self::undo`].
    fn on_congestion(&mut self, congested: &Congested);

    /// The last episode was spurious: restore the state before it.
    fn undo(&mut self, now: Instant);

    /// The window was not used, or not all of it, for a retransmission timeout or longer: it must
    /// not exceed `window`, nor the slow-start threshold be less than `threshold` (RFC 5681 §4.1,
    /// RFC 2861 §3).
    fn on_idle(&mut self, now: Instant, window: u64, threshold: u64);

    /// The congestion window.
    fn congestion_window(&self) -> u64;

    /// The slow-start threshold; `None` while it is unlimited.
    fn slow_start_threshold(&self) -> Option<u64>;

    /// The pacing rate, if the algorithm has one. By default the connection derives it from the
    /// window, where pacing is on.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }

    /// The factor of the pacing rate on the bandwidth of the model, in 256ths as Linux reports it
    /// (`tcp_bbr_info`), if the algorithm has one.
    fn pacing_gain(&self) -> Option<u32> {
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
    Vegas(Vegas),
    Fixed(Fixed),
    Bbr(Box<Bbr>),
    Bbr3(Box<Bbr3>),
    Copa(Box<Copa>),
    Ledbat(Box<Ledbat>),
    Prague(Box<Prague>),
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

    /// Whether its segments are ECT(1), for the L queue (RFC 9331 §4.1).
    #[inline]
    pub const fn is_scalable(&self) -> bool {
        matches!(self, Self::Prague(_))
    }

    /// The configured controller for a connection with this feedback of ECN.
    pub fn for_feedback(config: &Config, size: u32, mode: EcnMode) -> Self {
        if config.congestion.algorithm == Algorithm::Prague && mode != EcnMode::Accurate {
            // The reference's `prague_reno`.
            return Self::NewReno(NewReno::new(config, size));
        }
        Self::new(config, size)
    }

    /// The configured controller, for segments of `size` payload bytes.
    pub fn new(config: &Config, size: u32) -> Self {
        match config.congestion.algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::new(config, size)),
            Algorithm::Cubic => Self::Cubic(Box::new(Cubic::new(config, size))),
            Algorithm::Westwood => Self::Westwood(Westwood::new(config, size)),
            Algorithm::Wtcp => Self::Wtcp(Wtcp::new(config, size)),
            Algorithm::Vegas => Self::Vegas(Vegas::new(config, size)),
            Algorithm::Bbr => Self::Bbr(Box::new(Bbr::new(config, size))),
            Algorithm::Bbr3 => Self::Bbr3(Box::new(Bbr3::new(config, size))),
            Algorithm::Copa => Self::Copa(Box::new(Copa::new(config, size))),
            Algorithm::Prague => Self::Prague(Box::new(Prague::new(config, size))),
            Algorithm::Ledbat => Self::Ledbat(Box::new(Ledbat::new(config, size))),
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
            Controller::Vegas($controller) => $call,
            Controller::Fixed($controller) => $call,
            Controller::Bbr($controller) => $call,
            Controller::Bbr3($controller) => $call,
            Controller::Copa($controller) => $call,
            Controller::Ledbat($controller) => $call,
            Controller::Prague($controller) => $call,
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
    #[inline]
    fn takes_over(&self) -> bool {
        match self {
            Self::Bbr(_) | Self::Bbr3(_) | Self::Copa(_) | Self::Prague(_) => true,
            Self::Custom(controller) => controller.takes_over(),
            _ => false,
        }
    }
    fn on_established(&mut self, now: Instant, round_trip: Option<Span>, seed: u64) {
        each!(self, controller => controller.on_established(now, round_trip, seed));
    }
    fn on_rate_sample(&mut self, sample: &RateSample) {
        each!(self, controller => controller.on_rate_sample(sample));
    }
    #[inline]
    fn mark_reductions(&self) -> Option<u64> {
        each!(self, controller => controller.mark_reductions())
    }
    fn on_segment_lost(&mut self, now: Instant, lost: &LostSegment) {
        each!(self, controller => controller.on_segment_lost(now, lost));
    }
    fn paces_strictly(&self) -> bool {
        each!(self, controller => controller.paces_strictly())
    }
    fn on_segment_size(&mut self, size: u32) {
        each!(self, controller => controller.on_segment_size(size));
    }
    fn on_timeout_losses(&mut self, lost: u64) {
        each!(self, controller => controller.on_timeout_losses(lost));
    }
    fn on_transmission_start(&mut self, now: Instant, idle: Span, app_limited: bool) {
        each!(self, controller => controller.on_transmission_start(now, idle, app_limited));
    }
    fn limits_itself(&self) -> bool {
        each!(self, controller => controller.limits_itself())
    }
    fn pacing_aggregate(&self, segments: u32, rate: u64) -> u32 {
        each!(self, controller => controller.pacing_aggregate(segments, rate))
    }
    fn on_congestion(&mut self, congested: &Congested) {
        each!(self, controller => controller.on_congestion(congested));
    }
    fn undo(&mut self, now: Instant) {
        each!(self, controller => controller.undo(now));
    }
    fn on_idle(&mut self, now: Instant, window: u64, threshold: u64) {
        each!(self, controller => controller.on_idle(now, window, threshold));
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
    fn pacing_gain(&self) -> Option<u32> {
        each!(self, controller => controller.pacing_gain())
    }
}
