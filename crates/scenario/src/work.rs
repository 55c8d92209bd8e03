//! The flows of a scenario: which workload, between which ends, from when.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_app::datagrams::Spacing;
use airpath_app::exchanges::Plan;
use airpath_app::streaming::{self, Video};
use airpath_app::transactions::Connections;
use airpath_app::web::Session;
use airpath_app::{Datagrams, Ping, Transactions, Transfer, adaptive, datagrams, ftp, voice as call};
use airpath_core::{Bitrate, Bytes, Direction, Span};
use airpath_tcp::Nagle;
use serde::{Deserialize, Serialize};

use crate::bearer::Which;
use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError, did_you_mean};
use crate::kind::Kind;
use crate::{exchanges, page, quic, stream, tcp, voice};

/// A `[[flow]]`: one workload, for one mobile or several, once or several times.
#[derive(Clone, Debug, Serialize)]
pub struct FlowGroup {
    /// Which workload.
    pub kind: Kind,
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    settings: toml::Table,
    /// The file of the video, if a stream has one.
    #[serde(rename = "video", skip_serializing_if = "Option::is_none")]
    video_file: Option<PathBuf>,
    /// The file of the session, if a terminal has one.
    #[serde(rename = "session", skip_serializing_if = "Option::is_none")]
    session_file: Option<PathBuf>,
    /// TCP settings, for those that use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tcp: Option<tcp::Settings>,
    /// The transport, if it is not TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    /// Settings of QUIC, for those that use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quic: Option<quic::Settings>,
    #[serde(skip)]
    pub(crate) work: Work,
    #[serde(skip)]
    pub(crate) mobile_origin: Origin,
    /// Where its bearer was written.
    #[serde(skip)]
    pub(crate) bearer_origin: Origin,
    #[serde(skip)]
    pub(crate) stagger_origin: Origin,
}

/// What a flow does.
#[derive(Clone, Debug)]
pub enum Work {
    /// A bulk transfer with these TCP settings at both ends.
    Transfer {
        /// What is moved.
        transfer: Transfer,
        /// Settings of both ends.
        tcp: Box<tcp::Settings>,
        /// When the mobile closes its receive window, in the order of time.
        freezes: Vec<Freeze>,
    },
    /// Echo requests, their direction, and the phase of them all; `None` for a random one of each.
    Ping(Ping, Direction, Option<Span>),
    /// Datagrams.
    Datagrams {
        /// The stream; with `spacing`, its rate is the mean.
        datagrams: Datagrams,
        /// Bursts at random times; `None` for a constant rate.
        spacing: Option<Spacing>,
        /// The phase of the stream; `None` for a random one.
        phase: Option<Span>,
    },
    /// Requests and responses with these TCP settings at both ends.
    Transactions {
        /// The request.
        transactions: Transactions,
        /// Settings of both ends.
        tcp: Box<tcp::Settings>,
    },
    /// A bulk transfer over QUIC.
    QuicTransfer {
        /// What is moved.
        transfer: Transfer,
        /// Settings of both ends.
        quic: quic::Settings,
    },
    /// Requests and responses over QUIC.
    QuicTransactions {
        /// The request.
        transactions: Transactions,
        /// Settings of both ends.
        quic: quic::Settings,
    },
    /// Web pages.
    Page {
        /// Pages and settings of the browser.
        session: Arc<Session>,
        /// What carries them.
        transport: page::Transport,
    },
    /// A video over RTP.
    Stream {
        /// Settings of both ends.
        settings: streaming::Settings,
        /// The video.
        video: Arc<Video>,
        /// TCP settings of both ends, if TCP carries it.
        tcp: Option<Box<tcp::Settings>>,
    },
    /// A video over HTTP, with these TCP settings at both ends.
    Adaptive {
        /// The video and its player.
        settings: Arc<adaptive::Settings>,
        /// Settings of both ends.
        tcp: Box<tcp::Settings>,
    },
    /// Files by FTP, with these TCP settings at both ends.
    Ftp {
        /// The session.
        settings: ftp::Settings,
        /// Settings of both ends.
        tcp: Box<tcp::Settings>,
    },
    /// A call over RTP.
    Voice(call::Settings),
    /// A remote terminal or mail, with these TCP settings at both ends.
    Exchanges {
        /// The exchanges.
        plan: Plan,
        /// Settings of both ends.
        tcp: Box<tcp::Settings>,
    },
}

