//! The rows of the tables.

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use super::table::{Fields, Record};
use crate::connection::{Connection, End, Observation};
use crate::decode::{Endpoint, Tunnel};
use crate::flows::{Ending, FlowNumber};

/// A row of `connections`.
pub struct ConnectionRow<'a> {
    pub flow: FlowNumber,
    pub connection: &'a Connection,
    pub ending: Ending,
}

impl Record for ConnectionRow<'_> {
    fn tell(&self, fields: &mut impl Fields) {
        let Self { flow, connection, ending } = self;
        let route = connection.route();
        number(fields, "connection", flow.0);
        fields.text("client", Some(&end(route.source)));
        fields.text("server", Some(&end(route.destination)));
        fields.text("client_address", Some(&route.source.address.to_string()));
        fields.whole("client_port", Some(route.source.port.into()));
        fields.text("server_address", Some(&route.destination.address.to_string()));
        fields.whole("server_port", Some(route.destination.port.into()));
        fields.text("tunnel", route.tunnel.name());
        time(fields, "start", Some(connection.first()));
        fields.real("duration_s", Some(connection.last().since(connection.first()).as_secs_f64()));
        number(fields, "segments", connection.segments());
        fields.text("outcome", Some(ending.name()));
    }
}

/// A row of `observations`.
pub struct ObservationRow<'a> {
    pub flow: FlowNumber,
    pub observation: &'a Observation,
}

impl Record for ObservationRow<'_> {
    fn tell(&self, fields: &mut impl Fields) {
        let Self { flow, observation } = self;
        let (round_trip, of_frame) = observation.round_trip.unzip();
        let again = observation.retransmission;
        number(fields, "connection", flow.0);
        number(fields, "frame", observation.frame);
        time(fields, "time", Some(observation.time));
        fields.text("from", Some(observation.from.name()));
        fields.text("flags", Some(&flags(observation.flags)));
        fields.whole("offset", Some(observation.offset));
        fields.whole("length", Some(observation.length.into()));
        fields.whole("acknowledged", observation.acknowledged);
        number(fields, "window", observation.window);
        number(fields, "outstanding", observation.outstanding);
        span(fields, "round_trip", round_trip);
        fields.whole("round_trip_of", of_frame.map(|frame| frame as i64));
        fields.text("retransmission", again.map(|again| again.trigger.name()));
        fields.whole("retransmission_of", again.and_then(|again| again.of_frame).map(|frame| frame as i64));
        fields.whole("needless", observation.needless.map(|needless| needless.frame as i64));
        fields.text("needless_by", observation.needless.map(|needless| needless.detector.name()));
        fields.text("events", Some(&observation.events.names().collect::<Vec<_>>().join(" ")));
    }
}

/// A row of `selective`: a block of a selective acknowledgement (RFC 2018).
pub struct BlockRow<'a> {
    pub flow: FlowNumber,
    pub observation: &'a Observation,
    /// Where the block begins and ends, as stream offsets of the other direction.
    pub block: (i64, i64),
    /// Whether it reports what arrived twice (RFC 2883).
    pub duplicate: bool,
}

impl Record for BlockRow<'_> {
    fn tell(&self, fields: &mut impl Fields) {
        number(fields, "connection", self.flow.0);
        number(fields, "frame", self.observation.frame);
        time(fields, "time", Some(self.observation.time));
        fields.text("from", Some(self.observation.from.name()));
        fields.whole("left", Some(self.block.0));
        fields.whole("right", Some(self.block.1));
        fields.flag("duplicate", Some(self.duplicate));
    }
}

impl Tunnel {
    /// Its name in tables; `None` where there is no tunnel.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gtp => Some("gtp"),
            Self::Ip => Some("ip"),
        }
    }
}

impl End {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Ending {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Idle => "idle",
            Self::Reused => "ports-reused",
            Self::EndOfCapture => "open",
        }
    }
}

fn end(Endpoint { address, port }: Endpoint) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

/// The letters of the control bits that are set, as tcpdump has them.
fn flags(flags: Flags) -> String {
    const LETTERS: [(Flags, char); 8] = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    LETTERS.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect()
}

/// Counts and sizes stay far below 2⁶³.
fn number(fields: &mut impl Fields, name: &'static str, value: u64) {
    fields.whole(name, i64::try_from(value).ok());
}

fn time(fields: &mut impl Fields, name: &'static str, value: Option<Instant>) {
    fields.whole(name, value.and_then(|value| i64::try_from(value.as_nanos()).ok()));
}

fn span(fields: &mut impl Fields, name: &'static str, value: Option<Span>) {
    fields.whole(name, value.and_then(|value| i64::try_from(value.as_nanos()).ok()));
}
