//! Settings of an end point.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use airpath_core::{Bytes, Span};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use serde::{Deserialize, Serialize};

use crate::controller::ObservedFactory;
use crate::packet_log::PacketLog;
use crate::statistics::SharedFigures;

/// The name of this transport.
pub const NAME: &str = "quic-quinn";

/// Settings of both ends of a connection. Without an own source, a default is that of quinn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The congestion controller.
    pub congestion: Controller,
    /// Congestion window at the start: 10 datagrams of 1,200 bytes (RFC 9002 §7.2).
    pub initial_window: Bytes,
    /// Most bytes that the receiver buffers, of one stream and of the connection.
    ///
    /// Above about 3.5 MB a deep queue may end a connection of quinn-proto 0.11.19: it closes a
    /// connection with more than 1,024 gaps in more than 2,048 received frames of a stream.
    /// A smaller window cannot hold that number of frames. `docs/quic.md` has the computation.
    pub receive_window: Bytes,
    /// Most bytes of unacknowledged stream data that the sender buffers.
    pub send_window: Bytes,
    /// Bytes of the largest UDP payload before path MTU discovery, at least 1,200 (RFC 9000 §14).
    pub datagram_size: u32,
    /// Whether to search for a larger size, up to 1,452 bytes (RFC 8899).
    pub mtu_discovery: bool,
    /// Round trip that is assumed before the first measurement (RFC 9002 §6.2.2).
    pub initial_rtt: Span,
    /// Time without packets after which the connection ends (RFC 9000 §10.1).
    pub idle_timeout: Span,
    /// Bytes of the ClientHello without transport parameters: 250 to 350 without a post-quantum
    /// key share, in OpenSSL 3.0 and rustls 0.23.
    pub client_hello: Bytes,
    /// Bytes of the server's Certificate and CertificateVerify messages. The default is that of
    /// web pages.
    pub certificates: Bytes,
}

/// A congestion controller of quinn-proto.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Controller {
    /// CUBIC (RFC 8312), without HyStart.
    #[default]
    Cubic,
    /// NewReno (RFC 9002 §7).
    NewReno,
    /// quinn's experimental `Bbr`. It is not BBR: its rate does not reach the pacer, so it has
    /// much more loss than BBRv1.
    QuinnBbr,
}

impl Controller {
    /// All controllers.
    pub const ALL: [Self; 3] = [Self::Cubic, Self::NewReno, Self::QuinnBbr];

    /// The name under which it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::NewReno => "new-reno",
            Self::QuinnBbr => "quinn-bbr",
        }
    }
}

impl std::str::FromStr for Controller {
    type Err = UnknownController;

    fn from_str(name: &str) -> Result<Self, UnknownController> {
        Self::ALL.into_iter().find(|each| each.name() == name).ok_or_else(|| UnknownController(name.to_owned()))
    }
}

/// A name that no controller of this transport has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(String);

impl fmt::Display for UnknownController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Controller::ALL.map(Controller::name).join(", ");
        write!(f, "quic-quinn has no congestion controller `{}`; it has {names}", self.0)
    }
}

impl std::error::Error for UnknownController {}

/// A setting that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field.
    pub field: &'static str,
    /// What is wrong, and what is allowed.
    pub message: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for ConfigError {}

/// The largest UDP payload that path MTU discovery tries: quinn's default, which leaves room for
/// IPv6 and a tunnel in an Ethernet packet.
const MOST_DISCOVERED: u16 = 1452;

/// Most bytes of a ClientHello or of certificates: quinn buffers 16 KiB of handshake data.
const MOST_HANDSHAKE: u64 = 12_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: Controller::default(),
            initial_window: Bytes::new(12_000),
            receive_window: Bytes::new(3_000_000),
            send_window: Bytes::new(10_000_000),
            datagram_size: 1200,
            mtu_discovery: true,
            initial_rtt: Span::from_millis(333),
            idle_timeout: Span::from_secs(30),
            client_hello: Bytes::new(300),
            certificates: Bytes::new(3_000),
        }
    }
}

