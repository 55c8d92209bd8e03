//! The workloads of `airpath_app` in a form that a test request can carry, with their bounds.

use std::sync::Arc;

use airpath_app::adaptive;
use airpath_app::exchanges::Script;
use airpath_app::exchanges::terminal::Generated;
use airpath_app::streaming::{self, VideoError};
use airpath_app::voice;
use airpath_app::web;
use airpath_app::web::settings::Tls;
use airpath_app::{Datagrams, Ping, Transactions, Transfer};
use airpath_core::{Bytes, RandomStream, Seed, Span};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plain_rtp::{Receiving, Sending};
use crate::probe::HEADER;
use crate::token::{SESSION_FIELD, SessionToken};

/// Maximum number of flows per session.
pub const MOST_FLOWS: u32 = 64;
/// Maximum number of bytes per flow.
pub const MOST_BYTES: Bytes = Bytes::new(1_000_000_000_000);
/// Maximum number of datagrams or echo requests per session.
pub const MOST_PROBES: u64 = 5_000_000;
/// Largest payload of a UDP datagram over IPv4 (RFC 768).
pub const LARGEST_DATAGRAM: u32 = 65_507;
/// Largest window of a QUIC connection: what the responder buffers for it.
pub const MOST_QUIC_WINDOW: Bytes = Bytes::new(64_000_000);
/// Maximum number of frames of a video: an hour at 60 a second. Responder and client store them.
pub const MOST_FRAMES: u64 = 216_000;
/// Maximum number of packets of a video: for each, the responder stores when it was sent.
pub const MOST_VIDEO_PACKETS: u64 = 1_000_000;
/// Maximum number of objects of all pages of a session.
pub const MOST_OBJECTS: u64 = 1_000;
/// Maximum number of views of a session.
pub const MOST_VIEWS: u64 = 1_000;
/// Maximum number of connections of a browser to all hosts of its pages.
pub const MOST_PAGE_CONNECTIONS: u64 = 256;
/// Largest object, times the requests without response on a connection: the responder buffers them.
pub const MOST_PIPELINED: Bytes = Bytes::new(64_000_000);
/// Longest line that the responder reads, in bytes: a test request with the objects of its pages.
pub const LINE_LIMIT: usize = 1 << 18;

/// Longest head of an HTTP request, in bytes.
pub const HEAD_LIMIT: usize = web::LONGEST_HEAD;

/// Maximum duration of a session.
pub const LONGEST: Span = Span::from_secs(3600);

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Work {
    /// Echo requests.
    Ping(Ping),
    /// Parallel bulk transfers.
    Bulk(Bulk),
    /// Datagrams at a constant rate.
    Datagrams(Datagrams),
    /// Requests and responses.
    Transactions(Exchange),
    /// A remote terminal.
    Terminal(Terminal),
    /// A video in segments over TCP.
    Adaptive(Box<SegmentedVideo>),
    /// Web pages.
    Page(PageLoad),
    /// A call.
    Voice(Call),
    /// A video over RTP from the responder.
    Stream(VideoStream),
    /// A video file over RTP to another program, without a responder.
    #[serde(rename = "rtp-send")]
    SendRtp(Box<Sending>),
    /// A video over RTP of another program, without a responder.
    #[serde(rename = "rtp-receive")]
    ReceiveRtp(Box<Receiving>),
}

/// Parallel bulk transfers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// The transfer of each.
    pub transfer: Transfer,
    /// Number of transfers.
    pub flows: u32,
    /// TCP of both ends.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// QUIC of both ends, instead of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<airpath_quic::Config>,
}

/// Requests and responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The requests and responses.
    pub transactions: Transactions,
    /// TCP of both ends.
    #[serde(default)]
    pub tcp: TcpSettings,
}

/// A remote terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// The session.
    #[serde(default)]
    pub session: Generated,
    /// Seed of its random intervals, the same at both ends.
    #[serde(default)]
    pub seed: u64,
    /// TCP of both ends.
    #[serde(default)]
    pub tcp: TcpSettings,
}

impl Terminal {
    /// The interactions.
    pub fn script(&self) -> Arc<Script> {
        Arc::new(self.session.script(&mut Seed::new(self.seed).stream("session")))
    }

