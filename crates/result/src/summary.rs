//! The summary of a run: one row per flow, link, radio user and repetition.
//!
//! Times are in seconds, sizes in bytes, rates in bits per second, as the names state. `None` means
//! not applicable: an unfinished transfer has no duration.

mod adaptive;
mod call;
mod exchanges;
mod ftp;
mod page;
mod playback;

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_app::Samples;
use airpath_app::arrivals::Analysis;
use airpath_app::bulk::{Milestones, Transfer};
use airpath_app::datagrams::Receiver;
use airpath_app::transactions::{Client, Transactions};
use airpath_core::{Bytes, Count, Direction, DropCause, Instant, PacketCounters, RadioTotals, Span, UserId};
use serde::Serialize;

pub use adaptive::{AdaptiveRow, SegmentRow};
pub use call::{CallDirectionRow, CallRow};
pub use exchanges::{ExchangesRow, LatencyRow, ScriptRow};
pub use ftp::FtpRow;
pub use page::{ObjectRow, PageRow, SessionRow};
pub use playback::{BufferRow, PlaybackRow};

/// Version of the schema of the summary and of the result folder.
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
    /// The reason if not.
    pub stopped: Option<String>,
    /// Data of a measurement: hosts, clocks, the kernel's settings. Absent in simulations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measurement: Option<serde_json::Value>,
    /// The components of the run, by number.
    pub components: Vec<Component>,
    /// Data of a link under the real clock: its host, its command, the lateness of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulation: Option<serde_json::Value>,
    /// One row per repetition.
    pub repetitions: Vec<Repetition>,
    /// One row per flow and repetition.
    pub flows: Vec<FlowRow>,
    /// One row per hop, direction and repetition.
    pub links: Vec<LinkRow>,
    /// One row per user, direction and repetition, of those that used the radio.
    pub radio: Vec<RadioRow>,
    /// One row per view of a page and repetition; left out without pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PageRow>,
    /// One row per object of a view; left out without pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectRow>,
    /// One row per second of a video's playback and repetition; left out without videos.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferRow>,
    /// One row per segment of a video over HTTP; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentRow>,
    /// One row per sequence of exchanges of a kind; left out without terminals and mail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptRow>,
    /// One row per counter of a middlebox and repetition; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub middleboxes: Vec<MiddleboxRow>,
}

/// A component's number and name.
#[derive(Clone, Debug, Serialize)]
pub struct Component {
    /// Its number.
    pub id: usize,
    /// Its name in the logs.
    pub name: String,
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All flows are over.
    Finished,
    /// The scenario's duration is over, or no event is left.
    Duration,
    /// It was stopped, or recording failed.
    Interrupted,
}

