//! What is said of a run: one row a flow, a link, a user of the radio, a repetition.
//!
//! Times are seconds, sizes bytes, rates bits per second, as the names say. `None` means that there
//! is nothing to say: a transfer that did not finish has no duration.

use std::collections::BTreeMap;

use airpath_app::Samples;
use airpath_app::arrivals::Analysis;
use airpath_app::bulk::{Milestones, Transfer};
use airpath_app::datagrams::Receiver;
use airpath_app::transactions::{Client, Transactions};
use airpath_core::{Bytes, Count, Direction, DropCause, Instant, PacketCounters, RadioTotals, Span, UserId};
use serde::Serialize;

/// Version of the summary's schema, and of the result folder's.
pub const SCHEMA: u32 = 2;

/// The summary of a run and all its repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of this schema.
    pub schema: u32,
    /// Version of airpath.
    pub airpath: &'static str,
    /// Name of the scenario.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// Whether all repetitions ran to their end.
    pub complete: bool,
    /// Why not.
    pub stopped: Option<String>,
    /// How it was measured, if it was: hosts, clocks, the kernel's settings. Absent of what was
    /// simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measurement: Option<serde_json::Value>,
    /// The components of the run, by number.
    pub components: Vec<Component>,
    /// What only a link under the real clock has: its host, its command, how late packets left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulation: Option<serde_json::Value>,
    /// One row a repetition.
    pub repetitions: Vec<Repetition>,
    /// One row a flow and repetition.
    pub flows: Vec<FlowRow>,
    /// One row a hop, direction and repetition.
    pub links: Vec<LinkRow>,
    /// One row a user, direction and repetition, of those that used the radio.
    pub radio: Vec<RadioRow>,
}

/// A component's number and name.
#[derive(Clone, Debug, Serialize)]
pub struct Component {
    /// Its number.
    pub id: usize,
    /// Its name in the logs.
    pub name: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All flows are over.
    Finished,
    /// The scenario's duration is over, or nothing was left to happen.
    Duration,
    /// It was told to stop, or could not be recorded further.
    Interrupted,
}

