//! The summary of a run: one row per flow, link, radio user and repetition.
//!
//! Times are in seconds, sizes in bytes, rates in bits per second, as the names state. `None` means
//! not applicable: an unfinished transfer has no duration.

mod adaptive;
mod call;
mod exchanges;
mod ftp;
mod hop;
mod observed;
mod page;
mod playback;
mod probes;
mod transactions;
mod transfer;

use serde::Serialize;

pub use adaptive::{AdaptiveRow, SegmentRow};
pub use call::{CallDirectionRow, CallRow};
pub use exchanges::{ExchangesRow, LatencyRow, ScriptRow};
pub use ftp::FtpRow;
pub use hop::{CountRow, LinkRow, MiddleboxRow, MobileRow, RadioRow};
pub use observed::{ObservedRow, TrafficRow};
pub use page::{ObjectRow, PageRow, SessionRow};
pub use playback::{BufferRow, PlaybackRow};
pub use probes::{ProbesRow, StreamRow};
pub use transactions::TransactionsRow;
pub use transfer::{TransferRow, quic_settings};

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
    /// One row per user and repetition, of bearers with radio connections; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mobiles: Vec<MobileRow>,
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

impl FlowRow {
    /// The row of a flow that has begun at `start_s`, without figures.
    pub const fn unfinished(flow: u32, name: String, kind: &'static str, mobile: String, start_s: f64) -> Self {
        Self {
            repetition: 0,
            flow,
            name,
            kind,
            mobile,
            start_s,
            outcome: "unfinished",
            cause: None,
            transfer: None,
            probes: None,
            stream: None,
            transactions: None,
            session: None,
            playback: None,
            adaptive: None,
            call: None,
            exchanges: None,
            ftp: None,
            observed: None,
        }
    }
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
            mobiles: Vec::new(),
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
        self.mobiles.append(&mut rows.mobiles);
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

    /// How the run and its flows ended, and when each repetition did, as JSON: the fields of the
    /// summary on which notes and exit codes depend.
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
            ends_s: Vec<f64>,
            flows: Vec<FlowOutcome<'a>>,
        }
        let flows = self.flows.iter().map(|flow| FlowOutcome { outcome: flow.outcome, cause: flow.cause.as_deref() });
        let outcomes = Outcomes {
            complete: self.complete,
            stopped: self.stopped.as_deref(),
            ends_s: self.ends_s(),
            flows: flows.collect(),
        };
        serde_json::to_string(&outcomes).expect("outcomes are text")
    }

    /// The end of each repetition, in seconds.
    pub fn ends_s(&self) -> Vec<f64> {
        self.repetitions.iter().map(|each| each.simulated_s).collect()
    }

    /// The rows of flows (without their TCP settings), of views of pages, and of their objects, as
    /// JSON lines.
    #[must_use]
    pub fn lines(mut self) -> [String; 3] {
        let nothing = std::sync::Arc::default();
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
    /// The radio connections of its mobiles.
    pub mobiles: Vec<MobileRow>,
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