impl Config {
    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = |field, message| Err(ConfigError { field, message });
        let positive = [
            ("initial_window", self.initial_window.get()),
            ("receive_window", self.receive_window.get()),
            ("send_window", self.send_window.get()),
        ];
        for (field, bytes) in positive {
            // The limit is that of the variable-length integers of QUIC (RFC 9000 §16).
            if !(1200..1 << 62).contains(&bytes) {
                return error(field, "a window has at least 1200 bytes and less than 2⁶²");
            }
        }
        if !(1200..=1472).contains(&self.datagram_size) {
            return error("datagram_size", "a datagram has 1200 to 1472 bytes: 1472 fill an Ethernet packet");
        }
        if self.initial_window.get() < 2 * u64::from(self.datagram_size) {
            return error("initial_window", "the window has at least two datagrams (RFC 9002 §7.2)");
        }
        if !(Span::from_millis(1)..=Span::from_secs(60)).contains(&self.initial_rtt) {
            return error("initial_rtt", "the initial round trip is from 1 ms to 60 s");
        }
        if !(Span::from_secs(1)..=Span::from_secs(86_400)).contains(&self.idle_timeout) {
            return error("idle_timeout", "the idle time-out is from 1 s to 24 h");
        }
        if !(100..=MOST_HANDSHAKE).contains(&self.client_hello.get()) {
            return error("client_hello", "a ClientHello has 100 to 12000 bytes");
        }
        if self.certificates.get() > MOST_HANDSHAKE {
            return error("certificates", "certificates have at most 12000 bytes");
        }
        Ok(())
    }

    /// The settings in quinn's form, for applications of the crate quinn.
    ///
    /// # Panics
    /// If a value is out of range ([`Self::check`]).
    pub fn transport_config(&self) -> TransportConfig {
        self.transport(&SharedFigures::default(), None)
    }

    /// The same; the controller reports to `figures`, and quinn its packets to `packets`.
    pub(crate) fn transport(&self, figures: &SharedFigures, packets: Option<&PacketLog>) -> TransportConfig {
        let mut transport = TransportConfig::default();
        let window = VarInt::from_u64(self.receive_window.get()).expect("`check` limits the window");
        let idle = Duration::from_nanos(self.idle_timeout.as_nanos());
        let size = self.datagram_size as u16;
        let discovery = self.mtu_discovery.then(|| {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(MOST_DISCOVERED.max(size));
            discovery
        });
        transport
            .stream_receive_window(window)
            .receive_window(window)
            .send_window(self.send_window.get())
            .max_idle_timeout(Some(IdleTimeout::try_from(idle).expect("`check` limits the time")))
            .initial_rtt(Duration::from_nanos(self.initial_rtt.as_nanos()))
            .initial_mtu(size)
            .mtu_discovery_config(discovery)
            .datagram_receive_buffer_size(None)
            .qlog_stream(packets.and_then(PacketLog::stream))
            // One datagram for each call: the link carries datagrams, not segments of an offload.
            .enable_segmentation_offload(false)
            .congestion_controller_factory(Arc::new(ObservedFactory::new(self.factory(), figures.clone())));
        transport
    }

    fn factory(
        &self,
    ) -> Arc<dyn Fn(std::time::Instant, u16) -> Box<dyn quinn_proto::congestion::Controller> + Send + Sync> {
        macro_rules! make {
            ($config:ty) => {{
                let mut config = <$config>::default();
                config.initial_window(self.initial_window.get());
                let config = Arc::new(config);
                Arc::new(move |now, mtu| Arc::clone(&config).build(now, mtu))
            }};
        }
        match self.congestion {
            Controller::Cubic => make!(CubicConfig),
            Controller::NewReno => make!(NewRenoConfig),
            Controller::QuinnBbr => make!(BbrConfig),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_bounds_are_checked() {
        assert_eq!(Config::default().check(), Ok(()));
        let field = |config: Config| config.check().expect_err("it is out of range").field;
        assert_eq!(field(Config { datagram_size: 1199, ..Config::default() }), "datagram_size");
        assert_eq!(field(Config { receive_window: Bytes::new(0), ..Config::default() }), "receive_window");
        assert_eq!(field(Config { idle_timeout: Span::ZERO, ..Config::default() }), "idle_timeout");
        assert_eq!(field(Config { certificates: Bytes::new(20_000), ..Config::default() }), "certificates");
    }

    #[test]
    fn the_default_window_has_too_few_frames_for_the_limit_of_quinn() {
        // 2,049 frames with 1,024 gaps between them, of one datagram each.
        let least_frame = 1200 - 1 - 8 - 4 - 16 - 13;
        assert!(Config::default().receive_window.get() < (2049 + 1024) * least_frame);
    }

    #[test]
    fn controllers_have_names() {
        for controller in Controller::ALL {
            assert_eq!(controller.name().parse(), Ok(controller));
        }
        let error = "bbr".parse::<Controller>().expect_err("quinn has no BBR").to_string();
        assert!(error.contains("cubic, new-reno, quinn-bbr"), "{error}");
    }
}
