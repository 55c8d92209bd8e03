//! A TCP end point without I/O: no sockets, no clock, no payload.
//!
//! A [`Connection`] receives segments and the time. It returns the segments to send and the time of
//! its next wake-up. It counts bytes instead of carrying them: a caller with payload stores it by
//! stream offset. Everything that differs between stacks is a setting in a [`Config`], and a
//! [`Profile`] bundles the settings of an era.
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | `connection` | state machine: opening, closing, input, output, timers, ICMP errors | RFC 9293, RFC 5961, RFC 7323, RFC 5927 |
//!    | `sender` | outstanding data, its limits, what to send next | RFC 9293, RFC 5681, RFC 6675 |
//!    | `scoreboard` | outstanding segments, and which are lost | RFC 2018, RFC 6675 |
//!    | `rack` | loss detection by time | RFC 8985 |
//!    | `rate` | delivery rate estimation | draft-cheng-iccrg-delivery-rate-estimation |
//!    | `prr` | window during a recovery | RFC 6937 |
//!    | `frto`, `undo` | detection of spurious window reductions | RFC 5682, RFC 3522, RFC 3708, RFC 4015 |
//!    | `rtt` | round trips and the retransmission timeout | RFC 6298 |
//!    | `congestion` | NewReno, CUBIC, BBR 1 and 3, Prague, Copa, LEDBAT++, Vegas, Westwood+, WTCP, a fixed window, or the caller's | RFC 5681, RFC 9438, RFC 9406, draft-cardwell-iccrg-bbr-congestion-control-00, draft-ietf-ccwg-bbr |
//!    | `accurate_ecn` | feedback of ECN by counters of packets and bytes | RFC 9768 |
//!    | `receiver` | reassembly, selective acknowledgements | RFC 9293, RFC 2018, RFC 2883 |
//!    | `receive_window`, `delayed_ack` | window to offer, when to acknowledge | RFC 9293, RFC 5681 |
//!
//! Two connections, connected directly:
//!
//! ```
//! use airpath_core::{ComponentId, Context, Direction, FlowId, Instant};
//! use airpath_tcp::{Connection, Identity, Profile, State};
//!
//! let config = Profile::Linux6.config();
//! let end = |direction, local_port, remote_port| Identity {
//!     flow: FlowId(0),
//!     direction,
//!     local_port,
//!     remote_port,
//!     initial_sequence: 0,
//! };
//! let now = Instant::ZERO;
//! let mut client = Connection::connect(&config, end(Direction::Up, 50_000, 80), now);
//! let mut server = Connection::listen(&config, end(Direction::Down, 80, 50_000));
//!
//! let mut dropped = Vec::new();
//! let mut cx = Context::new(None, &mut dropped, ComponentId(0));
//! client.write(4000);
//! for _ in 0..3 {
//!     while let Some(segment) = client.poll_transmit(now, &mut cx) {
//!         server.handle_segment(now, &segment, &mut cx);
//!     }
//!     while let Some(segment) = server.poll_transmit(now, &mut cx) {
//!         client.handle_segment(now, &segment, &mut cx);
//!     }
//! }
//! assert_eq!(server.state(), State::Established);
//! assert_eq!(server.readable(), 4000);
//! assert_eq!(client.acknowledged(), 4000);
//! ```

mod accurate_ecn;
mod config;
mod congestion;
mod connection;
mod delayed_ack;
mod frto;
mod profile;
mod prr;
mod rack;
mod rate;
mod receive_window;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod sequence;
mod state;
mod statistics;
mod timers;
mod undo;

#[cfg(feature = "testing")]
pub mod testing;

pub use accurate_ecn::EcnMode;
pub use accurate_ecn::option::EcnOption;
pub use config::{
    Algorithm, Bbr3Constants, Config, ConfigError, Congestion, Counting, CubicGrowth, DelayedAck, Floor, Halving,
    HyStartVariant, IdleRestart, InitialWindow, Limit, Nagle, PartialAcks, ReceiveBuffer, Recovery,
    RetransmissionTimeout, Samples, WindowClamp,
};
pub use congestion::{
    Acknowledged, Bbr, Bbr3, Congested, CongestionControl, Copa, Cubic, Delivered, Fixed, Ledbat, LostSegment, NewReno,
    Prague, RateSample, Signal, Vegas, Westwood, Wtcp,
};
pub use connection::{CongestionState, Connection, ConnectionInfo, Identity, Negotiated};
pub use profile::{Profile, UnknownProfile};
pub use receiver::AcceptedPayload;
pub use segment::Segment;
pub use state::{Outcome, State, TimedOut};
pub use statistics::Statistics;
