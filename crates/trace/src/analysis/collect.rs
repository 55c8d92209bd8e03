//! Collects the results of each connection: rows of tables, or a line of JSON when it ends.

use std::sync::Arc;

use super::json_lines::JsonLines;
use super::per_flow::PerFlow;
use super::records::{
    BlockRow, ConnectionRow, DirectionRow, FlowId, ObservationRow, PieceRow, RadioStateRow, StallRow,
};
use super::table::Fields;
use super::table_builder::TableBuilder;
use super::{Inputs, Options, Selection, Shortcomings};
use crate::causes::{Causes, ConnectionCauses};
use crate::shared_path::SharedPaths;
use crate::two_point::JoinedCaptures;
use airpath_observe::flows::{Ending, FlowNumber, Listener};
use airpath_observe::{Connection, End, Events, Observation};
use airpath_web::{Exchanges, Web};
use airpath_wire::segment::Segment;

/// Collects the results of connections.
pub struct Collector<'a> {
    select: Option<Selection>,
    observations: bool,
    stream: bool,
    /// Current frame number; rows emitted now are stamped with it.
    frame: u64,
    /// Lines of JSON of ended connections, with [`Options::stream`].
    lines: JsonLines,
    /// The join with the capture of the other end.
    ends: Option<&'a JoinedCaptures>,
    inputs: Inputs,
    /// Reported connections that each selector matches.
    selected: Vec<u64>,
    shortcomings: Shortcomings,
    /// The causes of the open connections, with [`Options::causes`].
    open: Option<PerFlow<ConnectionCauses>>,
    /// Their application data, with [`Options::exchanges`].
    web: Option<Web>,
    tables: TableBuilders,
}

/// The tables under construction.
#[derive(Default)]
pub struct TableBuilders {
    connections: TableBuilder,
    directions: TableBuilder,
    pieces: TableBuilder,
    stalls: TableBuilder,
    radio_states: TableBuilder,
    observed: TableBuilder,
    blocks: TableBuilder,
}

impl TableBuilders {
    /// Each table with its name.
    pub fn named(self) -> [(&'static str, TableBuilder); 7] {
        [
            ("connections", self.connections),
            ("directions", self.directions),
            ("causes", self.pieces),
            ("stalls", self.stalls),
            ("radio_states", self.radio_states),
            ("observations", self.observed),
            ("selective", self.blocks),
        ]
    }
}

/// The frame number of rows that are emitted after the last frame.
pub const END_OF_CAPTURE: u64 = u64::MAX;

impl<'a> Collector<'a> {
    /// Nothing collected yet; `ends` is the join with the capture of the other end.
    pub fn new(options: &Options, ends: Option<&'a JoinedCaptures>, paths: Arc<SharedPaths>) -> Self {
        Self {
            select: options.select.clone(),
            observations: options.observations,
            stream: options.stream,
            frame: 0,
            lines: JsonLines::default(),
            ends,
            inputs: Inputs::new(options, paths),
            selected: vec![0; options.selectors().len()],
            shortcomings: Shortcomings::default(),
            open: options.causes.then(PerFlow::default),
            web: options.exchanges.then(Web::with_all_fields),
            tables: TableBuilders::default(),
        }
    }

    /// Sets the frame that stamps the next rows.
    pub const fn set_frame(&mut self, frame: u64) {
        self.frame = frame;
    }

    /// The lines of the connections that ended since the last time the lines were taken or cleared.
    pub const fn lines(&mut self) -> &mut JsonLines {
        &mut self.lines
    }

    /// Number of reported connections that each selector matches.
    pub fn selected(&self) -> &[u64] {
        &self.selected
    }

    /// What the capture lacks of the reported connections.
    pub const fn shortcomings(&self) -> Shortcomings {
        self.shortcomings
    }

    /// The causes of a new connection, with the radio log of its mobile and the join, where given.
    fn causes(&self, flow: FlowNumber, connection: &Connection) -> Causes {
        let route = connection.route();
        let own = self.inputs.radio(route);
        let mobile = own.as_ref().map_or(End::Client, |(_, mobile)| *mobile);
        let causes = match own {
            Some((log, mobile)) => Causes::new(None).with_radio(log, mobile),
            None => Causes::new(None),
        };
        let causes = match self.inputs.host(route, connection.first()) {
            Some((host, round_trip)) => causes.with_host(host, round_trip),
            None => causes,
        };
        match self.ends.and_then(|ends| ends.connection(flow)) {
            Some(joined) => causes.with_both_ends(joined, mobile),
            None => causes,
        }
    }

