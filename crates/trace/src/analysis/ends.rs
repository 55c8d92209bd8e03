//! Captures of both ends: read one after the other, joined, and the rows of the tables of what became of each packet.

use std::sync::atomic::{AtomicBool, Ordering};

use super::reading::Packet;
use super::records::{number, span, time};
use super::table::{Fields, Record, Table, table};
use super::{Options, STANDARD_INPUT, Selector, Source, TraceError, packets};
use crate::two_ends::{Clock, Direction, Fate, JoinOptions, Joined, Passage, Quantiles, Silence, Tap, TwoEnds, join};
use airpath_observe::flows::{FlowNumber, Flows, Listener};
use airpath_observe::{Connection, End, Observation};
use airpath_wire::segment::Segment;

/// The same traffic at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where its packets come from.
    pub source: Source,
    /// Whether one clock made both; else theirs are fitted.
    pub one_clock: bool,
}

/// Reads both ends' captures and joins them.
///
/// # Errors
/// Where one cannot be read, there is no such connection in the first, or the two have nothing in common.
pub fn both_ends(options: &Options, peer: &Peer, stop: &AtomicBool) -> Result<TwoEnds, TraceError> {
    // The first is read again to be analysed.
    if let Source::Captures(files) = &options.source
        && files.iter().any(|file| file.as_os_str() == STANDARD_INPUT)
    {
        return Err(TraceError::ReadTwice);
    }
    let first = tapped(&options.source, options.select, options.one_thread, stop)?;
    let second = tapped(&peer.source, None, options.one_thread, stop)?;
    let join_options = JoinOptions { clock: peer.one_clock.then_some(Clock::SAME), ..JoinOptions::default() };
    join(first, second, &join_options).map_err(|error| TraceError::Peer {
        file: options.source.name(),
        peer: peer.source.name(),
        error,
    })
}

/// What a capture has of the connections that are meant.
fn tapped(source: &Source, select: Option<Selector>, one_thread: bool, stop: &AtomicBool) -> Result<Tap, TraceError> {
    let mut flows = Flows::default();
    let mut tapping = Tapping { select, matched: false, tap: Tap::default() };
    let reading = packets(source, one_thread, |packet| {
        if let Packet::Segment(segment) = packet {
            flows.segment(segment, &mut tapping);
        }
        !stop.load(Ordering::Relaxed)
    })?;
    flows.finish(&mut tapping);
    match select {
        _ if flows.begun() == 0 => Err(TraceError::NoTcp(reading.without_tcp())),
        Some(selector) if !tapping.matched => Err(TraceError::NoSuchFlow { selector, begun: flows.begun() }),
        _ => Ok(tapping.tap),
    }
}

/// Taps the connections that are meant.
struct Tapping {
    select: Option<Selector>,
    matched: bool,
    tap: Tap,
}

impl Listener for Tapping {
    fn observed(&mut self, flow: FlowNumber, seen: &Observation, segment: &Segment<'_>, connection: &Connection) {
        if self.select.is_none_or(|select| select.matches(flow.0, connection.route())) {
            self.matched = true;
            self.tap.observed(flow, seen, segment, connection);
        }
    }
}

/// The tables of both ends. Of what there was nothing of, there is none.
pub fn tables(ends: &TwoEnds) -> impl Iterator<Item = (&'static str, Table)> {
    let directions = || {
        let joined = ends.connections.iter();
        joined.flat_map(|joined| End::BOTH.map(|from| (joined, from, joined.sent_by(from))))
    };
    let passages = directions().flat_map(|(joined, from, direction)| {
        direction.passages.iter().map(move |passage| PassageRow { joined, from, passage })
    });
    let silences = directions().flat_map(|(joined, from, direction)| {
        direction.silences.iter().map(move |silence| SilenceRow { joined, from, silence })
    });
    let ways = directions().map(|(joined, from, direction)| WayRow { joined, from, direction });
    let tables = [("one_way", table(ways)), ("arrival_gaps", table(silences)), ("transits", table(passages))];
    tables.into_iter().filter_map(|(name, table)| table.map(|table| (name, table)))
}

