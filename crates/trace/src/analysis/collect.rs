//! What is kept of each connection while its segments pass, and its line of JSON when it ends.

use std::net::IpAddr;
use std::sync::Arc;

use super::numbered::Numbered;
use super::records::{BlockRow, ConnectionRow, DirectionRow, ObservationRow, PieceRow, StallRow};
use super::table::{Object, Record, Table};
use super::{Options, Selector, Shortcomings, said};
use crate::causes::Causes;
use crate::connection::{Connection, End, Events, Observation};
use crate::decode::{Datagram, Segment};
use crate::flows::{Ending, FlowNumber, Listener};
use crate::http::{Exchanges, Web};
use crate::radio::RadioLog;
use crate::two_ends::TwoEnds;

/// Collects what is to be told of connections.
pub struct Collector<'a> {
    select: Option<Selector>,
    observations: bool,
    stream: bool,
    line: &'a mut dyn FnMut(&str) -> bool,
    goes_on: bool,
    /// What is known of both ends.
    ends: Option<&'a TwoEnds>,
    radio: Vec<(Option<IpAddr>, Arc<RadioLog>)>,
    selected: u64,
    shortcomings: Shortcomings,
    /// The causes of the connections that are open, where they are wanted.
    open: Option<Numbered<Causes>>,
    /// What is said on them, where that is wanted.
    web: Option<Web>,
    connections: Option<Table>,
    directions: Option<Table>,
    pieces: Option<Table>,
    stalls: Option<Table>,
    observed: Option<Table>,
    blocks: Option<Table>,
}

impl<'a> Collector<'a> {
    pub fn new(options: &Options, ends: Option<&'a TwoEnds>, line: &'a mut dyn FnMut(&str) -> bool) -> Self {
        Self {
            select: options.select,
            observations: options.observations,
            stream: options.stream,
            line,
            goes_on: true,
            ends,
            radio: options.radio.clone(),
            selected: 0,
            shortcomings: Shortcomings::default(),
            open: options.causes.then(Numbered::default),
            web: options.exchanges.then(Web::with_all_fields),
            connections: None,
            directions: None,
            pieces: None,
            stalls: None,
            observed: None,
            blocks: None,
        }
    }

    /// Whether more is wanted.
    pub const fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Connections that were told of.
    pub const fn selected(&self) -> u64 {
        self.selected
    }

    /// What the capture lacks of them.
    pub const fn shortcomings(&self) -> Shortcomings {
        self.shortcomings
    }

    /// The causes of a new connection, with the radio log of its mobile and what both ends tell, if there are any.
    fn causes(&self, flow: FlowNumber, connection: &Connection) -> Causes {
        let route = connection.route();
        let ends = [(route.source, End::Client), (route.destination, End::Server)];
        let own = self.radio.iter().find_map(|(address, log)| {
            let end = match address {
                Some(address) => ends.iter().find(|(end, _)| end.address == *address).map(|(_, end)| *end),
                None => Some(End::Client),
            };
            end.map(|end| (Arc::clone(log), end))
        });
        let mobile = own.as_ref().map_or(End::Client, |(_, mobile)| *mobile);
        let causes = match own {
            Some((log, mobile)) => Causes::new(None).with_radio(log, mobile),
            None => Causes::new(None),
        };
        match self.ends.and_then(|ends| ends.connection(flow)) {
            Some(joined) => causes.with_both_ends(joined, mobile),
            None => causes,
        }
    }

    /// Takes a datagram of UDP.
    pub fn datagram(&mut self, datagram: &Datagram<'_>) {
        if let Some(web) = &mut self.web
            && self.select.is_none_or(|select| select.matches_route(&datagram.route))
        {
            web.datagram(datagram);
        }
    }

    /// The tables, and what was said. Of what there was nothing of, there is no table.
    pub fn finish(self) -> (Vec<(&'static str, Table)>, Option<Exchanges>) {
        let tables = [
            ("connections", self.connections),
            ("directions", self.directions),
            ("causes", self.pieces),
            ("stalls", self.stalls),
            ("observations", self.observed),
            ("selective", self.blocks),
        ];
        let exchanges = self.web.map(Web::finish);
        let tables = tables.into_iter().filter_map(|(name, table)| table.map(|table| (name, table)));
        (tables.chain(exchanges.iter().flat_map(said::tables)).collect(), exchanges)
    }

    fn matches(&self, flow: FlowNumber, connection: &Connection) -> bool {
        self.select.is_none_or(|select| select.matches(flow.0, connection.route()))
    }

    fn observe(&mut self, flow: FlowNumber, observation: &Observation, segment: &Segment<'_>) {
        keep(&mut self.observed, false, &ObservationRow { flow, observation });
        let Some(acknowledged) = observation.acknowledged else { return };
        for (index, &(left, right)) in segment.options.sack.as_slice().iter().enumerate() {
            // Blocks are relative to the same acknowledgement as the segment's own (RFC 2018 §3).
            let offset = |edge: u32| acknowledged + i64::from(edge.wrapping_sub(segment.acknowledgment) as i32);
            let duplicate = index == 0 && observation.events.contains(Events::DUPLICATE_SACK);
            let block = (offset(left), offset(right));
            keep(&mut self.blocks, false, &BlockRow { flow, observation, block, duplicate });
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
                open.insert(flow, causes);
            }
        }
        if let Some(causes) = self.open.as_mut().and_then(|open| open.get_mut(flow)) {
            let (pieces, stream) = (&mut self.pieces, self.stream);
            causes.observe(observation, &mut |piece| keep(pieces, stream, &PieceRow { flow, piece }));
        }
        if let Some(web) = &mut self.web
            && self.select.is_none_or(|select| select.matches(flow.0, connection.route()))
        {
            web.observed(flow, observation, segment, connection);
        }
        if self.observations && self.matches(flow, connection) {
            self.observe(flow, observation, segment);
        }
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, ending: Ending) {
        if !self.matches(flow, connection) {
            return;
        }
        self.selected += 1;
        self.shortcomings.add(connection);
        if let Some(web) = &mut self.web {
            web.ended(flow, connection, ending);
        }
        let causes = self.open.as_mut().and_then(|open| open.remove(flow));
        let (pieces, stream) = (&mut self.pieces, self.stream);
        let account = causes.map(|causes| causes.finish(&mut |piece| keep(pieces, stream, &PieceRow { flow, piece })));
        let row = ConnectionRow { flow, connection, ending, account: account.as_ref() };
        let [client, server] = End::BOTH.map(|from| DirectionRow { flow, connection, from });
        let stalls: Vec<_> =
            account.iter().flat_map(|account| &account.stalls).map(|stall| StallRow { flow, stall }).collect();
        if self.stream {
            let line = Object::of_type("connection").with(&row);
            let line = line.nested("from_client", &client).nested("from_server", &server);
            let line = if account.is_some() { line.list("stalls", stalls.iter()) } else { line };
            self.goes_on &= (self.line)(&line.end());
        } else {
            keep(&mut self.connections, false, &row);
            keep(&mut self.directions, false, &client);
            keep(&mut self.directions, false, &server);
            stalls.iter().for_each(|stall| keep(&mut self.stalls, false, stall));
        }
    }
}

/// Adds a row to a table, which the first row makes; when connections are forgotten as they end, nothing is kept.
fn keep(table: &mut Option<Table>, forgotten: bool, row: &impl Record) {
    if !forgotten {
        table.get_or_insert_with(|| Table::of(row)).push(row);
    }
}
