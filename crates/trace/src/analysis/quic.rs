//! The QUIC flows of a capture: their causes, and rows of tables or lines of JSON.

mod pauses;

use std::collections::BTreeMap;

use super::json_lines::JsonLines;
use super::records::{FlowId, PieceRow, RadioStateRow, StallRow};
use super::table::{Fields, Table, table};
use super::table_builder::TableBuilder;
use super::web_records::QuicRow;
use super::{Inputs, Options, Selection};
use crate::causes::{Account, QuicCauses};
use airpath_observe::flows::FlowNumber;
use airpath_web::{Mark, Quic, QuicDatagram, QuicFlows};
use airpath_wire::segment::{Datagram, Route, Tunnel};
use pauses::Pauses;

/// The most datagrams between two searches for flows that are over.
const ENDED_EVERY: u64 = 1 << 12;

/// A flow that is not over.
struct OpenFlow {
    causes: QuicCauses,
    pauses: Pauses,
}

/// Collects the results of QUIC flows.
pub struct QuicCollector {
    select: Option<Selection>,
    /// Whether figures and causes are reported: not where only segments are requested.
    is_reported: bool,
    stream: bool,
    inputs: Inputs,
    flows: QuicFlows,
    datagrams: u64,
    /// The frame of the last datagram.
    frame: u64,
    /// Flows that have begun.
    begun: u64,
    /// Whether causes are reported. They also show which round trips contain a pause.
    has_causes: bool,
    open: BTreeMap<u64, OpenFlow>,
    ended: Vec<(Quic, Option<Account>)>,
    pieces: TableBuilder,
    stalls: TableBuilder,
    radio_states: TableBuilder,
    /// Flows that each selector of [`Options::select`] matches.
    selected: Vec<u64>,
}

impl QuicCollector {
    /// Nothing collected yet.
    pub fn new(options: &Options, inputs: Inputs) -> Self {
        Self {
            select: options.select.clone(),
            is_reported: options.causes || options.exchanges || options.stream,
            stream: options.stream,
            inputs,
            flows: QuicFlows::default(),
            datagrams: 0,
            frame: 0,
            begun: 0,
            has_causes: options.causes,
            open: BTreeMap::new(),
            ended: Vec::new(),
            pieces: TableBuilder::default(),
            stalls: TableBuilder::default(),
            radio_states: TableBuilder::default(),
            selected: vec![0; options.selectors().len()],
        }
    }

    /// Takes a UDP datagram. Returns whether flows are over that have no line yet.
    pub fn datagram(&mut self, datagram: &Datagram<'_>) -> bool {
        let route = &datagram.route;
        self.frame = datagram.frame;
        let mark = Mark { time: datagram.time, frame: datagram.frame };
        let seen = self.flows.datagram(mark, route.source, route.destination, datagram.length, datagram.payload);
        if let Some(seen) = seen {
            let is_new = seen.flow > self.begun;
            self.begun = self.begun.max(seen.flow);
            // The client may have another address later.
            let is_selected =
                if is_new { self.is_selected(seen.flow, route) } else { self.open.contains_key(&seen.flow) };
            if self.is_reported && is_selected {
                self.observe(&seen, route);
            }
        }
        self.datagrams += 1;
        if self.datagrams.is_multiple_of(ENDED_EVERY) {
            self.end();
        }
        self.stream && !self.ended.is_empty()
    }

    fn is_selected(&self, number: u64, route: &Route) -> bool {
        self.select.as_ref().is_none_or(|select| select.matches(FlowId::Quic(number), route))
    }

    fn observe(&mut self, datagram: &QuicDatagram, route: &Route) {
        let Self { open, inputs, pieces, .. } = self;
        let has_pieces = self.has_causes && !self.stream;
        let OpenFlow { causes, pauses } = open.entry(datagram.flow).or_insert_with(|| {
            let causes = match inputs.radio(route) {
                Some((log, mobile)) => QuicCauses::new().with_radio(log, mobile),
                None => QuicCauses::new(),
            };
            let causes = match inputs.host(route, datagram.mark.time) {
                Some((host, round_trip)) => causes.with_host(host, round_trip),
                None => causes,
            };
            OpenFlow { causes, pauses: Pauses::default() }
        });
        let (flow, frame) = (FlowId::Quic(datagram.flow), datagram.mark.frame);
        causes.observe(datagram, &mut |piece| {
            pauses.add(piece);
            if has_pieces {
                pieces.push(frame, &PieceRow { flow, piece });
            }
        });
    }

    /// Ends the flows that are over.
    fn end(&mut self) {
        for quic in self.flows.take_ended() {
            self.end_one(quic);
        }
    }

    fn end_one(&mut self, mut quic: Quic) {
        let route = Route { source: quic.client, destination: quic.server, tunnel: Tunnel::None };
        if !self.is_selected(quic.number, &route) {
            return;
        }
        let flow = FlowId::Quic(quic.number);
        let (pieces, has_pieces) = (&mut self.pieces, self.has_causes && !self.stream);
        let account = self.open.remove(&quic.number).map(|OpenFlow { causes, mut pauses }| {
            let account = causes.finish(&mut |piece| {
                pauses.add(piece);
                if has_pieces {
                    pieces.push(quic.last.frame, &PieceRow { flow, piece });
                }
            });
            pauses.leave_out_of(&mut quic.spin);
            account
        });
        let account = account.filter(|_| self.has_causes);
        for (flows, selector) in self.selected.iter_mut().zip(self.select.iter().flat_map(Selection::selectors)) {
            *flows += u64::from(selector.matches(flow, &route));
        }
        if let Some(account) = account.as_ref().filter(|_| !self.stream) {
            account.stalls.iter().for_each(|stall| self.stalls.push(0, &StallRow { flow, stall }));
            account.radio_states.iter().for_each(|state| self.radio_states.push(0, &RadioStateRow { flow, state }));
        }
        if self.is_reported {
            self.ended.push((quic, account));
        }
    }

    /// Adds the lines of JSON of the flows that are over, with [`Options::stream`], and forgets
    /// these.
    pub fn take_lines(&mut self, lines: &mut JsonLines) {
        if !self.stream {
            return;
        }
        for (quic, account) in self.ended.drain(..) {
            lines.add(FlowNumber(0), self.frame, |mut line| {
                line.text("type", Some("quic"));
                let line = line.with(&QuicRow { quic: &quic, account: account.as_ref() });
                match &account {
                    Some(account) => {
                        let flow = FlowId::Quic(quic.number);
                        let stalls: Vec<_> = account.stalls.iter().map(|stall| StallRow { flow, stall }).collect();
                        line.list("stalls", stalls.iter())
                    }
                    None => line,
                }
            });
        }
    }

    /// Number of QUIC flows of the capture.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Ends the capture: all flows end.
    pub fn finish(&mut self) {
        self.end();
        for quic in std::mem::take(&mut self.flows).finish() {
            self.end_one(quic);
        }
        self.ended.sort_by_key(|(quic, _)| quic.number);
    }

    /// Flows that each selector matches.
    pub fn selected(&self) -> &[u64] {
        &self.selected
    }

    /// The tables, without those that have no row.
    pub fn tables(self) -> impl Iterator<Item = (&'static str, Table)> {
        let flows = table(self.ended.iter().map(|(quic, account)| QuicRow { quic, account: account.as_ref() }));
        [
            ("quic", flows),
            ("quic_causes", self.pieces.into_table()),
            ("quic_stalls", self.stalls.into_table()),
            ("quic_radio_states", self.radio_states.into_table()),
        ]
        .into_iter()
        .filter_map(|(name, table)| table.map(|table| (name, table)))
    }
}