    /// Expected duration without delay.
    fn duration(&self) -> Span {
        let Generated { rounds, think, keys, key_interval, scrolls, scroll_interval, open_time, .. } = self.session;
        let round = (think.as_nanos().saturating_mul(4))
            .saturating_add(key_interval.saturating_mul(keys.into()).as_nanos())
            .saturating_add(scroll_interval.saturating_mul(scrolls.into()).as_nanos())
            .saturating_add(open_time.as_nanos());
        Span::from_nanos(round.saturating_mul(rounds.into()))
    }
}

/// A video in segments, whose player chooses the quality of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentedVideo {
    /// Settings of both ends.
    #[serde(default)]
    pub settings: adaptive::Settings,
    /// TCP of both ends.
    #[serde(default)]
    pub tcp: TcpSettings,
}

impl SegmentedVideo {
    /// The settings, complete.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn settings(&self) -> Result<adaptive::Settings, String> {
        let settings = self.settings.clone();
        settings.check().map_err(|error| error.to_string())?;
        let adaptation = settings.adaptation.resolved(settings.most_at_request());
        Ok(adaptive::Settings { adaptation, ..settings })
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its settings.
    #[serde(default)]
    pub settings: voice::Settings,
    /// Seed of its talk spurts and first numbers, the same at both ends.
    #[serde(default)]
    pub seed: u64,
}

impl Call {
    /// The call, as both ends have it.
    pub fn session(&self) -> voice::Session {
        let seed = Seed::new(self.seed);
        voice::Session::new(self.settings, seed.stream("session"), seed.stream("conversation"))
    }
}

/// A video over RTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoStream {
    /// The video.
    #[serde(default)]
    pub video: streaming::Generated,
    /// Settings of both ends.
    #[serde(default)]
    pub settings: streaming::Settings,
    /// Seed of its first numbers and of the times of its reports, the same at both ends.
    #[serde(default)]
    pub seed: u64,
}

impl VideoStream {
    /// The stream, as both ends have it.
    ///
    /// # Errors
    /// A parameter is out of range, or the video has more than a responder serves.
    pub fn session(&self) -> Result<streaming::Session, String> {
        // Before the frames are made.
        let frames = self.video.duration.as_secs_f64() * self.video.frame_rate;
        between("frames of the video", frames as u64, 2, MOST_FRAMES)?;
        between("gop", self.video.gop.into(), 1, MOST_FRAMES)?;
        let wrong = |error: VideoError| format!("{}: {}", error.field, error.message);
        let video = self.video.video().map_err(wrong)?;
        self.settings.check(&video).map_err(wrong)?;
        between("packets of the video", self.settings.packets_of(&video), 1, MOST_VIDEO_PACKETS)?;
        Ok(streaming::Session::new(self.settings, Arc::new(video), &mut self.random("session")))
    }

    /// The random stream of a part.
    pub fn random(&self, part: &'static str) -> RandomStream {
        Seed::new(self.seed).stream(part)
    }
}

/// Web pages in a browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageLoad {
    /// The pages, viewed in turn.
    pub pages: Vec<web::PageFile>,
    /// Settings of browser and servers.
    #[serde(default)]
    pub settings: web::Settings,
    /// TCP of both ends.
    #[serde(default)]
    pub tcp: TcpSettings,
}

impl PageLoad {
    /// The session, as both ends have it.
    ///
    /// # Errors
    /// A page is not valid, or there is none.
    pub fn session(&self) -> Result<web::Session, String> {
        let page = |file: &web::PageFile| web::Page::new(file).map_err(|error| format!("page {}: {error}", file.name));
        let pages = self.pages.iter().map(page).collect::<Result<Vec<_>, _>>()?;
        if pages.is_empty() {
            return Err("pages: there must be at least one".into());
        }
        Ok(web::Session::new(self.settings.clone(), pages))
    }

    /// The URLs of `session`, whose requests name the responder's session `number`. `None` if they
    /// are not requested with HTTP/1.x in clear text.
    pub fn urls(session: &Arc<web::Session>, number: u64) -> Option<web::Urls> {
        Some(web::Urls::of(session)?.with_request_field(SESSION_FIELD, &format!("{number:016x}")))
    }

