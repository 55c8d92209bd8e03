//! Options of a TCP header, and the index that each has in the item table (RFC 6846 §6.3.4).

/// Indexes of the item table.
pub(super) const NOP: u8 = 0;
pub(super) const EOL: u8 = 1;
pub(super) const MSS: u8 = 2;
pub(super) const WINDOW_SCALE: u8 = 3;
pub(super) const TIMESTAMPS: u8 = 4;
pub(super) const SACK_PERMITTED: u8 = 5;
pub(super) const SACK: u8 = 6;
/// The first index of options without one of their own.
pub(super) const GENERIC: u8 = 7;
/// Entries of the table.
pub(super) const ITEMS: usize = 16;
/// Options of one list: their number has four bits.
pub(super) const MOST: usize = 15;

/// The number of zeros behind EOL counts bits in one octet.
const MOST_PADDING: usize = 255 / 8;

/// Kinds of options (RFC 9293 §3.2, RFC 7323 §2.2 and §3.2, RFC 2018 §2 and §3).
const KIND_EOL: u8 = 0;
pub(super) const KIND_NOP: u8 = 1;
pub(super) const KIND_MSS: u8 = 2;
pub(super) const KIND_WINDOW_SCALE: u8 = 3;
pub(super) const KIND_SACK_PERMITTED: u8 = 4;
pub(super) const KIND_SACK: u8 = 5;
pub(super) const KIND_TIMESTAMPS: u8 = 8;

/// One option: its bytes in the header, and its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// [`GENERIC`] stands for all that have no index of their own.
    pub(super) index: u8,
    pub(super) start: u8,
    pub(super) end: u8,
}

impl Listed {
    pub(super) fn of(self, options: &[u8]) -> &[u8] {
        &options[usize::from(self.start)..usize::from(self.end)]
    }
}

/// The options of a header, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    listed: [Listed; MOST],
    length: usize,
}

impl List {
    pub(super) fn as_slice(&self) -> &[Listed] {
        &self.listed[..self.length]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Listed] {
        &mut self.listed[..self.length]
    }
}

/// Whether the profile can restore each bit of these options.
pub(crate) fn are_supported(options: &[u8]) -> bool {
    split(options).is_some()
}

/// The options; `None` if they are malformed or too many. The second option of a kind counts as
/// generic (RFC 6846 §6.3.4).
pub(super) fn split(options: &[u8]) -> Option<List> {
    let mut list = List::default();
    let (mut at, mut seen, mut generic) = (0, 0_u16, 0);
    while let Some(kind) = options.get(at).copied() {
        let (mut index, length) = match kind {
            KIND_EOL => {
                let padding = &options[at + 1..];
                let is_padding = padding.len() <= MOST_PADDING && padding.iter().all(|octet| *octet == 0);
                (EOL, is_padding.then_some(1 + padding.len())?)
            }
            KIND_NOP => (NOP, 1),
            _ => {
                let length = usize::from(*options.get(at + 1)?);
                (index_of(kind, length)?, length)
            }
        };
        if index > NOP && index < GENERIC {
            if seen & 1 << index != 0 {
                index = GENERIC;
            }
            seen |= 1 << index;
        }
        generic += usize::from(index == GENERIC);
        let end = at + length;
        if end > options.len() || list.length == MOST || generic > ITEMS - usize::from(GENERIC) {
            return None;
        }
        list.listed[list.length] = Listed { index, start: at as u8, end: end as u8 };
        list.length += 1;
        at = end;
    }
    Some(list)
}

/// The index of an option of this kind and length; `None` if it cannot have this length.
fn index_of(kind: u8, length: usize) -> Option<u8> {
    let (index, is_valid) = match kind {
        KIND_MSS => (MSS, length == 4),
        KIND_WINDOW_SCALE => (WINDOW_SCALE, length == 3),
        KIND_SACK_PERMITTED => (SACK_PERMITTED, length == 2),
        KIND_SACK => (SACK, matches!(length, 10 | 18 | 26 | 34)),
        KIND_TIMESTAMPS => (TIMESTAMPS, length == 10),
        _ => (GENERIC, length >= 2),
    };
    is_valid.then_some(index)
}

/// The 32-bit number at `at`.
pub(super) fn number(option: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([option[at], option[at + 1], option[at + 2], option[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexes(options: &[u8]) -> Option<Vec<u8>> {
        split(options).map(|list| list.as_slice().iter().map(|listed| listed.index).collect())
    }

    #[test]
    fn options_of_common_segments() {
        let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(indexes(&syn), Some(vec![MSS, SACK_PERMITTED, TIMESTAMPS, NOP, WINDOW_SCALE]));
        assert_eq!(indexes(&[]), Some(vec![]));
        assert_eq!(indexes(&[30, 3, 9, 0]), Some(vec![GENERIC, EOL]));
        assert_eq!(indexes(&[2, 4, 5, 180, 2, 4, 5, 181]), Some(vec![MSS, GENERIC]));
    }

    #[test]
    fn malformed_options_are_not_supported() {
        // A length beyond the header, of 0, or not that of the kind; padding that is not zero.
        for options in [&[2, 4, 5][..], &[30, 0, 0, 0], &[2, 3, 1, 1], &[5, 12, 0, 0], &[0, 0, 0, 1], &[30]] {
            assert!(!are_supported(options), "{options:?}");
        }
        assert!(!are_supported(&[1; 16]), "16 options");
        assert!(!are_supported(&[0; 36]), "more padding than its length has bits for");
    }
}
