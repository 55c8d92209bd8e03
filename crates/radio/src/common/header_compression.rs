//! Header compression by PDCP (TS 25.323 §5.1, TS 36.323 §5.5) above a bearer: ROHC between the
//! network and each mobile.
//!
//! A packet is compressed when it enters, as PDCP does before RLC buffers it, so that whatever is
//! lost below is missing at the decompressor. Feedback of the decompressor crosses the bearer in
//! the opposite direction as a packet of its own. A packet whose headers are not restored is
//! dropped ([`DropCause::Decompression`]).
//!
//! Each radio bearer of a mobile has a PDCP entity with contexts of its own: where voice has a
//! bearer beside that of data, headers are compressed apart, and feedback uses the bearer of the
//! packets that it is about (TS 36.323 §4.2.2, §5.5.6).

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use airpath_core::{
    Classes, ComponentId, ConnectionTotals, Context, Direction, DropCause, Dropped, Ecn, Event, FlowId, Instant,
    Packet, PacketCounters, PacketStep, RadioTotals, SegmentInfo, SegmentLookup, Sink, Slot, UserId, earliest,
};
use airpath_link::{Admission, Bearer, BearerCommand, CommandError, Departure};
use airpath_rohc::{Compressor, ConfigError, Decompressor, Profiles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ValueError;

/// Robust header compression (RFC 5795, RFC 3095, RFC 5225, RFC 6846).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderCompression {
    /// How contexts are kept valid.
    pub mode: Mode,
    /// Flows of a mobile and direction that are remembered at once: up to 16 with small context
    /// identifiers, which cost one octet for all but the first flow, and up to 16384 with large
    /// ones, which cost one or two for each.
    #[serde(default = "contexts")]
    pub contexts: u16,
    /// The headers that are compressed. Without `"tcp"`, the TCP header is sent as it is behind a
    /// compressed IP header; a packet that fits none of them is sent as it is.
    #[serde(default = "profiles")]
    pub profiles: Vec<Profile>,
    /// The version of the profiles `"rtp"`, `"udp"` and `"ip"` in both directions. A channel cannot
    /// have both, because they share their numbers in packets.
    #[serde(default)]
    pub version: Version,
    /// How late packets may arrive without damage; only with version `"v2"`. With more, fewer
    /// packets may be lost in a row.
    #[serde(default)]
    pub reorder_ratio: ReorderRatio,
}

/// A version of the profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// RFC 3095 and RFC 3843.
    #[default]
    V1,
    /// RFC 5225 (ROHCv2).
    V2,
}

/// The part of the interval of a sequence number that is for late packets (RFC 5225 §6.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReorderRatio {
    /// At most 1 packet late.
    #[default]
    None,
    /// At most 3 packets late.
    Quarter,
    /// At most 7 packets late.
    Half,
    /// At most 11 packets late.
    ThreeQuarters,
}

impl From<ReorderRatio> for airpath_rohc::ReorderRatio {
    fn from(ratio: ReorderRatio) -> Self {
        match ratio {
            ReorderRatio::None => Self::None,
            ReorderRatio::Quarter => Self::Quarter,
            ReorderRatio::Half => Self::Half,
            ReorderRatio::ThreeQuarters => Self::ThreeQuarters,
        }
    }
}

/// A profile of ROHC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// 0x0001 or 0x0101: RTP, UDP and IP (RFC 3095, RFC 5225).
    Rtp,
    /// 0x0002 or 0x0102: UDP and IP (RFC 3095, RFC 5225).
    Udp,
    /// 0x0004 or 0x0104: IP (RFC 3843, RFC 5225).
    Ip,
    /// 0x0006: TCP and IP (RFC 6846).
    Tcp,
}

impl From<Profile> for airpath_rohc::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Rtp => Self::Rtp,
            Profile::Udp => Self::Udp,
            Profile::Ip => Self::Ip,
            Profile::Tcp => Self::Tcp,
        }
    }
}

/// A mode of ROHC (RFC 3095 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// No feedback: the context is repeated from time to time.
    Unidirectional,
    /// The decompressor reports a damaged context.
    Optimistic,
    /// The decompressor acknowledges what later packets refer to, so that no loss damages a
    /// context. Neither `tcp` nor version `"v2"` has it.
    Reliable,
}

