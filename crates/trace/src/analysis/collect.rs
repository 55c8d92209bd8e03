//! What is kept of each connection while its segments pass, and the line of JSON that it leaves when it ends.

use std::net::IpAddr;
use std::sync::Arc;

use super::lines::Lines;
use super::numbered::Numbered;
use super::records::{BlockRow, ConnectionRow, DirectionRow, ObservationRow, PieceRow, StallRow};
use super::sheet::Sheet;
use super::table::Fields;
use super::{Options, Selector, Shortcomings};
use crate::causes::Causes;
use crate::radio::RadioLog;
use crate::two_ends::TwoEnds;
use airpath_observe::flows::{Ending, FlowNumber, Listener};
use airpath_observe::{Connection, End, Events, Observation};
use airpath_web::{Exchanges, Web};
use airpath_wire::segment::{Datagram, Segment};

/// Collects what is to be told of connections.
pub struct Collector<'a> {
    select: Option<Selector>,
    observations: bool,
    stream: bool,
    /// The frame that is looked at: what is told now, is told at it.
    frame: u64,
    /// What the connections that ended leave, if that is wanted.
    lines: Lines,
    /// What is known of both ends.
    ends: Option<&'a TwoEnds>,
    radio: Vec<(Option<IpAddr>, Arc<RadioLog>)>,
    selected: u64,
    shortcomings: Shortcomings,
    /// The causes of the connections that are open, where they are wanted.
    open: Option<Numbered<Causes>>,
    /// What is said on them, where that is wanted.
    web: Option<Web>,
    sheets: Sheets,
}

/// The tables in the making.
#[derive(Default)]
pub struct Sheets {
    connections: Sheet,
    directions: Sheet,
    pieces: Sheet,
    stalls: Sheet,
    observed: Sheet,
    blocks: Sheet,
}

impl Sheets {
    /// Each with its name.
    pub fn named(self) -> [(&'static str, Sheet); 6] {
        [
            ("connections", self.connections),
            ("directions", self.directions),
            ("causes", self.pieces),
            ("stalls", self.stalls),
            ("observations", self.observed),
            ("selective", self.blocks),
        ]
    }
}

/// The frame of what is told when there are no more.
pub const END_OF_CAPTURE: u64 = u64::MAX;

impl<'a> Collector<'a> {
    /// Nothing yet; `ends` is what both ends' captures tell.
    pub fn new(options: &Options, ends: Option<&'a TwoEnds>) -> Self {
        Self {
            select: options.select,
            observations: options.observations,
            stream: options.stream,
            frame: 0,
            lines: Lines::default(),
            ends,
            radio: options.radio.clone(),
            selected: 0,
            shortcomings: Shortcomings::default(),
            open: options.causes.then(Numbered::default),
            web: options.exchanges.then(Web::with_all_fields),
            sheets: Sheets::default(),
        }
    }

    /// What comes next is told at that frame.
    pub const fn at(&mut self, frame: u64) {
        self.frame = frame;
    }

    /// The lines of the connections that have ended since they were taken away or cleared.
    pub const fn lines(&mut self) -> &mut Lines {
        &mut self.lines
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

    /// The tables, and what was said.
    pub fn finish(self) -> (Sheets, Option<Exchanges>) {
        (self.sheets, self.web.map(Web::finish))
    }

    fn matches(&self, flow: FlowNumber, connection: &Connection) -> bool {
        self.select.is_none_or(|select| select.matches(flow.0, connection.route()))
    }

    fn observe(&mut self, flow: FlowNumber, observation: &Observation, segment: &Segment<'_>) {
        self.sheets.observed.push(self.frame, &ObservationRow { flow, observation });
        let Some(acknowledged) = observation.acknowledged else { return };
        for (index, &(left, right)) in segment.options.sack.as_slice().iter().enumerate() {
            // Blocks are relative to the same acknowledgement as the segment's own (RFC 2018 §3).
            let offset = |edge: u32| acknowledged + i64::from(edge.wrapping_sub(segment.acknowledgment) as i32);
            let duplicate = index == 0 && observation.events.contains(Events::DSACK);
            let block = (offset(left), offset(right));
            self.sheets.blocks.push(self.frame, &BlockRow { flow, observation, block, duplicate });
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
            let (pieces, keep, frame) = (&mut self.sheets.pieces, !self.stream, self.frame);
            causes.observe(observation, &mut |piece| {
                if keep {
                    pieces.push(frame, &PieceRow { flow, piece });
                }
            });
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
        let (sheets, keep, frame) = (&mut self.sheets, !self.stream, self.frame);
        let account = causes.map(|causes| {
            causes.finish(&mut |piece| {
                if keep {
                    sheets.pieces.push(frame, &PieceRow { flow, piece });
                }
            })
        });
        let row = ConnectionRow { flow, connection, ending, account: account.as_ref() };
        let [client, server] = End::BOTH.map(|from| DirectionRow { flow, connection, from });
        let stalls: Vec<_> =
            account.iter().flat_map(|account| &account.stalls).map(|stall| StallRow { flow, stall }).collect();
        if keep {
            sheets.connections.push(frame, &row);
            sheets.directions.push(frame, &client);
            sheets.directions.push(frame, &server);
            stalls.iter().for_each(|stall| sheets.stalls.push(frame, stall));
        } else {
            self.lines.add(flow, frame, |mut line| {
                line.text("type", Some("connection"));
                let line = line.with(&row).nested("from_client", &client).nested("from_server", &server);
                if account.is_some() { line.list("stalls", stalls.iter()) } else { line }
            });
        }
    }
}
