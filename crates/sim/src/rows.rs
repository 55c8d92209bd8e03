//! What is said of a simulation: the rows of the summary, read off it as it stands.

use airpath_core::{Bytes, Direction, Instant, Span};
use airpath_result::summary::{Ended, FlowRow, LinkRow, ProbesRow, RadioRow, Repetition, Rows, TransferRow};
use airpath_scenario::tcp::Settings;
use airpath_tcp::Negotiated;
use serde::Serialize;

use crate::flow::{DatagramsFlow, Flow, PingFlow, TransferFlow};
use crate::simulation::Simulation;

/// The rows of repetition `number`.
pub fn of(simulation: &Simulation<'_>, number: u64, ended: Ended, mobiles: &[String]) -> Rows {
    let now = simulation.now();
    let repetition = Repetition {
        repetition: number,
        simulated_s: now.as_secs_f64(),
        ended,
        packets: simulation.packets(),
        events: simulation.events(),
    };
    let flows = simulation.flows().iter().map(|each| flow(each, number, now, mobiles)).collect();
    let (mut links, mut radio) = (Vec::new(), Vec::new());
    for (name, hop) in simulation.hops() {
        links.extend(Direction::BOTH.map(|direction| LinkRow::of(name, direction, number, &hop.tally(direction))));
        for (direction, user) in simulation.users() {
            let totals = hop.radio_totals(direction, user);
            radio.extend(totals.map(|totals| RadioRow::of(name, direction, user, number, &totals)));
        }
    }
    Rows { repetition, flows, links, radio }
}

fn flow(flow: &Flow, repetition: u64, now: Instant, mobiles: &[String]) -> FlowRow {
    let identity = flow.identity();
    let row = |kind, outcome| FlowRow {
        repetition,
        flow: identity.id.0,
        name: identity.name.clone(),
        kind,
        mobile: mobiles[usize::from(identity.user.0)].clone(),
        start_s: identity.start.as_secs_f64(),
        outcome,
        cause: None,
        transfer: None,
        probes: None,
        observed: None,
    };
    let over = if flow.is_over() { "finished" } else { "unfinished" };
    match flow {
        Flow::Transfer(flow) => FlowRow {
            cause: flow.cause(),
            transfer: Some(transfer(flow, now)),
            ..row(
                match flow.transfer.direction {
                    Direction::Down => "download",
                    Direction::Up => "upload",
                },
                match (flow.marks.finished, flow.marks.aborted) {
                    (Some(_), _) => "finished",
                    (None, Some(_)) => "aborted",
                    (None, None) => "unfinished",
                },
            )
        },
        Flow::Ping(flow) => FlowRow { probes: Some(ping(flow)), ..row("ping", over) },
        Flow::Datagrams(flow) => FlowRow { probes: Some(datagrams(flow)), ..row("datagrams", over) },
    }
}

/// The TCP settings of a flow: the profile and every setting that was in force, and what was agreed with the peer,
/// which is absent before the handshake.
#[derive(Serialize)]
struct Tcp<'a> {
    #[serde(flatten)]
    settings: &'a Settings,
    negotiated: Option<Negotiated>,
}

fn transfer(flow: &TransferFlow, now: Instant) -> TransferRow {
    let start = flow.identity.start;
    let since_start = |mark: Option<Instant>| mark.map(|mark| mark.since(start).as_secs_f64());
    let sent = flow.sender().statistics();
    let until = flow.marks.finished.or(flow.marks.aborted).unwrap_or(now);
    let negotiated = flow.marks.connected.map(|_| flow.sender().negotiated());
    TransferRow {
        tcp: serde_json::to_value(Tcp { settings: &flow.tcp, negotiated }).expect("settings are numbers and text"),
        bytes: flow.transfer.bytes.get(),
        delivered_bytes: flow.marks.delivered,
        connect_s: since_start(flow.marks.connected),
        first_byte_s: since_start(flow.marks.first_byte),
        duration_s: since_start(flow.marks.finished),
        acknowledged_s: since_start(flow.marks.acknowledged),
        throughput_bps: Bytes::new(flow.marks.delivered).rate_over(until.since(start)),
        data_packets: sent.data_segments,
        data_bytes: sent.data_bytes,
        unique_bytes: sent.unique_bytes,
        retransmitted_packets: sent.retransmitted_segments,
        retransmitted_bytes: sent.retransmitted_bytes,
        ack_packets: flow.receiver().statistics().pure_acks,
        timeouts: Some(sent.timeouts),
        fast_retransmits: Some(sent.fast_retransmits),
        undone: Some(sent.undos),
        rtt_min_s: sent.rtt_min.map(Span::as_secs_f64),
        rtt_mean_s: sent.rtt_mean_s(),
        rtt_max_s: sent.rtt_max.map(Span::as_secs_f64),
        rtt_samples: sent.rtt_samples,
    }
}

fn ping(flow: &PingFlow) -> ProbesRow {
    let round_trips = flow.pinger.round_trips();
    ProbesRow::of(flow.pinger.sent().into(), round_trips.count(), round_trips)
}

fn datagrams(flow: &DatagramsFlow) -> ProbesRow {
    ProbesRow::of(flow.sender.sent().into(), flow.receiver.received().into(), flow.receiver.delays())
}
