//! The payload of a full-sized segment of one direction.
//!
//! It follows from the MSS option of the other end less the options of the segment (RFC 6691 §2).
//! Without a captured SYN it is the most frequent length. A longer segment is a super-segment: the
//! capturing host's interface splits or joins segments (TSO, GRO).

use airpath_wire::segment::Segment;
use airpath_wire::tcp::Flags;

/// The smallest full-sized payload without a captured SYN: the MSS that every host accepts (RFC
/// 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;

/// The longest payload in an Ethernet frame. Longer segments may be super-segments.
pub(crate) const LONGEST_IN_ETHERNET: u32 = 1_460;

/// The option of a timestamp, with its padding (RFC 7323 appendix A).
const TIMESTAMPS: u32 = 12;

/// Successive segments of one length, without PSH, that show that the path or the other end allows
/// less than the MSS option.
const RUN: u32 = 4;

/// Frequent lengths that are stored.
const LENGTHS: usize = 4;

/// Estimates the payload of a full segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullSegment {
    /// The most frequent lengths, with their counts (Misra and Gries).
    lengths: [(u32, u32); LENGTHS],
    /// The length of the last segment, and how many of this length without PSH came in a row.
    last: u32,
    run: u32,
    /// The length that such a run has shown.
    shown: Option<u32>,
}

impl FullSegment {
    /// Adds a segment with data; `maximum` is the MSS option of the other end. Returns the payload
    /// of a full segment with the options of this one.
    pub(crate) fn observe(&mut self, segment: &Segment<'_>, maximum: Option<u16>) -> u32 {
        let length = segment.length;
        let blocks = segment.options.sack.as_slice().len() as u32;
        let options = if segment.options.timestamps.is_some() { TIMESTAMPS } else { 0 }
            + if blocks > 0 { 4 + 8 * blocks } else { 0 };
        let allowed = maximum.map(|maximum| u32::from(maximum).saturating_sub(options).max(1));
        if length > 0 {
            self.count(length, allowed.is_none());
            self.run = if segment.flags.contains(Flags::PSH) {
                0
            } else if length == self.last {
                self.run + 1
            } else {
                1
            };
            self.last = length;
            if self.shown.is_some_and(|shown| length > shown) {
                self.shown = None;
            }
            if self.run >= RUN && length >= DEFAULT_MSS && allowed.is_some_and(|allowed| length < allowed) {
                self.shown = Some(length);
            }
        }
        match allowed {
            Some(allowed) => self.shown.map_or(allowed, |shown| shown.min(allowed)),
            None => self.most_frequent(),
        }
    }

    fn count(&mut self, length: u32, needed: bool) {
        if !needed {
            return;
        }
        if let Some(known) = self.lengths.iter_mut().find(|(known, count)| *known == length && *count > 0) {
            known.1 = known.1.saturating_add(1);
        } else if let Some(free) = self.lengths.iter_mut().find(|(_, count)| *count == 0) {
            *free = (length, 1);
        } else {
            self.lengths.iter_mut().for_each(|(_, count)| *count -= 1);
        }
    }

    /// The most frequent length; of a super-segment, the length that it is a multiple of.
    fn most_frequent(&self) -> u32 {
        let frequent = self.lengths.iter().max_by_key(|(length, count)| (*count, *length)).map_or(0, |(each, _)| *each);
        let single = self.lengths.iter().filter(|(length, count)| {
            *count > 0 && *length >= DEFAULT_MSS && *length <= LONGEST_IN_ETHERNET && frequent.is_multiple_of(*length)
        });
        let single = single.map(|(length, _)| *length).max();
        // Small messages may be more frequent than the full segments between them.
        let longest = self.lengths.iter().filter(|(_, count)| *count > 1).map(|(length, _)| *length);
        let longest = longest.filter(|length| *length <= LONGEST_IN_ETHERNET).max().unwrap_or(0);
        if frequent > LONGEST_IN_ETHERNET { single.unwrap_or(frequent) } else { frequent.max(longest).max(DEFAULT_MSS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::segment;

    fn full(segments: &[&str], maximum: Option<u16>) -> u32 {
        let mut full = FullSegment::default();
        let lines = segments.iter().map(|line| segment(line, 1).0);
        lines.fold(0, |_, segment| full.observe(&segment, maximum))
    }

    #[test]
    fn the_mss_option_less_the_options_of_the_segment() {
        assert_eq!(full(&["0 > data 0..100 ack 0"], Some(1460)), 1460);
        assert_eq!(full(&["0 > data 0..100 ack 0 ts 1,1"], Some(1460)), 1448);
        assert_eq!(full(&["0 > data 0..2896 ack 0 ts 1,1"], Some(1460)), 1448);
    }

    #[test]
    fn without_a_syn_the_most_frequent_length_and_no_super_segment() {
        let line = |length: u32| format!("0 > data 0..{length} ack 0");
        let of = |lengths: &[u32]| {
            let lines: Vec<String> = lengths.iter().map(|length| line(*length)).collect();
            full(&lines.iter().map(String::as_str).collect::<Vec<_>>(), None)
        };
        assert_eq!(of(&[100]), 536);
        assert_eq!(of(&[1400, 1400, 1400, 2800, 1400]), 1400);
        assert_eq!(of(&[1448, 2896, 2896, 2896, 5792]), 1448);
        assert_eq!(of(&[8948, 8948, 8948]), 8948);
        assert_eq!(of(&[100, 100, 100, 1400, 1400, 100]), 1400);
    }

    #[test]
    fn a_run_of_equal_lengths_below_the_mss_shows_a_smaller_one() {
        let line = "0 > data 0..1360 ack 0";
        assert_eq!(full(&[line; 3], Some(1460)), 1460);
        assert_eq!(full(&[line; 4], Some(1460)), 1360);
        assert_eq!(full(&[line, line, line, line, "0 > data 0..1460 ack 0"], Some(1460)), 1460);
    }
}