/// One repetition.
#[derive(Clone, Debug, Serialize)]
pub struct Repetition {
    /// Its number, from zero.
    pub repetition: u64,
    /// Time from its origin to its end: virtual in a simulation, real in a measurement.
    pub simulated_s: f64,
    /// Its end.
    pub ended: Ended,
    /// Packets sent by end points.
    pub packets: u64,
    /// Number of processed events.
    pub events: u64,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRow {
    /// Number of the repetition.
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
    /// Cause of the abort.
    pub cause: Option<String>,
    /// Figures of a transfer.
    #[serde(flatten)]
    pub transfer: Option<TransferRow>,
    /// Figures of pings, datagrams or transactions.
    #[serde(flatten)]
    pub probes: Option<ProbesRow>,
    /// Further figures of a stream of datagrams.
    #[serde(flatten)]
    pub stream: Option<StreamRow>,
    /// Further figures of transactions.
    #[serde(flatten)]
    pub transactions: Option<TransactionsRow>,
    /// Figures of pages.
    #[serde(flatten)]
    pub session: Option<SessionRow>,
    /// Figures of a video.
    #[serde(flatten)]
    pub playback: Option<PlaybackRow>,
    /// Figures of a video over HTTP.
    #[serde(flatten)]
    pub adaptive: Option<AdaptiveRow>,
    /// Figures of a call.
    #[serde(flatten)]
    pub call: Option<CallRow>,
    /// Figures of a remote terminal or of mail.
    #[serde(flatten)]
    pub exchanges: Option<ExchangesRow>,
    /// Figures of FTP.
    #[serde(flatten)]
    pub ftp: Option<FtpRow>,
    /// Figures of the packets of a real program.
    #[serde(flatten)]
    pub observed: Option<ObservedRow>,
}

/// The columns of transfers in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct TransferRow {
    /// TCP settings in force, as far as available: the configured ones, and under `negotiated`
    /// those agreed with the peer. Flows with the same settings share them.
    pub tcp: Arc<serde_json::Value>,
    /// Application bytes to transfer.
    pub bytes: u64,
    /// Application bytes that arrived.
    pub delivered_bytes: u64,
    /// From the start until the connection was open at the connecting end.
    pub connect_s: Option<f64>,
    /// From the start to the first byte at the receiving application.
    pub first_byte_s: Option<f64>,
    /// From the start to the last byte at the receiving application.
    pub duration_s: Option<f64>,
    /// From the start to the acknowledgement of the last byte at the sender.
    pub acknowledged_s: Option<f64>,
    /// Delivered bytes over the duration, in bits per second.
    pub throughput_bps: Option<f64>,
    // Counters of the sender's and the receiver's TCP. A measurement has those that the kernel
    // reports with the same meaning.
    /// Segments with payload sent by the sender.
    pub data_packets: Option<u64>,
    /// Payload bytes in them.
    pub data_bytes: Option<u64>,
    /// Payload bytes, each counted once.
    pub unique_bytes: Option<u64>,
    /// Segments with retransmitted payload.
    pub retransmitted_packets: Option<u64>,
    /// Retransmitted payload bytes.
    pub retransmitted_bytes: Option<u64>,
    /// Segments without payload sent by the receiver.
    pub ack_packets: Option<u64>,
    /// Expiries of the retransmission timer, if reported by the sender.
    pub timeouts: Option<u64>,
    /// Fast recoveries, if reported by the sender.
    pub fast_retransmits: Option<u64>,
    /// Window reductions detected as spurious and undone, if reported by the sender.
    pub undone: Option<u64>,
    /// Least round trip measured by the sender.
    pub rtt_min_s: Option<f64>,
    /// Their mean.
    pub rtt_mean_s: Option<f64>,
    /// The greatest.
    pub rtt_max_s: Option<f64>,
    /// Number of measurements.
    pub rtt_samples: Option<u64>,
    /// With a proxy: the mean round trip between it and the receiver, as the proxy measured it. The
    /// other round trips are those between the sender and the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_rtt_mean_s: Option<f64>,
}

/// The columns of pings, datagrams and transactions in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct ProbesRow {
    /// Echo requests, datagrams or requests sent.
    pub sent: u64,
    /// Replies, datagrams or responses received.
    pub received: u64,
    /// Those not received.
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

/// The columns of real programs in a flow's row, from their observed packets.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedRow {
    /// The mobile's address, with the port if the protocol has ports; `None` for flows that are not
    /// distinguished.
    pub local: Option<String>,
    /// The server's address.
    pub remote: Option<String>,
    /// `down` or `up`: the direction of most bytes, described by the other columns.
    pub direction: &'static str,
    /// When the last packet of the flow entered or left the link.
    pub end_s: f64,
    /// Packets towards the mobile.
    pub down: TrafficRow,
    /// Packets from the mobile.
    pub up: TrafficRow,
}

/// Packets of a flow in one direction; those neither delivered nor lost were in flight at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficRow {
    /// Packets that entered the link.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that left the link.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost by the link.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
}

/// The columns of datagram streams in a flow's row; see [`Analysis`].
#[derive(Clone, Debug, Serialize)]
pub struct StreamRow {
    /// Duplicates.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
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
    /// Delay threshold of late datagrams.
    pub late_threshold_s: f64,
    /// Late datagrams.
    pub late: u64,
    /// Delay periods: consecutive datagrams without loss, all late.
    pub delay_periods: u64,
    /// Their mean length.
    pub delay_period_mean_s: Option<f64>,
    /// The longest.
    pub delay_period_max_s: Option<f64>,
}