/// A row of `ways`: the way from one end to the other.
struct WayRow<'a> {
    joined: &'a Joined,
    from: End,
    direction: &'a Direction,
}

impl Record for WayRow<'_> {
    fn tell(&self, fields: &mut impl Fields) {
        let Self { joined, from, direction } = self;
        fields.connection(joined.flow);
        number(fields, "peer_connection", joined.peer_flow.0);
        fields.text("from", Some(from.name()));
        fields.text("near", Some(joined.near.name()));
        number(fields, "data_packets", direction.data_packets);
        number(fields, "lost", direction.lost);
        number(fields, "unknown", direction.unknown);
        number(fields, "retransmissions", direction.retransmissions);
        number(fields, "spurious", direction.spurious);
        number(fields, "reordered", direction.reordered);
        let quantile = |of: Option<Quantiles>, which: fn(Quantiles) -> airpath_core::Span| of.map(which);
        span(fields, "delay_min", quantile(direction.delay, |delay| delay.minimum));
        span(fields, "delay_mean", quantile(direction.delay, |delay| delay.mean));
        span(fields, "delay_p50", quantile(direction.delay, |delay| delay.median));
        span(fields, "delay_p95", quantile(direction.delay, |delay| delay.percentile_95));
        span(fields, "delay_max", quantile(direction.delay, |delay| delay.maximum));
        span(fields, "jitter_mean", quantile(direction.jitter, |jitter| jitter.mean));
        span(fields, "inter_arrival_p50", quantile(direction.inter_arrival, |between| between.median));
        span(fields, "inter_arrival_p95", quantile(direction.inter_arrival, |between| between.percentile_95));
        span(fields, "inter_arrival_max", quantile(direction.inter_arrival, |between| between.maximum));
        number(fields, "acknowledgement_pairs", direction.compression.pairs);
        number(fields, "compressed_pairs", direction.compression.compressed);
        number(fields, "largest_bunch", direction.compression.largest);
    }
}

/// A row of `silences`.
struct SilenceRow<'a> {
    joined: &'a Joined,
    from: End,
    silence: &'a Silence,
}

impl Record for SilenceRow<'_> {
    fn tell(&self, fields: &mut impl Fields) {
        let Self { joined, from, silence } = self;
        fields.connection(joined.flow);
        fields.text("from", Some(from.name()));
        time(fields, "start", Some(silence.begin));
        time(fields, "due", Some(silence.due));
        time(fields, "end", Some(silence.end));
        fields.text("kind", Some(if silence.is_gap() { "gap" } else { "delay" }));
        number(fields, "lost", silence.lost);
        number(fields, "frame_before", silence.frames.0);
        number(fields, "frame_after", silence.frames.1);
        number(fields, "burst_packets", silence.burst.packets);
        number(fields, "burst_bytes", silence.burst.bytes);
        span(fields, "burst_time", Some(silence.burst.time));
    }
}

/// A row of `passages`: a packet on its way.
struct PassageRow<'a> {
    joined: &'a Joined,
    from: End,
    passage: &'a Passage,
}

impl Record for PassageRow<'_> {
    fn tell(&self, fields: &mut impl Fields) {
        let Self { joined, from, passage } = self;
        let (fate, arrival) = match passage.fate {
            Fate::Arrived { time, frame } => ("arrived", Some((time, frame))),
            Fate::Lost => ("lost", None),
            Fate::Unknown => ("unknown", None),
        };
        fields.connection(joined.flow);
        fields.text("from", Some(from.name()));
        number(fields, "frame", passage.packet.frame);
        time(fields, "time", Some(passage.packet.time));
        fields.whole("offset", Some(passage.packet.offset));
        number(fields, "length", passage.packet.length.into());
        fields.text("fate", Some(fate));
        time(fields, "arrival", arrival.map(|(time, _)| time));
        fields.whole("arrival_frame", arrival.map(|(_, frame)| frame as i64));
        span(fields, "delay", passage.delay());
        fields.flag("resent", Some(passage.packet.resent));
        fields.flag("spurious", Some(passage.spurious));
    }
}