    fn check(&self) -> Result<(), String> {
        let settings = &self.settings;
        settings.check().map_err(|error| error.to_string())?;
        let session = self.session()?;
        let tls = settings.tls != Tls::None;
        let unsupported = [
            ("protocol", settings.protocol.has_streams(), "use http/1.0 or http/1.1"),
            ("tls", tls, "leave it out, or set it to none"),
            ("dns", settings.dns, "leave it out: the responder has all hosts of the page"),
            ("proxy", settings.proxy, "leave it out: a proxy on the path needs no setting"),
        ];
        if let Some((key, _, help)) = unsupported.into_iter().find(|(_, is_set, _)| *is_set) {
            return Err(format!("{key}: over real sockets pages use HTTP/1.x in clear text; {help}"));
        }
        let objects = || session.pages.iter().flat_map(|page| &page.objects);
        let largest = objects().map(|object| object.size.max(object.encoded(true))).max().unwrap_or(0);
        let depth = u64::from(settings.pipeline.depth);
        let pipelined = largest.saturating_add(settings.response.get()).saturating_mul(depth);
        let connections = u64::from(settings.connections).saturating_mul(session.origins.len() as u64);
        between("objects", objects().count() as u64, 1, MOST_OBJECTS)?;
        between("connections to all hosts", connections, 1, MOST_PAGE_CONNECTIONS)?;
        between("the pipeline's depth", depth, 1, MOST_OBJECTS)?;
        let what = "bytes of the largest object and its head times the pipeline's depth";
        between(what, pipelined, 0, MOST_PIPELINED.get())?;
        between("views", settings.views.into(), 1, MOST_VIEWS)?;
        for object in objects() {
            at_most_as_long(object.wait, object.process)?;
        }
        at_most_as_long(settings.reading.saturating_mul(u64::from(settings.views) - 1), Span::ZERO)?;
        let description = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        // The rest of the line has less than 100 bytes.
        between("bytes of the description of all pages", description.len() as u64, 0, LINE_LIMIT as u64 - 100)?;
        let sizes = [("request", settings.request), ("response", settings.response)];
        let urls = Self::urls(&Arc::new(session), 0).ok_or("the pages use HTTP/1.x in clear text")?;
        let (request, response) = urls.least_heads();
        for ((key, size), least) in sizes.into_iter().zip([request, response]) {
            let most = HEAD_LIMIT as u64 / 2;
            between("bytes of the longest head with an object's name", least, 0, most)?;
            between(key, size.get(), least, most)?;
        }
        Ok(())
    }
}

/// TCP settings of both ends; missing ones are the kernel's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSettings {
    /// Largest segment that it sends and accepts, in bytes of payload and options (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// Send buffer (`SO_SNDBUF`); Linux doubles it for overhead, and stops tuning it.
    pub send_buffer: Option<Bytes>,
    /// Receive buffer (`SO_RCVBUF`), which bounds the offered window; Linux doubles it and stops
    /// tuning it.
    pub receive_buffer: Option<Bytes>,
    /// Congestion control, by the kernel's name (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// Sends sub-MSS segments immediately, without Nagle's algorithm (`TCP_NODELAY`).
    pub no_delay: bool,
}

impl Bulk {
    /// Whether the client sends nothing at first, so that there is no token.
    pub fn is_silent(&self) -> bool {
        self.transfer.direction == airpath_core::Direction::Down && self.transfer.request == Bytes::ZERO
    }
}

