//! The rows of the tables.

use std::fmt::{Display, Write};

use airpath_core::{Instant, Span};
use airpath_wire::tcp::Flags;

use super::table::{Fields, Record};
use crate::causes::{Account, Cause, Fate, Piece, RadioState, Stall};
use airpath_observe::columns::{COLUMNS, Kind, Value};
use airpath_observe::flows::{Ending, FlowNumber};
use airpath_observe::{Connection, End, Observation};
use airpath_wire::segment::Endpoint;

/// A row of `connections`.
pub struct ConnectionRow<'a> {
    pub flow: FlowNumber,
    pub connection: &'a Connection,
    pub ending: Ending,
    /// The causes of its time, if they are attributed.
    pub account: Option<&'a Account>,
}

impl Record for ConnectionRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { flow, connection, ending, account } = self;
        let route = connection.route();
        fields.connection(*flow);
        fields.text("client", Some(&end(route.source)));
        fields.text("server", Some(&end(route.destination)));
        fields.text("client_address", Some(&address_text(route.source.address)));
        fields.whole("client_port", Some(route.source.port.into()));
        fields.text("server_address", Some(&address_text(route.destination.address)));
        fields.whole("server_port", Some(route.destination.port.into()));
        fields.text("tunnel", route.tunnel.name());
        time(fields, "start", Some(connection.first()));
        fields.real("duration_s", Some(connection.last().since(connection.first()).as_secs_f64()));
        number(fields, "segments", connection.segments());
        fields.flag("complete", Some(connection.complete()));
        fields.flag("reset", Some(End::BOTH.iter().any(|end| connection.figures(*end).resets > 0)));
        fields.text("ending", Some(ending.name()));
        let Some(account) = account else { return };
        for (cause, name) in Cause::ALL.into_iter().zip(CAUSE_SECONDS) {
            fields.real(name, Some(account.of(cause).as_secs_f64()));
        }
        // The causes of a connection whose one end alone was captured are unknown.
        let is_known = End::BOTH.iter().all(|end| connection.figures(*end).segments > 0);
        fields.text("main_cause", account.longest().filter(|_| is_known).map(Cause::name));
        fields.real("avoidable_s", is_known.then(|| account.avoidable().as_secs_f64()));
    }
}

/// The columns of `connections` and `quic` with the time of each cause, in the order of
/// [`Cause::ALL`].
pub(super) const CAUSE_SECONDS: [&str; Cause::COUNT] = [
    "set_up_s",
    "application_s",
    "latency_s",
    "slow_start_s",
    "receive_window_s",
    "congestion_window_s",
    "sender_s",
    "path_rate_s",
    "queueing_s",
    "sharing_s",
    "radio_s",
    "timer_s",
    "recovery_s",
    "spurious_s",
    "closing_s",
];

/// What a row belongs to: a connection of TCP, or a QUIC flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowId {
    Connection(FlowNumber),
    Quic(u64),
}

impl FlowId {
    /// Its number among those of its kind.
    pub const fn number(self) -> u64 {
        match self {
            Self::Connection(FlowNumber(number)) | Self::Quic(number) => number,
        }
    }

    fn write(self, fields: &mut impl Fields) {
        match self {
            Self::Connection(flow) => fields.connection(flow),
            Self::Quic(number) => fields.whole("quic", i64::try_from(number).ok()),
        }
    }
}

/// A row of `causes`: a period with one cause.
pub struct PieceRow<'a> {
    pub flow: FlowId,
    pub piece: &'a Piece,
}

impl Record for PieceRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { flow, piece } = self;
        flow.write(fields);
        fields.text("cause", Some(piece.cause.name()));
        fields.text("confidence", Some(piece.confidence.name()));
        fields.text("full_by", piece.full_by.map(End::name));
        time(fields, "start", Some(piece.begin));
        time(fields, "end", Some(piece.end));
        number(fields, "first_frame", piece.first_frame);
        number(fields, "last_frame", piece.last_frame);
        let [from_client, from_server] = piece.delivered;
        number(fields, "from_client_bytes", from_client);
        number(fields, "from_server_bytes", from_server);
    }
}

/// A row of `stalls`.
pub struct StallRow<'a> {
    pub flow: FlowId,
    pub stall: &'a Stall,
}

impl Record for StallRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { flow, stall } = self;
        flow.write(fields);
        time(fields, "start", Some(stall.begin));
        time(fields, "end", Some(stall.end));
        number(fields, "first_frame", stall.first_frame);
        number(fields, "last_frame", stall.last_frame);
        number(fields, "outstanding_bytes", stall.outstanding);
        number(fields, "timeouts", stall.timeouts.into());
        number(fields, "tail_probes", stall.tail_probes.into());
        fields.text("fate", Some(stall.fate.name()));
        fields.text("story", Some(&stall.to_string()));
    }
}

/// A row of `radio_states`: a state of the radio log in the time of a connection.
pub struct RadioStateRow<'a> {
    pub flow: FlowId,
    pub state: &'a RadioState,
}

impl Record for RadioStateRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { flow, state } = self;
        flow.write(fields);
        fields.text("state", Some(&state.name));
        fields.text("cause", Some(state.cause.name()));
        time(fields, "start", Some(state.begin));
        time(fields, "end", Some(state.end));
    }
}

/// A row of `directions`: the figures of what one end sent.
pub struct DirectionRow<'a> {
    pub flow: FlowNumber,
    pub connection: &'a Connection,
    pub from: End,
}

