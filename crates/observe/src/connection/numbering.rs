//! Sequence numbers of 32 bits as offsets of a stream of bytes (RFC 9293 §3.4).

/// Conversion of the sequence numbers of one direction to offsets: the first byte of data is 0, the
/// SYN is -1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbering {
    /// Sequence number of offset 0.
    base: u32,
    /// The source of `base`.
    anchor: Anchor,
    /// An offset close to the next one: one past the highest seen or acknowledged.
    near: i64,
}

/// The source of a stream's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// Nothing was seen yet.
    #[default]
    None,
    /// The first segment seen, or the first acknowledgement: the stream began earlier.
    Middle,
    /// Its SYN.
    Syn,
}

impl Numbering {
    pub(crate) const fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// Takes the origin from the SYN with this sequence number.
    pub(crate) fn anchor_at_syn(&mut self, sequence: u32) {
        *self = Self { base: sequence.wrapping_add(1), anchor: Anchor::Syn, near: 0 };
    }

    /// Takes the origin from a sequence number in mid-stream, if there is none yet.
    pub(crate) fn anchor_in_middle(&mut self, sequence: u32) {
        if self.anchor == Anchor::None {
            *self = Self { base: sequence, anchor: Anchor::Middle, near: 0 };
        }
    }

    /// The offset of a sequence number: the candidate nearest to the last one seen.
    pub(crate) fn offset(&self, sequence: u32) -> i64 {
        let expected = self.base.wrapping_add(self.near as u32);
        self.near + i64::from(sequence.wrapping_sub(expected) as i32)
    }

    /// Notes that data up to `offset` was seen.
    pub(crate) fn advance(&mut self, offset: i64) {
        self.near = self.near.max(offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_on_past_the_wrap() {
        let mut numbering = Numbering::default();
        numbering.anchor_at_syn(u32::MAX - 1);
        assert_eq!(numbering.offset(u32::MAX - 1), -1);
        for step in 0..20_u32 {
            let offset = i64::from(step) * 0x4000_0000;
            assert_eq!(numbering.offset(u32::MAX.wrapping_add(step.wrapping_mul(0x4000_0000))), offset);
            numbering.advance(offset);
        }
    }

    #[test]
    fn what_came_before_the_first_seen_is_negative() {
        let mut numbering = Numbering::default();
        numbering.anchor_in_middle(1000);
        numbering.anchor_in_middle(5000);
        assert_eq!(numbering.offset(1000), 0);
        assert_eq!(numbering.offset(900), -100);
    }
}