impl Work {
    /// Checks the bounds of a responder that serves unknown clients.
    ///
    /// # Errors
    /// What is wrong, and what is valid.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Ping(ping) => {
                between("count", ping.count.into(), 1, MOST_PROBES)?;
                between("size", ping.size.into(), HEADER as u64, LARGEST_DATAGRAM.into())?;
                if ping.interval.is_zero() {
                    return Err("interval: the time between requests must be above zero".into());
                }
                at_most_as_long(ping.interval.saturating_mul(u64::from(ping.count) - 1), ping.timeout)
            }
            Self::Bulk(bulk) => {
                between("flows", bulk.flows.into(), 1, MOST_FLOWS.into())?;
                between("bytes", bulk.transfer.bytes.get(), 1, MOST_BYTES.get())?;
                between("request", bulk.transfer.request.get(), 0, MOST_BYTES.get())?;
                if let Some(quic) = &bulk.quic {
                    quic.check().map_err(|error| format!("{}: {error}", error.field))?;
                    let windows = [
                        ("initial_window", quic.initial_window),
                        ("receive_window", quic.receive_window),
                        ("send_window", quic.send_window),
                    ];
                    for (name, window) in windows {
                        between(name, window.get(), 1, MOST_QUIC_WINDOW.get())?;
                    }
                    if bulk.tcp != TcpSettings::default() {
                        return Err("settings of TCP have no effect on QUIC: remove them".into());
                    }
                    return Ok(());
                }
                let first = match bulk.transfer.direction {
                    airpath_core::Direction::Down => ("request", bulk.transfer.request),
                    airpath_core::Direction::Up => ("bytes", bulk.transfer.bytes),
                };
                match bulk.is_silent() {
                    true => Ok(()),
                    false => between(first.0, first.1.get(), SessionToken::LENGTH as u64, MOST_BYTES.get()),
                }
            }
            Self::Datagrams(datagrams) => {
                between("size", datagrams.size.into(), HEADER as u64, LARGEST_DATAGRAM.into())?;
                between("number of datagrams", datagrams.count(), 1, MOST_PROBES)?;
                at_most_as_long(datagrams.duration, datagrams.timeout)
            }
            Self::Transactions(Exchange { transactions, .. }) => {
                between("request", transactions.request.get(), SessionToken::LENGTH as u64, MOST_BYTES.get())?;
                between("response", transactions.response.get(), 1, MOST_BYTES.get())?;
                between("transactions", transactions.transactions.into(), 1, u32::MAX.into())?;
                at_most_as_long(transactions.duration.unwrap_or_default(), transactions.think)
            }
            Self::Terminal(terminal) => {
                terminal.session.check().map_err(|error| error.to_string())?;
                at_most_as_long(terminal.duration(), Span::ZERO)
            }
            Self::Adaptive(video) => {
                let adaptive::Settings { request, duration, buffer, processing, .. } = video.settings()?;
                between("request", request.get(), SessionToken::LENGTH as u64, MOST_BYTES.get())?;
                at_most_as_long(duration, buffer.max(processing))
            }
            Self::Page(load) => load.check(),
            Self::Voice(call) => {
                call.settings.check().map_err(|error| error.to_string())?;
                at_most_as_long(call.settings.duration, call.settings.timeout)
            }
            Self::Stream(stream) => {
                let streaming::Settings { buffer, timeout, transport, .. } = stream.settings;
                if transport != streaming::LowerTransport::Udp {
                    return Err("a measured video has the transport udp".to_owned());
                }
                at_most_as_long(stream.video.duration, buffer.max(timeout))?;
                stream.session().map(drop)
            }
            Self::SendRtp(_) | Self::ReceiveRtp(_) => Err("plain RTP has no responder".to_owned()),
        }
    }

    /// The workload's name among the commands.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ping(_) => "ping",
            Self::Bulk(_) => "bulk",
            Self::Datagrams(_) => "datagrams",
            Self::Transactions(_) => "transactions",
            Self::Terminal(_) => "terminal",
            Self::Adaptive(_) => "adaptive",
            Self::Page(_) => "page",
            Self::Voice(_) => "voice",
            Self::Stream(_) | Self::SendRtp(_) | Self::ReceiveRtp(_) => "stream",
        }
    }
}

/// The path of the invalid value in the workload of a request in JSON, and the reason; `None` if
/// its values are valid. Deserialisation by [`Work`] reports no path: a key selects the variant.
pub fn invalid_key(request: &str) -> Option<(String, String)> {
    fn read<T: DeserializeOwned>(settings: Value) -> Option<(String, String)> {
        let error = serde_path_to_error::deserialize::<_, T>(settings).err()?;
        Some((error.path().to_string(), error.inner().to_string()))
    }
    let mut request: Value = serde_json::from_str(request).ok()?;
    let work = request.get_mut("work")?.as_object_mut()?;
    let kind = work.remove("kind")?;
    let settings = Value::Object(std::mem::take(work));
    match kind.as_str()? {
        "ping" => read::<Ping>(settings),
        "bulk" => read::<Bulk>(settings),
        "datagrams" => read::<Datagrams>(settings),
        "transactions" => read::<Exchange>(settings),
        "terminal" => read::<Terminal>(settings),
        "adaptive" => read::<SegmentedVideo>(settings),
        "page" => read::<PageLoad>(settings),
        "voice" => read::<Call>(settings),
        "stream" => read::<VideoStream>(settings),
        "rtp-send" => read::<Sending>(settings),
        "rtp-receive" => read::<Receiving>(settings),
        _ => None,
    }
}