/// The columns of transactions in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct TransactionsRow {
    /// TCP settings, as for a transfer.
    pub tcp: Arc<serde_json::Value>,
    /// `one` for all, or one for `each`.
    pub connections: &'static str,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// Mean time of a connection from its start until it was open.
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
    /// Packets offered.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets inside at the end.
    pub queued_packets: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets dropped, by cause; causes without packets are omitted.
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
    pub user: u32,
    /// TTIs with a transmission from or to the user.
    pub ttis: u64,
    /// PDUs in them.
    pub pdus: u64,
    /// PDUs sent for the second or a later time.
    pub repeated_pdus: u64,
    /// PDUs that the receiver could not decode.
    pub errored_pdus: u64,
    /// RLC bytes, including padding.
    pub bytes: u64,
}

/// Room for the row of a flow and for that of a link in the text of a summary, in bytes.
const FLOW_ROOM: usize = 3584;
const LINK_ROOM: usize = 384;

impl Summary {
    /// An empty summary of the scenario with this name.
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
            pages: Vec::new(),
            objects: Vec::new(),
            buffers: Vec::new(),
            segments: Vec::new(),
            scripts: Vec::new(),
            middleboxes: Vec::new(),
        }
    }

    /// Records that the run is incomplete, and why; the first reason stays.
    pub fn unfinished(&mut self, why: &str) {
        self.complete = false;
        self.stopped.get_or_insert_with(|| why.to_owned());
    }

    /// Adds the rows of a repetition.
    pub fn add(&mut self, mut rows: Rows) {
        self.repetitions.push(rows.repetition);
        self.flows.append(&mut rows.flows);
        self.links.append(&mut rows.links);
        self.radio.append(&mut rows.radio);
        self.pages.append(&mut rows.pages);
        self.objects.append(&mut rows.objects);
        self.buffers.append(&mut rows.buffers);
        self.segments.append(&mut rows.segments);
        self.scripts.append(&mut rows.scripts);
        self.middleboxes.append(&mut rows.middleboxes);
    }

    /// The summary as JSON.
    pub fn to_json(&self) -> String {
        // The text of thousands of flows would otherwise be copied each time that it grows.
        let room = self.flows.len() * FLOW_ROOM + self.links.len() * LINK_ROOM;
        let mut text = Vec::with_capacity(room);
        serde_json::to_writer_pretty(&mut text, self).expect("a summary is made of numbers and text");
        String::from_utf8(text).expect("JSON is UTF-8")
    }

    /// How the run and its flows ended, as JSON: the fields of the summary on which notes and exit
    /// codes depend.
    pub fn outcomes_to_json(&self) -> String {
        #[derive(Serialize)]
        struct FlowOutcome<'a> {
            outcome: &'static str,
            cause: Option<&'a str>,
        }
        #[derive(Serialize)]
        struct Outcomes<'a> {
            complete: bool,
            stopped: Option<&'a str>,
            flows: Vec<FlowOutcome<'a>>,
        }
        let flows = self.flows.iter().map(|flow| FlowOutcome { outcome: flow.outcome, cause: flow.cause.as_deref() });
        let outcomes = Outcomes { complete: self.complete, stopped: self.stopped.as_deref(), flows: flows.collect() };
        serde_json::to_string(&outcomes).expect("outcomes are text")
    }

    /// The rows of flows (without their TCP settings), of views of pages, and of their objects, as
    /// JSON lines.
    #[must_use]
    pub fn lines(mut self) -> [String; 3] {
        let nothing = Arc::default();
        for flow in &mut self.flows {
            let transfers = flow.transfer.iter_mut().map(|transfer| &mut transfer.tcp);
            let transactions = flow.transactions.iter_mut().map(|transactions| &mut transactions.tcp);
            let sessions = flow.session.iter_mut().map(|session| &mut session.tcp);
            let exchanges = flow.exchanges.iter_mut().map(|exchanges| &mut exchanges.tcp);
            let videos = flow.adaptive.iter_mut().map(|video| &mut video.tcp);
            transfers
                .chain(transactions)
                .chain(sessions)
                .chain(exchanges)
                .chain(videos)
                .for_each(|settings| settings.clone_from(&nothing));
        }
        [json_lines(&self.flows), json_lines(&self.pages), json_lines(&self.objects)]
    }
}