    /// The tables, and the application data.
    pub fn finish(self) -> (TableBuilders, Option<Exchanges>) {
        (self.tables, self.web.map(Web::finish))
    }

    fn matches(&self, flow: FlowNumber, connection: &Connection) -> bool {
        self.select.as_ref().is_none_or(|select| select.matches(FlowId::Connection(flow), connection.route()))
    }

    fn observe(&mut self, flow: FlowNumber, observation: &Observation, segment: &Segment<'_>) {
        self.tables.observed.push(self.frame, &ObservationRow { flow, observation });
        let Some(acknowledged) = observation.acknowledged else { return };
        for (index, &(left, right)) in segment.options.sack.as_slice().iter().enumerate() {
            // Block edges are sequence numbers, as the acknowledgement (RFC 2018 §3).
            let offset = |edge: u32| acknowledged + i64::from(edge.wrapping_sub(segment.acknowledgment) as i32);
            let duplicate = index == 0 && observation.events.contains(Events::DSACK);
            let block = (offset(left), offset(right));
            self.tables.blocks.push(self.frame, &BlockRow { flow, observation, block, duplicate });
        }
    }
}

impl Listener for Collector<'_> {
    #[inline]
    fn observed(
        &mut self,
        flow: FlowNumber,
        observation: &Observation,
        segment: &Segment<'_>,
        connection: &Connection,
    ) {
        if connection.segments() == 1 && self.matches(flow, connection) {
            let causes = self.open.is_some().then(|| self.causes(flow, connection));
            if let (Some(open), Some(causes)) = (&mut self.open, causes) {
                open.insert(flow, ConnectionCauses::Open(Box::new(causes)));
            }
        }
        if let Some(open) = &mut self.open
            && let Some(causes) = open.get_mut(flow)
        {
            let (pieces, keep, frame) = (&mut self.tables.pieces, !self.stream, self.frame);
            causes.observe(observation, &mut |piece| {
                if keep {
                    pieces.push(frame, &PieceRow { flow: FlowId::Connection(flow), piece });
                }
            });
            if connection.finished() && causes.may_close() {
                open.change(flow, ConnectionCauses::close);
            }
        }
        let is_selected = (self.web.is_some() || self.observations) && self.matches(flow, connection);
        if let Some(web) = &mut self.web
            && is_selected
        {
            web.observed(flow, observation, segment, connection);
        }
        if self.observations && is_selected {
            self.observe(flow, observation, segment);
        }
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, ending: Ending) {
        if !self.matches(flow, connection) {
            return;
        }
        let selectors = self.select.iter().flat_map(Selection::selectors);
        for (flows, selector) in self.selected.iter_mut().zip(selectors) {
            *flows += u64::from(selector.matches(FlowId::Connection(flow), connection.route()));
        }
        self.shortcomings.add(connection);
        if let Some(web) = &mut self.web {
            web.ended(flow, connection, ending);
        }
        let causes = self.open.as_mut().and_then(|open| open.remove(flow));
        let (tables, keep, frame) = (&mut self.tables, !self.stream, self.frame);
        let account = causes.map(|causes| {
            causes.finish(&mut |piece| {
                if keep {
                    tables.pieces.push(frame, &PieceRow { flow: FlowId::Connection(flow), piece });
                }
            })
        });
        let row = ConnectionRow { flow, connection, ending, account: account.as_ref() };
        let [client, server] = End::BOTH.map(|from| DirectionRow { flow, connection, from });
        let stalls: Vec<_> = account
            .iter()
            .flat_map(|account| &account.stalls)
            .map(|stall| StallRow { flow: FlowId::Connection(flow), stall })
            .collect();
        if keep {
            tables.connections.push(frame, &row);
            tables.directions.push(frame, &client);
            tables.directions.push(frame, &server);
            stalls.iter().for_each(|stall| tables.stalls.push(frame, stall));
            let states = account.iter().flat_map(|account| &account.radio_states);
            states.for_each(|state| {
                tables.radio_states.push(frame, &RadioStateRow { flow: FlowId::Connection(flow), state })
            });
        } else {
            self.lines.add(flow, frame, |mut line| {
                line.text("type", Some("connection"));
                let line = line.with(&row).nested("from_client", &client).nested("from_server", &server);
                if account.is_some() { line.list("stalls", stalls.iter()) } else { line }
            });
        }
    }
}