fn between(what: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    match value {
        _ if value < least => Err(format!("{what}: {value} is too little; at least {least}")),
        _ if value > most => Err(format!("{what}: {value} is too much; at most {most}")),
        _ => Ok(()),
    }
}

fn at_most_as_long(sending: Span, waiting: Span) -> Result<(), String> {
    if sending > LONGEST || waiting > LONGEST {
        return Err(format!("this takes too long: at most {LONGEST}, and the same time again for the last replies"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_app::web::settings::Protocol;
    use airpath_core::Direction;

    fn bulk(direction: Direction, bytes: u64, request: u64) -> Work {
        let transfer = Transfer { direction, bytes: Bytes::new(bytes), request: Bytes::new(request) };
        Work::Bulk(Bulk { transfer, flows: 1, tcp: TcpSettings::default(), quic: None })
    }

    #[test]
    fn flows_too_short_for_a_token_are_rejected() {
        assert_eq!(bulk(Direction::Down, 1000, 0).check(), Ok(()));
        assert_eq!(bulk(Direction::Down, 1, 16).check(), Ok(()));
        assert_eq!(bulk(Direction::Down, 1, 15).check(), Err("request: 15 is too little; at least 16".into()));
        assert_eq!(bulk(Direction::Up, 15, 0).check(), Err("bytes: 15 is too little; at least 16".into()));
    }

    #[test]
    fn requests_are_bounded() {
        assert!(bulk(Direction::Up, u64::MAX, 0).check().is_err());
        let ping = Ping { interval: Span::from_secs(3601), count: 2, ..Ping::default() };
        assert!(Work::Ping(ping).check().is_err());
        assert!(Work::Ping(Ping { count: 0, ..Ping::default() }).check().is_err());
        assert!(Work::Ping(Ping { interval: Span::ZERO, ..Ping::default() }).check().is_err());
        assert_eq!(Work::Ping(Ping::default()).check(), Ok(()));
    }

    fn page(change: impl FnOnce(&mut web::Settings, &mut web::page::Entry)) -> Result<(), String> {
        let text = r#"{"name": "p", "object": [{"name": "a", "type": "document", "size": "10 kB"}]}"#;
        let mut load = PageLoad {
            pages: vec![serde_json::from_str(text).unwrap()],
            settings: Default::default(),
            tcp: Default::default(),
        };
        change(&mut load.settings, &mut load.pages[0].objects[0]);
        Work::Page(load).check()
    }

    #[test]
    fn pages_have_what_real_sockets_can() {
        use airpath_app::web::settings::Pipeline;
        assert_eq!(page(|_, _| {}), Ok(()));
        let refused = |change: fn(&mut web::Settings, &mut web::page::Entry), key: &str| {
            let error = page(change).unwrap_err();
            assert!(error.starts_with(key), "{error}");
        };
        refused(|settings, _| settings.protocol = Protocol::Http2, "protocol: over real sockets");
        refused(|settings, _| settings.protocol = Protocol::Http3, "protocol: over real sockets");
        refused(|settings, _| settings.tls = Tls::V13, "tls: over real sockets");
        refused(|settings, _| settings.dns = true, "dns: over real sockets");
        refused(|settings, _| settings.proxy = true, "proxy: over real sockets");
        refused(|settings, _| settings.connections = 0, "connections: there must be at least one");
        refused(|settings, _| settings.connections = 257, "connections to all hosts: 257 is too much");
        refused(|_, object| object.urgency = Some(8), "page p: object 0: urgency");
        refused(|_, object| object.wait = Span::from_secs(3601), "this takes too long");
        let pipelined = |depth| {
            page(|settings, object| {
                settings.pipeline = Pipeline { depth, ..Pipeline::default() };
                object.size = Bytes::new(20_000_000);
            })
        };
        assert_eq!(pipelined(3), Ok(()));
        assert!(pipelined(4).unwrap_err().contains(" is too much; at most 64000000"));
        assert!(page(|_, object| object.name = "a".repeat(LINE_LIMIT)).unwrap_err().starts_with("bytes of the desc"));
        refused(|settings, _| settings.views = 1001, "views: 1001 is too much; at most 1000");
    }

    #[test]
    fn heads_have_the_sizes_of_the_settings_or_are_refused() {
        let sizes = |request, response| {
            page(|settings, _| {
                settings.request = Bytes::new(request);
                settings.response = Bytes::new(response);
            })
        };
        let least = |result: Result<(), String>, key: &str| -> u64 {
            let error = result.unwrap_err();
            assert!(error.starts_with(key), "{error}");
            error.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let (request, response) = (least(sizes(1, 300), "request: 1 is"), least(sizes(400, 1), "response: 1 is"));
        // The lines of RFC 9112, with a field that has one byte.
        let head = "GET /p/a HTTP/1.1\r\nHost: www.example.com\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\
                    Airpath-Session: 0123456789abcdef\r\nUser-Agent: x\r\n\r\n";
        assert_eq!(request, head.len() as u64);
        assert_eq!(sizes(request, response), Ok(()));
        assert!(sizes(request - 1, response).is_err() && sizes(request, response - 1).is_err());
        assert!(sizes(8193, 300).unwrap_err().contains("at most 8192"));
        // A request that validates is longer, in a later view only.
        let validating = |views| {
            page(|settings, object| {
                settings.request = Bytes::new(request);
                settings.views = views;
                object.cache = web::page::Caching::Revalidate;
            })
        };
        assert_eq!(validating(1), Ok(()));
        assert_eq!(least(validating(2), "request"), request + "If-None-Match: \"0-0\"\r\n".len() as u64);
        let long = page(|_, object| object.name = "a".repeat(10_000)).unwrap_err();
        assert!(long.starts_with("bytes of the longest head"), "{long}");
    }

    fn stream(change: impl FnOnce(&mut VideoStream)) -> Result<(), String> {
        let mut stream = VideoStream { video: Default::default(), settings: Default::default(), seed: 0 };
        change(&mut stream);
        Work::Stream(stream).check()
    }

    #[test]
    fn videos_are_bounded() {
        let refused = |change: fn(&mut VideoStream), message: &str| {
            let error = stream(change).unwrap_err();
            assert!(error.contains(message), "{error}");
        };
        assert_eq!(stream(|_| {}), Ok(()));
        assert_eq!(stream(|stream| stream.video.duration = LONGEST), Ok(()));
        refused(|stream| stream.video.duration = Span::from_secs(3601), "takes too long");
        refused(|stream| stream.settings.buffer = Span::from_secs(3601), "takes too long");
        refused(|stream| stream.video.frame_rate = 1e300, "frames of the video: 18446744073709551615 is too much");
        refused(|stream| stream.video.frame_rate = f64::NAN, "frames of the video: 0 is too little");
        refused(|stream| stream.settings.packet = Bytes::new(0), "packet: ");
        refused(|stream| stream.settings.packet = Bytes::new(1), "packets of the video: 1110000 is too much");
        refused(|stream| stream.settings.speed = 2.0, "ahead: ");
        refused(|stream| stream.video.gop = 0, "gop: 0 is too little");
        refused(|stream| stream.video.gop = u32::MAX, "gop: 4294967295 is too much");
    }

    #[test]
    fn videos_in_segments_are_bounded() {
        let check = |change: fn(&mut adaptive::Settings)| {
            let mut video = SegmentedVideo { settings: Default::default(), tcp: TcpSettings::default() };
            change(&mut video.settings);
            Work::Adaptive(Box::new(video)).check().err().unwrap_or_default()
        };
        assert_eq!(check(|settings| settings.duration = LONGEST), "");
        assert_eq!(check(|settings| settings.request = Bytes::new(16)), "");
        assert_eq!(check(|settings| settings.request = Bytes::new(15)), "request: 15 is too little; at least 16");
        assert!(check(|settings| settings.duration = Span::from_secs(3601)).contains("takes too long"));
        assert!(check(|settings| settings.buffer = Span::from_secs(3601)).contains("takes too long"));
        assert!(check(|settings| settings.processing = Span::from_secs(3601)).contains("takes too long"));
        assert!(check(|settings| settings.qualities.clear()).starts_with("qualities: "));
    }

    #[test]
    fn requests_serialise_as_json() {
        let video = VideoStream { video: Default::default(), settings: Default::default(), seed: 3 };
        let segmented = SegmentedVideo { settings: Default::default(), tcp: TcpSettings::default() };
        let videos = [Work::Stream(video), Work::Adaptive(Box::new(segmented))];
        for work in [bulk(Direction::Up, 20, 0), Work::Ping(Ping::default())].into_iter().chain(videos) {
            let text = serde_json::to_string(&work).unwrap();
            assert_eq!(serde_json::from_str::<Work>(&text).unwrap(), work);
        }
    }
}