/// One repetition.
#[derive(Clone, Debug, Serialize)]
pub struct Repetition {
    /// Its number, from zero.
    pub repetition: u64,
    /// Time at its end since its origin: virtual of a simulation, real of a measurement.
    pub simulated_s: f64,
    /// How it ended.
    pub ended: Ended,
    /// Packets that end points sent.
    pub packets: u64,
    /// Events that the clock served.
    pub events: u64,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRow {
    /// The repetition.
    pub repetition: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Its name.
    pub name: String,
    /// Its workload.
    pub kind: &'static str,
    /// Name of its mobile.
    pub mobile: String,
    /// When it started.
    pub start_s: f64,
    /// `finished`, `aborted` or `unfinished`.
    pub outcome: &'static str,
    /// Why it was aborted.
    pub cause: Option<String>,
    /// What a transfer did.
    #[serde(flatten)]
    pub transfer: Option<TransferRow>,
    /// What pings, datagrams or transactions did.
    #[serde(flatten)]
    pub probes: Option<ProbesRow>,
    /// What a stream of datagrams showed beyond that.
    #[serde(flatten)]
    pub stream: Option<StreamRow>,
    /// What transactions showed beyond that.
    #[serde(flatten)]
    pub transactions: Option<TransactionsRow>,
    /// What the packets of a real program showed.
    #[serde(flatten)]
    pub observed: Option<ObservedRow>,
}

/// The part of a flow's row that transfers have.
#[derive(Clone, Debug, Serialize)]
pub struct TransferRow {
    /// Settings of TCP that were on, as far as they are known: what was configured, and under
    /// `negotiated` what was agreed with the peer.
    pub tcp: serde_json::Value,
    /// Application bytes to move.
    pub bytes: u64,
    /// Application bytes that arrived.
    pub delivered_bytes: u64,
    /// From the start until the connection was open at the end that opened it.
    pub connect_s: Option<f64>,
    /// From the start to the first byte at the receiving application.
    pub first_byte_s: Option<f64>,
    /// From the start to the last byte at the receiving application.
    pub duration_s: Option<f64>,
    /// From the start to the acknowledgement of the last byte at the sender.
    pub acknowledged_s: Option<f64>,
    /// Bytes that arrived over the time that this took, in bits per second.
    pub throughput_bps: Option<f64>,
    // What the sender's and the receiver's TCP know. A measurement has of this what the kernel
    // tells in the same meaning.
    /// Segments with payload that the sender sent.
    pub data_packets: Option<u64>,
    /// Payload bytes in them.
    pub data_bytes: Option<u64>,
    /// Payload bytes, each counted once.
    pub unique_bytes: Option<u64>,
    /// Segments of which a part was sent before.
    pub retransmitted_packets: Option<u64>,
    /// Payload bytes that were sent before.
    pub retransmitted_bytes: Option<u64>,
    /// Segments without payload that the receiver sent.
    pub ack_packets: Option<u64>,
    /// Expiries of the retransmission timer, where the sender tells.
    pub timeouts: Option<u64>,
    /// Recoveries entered because of acknowledgements, where the sender tells.
    pub fast_retransmits: Option<u64>,
    /// Reductions of the window that were found spurious and taken back, where the sender tells.
    pub undone: Option<u64>,
    /// Least round trip that the sender measured.
    pub rtt_min_s: Option<f64>,
    /// Their mean.
    pub rtt_mean_s: Option<f64>,
    /// The greatest.
    pub rtt_max_s: Option<f64>,
    /// How many were measured.
    pub rtt_samples: Option<u64>,
}

/// The part of a flow's row that pings, datagrams and transactions have.
#[derive(Clone, Debug, Serialize)]
pub struct ProbesRow {
    /// Echo requests, datagrams or requests sent.
    pub sent: u64,
    /// Replies, datagrams or responses received.
    pub received: u64,
    /// Those that did not come.
    pub lost: u64,
    /// Least delay: round trip of a ping, one way of a datagram, latency of a transaction.
    pub delay_min_s: Option<f64>,
    /// Mean delay.
    pub delay_mean_s: Option<f64>,
    /// Median delay.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of the delay.
    pub delay_p95_s: Option<f64>,
    /// Greatest delay.
    pub delay_max_s: Option<f64>,
}

/// The part of a flow's row that is known of real programs, whose packets were looked at.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedRow {
    /// The mobile's address, with the port if the protocol has ports; `None` of flows that were not
    /// told apart.
    pub local: Option<String>,
    /// The server's.
    pub remote: Option<String>,
    /// `down` or `up`: where more of it went, and what the rest of the row is about.
    pub direction: &'static str,
    /// When the last packet of the flow entered or left the link.
    pub end_s: f64,
    /// Its packets towards the mobile.
    pub down: TrafficRow,
    /// Its packets from the mobile.
    pub up: TrafficRow,
}

/// Packets of a flow in one direction; those that are neither delivered nor lost were under way at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficRow {
    /// Packets that entered the link.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that left it.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that it lost.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
}

/// The part of a flow's row that datagrams have; see [`Analysis`].
#[derive(Clone, Debug, Serialize)]
pub struct StreamRow {
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams that came after a later one.
    pub reordered: u64,
    /// Mean time from one arrival to the next.
    pub inter_arrival_mean_s: Option<f64>,
    /// Its median.
    pub inter_arrival_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub inter_arrival_p95_s: Option<f64>,
    /// The longest.
    pub inter_arrival_max_s: Option<f64>,
    /// Gaps: from the last datagram before a burst of losses to the first after it.
    pub gaps: u64,
    /// Their mean length.
    pub gap_mean_s: Option<f64>,
    /// The longest.
    pub gap_max_s: Option<f64>,
    /// Datagrams lost in the longest burst.
    pub gap_most_lost: u64,
    /// The delay above which a datagram is late.
    pub late_threshold_s: f64,
    /// Datagrams that were.
    pub late: u64,
    /// Delay periods: nothing lost, but late.
    pub delay_periods: u64,
    /// Their mean length.
    pub delay_period_mean_s: Option<f64>,
    /// The longest.
    pub delay_period_max_s: Option<f64>,
}