/// The most contexts for which there are identifiers (RFC 5795 §5.1.1).
const MOST_CONTEXTS: u64 = 1 << 14;

const fn contexts() -> u16 {
    16
}

/// Those of RFC 3095 and RFC 3843.
fn profiles() -> Vec<Profile> {
    vec![Profile::Rtp, Profile::Udp, Profile::Ip]
}

impl HeaderCompression {
    /// Rejects keys that exclude each other.
    fn check(&self) -> Result<(), ValueError> {
        let refuse =
            |key: &str, expected| Err(ValueError::Range { key: format!("header_compression.{key}"), expected });
        match self.mode {
            Mode::Reliable if self.profiles.contains(&Profile::Tcp) => refuse(
                "mode",
                "`unidirectional` or `optimistic` with the profile `tcp`, for which RFC 6846 has no reliable mode",
            ),
            Mode::Reliable if self.version == Version::V2 => refuse(
                "mode",
                "`unidirectional` or `optimistic` with version `v2`, for which RFC 5225 has no reliable mode",
            ),
            _ if self.version == Version::V1 && self.reorder_ratio != ReorderRatio::None => {
                refuse("reorder_ratio", "`none` with version `v1`, which has no such field; set `version = \"v2\"`")
            }
            _ => Ok(()),
        }
    }

    fn rohc(&self) -> airpath_rohc::Config {
        let mode = match self.mode {
            Mode::Unidirectional => airpath_rohc::Mode::Unidirectional,
            Mode::Optimistic => airpath_rohc::Mode::Optimistic,
            Mode::Reliable => airpath_rohc::Mode::Reliable,
        };
        let profiles = self.profiles.iter().fold(Profiles::NONE, |set, profile| set.with((*profile).into()));
        let version = match self.version {
            Version::V1 => airpath_rohc::Version::One,
            Version::V2 => airpath_rohc::Version::Two,
        };
        let (contexts, reorder_ratio) = (self.contexts, self.reorder_ratio.into());
        airpath_rohc::Config { mode, contexts, large_cids: contexts > 16, profiles, version, reorder_ratio }
    }
}

/// Whether a packet with these headers has the voice bearer, where there is one.
pub(crate) type IsVoice = Box<dyn Fn(&[u8]) -> bool>;

/// Puts header compression above `bearer`, which has `users` mobiles, if it is configured. A bearer
/// with a voice bearer beside that of data has `is_voice`.
///
/// # Errors
/// If there are no identifiers for the number of contexts.
pub(crate) fn above(
    config: Option<&HeaderCompression>,
    bearer: impl Bearer + 'static,
    users: usize,
    is_voice: Option<IsVoice>,
) -> Result<Box<dyn Bearer>, ValueError> {
    let bearer = Box::new(bearer);
    let Some(config) = config else { return Ok(bearer) };
    config.check()?;
    let refuse =
        |_| ValueError::OutOfRange { key: "header_compression.contexts".to_owned(), min: 1, max: MOST_CONTEXTS };
    Ok(Box::new(Compressed::new(bearer, &config.rohc(), users, is_voice).map_err(refuse)?))
}

/// A bearer with header compression above it.
struct Compressed {
    bearer: Box<dyn Bearer>,
    is_voice: Option<IsVoice>,
    /// By mobile, with those of data before those of voice.
    entities: Vec<Entity>,
    of_a_mobile: usize,
    counters: [PacketCounters; 2],
    /// Packets that have left the bearer, in the order of their times.
    departures: VecDeque<(Direction, Departure)>,
    /// Feedback packets so far, which number them from the top.
    feedback_packets: u64,
    /// Packets that the bearer dropped in one call; kept for its memory.
    dropped: Vec<Dropped>,
    /// Restored headers; kept for its memory.
    restored: Vec<u8>,
}

/// A PDCP entity and its peer, by [`Direction`].
type Entity = [Channel; 2];

/// One direction of an entity: both ends of its compression.
struct Channel {
    compressor: Compressor,
    decompressor: Decompressor,
    /// Packets in the bearer.
    inside: VecDeque<Inside>,
    totals: Totals,
}

/// Sums of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    header_bytes: u64,
    compressed_header_bytes: u64,
    failures: u64,
    undetected: u64,
    feedback_bytes: u64,
}

