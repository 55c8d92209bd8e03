//! Adaptive streaming of a video over HTTP: segments in several qualities, as HLS (RFC 8216) and
//! DASH (ISO/IEC 23009-1) have them, over one connection.
//!
//! The client requests the list of the segments, then each segment when the one before is complete
//! and its buffer has room. It chooses the quality of each. Contents are counted, not carried.
//!
//! | module | contents |
//! | --- | --- |
//! | [`adaptation`] | the algorithms that choose the quality |
//! | [`player`] | the buffer: start, stalls, end of playback |

pub mod adaptation;
pub mod player;

use std::sync::Arc;

use airpath_core::{Bitrate, Bytes, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::exchanges::{self, Application, ClientStep, Exchange, Script};
use crate::transport::Transport;
use crate::voice::SettingError;

pub use adaptation::{Adaptation, Algorithm};
pub use player::Player;

/// The kind of the exchanges that carry a segment.
pub const SEGMENT: &str = "segment";
/// The kind of the exchange that carries the list of segments.
pub const MANIFEST: &str = "manifest";

/// Settings of a video and its player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Rates of the qualities, in rising order.
    pub qualities: Vec<Bitrate>,
    /// Duration of a segment.
    pub segment: Span,
    /// Duration of the video.
    pub duration: Span,
    /// Most media that the player stores.
    pub buffer: Span,
    /// Media that the player waits for at the start and after a stall.
    pub startup: Span,
    /// The algorithm that chooses the quality.
    pub adaptation: Algorithm,
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of the head of a response.
    pub head: Bytes,
    /// Bytes of the list of segments.
    pub manifest: Bytes,
    /// Time of the server for each response.
    pub processing: Span,
}

impl Default for Settings {
    /// The qualities are those of Netflix up to 3 Mbit/s (A. Aaron et al., "Per-Title Encode
    /// Optimization", Netflix Technology Blog, 2015: the fixed ladder). A segment has the 4 s of
    /// Huang et al. (SIGCOMM 2014). `request` is that of pages. All others are assumptions.
    fn default() -> Self {
        let rates = [235, 375, 560, 750, 1050, 1750, 2350, 3000];
        Self {
            qualities: rates.into_iter().map(|kbps| Bitrate::from_bps(kbps * 1000)).collect(),
            segment: Span::from_secs(4),
            duration: Span::from_secs(120),
            buffer: Span::from_secs(30),
            startup: Span::from_secs(4),
            adaptation: Algorithm::default(),
            request: Bytes::new(400),
            head: Bytes::new(300),
            manifest: Bytes::new(2000),
            processing: Span::ZERO,
        }
    }
}

impl Settings {
    /// Longest video: a day.
    const LONGEST: Span = Span::from_secs(24 * 3600);
    /// Most qualities.
    const MOST_QUALITIES: usize = 64;
    /// Most bytes of a segment, a request or a list.
    const MOST_BYTES: u64 = 1 << 30;

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |field, message: &'static str| Err(SettingError { field, message: message.into() });
        let rates = &self.qualities;
        let rises = rates.is_sorted_by(|a, b| a < b) && rates.first().is_some_and(|rate| rate.as_bps() > 0);
        if !rises || rates.len() > Self::MOST_QUALITIES {
            return wrong("qualities", "a video has 1 to 64 qualities, whose rates rise");
        }
        if !(Span::from_millis(100)..=Span::from_secs(60)).contains(&self.segment) {
            return wrong("segment", "a segment lasts 100 ms to 60 s");
        }
        if self.duration.is_zero() || self.duration > Self::LONGEST {
            return wrong("duration", "a video lasts at most one day, and longer than nothing");
        }
        let highest = rates[rates.len() - 1].bytes_in(self.segment).get();
        if highest > Self::MOST_BYTES || rates[0].bytes_in(self.segment).get() == 0 {
            return wrong("qualities", "a segment has 1 byte to 1 GiB");
        }
        if self.startup.is_zero() || self.startup > Self::LONGEST {
            return wrong("startup", "it is at most one day, and longer than nothing");
        }
        if self.buffer > Self::LONGEST || self.buffer < self.startup + self.segment {
            return wrong("buffer", "it has room for `startup` and one segment, and is at most one day");
        }
        let sizes = [("request", self.request), ("head", self.head), ("manifest", self.manifest)];
        if let Some((field, _)) = sizes.iter().find(|(_, bytes)| !(1..=Self::MOST_BYTES).contains(&bytes.get())) {
            return wrong(field, "it has 1 byte to 1 GiB");
        }
        if self.processing > Self::LONGEST {
            return wrong("processing", "it is at most one day");
        }
        self.adaptation.check(self.most_at_request())
    }

    /// The most media in the buffer when a whole segment is requested.
    pub fn most_at_request(&self) -> Span {
        self.buffer.saturating_sub(self.segment)
    }

    /// Number of segments.
    pub fn segments(&self) -> u64 {
        self.duration.as_nanos().div_ceil(self.segment.as_nanos())
    }

    /// Media in segment number `number`; the last one may be shorter.
    pub fn media(&self, number: u64) -> Span {
        self.segment.min(self.duration.saturating_sub(self.segment * number))
    }

    /// The script of an open session, without a segment: those are requested as the client decides.
    pub fn script(&self) -> Script {
        let mut script = Script { is_open: true, ..Script::default() };
        script.add(MANIFEST, self.exchange(self.manifest.get(), Span::ZERO));
        script
    }

    /// Bytes of segment number `number` in quality number `quality`.
    fn bytes(&self, number: u64, quality: usize) -> u64 {
        self.qualities[quality].bytes_in(self.media(number)).get().max(1)
    }

    fn exchange(&self, content: u64, pause: Span) -> Exchange {
        Exchange {
            kind: 0,
            waits: true,
            pause,
            request: self.request.get() as u32,
            response: (self.head.get() + content) as u32,
            processing: self.processing,
        }
    }
}

