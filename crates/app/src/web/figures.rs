//! Figures of a view, as `airpath trace` has them of a capture.

use std::collections::BTreeMap;

use airpath_core::{Instant, Span};
use airpath_web::{Pipelining, covered_time, efficiency};

use super::view::View;

/// Figures of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// From the start to the first byte of the document.
    pub first_byte: Option<Span>,
    /// Connections with a request.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// Responses.
    pub responses: u64,
    /// Objects from the cache without a request.
    pub cached: u64,
    /// Bytes of the bodies that arrived.
    pub bytes: u64,
    /// The highest pipeline factor Φ of a connection.
    pub pipeline_factor: Option<f64>,
    /// Pipelining efficiency η.
    pub efficiency: Option<f64>,
    /// The same of connections with at least two requests.
    pub efficiency_of_reused: Option<f64>,
    /// Time in which no response was in transit.
    pub without_response: Option<Span>,
    /// Idle time of the downlink.
    pub idle_downlink: Option<Span>,
}

impl Figures {
    /// The figures of `view`.
    pub fn of(view: &View) -> Self {
        let mut connections: BTreeMap<u32, (Vec<Instant>, Vec<Instant>)> = BTreeMap::new();
        for fetch in &view.fetches {
            if let (Some(connection), Some(requested)) = (fetch.connection, fetch.requested) {
                let (requests, responses) = connections.entry(connection).or_default();
                requests.push(requested);
                responses.extend(fetch.finished);
            }
        }
        let responses = connections.values().map(|(_, responses)| responses.len() as u64).sum();
        let pipelining: Vec<Pipelining> = connections
            .values_mut()
            .filter_map(|(requests, responses)| {
                requests.sort_unstable();
                responses.sort_unstable();
                Pipelining::count(requests, responses)
            })
            .collect();
        let mut busy: Vec<(Instant, Instant)> =
            view.fetches.iter().filter_map(|fetch| Some((fetch.first_byte?, fetch.finished?))).collect();
        let covered = covered_time(&mut busy);
        let since = |mark: Option<Instant>| mark.map(|mark| mark.since(view.start));
        Self {
            first_byte: since(view.fetches.first().and_then(|fetch| fetch.first_byte)),
            connections: connections.len() as u64,
            requests: pipelining.iter().map(|connection| connection.requests).sum(),
            responses,
            cached: view.fetches.iter().filter(|fetch| fetch.finished.is_some() && fetch.requested.is_none()).count()
                as u64,
            bytes: view.fetches.iter().map(|fetch| fetch.received).sum(),
            pipeline_factor: pipelining.iter().map(|connection| connection.factor()).reduce(f64::max),
            efficiency: efficiency(pipelining.iter().copied(), 1),
            efficiency_of_reused: efficiency(pipelining.iter().copied(), 2),
            without_response: view.time().map(|time| time.saturating_sub(covered)),
            idle_downlink: view.time().and_then(|time| view.downlink.idle(time)).map(|idle| idle.time),
        }
    }
}