/// A packet in the bearer.
struct Inside {
    /// As it entered.
    packet: Packet,
    /// Feedback instead of a packet.
    is_feedback: bool,
    /// Its first bytes, all headers included. Of feedback, those of the packet that it is about,
    /// which have its radio bearer.
    headers: Vec<u8>,
    /// How many of them are compressed; 0 if its headers are not available.
    replaced: usize,
    /// What replaces them; of feedback, all of it.
    compressed: Vec<u8>,
}

impl Compressed {
    fn new(
        bearer: Box<dyn Bearer>,
        config: &airpath_rohc::Config,
        users: usize,
        is_voice: Option<IsVoice>,
    ) -> Result<Self, ConfigError> {
        let channel = || {
            Ok(Channel {
                compressor: Compressor::new(config)?,
                decompressor: Decompressor::new(config)?,
                inside: VecDeque::new(),
                totals: Totals::default(),
            })
        };
        let of_a_mobile = 1 + usize::from(is_voice.is_some());
        let entities = (0..users * of_a_mobile).map(|_| Ok([channel()?, channel()?]));
        Ok(Self {
            entities: entities.collect::<Result<_, ConfigError>>()?,
            of_a_mobile,
            bearer,
            is_voice,
            counters: [PacketCounters::default(); 2],
            departures: VecDeque::new(),
            feedback_packets: 0,
            dropped: Vec::new(),
            restored: Vec::new(),
        })
    }

    /// The entities of a mobile, by their index.
    fn of(&self, user: UserId) -> Range<usize> {
        let first = self.of_a_mobile * user.index();
        first..first + self.of_a_mobile
    }

    /// The entity of a packet with these headers.
    fn entity(&self, user: UserId, headers: &[u8]) -> usize {
        self.of(user).start + usize::from(self.is_voice.as_ref().is_some_and(|is_voice| is_voice(headers)))
    }

    /// Takes out a packet that was in the bearer, and the index of its entity.
    fn take(&mut self, packet: &Packet, direction: Direction) -> Option<(usize, Inside)> {
        self.of(packet.user).find_map(|entity| {
            let inside = self.entities[entity][direction as usize].take(packet.id)?;
            Some((entity, inside))
        })
    }

    /// Calls the bearer, whose packets have other sizes inside than outside.
    fn call<R>(&mut self, cx: &mut Context<'_>, call: impl FnOnce(&mut dyn Bearer, &mut Context<'_>) -> R) -> R {
        let mut dropped = std::mem::take(&mut self.dropped);
        let at = cx.at;
        let entities = Entities { all: &self.entities, of_a_mobile: self.of_a_mobile };
        let mut sink = Restoring { cx, entities };
        let mut inner = Context::new(Some(&mut sink), &mut dropped, at);
        inner.with_segments(&entities);
        let result = call(&mut *self.bearer, &mut inner);
        for Dropped { time, packet, cause } in dropped.drain(..) {
            self.drop_inside(time, &packet, cause, cx);
        }
        self.dropped = dropped;
        result
    }

    /// The bearer has dropped a packet.
    fn drop_inside(&mut self, time: Instant, packet: &Packet, cause: DropCause, cx: &mut Context<'_>) {
        let found =
            Direction::BOTH.into_iter().find_map(|direction| Some((direction, self.take(packet, direction)?.1)));
        if let Some((direction, inside)) = found.filter(|(_, inside)| !inside.is_feedback) {
            self.lose(time, direction, inside.packet, cause, cx);
        }
    }

    fn lose(&mut self, time: Instant, direction: Direction, packet: Packet, cause: DropCause, cx: &mut Context<'_>) {
        self.counters[direction as usize].lose(&packet, cause);
        cx.direction = direction;
        cx.drop_packet(time, packet, cause);
    }

    /// Handles all that happens in the bearer up to `now`, each at its time, so that feedback
    /// enters it at the time at which it arises.
    fn advance(&mut self, now: Instant, cx: &mut Context<'_>) {
        while let Some(time) = self.bearer.next_wakeup().filter(|time| *time <= now) {
            while let Some((direction, departure)) = self.call(cx, |bearer, cx| bearer.pop(time, cx)) {
                self.receive(time, direction, departure, cx);
            }
        }
    }

    /// A packet has left the bearer.
    fn receive(&mut self, now: Instant, direction: Direction, departure: Departure, cx: &mut Context<'_>) {
        let Departure { due, packet } = departure;
        let Some((entity, inside)) = self.take(&packet, direction) else { return };
        if inside.is_feedback {
            // What a damaged or late element refers to no longer exists: nothing depends on it.
            let opposite = direction.opposite() as usize;
            let _ = self.entities[entity][opposite].compressor.receive_feedback(&inside.compressed);
            return;
        }
        let mut restored = std::mem::take(&mut self.restored);
        restored.clear();
        let is_restored = self.entities[entity][direction as usize].restore(due, &inside, &mut restored);
        self.restored = restored;
        if is_restored {
            let packet = Packet { ecn: packet.ecn, ..inside.packet };
            self.departures.push_back((direction, Departure { due, packet }));
        } else {
            self.lose(due, direction, inside.packet, DropCause::Decompression, cx);
        }
        self.send_feedback(now, entity, direction, inside, cx);
    }

    /// Sends the feedback that the decompressor of an entity's `direction` has, if any, about the
    /// packet `cause`.
    fn send_feedback(
        &mut self,
        now: Instant,
        entity: usize,
        direction: Direction,
        cause: Inside,
        cx: &mut Context<'_>,
    ) {
        let id = u64::MAX - self.feedback_packets;
        let channel = &mut self.entities[entity][direction as usize];
        let feedback = channel.decompressor.feedback();
        if feedback.is_empty() {
            return;
        }
        let (size, user) = (feedback.len() as u32, cause.packet.user);
        let packet = Packet { id, size, flow: FlowId(u32::MAX), user, ecn: Ecn::NotEct, slot: Slot(u32::MAX) };
        let compressed = feedback.to_vec();
        let inside = Inside { packet, is_feedback: true, headers: cause.headers, replaced: 0, compressed };
        channel.decompressor.clear_feedback();
        channel.totals.feedback_bytes += u64::from(size);
        self.feedback_packets += 1;
        let opposite = direction.opposite();
        self.entities[entity][opposite as usize].inside.push_back(inside);
        self.call(cx, |bearer, cx| bearer.push(now, opposite, packet, cx));
    }
}