/// A time in which a mobile offers a window of zero, because it expects a disconnection
/// (Freeze-TCP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// Its start, from the start of the run.
    pub from: Span,
    /// Its end, when the window is announced again.
    pub until: Span,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    /// Name of the flow; flows that are several get a number behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Name of the mobile or of a group of them; every mobile if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    mobile: Option<String>,
    /// The bearer of the mobile that carries it: the first by default, or the one that
    /// `[steering]` chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    bearer: Option<Which>,
    /// How many such flows each of these mobiles has.
    #[serde(default = "one")]
    count: u32,
    /// When the first of them starts.
    #[serde(default)]
    start: Span,
    /// How much later each next one starts.
    #[serde(default)]
    stagger: Span,
}

const COMMON: [&str; 6] = ["name", "mobile", "bearer", "count", "start", "stagger"];

fn one() -> u32 {
    1
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Download {
    bytes: Bytes,
    /// Bytes of the mobile's request.
    #[serde(default)]
    request: Bytes,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    freeze: Vec<Freeze>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Upload {
    bytes: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PingSettings {
    /// Of the requests: from the mobile or to it.
    direction: Direction,
    size: u32,
    interval: Span,
    requests: u32,
    timeout: Span,
    /// From each multiple of the interval to the request; random for each request by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Span>,
}

impl Default for PingSettings {
    fn default() -> Self {
        let Ping { size, interval, count, timeout } = Ping::default();
        Self { direction: Direction::Up, size, interval, requests: count, timeout, phase: None }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DatagramSettings {
    direction: Direction,
    /// Of the IP packets; either this or `spacing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Bitrate>,
    /// Bursts at random times.
    #[serde(skip_serializing_if = "Option::is_none")]
    spacing: Option<Spacing>,
    /// Payload bytes; 1472 fill an Ethernet packet.
    #[serde(default = "ethernet_payload")]
    size: u32,
    duration: Span,
    #[serde(default = "ten_seconds")]
    timeout: Span,
    /// The delay above which one is late.
    #[serde(default = "late")]
    late: Span,
    /// From the start to the first one; random by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Span>,
}

/// Shortest mean time from one datagram to the next with `spacing`.
const SHORTEST_SPACING: Span = Span::from_micros(10);

/// Most datagrams of a burst.
const MOST_IN_A_BURST: u32 = 10_000;

/// Most datagrams of a stream: the receiver stores each one, and numbers have 32 bits.
const MOST_DATAGRAMS: u64 = 1_000_000_000;

impl DatagramSettings {
    /// The mean rate of the IP packets; what is wrong otherwise, and with which key.
    fn mean_rate(&self) -> Result<Bitrate, (&'static str, &'static str)> {
        match (self.rate, self.spacing) {
            (Some(rate), None) => Ok(rate),
            (None, None) => Err(("rate", "this key is missing: give `rate` or `spacing`")),
            (Some(_), Some(_)) => Err(("spacing", "a stream has a `rate` or a `spacing`: remove one")),
            (None, Some(Spacing { from, to, burst })) => {
                if to < from {
                    return Err(("spacing", "`to` is shorter than `from`: the time is drawn between the two"));
                }
                let mean = from + Span::from_nanos((to.as_nanos() - from.as_nanos()) / 2);
                if !(1..=MOST_IN_A_BURST).contains(&burst) {
                    return Err(("spacing", "`burst` must be 1 to 10000"));
                }
                if from.is_zero() || mean / u64::from(burst) < SHORTEST_SPACING {
                    let message = "the bursts are too close: `from` must be above zero, and the mean of `from` and \
                                   `to` at least 10 us for each datagram of a burst";
                    return Err(("spacing", message));
                }
                let bits = f64::from(burst) * 8.0 * f64::from(self.size.saturating_add(datagrams::HEADERS));
                Ok(Bitrate::from_bps(((bits / mean.as_secs_f64()) as u64).max(1)))
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactionSettings {
    #[serde(default = "hundred_bytes")]
    request: Bytes,
    response: Bytes,
    /// How many at most; without a duration 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<u32>,
    /// For how long new ones begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Span>,
    /// From a response to the next request.
    #[serde(default)]
    think: Span,
    /// One for all, or one for each.
    #[serde(default)]
    connections: Connections,
}

/// Most bytes of data in an IPv4 packet with its header and that of ICMP or UDP (RFC 791 §3.1).
const MOST_DATA: u32 = 65_535 - datagrams::HEADERS;

/// Checks the `size` of a table.
fn fits_in_packet(size: u32, node: &Node, at: &str) -> Result<(), ScenarioError> {
    if size <= MOST_DATA {
        return Ok(());
    }
    let origin = node.get("size").map_or_else(|| node.origin(), Node::origin).clone();
    let message = format!("an IPv4 packet has at most {MOST_DATA} bytes of data after its headers");
    Err(ScenarioError::new(message, origin, join(at, "size")).help("1472 fill an Ethernet packet"))
}

fn hundred_bytes() -> Bytes {
    Bytes::new(100)
}

fn late() -> Span {
    datagrams::LATE
}

fn ethernet_payload() -> u32 {
    1472
}

fn ten_seconds() -> Span {
    Span::from_secs(10)
}

impl FlowGroup {
    /// Reads a `[[flow]]` table at the path `at`; `defaults` are the scenario's TCP settings,
    /// `quic_defaults` those of QUIC, and paths of files start from `folder`.
    pub(crate) fn read(
        mut node: Node,
        at: &str,
        defaults: &Node,
        quic_defaults: &Node,
        folder: &Path,
    ) -> Result<Self, ScenarioError> {
        let origin = node.origin().clone();
        let kind = node.take("kind").ok_or_else(|| {
            ScenarioError::new("this key is missing", origin.clone(), join(at, "kind"))
                .help(format!("one of {}", Kind::NAMES.join(", ")))
        })?;
        let name: String = kind.read(&join(at, "kind"))?;
        let kind = match name.as_str() {
            "download" => Kind::Download,
            "upload" => Kind::Upload,
            "ping" => Kind::Ping,
            "datagrams" => Kind::Datagrams,
            "transactions" => Kind::Transactions,
            "page" => Kind::Page,
            "stream" => Kind::Stream,
            "adaptive" => Kind::Adaptive,
            "voice" => Kind::Voice,
            "terminal" => Kind::Terminal,
            "mail" => Kind::Mail,
            "ftp" => Kind::Ftp,
            _ => {
                return Err(ScenarioError::new(
                    format!("there is no workload `{name}`"),
                    kind.origin().clone(),
                    join(at, "kind"),
                )
                .help(did_you_mean(&name, &Kind::NAMES)));
            }
        };
        node.set_read_apart(COMMON.iter().chain(kind.keys_read_apart()).copied());
        let common_node = node.split(&COMMON);
        let [mobile_origin, bearer_origin, stagger_origin] =
            ["mobile", "bearer", "stagger"].map(|key| common_node.get(key).map_or(&origin, Node::origin).clone());
        let common: Common = common_node.read(at)?;
        if common.count == 0 {
            let origin = common_node.get("count").map_or(&origin, Node::origin).clone();
            return Err(ScenarioError::new("there must be at least one", origin, join(at, "count")));
        }
        let quic = match kind {
            Kind::Download | Kind::Upload | Kind::Transactions => quic::take(&mut node, at, quic_defaults, quic::TCP)?,
            Kind::Page => page::take_quic(&mut node, at, quic_defaults)?,
            Kind::Adaptive | Kind::Terminal | Kind::Mail | Kind::Ftp => None,
            Kind::Ping | Kind::Datagrams | Kind::Stream | Kind::Voice => None,
        };
        let over_tcp = kind == Kind::Stream && stream::is_over_tcp(&node);
        let tcp = match kind {
            _ if quic.is_some() => None,
            Kind::Stream if over_tcp => Some(tcp::Settings::read(node.take("tcp"), &join(at, "tcp"), defaults)?),
            Kind::Download
            | Kind::Upload
            | Kind::Transactions
            | Kind::Page
            | Kind::Adaptive
            | Kind::Terminal
            | Kind::Mail
            | Kind::Ftp => {
                let own = node.take("tcp");
                let sets_nagle = own.iter().chain([defaults]).any(|tcp| tcp.get("nagle").is_some());
                let mut settings = tcp::Settings::read(own, &join(at, "tcp"), defaults)?;
                if matches!(kind, Kind::Page | Kind::Adaptive | Kind::Ftp) && !sets_nagle {
                    // Browsers, web servers and servers of FTP set TCP_NODELAY.
                    Arc::make_mut(&mut settings.config).nagle = Nagle::Off;
                }
                Some(settings)
            }
            Kind::Ping | Kind::Datagrams | Kind::Stream | Kind::Voice => None,
        };
        let transfer = |direction, bytes: Bytes, request, freezes: Vec<Freeze>| {
            if bytes == Bytes::ZERO {
                let origin = node.get("bytes").map_or(&origin, Node::origin).clone();
                return Err(ScenarioError::new("there is nothing to move", origin, join(at, "bytes")));
            }
            let transfer = Transfer { direction, bytes, request };
            if let Some(quic) = quic.clone() {
                return Ok(Work::QuicTransfer { transfer, quic });
            }
            let tcp = tcp.clone().expect("transfers without QUIC use TCP");
            let ordered = freezes.iter().flat_map(|freeze| [freeze.from, freeze.until]).is_sorted_by(|a, b| a < b);
            if !ordered {
                let origin = node.get("freeze").map_or(&origin, Node::origin).clone();
                let message = "each must end after its start, and the next one start later";
                let error = ScenarioError::new(message, origin, join(at, "freeze"));
                return Err(error.help("for example [{ from = \"8 s\", until = \"30 s\" }]"));
            }
            Ok(Work::Transfer { transfer, tcp: Box::new(tcp), freezes })
        };
        let (mut video_file, mut session_file) = (None, None);
        let (work, settings) = match kind {
            Kind::Download => {
                let download: Download = node.read(at)?;
                let freezes = download.freeze.clone();
                (transfer(Direction::Down, download.bytes, download.request, freezes)?, table(&download))
            }
            Kind::Upload => {
                let upload: Upload = node.read(at)?;
                (transfer(Direction::Up, upload.bytes, Bytes::ZERO, Vec::new())?, table(&upload))
            }
            Kind::Ping => {
                let settings: PingSettings = node.read(at)?;
                let PingSettings { direction, size, interval, requests: count, timeout, phase } = settings;
                fits_in_packet(size, &node, at)?;
                if count > 0 && interval.is_zero() {
                    let origin = node.get("interval").map_or(&origin, Node::origin).clone();
                    return Err(ScenarioError::new("the interval must be above zero", origin, join(at, "interval")));
                }
                (Work::Ping(Ping { size, interval, count, timeout }, direction, phase), table(&settings))
            }
            Kind::Datagrams => {
                let settings: DatagramSettings = node.read(at)?;
                fits_in_packet(settings.size, &node, at)?;
                let rate = settings.mean_rate().map_err(|(key, message)| {
                    let origin = node.get(key).map_or(&origin, Node::origin).clone();
                    ScenarioError::new(message, origin, join(at, key))
                })?;
                let DatagramSettings { direction, spacing, size, duration, timeout, late, phase, .. } = settings;
                let datagrams = Datagrams { direction, rate, size, duration, timeout, late };
                if datagrams.count() > MOST_DATAGRAMS {
                    let origin = node.get("duration").map_or(&origin, Node::origin).clone();
                    let message = "the stream has more than 1,000,000,000 datagrams: shorten it, or send fewer";
                    return Err(ScenarioError::new(message, origin, join(at, "duration")));
                }
                (Work::Datagrams { datagrams, spacing, phase }, table(&settings))
            }
            Kind::Transactions => {
                let settings: TransactionSettings = node.read(at)?;
                let TransactionSettings { request, response, transactions, duration, think, connections } = settings;
                for (key, bytes) in [("request", request), ("response", response)] {
                    if bytes == Bytes::ZERO {
                        let origin = node.get(key).map_or(&origin, Node::origin).clone();
                        return Err(ScenarioError::new("it must have at least one byte", origin, join(at, key)));
                    }
                }
                if transactions == Some(0) {
                    let origin = node.get("transactions").map_or(&origin, Node::origin).clone();
                    return Err(ScenarioError::new("there must be at least one", origin, join(at, "transactions")));
                }
                let transactions = transactions.unwrap_or(if duration.is_some() { u32::MAX } else { 10 });
                let work = Transactions { request, response, transactions, duration, think, connections };
                let rounds_up = tcp.as_ref().is_some_and(|tcp| tcp.config.whole_segments);
                if rounds_up && connections == Connections::One {
                    let message = "TCP that rounds up to whole segments blurs where a response ends";
                    return Err(ScenarioError::new(message, origin, join(at, "connections"))
                        .help("set connections to \"each\", or tcp.whole_segments to false"));
                }
                let work = match quic.clone() {
                    Some(quic) => Work::QuicTransactions { transactions: work, quic },
                    None => {
                        let tcp = Box::new(tcp.clone().expect("transactions without QUIC use TCP"));
                        Work::Transactions { transactions: work, tcp }
                    }
                };
                (work, table(&settings))
            }
            Kind::Page => {
                let transport = match quic.clone() {
                    Some(quic) => page::Transport::Quic(quic),
                    None => page::Transport::Tcp(exact(tcp.as_ref(), &origin, at)?),
                };
                let (session, settings) = page::read_flow(node, folder, at)?;
                (Work::Page { session: Arc::new(session), transport }, settings)
            }
            Kind::Stream => {
                let tcp = tcp.as_ref().map(|tcp| exact(Some(tcp), &origin, at)).transpose()?;
                let flow = stream::read_flow(node, folder, at)?;
                video_file = flow.file;
                (Work::Stream { settings: flow.settings, video: Arc::new(flow.video), tcp }, flow.table)
            }
            Kind::Adaptive => {
                let tcp = exact(tcp.as_ref(), &origin, at)?;
                let settings = adaptive_settings(&node, at)?;
                let settings_table = table(&settings);
                (Work::Adaptive { settings: Arc::new(settings), tcp }, settings_table)
            }
            Kind::Terminal | Kind::Mail => {
                let tcp = exact(tcp.as_ref(), &origin, at)?;
                let flow = match kind {
                    Kind::Terminal => exchanges::read_terminal(node, folder, at)?,
                    _ => exchanges::read_mail(node, at)?,
                };
                session_file = flow.file;
                (Work::Exchanges { plan: flow.plan, tcp }, flow.table)
            }
            Kind::Ftp => {
                let tcp = exact(tcp.as_ref(), &origin, at)?;
                if !tcp.config.handshake {
                    let message = "without a handshake connections do not close, and that ends a file of FTP";
                    let error = ScenarioError::new(message, origin, join(at, "tcp.handshake"));
                    return Err(error.help("set tcp.handshake to true"));
                }
                let settings: ftp::Settings = node.read(at)?;
                settings.check().map_err(|error| voice::wrong(&node, at, error))?;
                (Work::Ftp { settings, tcp }, table(&settings))
            }
            Kind::Voice => {
                let settings = voice::read_flow(node, at)?;
                (Work::Voice(settings), table(&settings))
            }
        };
        let transport = quic.is_some().then_some(quic::QUINN);
        Ok(Self {
            kind,
            common,
            settings,
            video_file,
            session_file,
            tcp,
            transport,
            quic,
            work,
            mobile_origin,
            bearer_origin,
            stagger_origin,
        })
    }

    /// Its name: as given, or that of its workload.
    pub fn name(&self) -> &str {
        self.common.name.as_deref().unwrap_or_else(|| self.kind.name())
    }

    /// The mobile or group that it is for; `None` for every mobile.
    pub fn mobile(&self) -> Option<&str> {
        self.common.mobile.as_deref()
    }

    /// The bearer of the mobile that carries it, if the flow names one.
    pub const fn bearer(&self) -> Option<Which> {
        self.common.bearer
    }

    /// How many flows for each mobile.
    pub const fn count(&self) -> u32 {
        self.common.count
    }

    /// Where the file of its video or session lies, if it has one.
    pub(crate) fn file_mut(&mut self) -> Option<&mut PathBuf> {
        self.video_file.as_mut().or(self.session_file.as_mut())
    }

    /// The start of the flow that is number `index` of this group; `None` after more than a year.
    pub fn start(&self, index: u64) -> Option<Span> {
        let wait = self.common.stagger.saturating_mul(index);
        (wait <= Span::YEAR).then(|| self.common.start + wait).filter(|start| *start <= Span::YEAR)
    }
}

/// The TCP settings of a flow whose messages end at their last byte.
fn exact(tcp: Option<&tcp::Settings>, origin: &Origin, at: &str) -> Result<Box<tcp::Settings>, ScenarioError> {
    let tcp = Box::new(tcp.cloned().expect("the flow uses TCP"));
    if tcp.config.whole_segments {
        let message = "TCP that rounds up to whole segments blurs where a message ends";
        return Err(ScenarioError::new(message, origin.clone(), join(at, "tcp.whole_segments"))
            .help("set tcp.whole_segments to false"));
    }
    Ok(tcp)
}

/// Reads the keys of a flow of kind `adaptive`.
fn adaptive_settings(node: &Node, at: &str) -> Result<adaptive::Settings, ScenarioError> {
    let mut settings: adaptive::Settings = node.read(at)?;
    settings.check().map_err(|error| voice::wrong(node, at, error))?;
    settings.adaptation = settings.adaptation.resolved(settings.most_at_request());
    Ok(settings)
}

fn table(settings: &impl Serialize) -> toml::Table {
    toml::Table::try_from(settings).expect("settings of a flow are a table")
}