/// The part of a flow's row that transactions have.
#[derive(Clone, Debug, Serialize)]
pub struct TransactionsRow {
    /// Settings of TCP, as of a transfer.
    pub tcp: serde_json::Value,
    /// `one` for all, or one for `each`.
    pub connections: &'static str,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// From the start until a connection was open, in the mean over all connections.
    pub connect_mean_s: Option<f64>,
    /// From the start to the last response.
    pub duration_s: Option<f64>,
    /// Responses over that time.
    pub transactions_per_s: Option<f64>,
}

/// One direction of a hop.
#[derive(Clone, Debug, Serialize)]
pub struct LinkRow {
    /// The repetition.
    pub repetition: u64,
    /// The hop.
    pub component: String,
    /// The direction.
    pub direction: &'static str,
    /// Packets that came in.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that left.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets still inside at the end.
    pub queued_packets: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets lost, by cause; causes that did not occur are left out.
    pub dropped: BTreeMap<&'static str, CountRow>,
    /// Packets that a middlebox created; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<CountRow>,
    /// Packets that a middlebox absorbed; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absorbed: Option<CountRow>,
}

/// A number of packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CountRow {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One user's radio in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct RadioRow {
    /// The repetition.
    pub repetition: u64,
    /// The bearer.
    pub component: String,
    /// The direction.
    pub direction: &'static str,
    /// Number of the user.
    pub user: u16,
    /// TTIs in which the user sent or was sent to.
    pub ttis: u64,
    /// PDUs in them.
    pub pdus: u64,
    /// Of these, sent for the second or a later time.
    pub repeated_pdus: u64,
    /// Of all PDUs, not decoded by the receiver.
    pub errored_pdus: u64,
    /// RLC bytes, padding included.
    pub bytes: u64,
}

impl Summary {
    /// A summary without repetitions of the scenario of that name.
    pub fn new(scenario: &str, seed: u64, components: &[String]) -> Self {
        let components = components.iter().cloned().enumerate().map(|(id, name)| Component { id, name }).collect();
        Self {
            schema: SCHEMA,
            airpath: env!("CARGO_PKG_VERSION"),
            scenario: scenario.to_owned(),
            seed,
            complete: true,
            stopped: None,
            measurement: None,
            components,
            emulation: None,
            repetitions: Vec::new(),
            flows: Vec::new(),
            links: Vec::new(),
            radio: Vec::new(),
        }
    }

    /// Milestones that not all was done, and why; the first reason stays.
    pub fn unfinished(&mut self, why: &str) {
        self.complete = false;
        self.stopped.get_or_insert_with(|| why.to_owned());
    }

    /// Adds what a repetition brought.
    pub fn add(&mut self, mut rows: Rows) {
        self.repetitions.push(rows.repetition);
        self.flows.append(&mut rows.flows);
        self.links.append(&mut rows.links);
        self.radio.append(&mut rows.radio);
    }

    /// The summary as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary is made of numbers and text")
    }
}

/// The rows of one repetition.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The repetition itself.
    pub repetition: Repetition,
    /// Its flows.
    pub flows: Vec<FlowRow>,
    /// Its links.
    pub links: Vec<LinkRow>,
    /// Its users of the radio.
    pub radio: Vec<RadioRow>,
}

impl LinkRow {
    /// What `counters` says of one direction of the hop `name`.
    pub fn of(name: &str, direction: Direction, repetition: u64, counters: &PacketCounters) -> Self {
        let Count { packets: offered_packets, bytes: offered_bytes } = counters.offered;
        let Count { packets: delivered_packets, bytes: delivered_bytes } = counters.delivered;
        let Count { packets: queued_packets, bytes: queued_bytes } = counters.queued;
        let dropped = DropCause::ALL.iter().zip(&counters.dropped).filter(|(_, count)| count.packets > 0);
        let row = |count: Count| CountRow { packets: count.packets, bytes: count.bytes };
        let some = |count: Count| (count != Count::default()).then(|| row(count));
        Self {
            repetition,
            component: name.to_owned(),
            direction: direction.name(),
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            queued_packets,
            queued_bytes,
            dropped: dropped.map(|(cause, count)| (cause.name(), row(*count))).collect(),
            created: some(counters.created),
            absorbed: some(counters.absorbed),
        }
    }
}