impl Channel {
    /// Compresses a packet that enters the bearer. Its headers are empty if they are not available.
    fn compress(&mut self, packet: Packet, headers: Vec<u8>) -> Inside {
        let (mut replaced, mut compressed) = (0, Vec::new());
        if !headers.is_empty() {
            replaced = self.compressor.compress(&headers, packet.size as usize, &mut compressed);
            self.totals.header_bytes += replaced as u64;
            self.totals.compressed_header_bytes += compressed.len() as u64;
        }
        Inside { packet, is_feedback: false, headers, replaced, compressed }
    }

    /// Takes out the packet with this number.
    fn take(&mut self, id: u64) -> Option<Inside> {
        let index = self.inside.iter().position(|inside| inside.packet.id == id)?;
        self.inside.remove(index)
    }

    /// Decompresses a packet; returns whether its headers are as they were.
    fn restore(&mut self, due: Instant, inside: &Inside, restored: &mut Vec<u8>) -> bool {
        let Inside { packet, headers, replaced, compressed, .. } = inside;
        if headers.is_empty() {
            return true;
        }
        let now = Duration::from_nanos(due.as_nanos());
        // Profile 0x0000 leaves the first octets of the packet to the payload.
        let mut bytes = compressed.clone();
        bytes.extend_from_slice(&headers[*replaced..]);
        let length = packet.size as usize - replaced + compressed.len();
        let Ok(read) = self.decompressor.decompress(now, &bytes, length, restored) else {
            self.totals.failures += 1;
            return false;
        };
        restored.extend_from_slice(&bytes[read..]);
        let is_equal = restored == headers;
        self.totals.undetected += u64::from(!is_equal);
        is_equal
    }
}

impl Inside {
    /// The packet as the bearer carries it.
    fn carried(&self) -> Packet {
        let size = self.packet.size as usize - self.replaced + self.compressed.len();
        Packet { size: size as u32, ..self.packet }
    }
}

