//! Captures of both ends: reads and joins them, and has the rows of their tables.

use std::sync::atomic::{AtomicBool, Ordering};

use super::records::{number, span, time};
use super::table::{Fields, Record, Table, table};
use super::{Options, Source, TraceError, WithoutTcp};
use crate::two_point::{
    ArrivalGap, CaptureDigest, Clock, Direction, Fate, JoinOptions, JoinedCaptures, JoinedConnection, Quantiles,
    Transit, join,
};
use airpath_capture::decode::Decoded;
use airpath_observe::End;
use airpath_observe::flows::Flows;

/// The capture of the same traffic at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where its packets come from.
    pub source: Source,
    /// Whether one clock stamped both captures; else the clocks are fitted.
    pub one_clock: bool,
}

/// Reads both ends' captures and joins them; `None` if neither has TCP.
///
/// # Errors
/// If one cannot be read, only one has TCP, or they share nothing.
pub fn both_ends(options: &Options, peer: &Peer, stop: &AtomicBool) -> Result<Option<JoinedCaptures>, TraceError> {
    // The analysis reads the first capture again.
    if options.source.is_standard_input() {
        return Err(TraceError::ReadTwice);
    }
    let first = digest(&options.source, options.one_thread, stop)?;
    let second = digest(&peer.source, options.one_thread, stop)?;
    let (first, second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(_), Err(_)) => return Ok(None),
        (Err(without), Ok(_)) | (Ok(_), Err(without)) => return Err(TraceError::NoTcp(without)),
    };
    let join_options = JoinOptions { clock: peer.one_clock.then_some(Clock::SAME), ..JoinOptions::default() };
    join(first, second, &join_options).map(Some).map_err(|error| TraceError::Peer {
        file: options.source.name(),
        peer: peer.source.name(),
        error,
    })
}

/// Reads the packets of a capture: those of all connections, because they share the path. The inner
/// error is a message about a capture without TCP.
fn digest(
    source: &Source,
    one_thread: bool,
    stop: &AtomicBool,
) -> Result<Result<CaptureDigest, WithoutTcp>, TraceError> {
    let (mut flows, mut digest) = (Flows::default(), CaptureDigest::default());
    let reading = source.packets(one_thread, |packet| {
        if let Decoded::Segment(segment) = packet {
            flows.segment(segment, &mut digest);
        }
        !stop.load(Ordering::Relaxed)
    })?;
    flows.finish(&mut digest);
    Ok(if flows.begun() == 0 { Err(reading.without_tcp()) } else { Ok(digest) })
}

/// The tables of a join, without those that have no row.
pub fn tables(ends: &JoinedCaptures) -> impl Iterator<Item = (&'static str, Table)> {
    let directions = || {
        let joined = ends.connections.iter();
        joined.flat_map(|joined| End::BOTH.map(|from| (joined, from, joined.sent_by(from))))
    };
    let transits = directions().flat_map(|(joined, from, direction)| {
        direction.transits.iter().map(move |transit| TransitRow { joined, from, transit })
    });
    let gaps = directions().flat_map(|(joined, from, direction)| {
        direction.gaps.iter().map(move |gap| ArrivalGapRow { joined, from, gap })
    });
    let rows = directions().map(|(joined, from, direction)| TwoPointRow { joined, from, direction });
    let tables = [("one_way", table(rows)), ("arrival_gaps", table(gaps)), ("transits", table(transits))];
    tables.into_iter().filter_map(|(name, table)| table.map(|table| (name, table)))
}

/// A row of `one_way`: one direction of a connection.
struct TwoPointRow<'a> {
    joined: &'a JoinedConnection,
    from: End,
    direction: &'a Direction,
}

impl Record for TwoPointRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
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
        span(fields, "delay_min_ns", quantile(direction.delay, |delay| delay.minimum));
        span(fields, "delay_mean_ns", quantile(direction.delay, |delay| delay.mean));
        span(fields, "delay_p50_ns", quantile(direction.delay, |delay| delay.median));
        span(fields, "delay_p95_ns", quantile(direction.delay, |delay| delay.percentile_95));
        span(fields, "delay_max_ns", quantile(direction.delay, |delay| delay.maximum));
        span(fields, "jitter_mean_ns", quantile(direction.jitter, |jitter| jitter.mean));
        span(fields, "inter_arrival_p50_ns", quantile(direction.inter_arrival, |between| between.median));
        span(fields, "inter_arrival_p95_ns", quantile(direction.inter_arrival, |between| between.percentile_95));
        span(fields, "inter_arrival_max_ns", quantile(direction.inter_arrival, |between| between.maximum));
        number(fields, "acknowledgement_pairs", direction.compression.pairs);
        number(fields, "compressed_pairs", direction.compression.compressed);
        number(fields, "largest_bunch", direction.compression.largest);
    }
}

/// A row of `arrival_gaps`.
struct ArrivalGapRow<'a> {
    joined: &'a JoinedConnection,
    from: End,
    gap: &'a ArrivalGap,
}

impl Record for ArrivalGapRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { joined, from, gap } = self;
        fields.connection(joined.flow);
        fields.text("from", Some(from.name()));
        time(fields, "start", Some(gap.begin));
        time(fields, "due", Some(gap.due));
        time(fields, "end", Some(gap.end));
        fields.text("kind", Some(if gap.has_loss() { "gap" } else { "delay" }));
        number(fields, "lost", gap.lost);
        number(fields, "frame_before", gap.frames.0);
        number(fields, "frame_after", gap.frames.1);
        number(fields, "burst_packets", gap.burst.packets);
        number(fields, "burst_bytes", gap.burst.bytes);
        span(fields, "burst_ns", Some(gap.burst.time));
    }
}

/// A row of `transits`: a packet in transit.
struct TransitRow<'a> {
    joined: &'a JoinedConnection,
    from: End,
    transit: &'a Transit,
}

impl Record for TransitRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { joined, from, transit } = self;
        let (fate, arrival) = match transit.fate {
            Fate::Arrived { time, frame } => ("arrived", Some((time, frame))),
            Fate::Lost => ("lost", None),
            Fate::Unknown => ("unknown", None),
        };
        fields.connection(joined.flow);
        fields.text("from", Some(from.name()));
        number(fields, "frame", transit.packet.frame);
        time(fields, "time", Some(transit.packet.time));
        fields.whole("offset", Some(transit.packet.offset));
        number(fields, "length_bytes", transit.packet.length.into());
        fields.text("fate", Some(fate));
        time(fields, "arrival", arrival.map(|(time, _)| time));
        fields.whole("arrival_frame", arrival.map(|(_, frame)| frame as i64));
        span(fields, "delay_ns", transit.delay());
        fields.flag("resent", Some(transit.packet.resent));
        fields.flag("spurious", Some(transit.spurious));
    }
}