fn json_lines<T: Serialize>(rows: &[T]) -> String {
    let lines = rows.iter().map(|row| serde_json::to_string(row).expect("numbers and text"));
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
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
    /// Its views of pages.
    pub pages: Vec<PageRow>,
    /// Their objects.
    pub objects: Vec<ObjectRow>,
    /// The playout buffers of its videos.
    pub buffers: Vec<BufferRow>,
    /// The segments of its videos over HTTP.
    pub segments: Vec<SegmentRow>,
    /// The scripts of its terminals and its mail.
    pub scripts: Vec<ScriptRow>,
    /// Counters of its middleboxes.
    pub middleboxes: Vec<MiddleboxRow>,
}

/// A counter of a middlebox beside those of packets.
#[derive(Clone, Debug, Serialize)]
pub struct MiddleboxRow {
    /// Number of the repetition.
    pub repetition: u64,
    /// Name of the hop.
    pub component: String,
    /// Name of the counter.
    pub counter: &'static str,
    /// Its value at the end.
    pub value: u64,
}

impl LinkRow {
    /// The row of one direction of the hop `name` from `counters`.
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
    /// The row of one direction of a user of the bearer `name` from `totals`.
    pub fn of(name: &str, direction: Direction, user: UserId, repetition: u64, totals: &RadioTotals) -> Self {
        Self {
            repetition,
            component: name.to_owned(),
            direction: direction.name(),
            user: user.number(),
            ttis: totals.ttis,
            pdus: totals.pdus,
            repeated_pdus: totals.repeated,
            errored_pdus: totals.errored,
            bytes: totals.bytes,
        }
    }
}

impl TransferRow {
    /// The row of a transfer that started at `start`, in its state at `now`, as the applications
    /// observed it. The caller adds the columns of TCP.
    pub fn of(
        transfer: &Transfer,
        milestones: &Milestones,
        start: Instant,
        now: Instant,
        tcp: Arc<serde_json::Value>,
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
            proxy_rtt_mean_s: None,
        }
    }
}

impl TransferRow {
    /// The same row with the counters of the sender's and the receiver's QUIC. `docs/quic.md` has
    /// their meanings.
    #[must_use]
    pub fn with_quic(self, sent: &airpath_quic::Statistics, received: &airpath_quic::Statistics) -> Self {
        Self {
            data_packets: Some(sent.stream_frames),
            retransmitted_packets: Some(sent.lost_packets),
            retransmitted_bytes: Some(sent.lost_bytes),
            ack_packets: Some(received.ack_frames),
            timeouts: Some(sent.persistent_congestion),
            fast_retransmits: Some(sent.congestion_events.saturating_sub(sent.persistent_congestion)),
            rtt_min_s: sent.rtt_min.map(Span::as_secs_f64),
            rtt_mean_s: sent.rtt_mean_s(),
            rtt_max_s: sent.rtt_max.map(Span::as_secs_f64),
            rtt_samples: Some(sent.rtt_samples),
            ..self
        }
    }
}

/// The settings of QUIC in the place of those of TCP ([`TransferRow::tcp`]): the transport is the
/// profile. Keys of both have different names, because equal ones have different types.
pub fn quic_settings(config: &airpath_quic::Config) -> serde_json::Value {
    serde_json::json!({
        "profile": airpath_quic::NAME,
        "congestion": { "algorithm": config.congestion.name() },
        "quic": config,
    })
}

impl ProbesRow {
    /// The row of `sent` probes with `received` arrivals with these delays.
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
    /// The row of `receiver`, where datagrams with a delay above `late` are late.
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
    /// The row of `client` for `work` that started at `start`.
    pub fn of(work: &Transactions, client: &Client, start: Instant, tcp: Arc<serde_json::Value>) -> Self {
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