impl Bearer for Compressed {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.advance(now, cx);
        self.counters[direction as usize].offer(&packet);
        let mut headers = Vec::new();
        if !cx.headers(direction, &packet, &mut headers) {
            headers.clear();
        }
        let entity = self.entity(packet.user, &headers);
        let channel = &mut self.entities[entity][direction as usize];
        let inside = channel.compress(packet, headers);
        let carried = inside.carried();
        channel.inside.push_back(inside);
        self.call(cx, |bearer, cx| bearer.push(now, direction, carried, cx))
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        let (direction, departure) = self.departures.pop_front()?;
        self.counters[direction as usize].deliver(&departure.packet);
        cx.direction = direction;
        cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        Some((direction, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let departs = self.departures.front().map(|(_, departure)| departure.due);
        earliest([departs, self.bearer.next_wakeup()])
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        self.counters[direction as usize]
    }

    fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        self.bearer.radio_totals(direction, user)
    }

    fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        self.bearer.connection_totals(user)
    }

    fn inspects_segments(&self) -> bool {
        self.bearer.inspects_segments()
    }

    fn inspects_headers(&self) -> bool {
        true
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        const NAMES: [[&str; 6]; 2] = [
            [
                "rohc_down_header_bytes",
                "rohc_down_compressed_header_bytes",
                "rohc_down_contexts",
                "rohc_down_failures",
                "rohc_down_undetected",
                "rohc_down_feedback_bytes",
            ],
            [
                "rohc_up_header_bytes",
                "rohc_up_compressed_header_bytes",
                "rohc_up_contexts",
                "rohc_up_failures",
                "rohc_up_undetected",
                "rohc_up_feedback_bytes",
            ],
        ];
        let of = |direction: usize| {
            let mut sums = [0; 6];
            for entity in &self.entities {
                let Channel { compressor, totals, .. } = &entity[direction];
                let values = [
                    totals.header_bytes,
                    totals.compressed_header_bytes,
                    compressor.contexts() as u64,
                    totals.failures,
                    totals.undetected,
                    totals.feedback_bytes,
                ];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            NAMES[direction].into_iter().zip(sums)
        };
        of(0).chain(of(1)).collect()
    }

    fn end(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.bearer.end(now, cx);
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.bearer.check(command)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.advance(now, cx);
        self.call(cx, |bearer, cx| bearer.command(now, command, cx))
    }
}

/// Passes the events of the bearer on, with the sizes that packets have outside. [`Compressed`]
/// itself reports where packets end.
struct Restoring<'a, 'b> {
    cx: &'a mut Context<'b>,
    entities: Entities<'a>,
}

/// The entities of all mobiles, to be searched.
#[derive(Clone, Copy)]
struct Entities<'a> {
    all: &'a [Entity],
    of_a_mobile: usize,
}

impl Entities<'_> {
    /// A packet in the bearer.
    fn find(&self, direction: Direction, packet: &Packet) -> Option<&Inside> {
        let first = self.of_a_mobile * packet.user.index();
        let channels = self.all[first..first + self.of_a_mobile].iter().map(|entity| &entity[direction as usize]);
        channels.flat_map(|channel| channel.inside.iter().rev()).find(|inside| inside.packet.id == packet.id)
    }
}

impl SegmentLookup for Entities<'_> {
    fn segment(&self, _: Slot) -> Option<SegmentInfo> {
        None
    }

    /// Those before compression: they have the radio bearer of the packet.
    fn headers(&self, direction: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let Some(inside) = self.find(direction, packet) else { return false };
        out.extend_from_slice(&inside.headers);
        !inside.headers.is_empty()
    }
}

impl Sink for Restoring<'_, '_> {
    fn wants(&self) -> Classes {
        self.cx.wanted()
    }

    fn record(&mut self, time: Instant, _: ComponentId, event: &Event) {
        let class = match event {
            Event::Packet(event) => {
                let PacketStep::Queued { .. } = event.step else { return };
                let inside = self.entities.find(event.direction, &event.packet);
                if let Some(inside) = inside.filter(|inside| !inside.is_feedback) {
                    self.cx.direction = event.direction;
                    self.cx.packet(time, inside.packet, || event.step);
                }
                return;
            }
            Event::Tcp(_) => Classes::TCP,
            Event::Radio(_) => Classes::RADIO,
            Event::App(_) => Classes::APP,
            Event::Change(_) => Classes::CHANGE,
            Event::State(_) => Classes::STATE,
            Event::Quic(_) => Classes::QUIC,
        };
        self.cx.emit(class, time, || event.clone());
    }
}