impl RadioRow {
    /// What `totals` say of one direction of a user of the bearer `name`.
    pub fn of(name: &str, direction: Direction, user: UserId, repetition: u64, totals: &RadioTotals) -> Self {
        Self {
            repetition,
            component: name.to_owned(),
            direction: direction.name(),
            user: user.0,
            ttis: totals.ttis,
            pdus: totals.pdus,
            repeated_pdus: totals.repeated,
            errored_pdus: totals.errored,
            bytes: totals.bytes,
        }
    }
}

impl TransferRow {
    /// What the applications saw of a transfer that started at `start` and stands as it does at
    /// `now`. What TCP knows is left to the caller.
    pub fn of(
        transfer: &Transfer,
        milestones: &Milestones,
        start: Instant,
        now: Instant,
        tcp: serde_json::Value,
    ) -> Self {
        let since_start = |mark: Option<Instant>| mark.map(|mark| mark.since(start).as_secs_f64());
        Self {
            tcp,
            bytes: transfer.bytes.get(),
            delivered_bytes: milestones.delivered,
            connect_s: since_start(milestones.connected),
            first_byte_s: since_start(milestones.first_byte),
            duration_s: since_start(milestones.finished),
            acknowledged_s: since_start(milestones.acknowledged),
            throughput_bps: Bytes::new(milestones.delivered).rate_over(milestones.duration(start, now)),
            data_packets: None,
            data_bytes: None,
            unique_bytes: None,
            retransmitted_packets: None,
            retransmitted_bytes: None,
            ack_packets: None,
            timeouts: None,
            fast_retransmits: None,
            undone: None,
            rtt_min_s: None,
            rtt_mean_s: None,
            rtt_max_s: None,
            rtt_samples: None,
        }
    }
}

impl ProbesRow {
    /// `received` of `sent` probes came, with these delays.
    pub fn of(sent: u64, received: u64, delays: &Samples) -> Self {
        let quantile = |q| delays.quantile(q).map(Span::as_secs_f64);
        Self {
            sent,
            received,
            lost: sent - received,
            delay_min_s: quantile(0.0),
            delay_mean_s: delays.mean_s(),
            delay_p50_s: quantile(0.5),
            delay_p95_s: quantile(0.95),
            delay_max_s: quantile(1.0),
        }
    }
}

impl StreamRow {
    /// What `receiver` got, where datagrams are late that took longer than `late`.
    pub fn of(receiver: &Receiver, late: Span) -> Self {
        let analysis = Analysis::of(receiver.arrivals(), late);
        let quantile = |samples: &Samples, q| samples.quantile(q).map(Span::as_secs_f64);
        Self {
            duplicates: receiver.duplicates(),
            reordered: analysis.reordered,
            inter_arrival_mean_s: analysis.inter_arrival.mean_s(),
            inter_arrival_p50_s: quantile(&analysis.inter_arrival, 0.5),
            inter_arrival_p95_s: quantile(&analysis.inter_arrival, 0.95),
            inter_arrival_max_s: quantile(&analysis.inter_arrival, 1.0),
            gaps: analysis.gaps.count(),
            gap_mean_s: analysis.gaps.mean_s(),
            gap_max_s: quantile(&analysis.gaps, 1.0),
            gap_most_lost: analysis.longest_burst,
            late_threshold_s: late.as_secs_f64(),
            late: analysis.late,
            delay_periods: analysis.delay_periods.count(),
            delay_period_mean_s: analysis.delay_periods.mean_s(),
            delay_period_max_s: quantile(&analysis.delay_periods, 1.0),
        }
    }
}

impl TransactionsRow {
    /// What `client` saw of `work` that started at `start`.
    pub fn of(work: &Transactions, client: &Client, start: Instant, tcp: serde_json::Value) -> Self {
        let duration = client.last().map(|last| last.since(start).as_secs_f64());
        Self {
            tcp,
            connections: work.connections.name(),
            request_bytes: work.request.get(),
            response_bytes: work.response.get(),
            connect_mean_s: client.connects().mean_s(),
            duration_s: duration,
            transactions_per_s: duration
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| client.latencies().count() as f64 / seconds),
        }
    }
}
