//! What is kept of each connection while its segments pass, and its line of JSON when it ends.

use super::records::{BlockRow, ConnectionRow, ObservationRow};
use super::table::{Object, Table};
use super::{Options, Selector};
use crate::connection::{Connection, Events, Observation};
use crate::decode::Segment;
use crate::flows::{Ending, FlowNumber, Listener};

/// Collects what is to be told of connections.
pub struct Collector<'a> {
    select: Option<Selector>,
    observations: bool,
    stream: bool,
    line: &'a mut dyn FnMut(&str) -> bool,
    goes_on: bool,
    selected: u64,
    connections: Option<Table>,
    observed: Option<Table>,
    blocks: Option<Table>,
}

impl<'a> Collector<'a> {
    pub fn new(options: &Options, line: &'a mut dyn FnMut(&str) -> bool) -> Self {
        Self {
            select: options.select,
            observations: options.observations,
            stream: options.stream,
            line,
            goes_on: true,
            selected: 0,
            connections: None,
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

    /// The tables, in the order of the numbers of connections; of what there was nothing of, there is none.
    pub fn tables(self) -> Vec<(&'static str, Table)> {
        let tables = [("connections", self.connections), ("observations", self.observed), ("selective", self.blocks)];
        tables.into_iter().filter_map(|(name, table)| table.map(|table| (name, table))).collect()
    }

    fn matches(&self, flow: FlowNumber, connection: &Connection) -> bool {
        self.select.is_none_or(|select| select.matches(flow.0, connection.route()))
    }

    fn observe(&mut self, flow: FlowNumber, observation: &Observation, segment: &Segment<'_>) {
        let row = ObservationRow { flow, observation };
        self.observed.get_or_insert_with(|| Table::of(&row)).push(&row);
        let Some(acknowledged) = observation.acknowledged else { return };
        for (index, &(left, right)) in segment.options.sack.as_slice().iter().enumerate() {
            // Blocks are relative to the same acknowledgement as the segment's own (RFC 2018 §3).
            let offset = |edge: u32| acknowledged + i64::from(edge.wrapping_sub(segment.acknowledgment) as i32);
            let duplicate = index == 0 && observation.events.contains(Events::DUPLICATE_SACK);
            let row = BlockRow { flow, observation, block: (offset(left), offset(right)), duplicate };
            self.blocks.get_or_insert_with(|| Table::of(&row)).push(&row);
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
        if self.observations && self.matches(flow, connection) {
            self.observe(flow, observation, segment);
        }
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, ending: Ending) {
        if !self.matches(flow, connection) {
            return;
        }
        self.selected += 1;
        let row = ConnectionRow { flow, connection, ending };
        if self.stream {
            let text = Object::of_type("connection").with(&row).end();
            self.goes_on &= (self.line)(&text);
        } else {
            self.connections.get_or_insert_with(|| Table::of(&row)).push(&row);
        }
    }
}
