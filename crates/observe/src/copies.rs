//! Copies of packets by the capture: it has them at two interfaces, or before and after a router.

use airpath_core::{Instant, Span};
use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

/// The shortest timer of any sender: a thousandth of the minimum in RFC 6298 §2.4.
const SHORTEST_TIMER: Span = Span::from_millis(1);

/// A packet with the same identification after this time is no duplicate by the capture or a link:
/// the least retransmission time-out of Linux.
const LATEST_DUPLICATE: Span = Span::from_millis(200);

/// Packets of [`LastPackets`]. A router may pass an initial window of ten segments (RFC 6928)
/// before the first of the copies.
const LAST: usize = 16;

/// Packets of [`RecentPackets`], a power of two.
const RECENT: usize = 1 << 10;

/// The digest of a packet, and its time. The lowest byte of the digest is the time to live; 0 is
/// no packet.
pub(crate) type Seen = (u64, Instant);

/// A packet that may be a copy of an earlier one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    digest: u64,
    time: Instant,
    identified: bool,
}

impl Packet {
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let identified = segment.identification.is_some_and(|identification| identification != 0);
        Self { digest: digest(segment, identified), time: segment.time, identified }
    }

    pub(crate) const fn seen(&self) -> Seen {
        (self.digest, self.time)
    }

    /// Whether it has an identification (RFC 6864 §4.1).
    pub(crate) const fn is_identified(&self) -> bool {
        self.identified
    }

    /// Whether it is the earlier packet: equal in identification, or with a lower time to live.
    pub(crate) fn is_copy_of(&self, (earlier, time): Seen) -> bool {
        earlier >> 8 == self.digest >> 8
            && (self.identified || earlier & 0xff > self.digest & 0xff)
            && self.time.since(time.min(self.time)) < LATEST_DUPLICATE
    }

    /// Whether it equals the earlier packet, and follows it sooner than any timer.
    pub(crate) fn follows_at_once(&self, (earlier, time): Seen) -> bool {
        earlier >> 8 == self.digest >> 8 && self.time.since(time) < SHORTEST_TIMER && self.time >= time
    }
}

/// The last packets of one direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastPackets {
    /// Apart from the times: nearly every packet is compared with the digests only.
    digests: [u64; LAST],
    times: [Instant; LAST],
    next: u8,
}

impl LastPackets {
    /// Whether a packet is a copy of one of them; if not, it becomes the last of them.
    pub(crate) fn is_copy(&mut self, packet: &Packet) -> bool {
        let equals = |digest: &u64| digest >> 8 == packet.digest >> 8;
        // Without a branch for each of them.
        let is_known = self.digests.iter().fold(false, |found, digest| found | equals(digest));
        if is_known && self.digests.iter().zip(&self.times).any(|(digest, time)| packet.is_copy_of((*digest, *time))) {
            return true;
        }
        let place = usize::from(self.next);
        (self.digests[place], self.times[place]) = packet.seen();
        self.next = (self.next + 1) % LAST as u8;
        false
    }
}

/// Whether a segment has sequence numbers.
pub(crate) fn takes_numbers(segment: &Segment<'_>) -> bool {
    segment.length > 0 || segment.flags.0 & (Flags::SYN | Flags::FIN).0 != 0
}

/// A digest of the header fields that differ between packets, with the time to live as its lowest
/// byte. Window and timestamps separate packets that are not `identified`.
fn digest(segment: &Segment<'_>, identified: bool) -> u64 {
    let identification = segment.identification.unwrap_or(0);
    // Odd multipliers separate the fields.
    let place = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgment);
    let kind = u64::from(identification) << 40 | u64::from(segment.flags.0) << 32 | u64::from(segment.length);
    let mut mark = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ kind.wrapping_mul(0xd6e8_feb8_6659_fd93);
    if !identified {
        let (value, echo) = segment.options.timestamps.map_or((0, 0), |timestamps| (timestamps.value, timestamps.echo));
        let stamps = u64::from(value) << 32 | u64::from(echo);
        mark ^= stamps.wrapping_mul(0xff51_afd7_ed55_8ccd);
        mark ^= u64::from(segment.window).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    }
    (mark & !0xff).max(0x100) | u64::from(segment.time_to_live)
}

/// Recent packets of all connections. It finds the same copies as the connections do, unless other
/// packets have replaced the earlier one.
#[derive(Clone, Debug)]
pub struct RecentPackets(Vec<Seen>);

impl Default for RecentPackets {
    fn default() -> Self {
        Self(vec![Seen::default(); RECENT])
    }
}

impl RecentPackets {
    /// Whether a segment is a copy of an earlier one; `hash` is that of its route.
    pub fn is_copy(&mut self, segment: &Segment<'_>, hash: u32) -> bool {
        let packet = Packet::of(segment);
        // The highest bits of the product depend on all fields.
        let place = (packet.digest >> 54) as usize ^ (hash as usize % RECENT);
        let earlier = &mut self.0[place];
        let is_copy = packet.is_copy_of(*earlier)
            || !packet.identified && takes_numbers(segment) && packet.follows_at_once(*earlier);
        if !is_copy {
            *earlier = packet.seen();
        }
        is_copy
    }
}