impl Record for DirectionRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        fields.connection(self.flow);
        fields.text("from", Some(self.from.name()));
        for column in COLUMNS {
            let name = column.name;
            match (column.value)(self.connection, self.from) {
                Value::Count(count) => number(fields, name, count),
                Value::Difference(difference) => fields.whole(name, Some(difference)),
                Value::Time(instant) => time(fields, name, Some(instant)),
                Value::Number(real) | Value::Seconds(real) => fields.real(name, Some(real)),
                Value::Truth(truth) => fields.flag(name, Some(truth)),
                Value::Text(text) => fields.text(name, Some(&text)),
                Value::None(Kind::Whole) => fields.whole(name, None),
                Value::None(Kind::Real) => fields.real(name, None),
                Value::None(Kind::Truth) => fields.flag(name, None),
                Value::None(Kind::Text) => fields.text(name, None),
            }
        }
    }
}

/// The figures of `directions`: name and kind.
pub fn figures() -> impl Iterator<Item = (&'static str, Kind)> {
    let none = Connection::without_segments();
    COLUMNS.iter().map(move |column| (column.name, (column.value)(&none, End::Client).kind()))
}

/// A row of `observations`.
pub struct ObservationRow<'a> {
    pub flow: FlowNumber,
    pub observation: &'a Observation,
}

impl Record for ObservationRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { flow, observation } = self;
        let (round_trip, of_frame) = observation.round_trip.unzip();
        let (echo_round_trip, echo_of_frame) = observation.echo_round_trip.unzip();
        let again = observation.retransmission;
        fields.connection(*flow);
        number(fields, "frame", observation.frame);
        time(fields, "time", Some(observation.time));
        fields.text("from", Some(observation.from.name()));
        fields.text("flags", Some(&flags(observation.flags)));
        fields.whole("offset", Some(observation.offset));
        fields.whole("length_bytes", Some(observation.length.into()));
        fields.whole("acknowledged", observation.acknowledged);
        number(fields, "window_bytes", observation.window);
        number(fields, "outstanding_bytes", observation.outstanding);
        span(fields, "round_trip_ns", round_trip);
        fields.whole("round_trip_of", of_frame.map(|frame| frame as i64));
        span(fields, "echo_round_trip_ns", echo_round_trip);
        fields.whole("echo_round_trip_of", echo_of_frame.map(|frame| frame as i64));
        fields.text("retransmission", again.map(|again| again.trigger.name()));
        fields.whole("retransmission_of", again.and_then(|again| again.of_frame).map(|frame| frame as i64));
        let after = again.and_then(|again| again.of_time).map(|before| observation.time.since(before));
        span(fields, "retransmission_after_ns", after);
        fields.whole("duplicate", observation.duplicate.map(|duplicate| duplicate.number.into()));
        fields.whole("duplicate_of", observation.duplicate.map(|duplicate| duplicate.of_frame as i64));
        number(fields, "since_push_bytes", observation.since_push);
        fields.whole("spurious", observation.spurious.map(|spurious| spurious.frame as i64));
        fields.text("spurious_by", observation.spurious.map(|spurious| spurious.detector.name()));
        fields.text("events", Some(&observation.events.names().collect::<Vec<_>>().join(" ")));
    }
}

/// A row of `selective`: a block of a selective acknowledgement (RFC 2018).
pub struct BlockRow<'a> {
    pub flow: FlowNumber,
    pub observation: &'a Observation,
    /// Begin and end of the block, as stream offsets of the other direction.
    pub block: (i64, i64),
    /// Whether it is a D-SACK block, which reports a duplicate (RFC 2883).
    pub duplicate: bool,
}

impl Record for BlockRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        fields.connection(self.flow);
        number(fields, "frame", self.observation.frame);
        time(fields, "time", Some(self.observation.time));
        fields.text("from", Some(self.observation.from.name()));
        fields.whole("left", Some(self.block.0));
        fields.whole("right", Some(self.block.1));
        fields.flag("duplicate", Some(self.duplicate));
    }
}

impl Fate {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Behind => "behind",
            Self::PartlyLost => "partly_lost",
            Self::Lost => "lost",
            Self::WindowClosed => "window_closed",
            Self::Nagle => "nagle",
            Self::SynLost => "syn_lost",
            Self::Unanswered => "unanswered",
            Self::Unknown => "unknown",
        }
    }
}

pub(super) fn end(Endpoint { address, port }: Endpoint) -> String {
    address_text(std::net::SocketAddr::new(address, port))
}

/// Formats an address. It is written digit by digit: reserving the room avoids reallocations.
fn address_text(address: impl Display) -> String {
    let mut text = String::with_capacity(64);
    write!(text, "{address}").expect("writing to a string does not fail");
    text
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
pub(super) fn number(fields: &mut impl Fields, name: &'static str, value: u64) {
    fields.whole(name, i64::try_from(value).ok());
}

pub(super) fn time(fields: &mut impl Fields, name: &'static str, value: Option<Instant>) {
    fields.whole(name, value.and_then(|value| i64::try_from(value.as_nanos()).ok()));
}

pub(super) fn span(fields: &mut impl Fields, name: &'static str, value: Option<Span>) {
    fields.whole(name, value.and_then(|value| i64::try_from(value.as_nanos()).ok()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_observe::columns::SEGMENT_COLUMNS;
    use airpath_observe::testing::play;

    #[test]
    fn the_columns_of_segments_are_documented() {
        let (_, observations) = play("0 > syn");
        let table =
            super::super::table::Table::of(&ObservationRow { flow: FlowNumber(1), observation: &observations[0] });
        let names: Vec<_> = table.columns().iter().map(|column| column.name).collect();
        assert_eq!(names, SEGMENT_COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>());
    }
}