/// A segment that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its quality, from zero.
    pub quality: usize,
    /// Its bytes, without the head of the response.
    pub bytes: u64,
    /// The buffer when it was requested.
    pub buffer: Span,
    /// When the last byte of it arrived, and the time since its request.
    pub arrived: Option<(Instant, Span)>,
}

/// The client: it requests, and plays.
#[derive(Clone, Debug)]
pub struct Client {
    settings: Arc<Settings>,
    exchanges: exchanges::Client,
    adaptation: Adaptation,
    player: Player,
    segments: Vec<Segment>,
}

impl Client {
    /// A client whose connection opens at `start`; the server begins with the same script.
    pub fn new(settings: Arc<Settings>, script: Arc<Script>, start: Instant) -> Self {
        Self {
            exchanges: exchanges::Client::new(script, start),
            adaptation: Adaptation::new(&settings),
            player: Player::new(settings.startup, settings.duration, start),
            segments: Vec::new(),
            settings,
        }
    }

    fn arrive(&mut self, now: Instant, number: u64, latency: Span) {
        let segment = &mut self.segments[number as usize];
        segment.arrived = Some((now, latency));
        self.adaptation.arrived(segment.bytes + self.settings.head.get(), latency);
        self.player.receive(now, self.settings.media(number));
    }

    /// Decides on the next segment now, for the time at which the buffer has room for it.
    fn request_next(&mut self) {
        let number = self.segments.len() as u64;
        if number == self.settings.segments() {
            self.exchanges.end_script();
            return;
        }
        let media = self.settings.media(number);
        // While playback waits, the buffer has less than `startup`, and so room for a segment.
        let pause = (self.player.buffer() + media).saturating_sub(self.settings.buffer);
        let buffer = self.player.buffer().saturating_sub(pause);
        let quality = self.adaptation.choose(buffer);
        let bytes = self.settings.bytes(number, quality);
        self.segments.push(Segment { quality, bytes, buffer, arrived: None });
        self.exchanges.add(SEGMENT, self.settings.exchange(bytes, pause));
    }

    /// The player.
    pub const fn player(&self) -> &Player {
        &self.player
    }

    /// The player, with its buffer at `now`.
    pub fn player_at(&self, now: Instant) -> Player {
        let mut player = self.player.clone();
        player.advance(now);
        player
    }

    /// The segments that were requested, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Application for Client {
    /// Acts as [`exchanges::Client::step`] does, and requests the next segment after a response.
    fn step(&mut self, now: Instant, transport: &mut impl Transport) -> ClientStep {
        self.player.advance(now);
        let step = self.exchanges.step(now, transport);
        if let ClientStep::Response(number, latency) = step {
            if let Some(number) = number.checked_sub(1) {
                self.arrive(now, u64::from(number), latency);
            }
            self.request_next();
        }
        step
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.exchanges.next_wakeup().into_iter().chain(self.player.next_wakeup()).min()
    }

    /// Whether all segments were played.
    fn is_complete(&self) -> bool {
        self.player.finished().is_some()
    }

    fn exchanges(&self) -> &exchanges::Client {
        &self.exchanges
    }
}

/// The server of a connection whose requests name their quality.
#[derive(Clone, Debug)]
pub struct Server {
    settings: Arc<Settings>,
    exchanges: exchanges::Server,
    /// Segments that were requested.
    segments: u64,
}

impl Server {
    /// A server that has not answered yet.
    pub fn new(settings: Arc<Settings>) -> Self {
        let exchanges = exchanges::Server::new(Arc::new(settings.script()));
        Self { settings, exchanges, segments: 0 }
    }

    /// The request that arrives is for the next segment in quality number `quality`. Call it before
    /// [`Self::step`] sees the end of the request. Returns false if there is no such segment.
    pub fn request(&mut self, quality: usize) -> bool {
        if quality >= self.settings.qualities.len() || self.segments == self.settings.segments() {
            return false;
        }
        let bytes = self.settings.bytes(self.segments, quality);
        self.exchanges.add(self.settings.exchange(bytes, Span::ZERO));
        self.segments += 1;
        true
    }

    /// Acts as [`exchanges::Server::step`] does.
    pub fn step(&mut self, now: Instant, transport: &mut impl Transport) {
        self.exchanges.step(now, transport);
    }

    /// When the next response is ready.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.exchanges.next_wakeup()
    }
}

#[cfg(test)]
mod tests;
