//! What a mobile can send: the E-DCH categories of TS 25.306 Table 5.1g.

use airpath_core::Span;

/// The length of a TTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tti {
    /// 2 ms: a subframe.
    Short,
    /// 10 ms: a radio frame.
    Long,
}

impl Tti {
    /// The TTI of this length, if there is one.
    pub fn of(span: Span) -> Option<Self> {
        [Self::Short, Self::Long].into_iter().find(|tti| tti.span() == span)
    }

    /// Its length.
    pub const fn span(self) -> Span {
        match self {
            Self::Short => Span::from_millis(2),
            Self::Long => Span::from_millis(10),
        }
    }

    /// Processes of hybrid ARQ: as many as fill a round trip of 16 or 40 ms (TS 25.321 §11.8.1.1.1,
    /// recalled).
    pub const fn processes(self) -> u8 {
        match self {
            Self::Short => 8,
            Self::Long => 4,
        }
    }
}

/// The largest block of a category in bits, in 10 ms and in 2 ms. Read at radio-electronics.com,
/// HSUPA categories; those of 4 and 6 in 2 ms are 5772 and 11484 in later versions of the table
/// (recalled), 5837 and 11520 there.
const LARGEST: [(u32, Option<u32>); 6] =
    [(7110, None), (14_484, Some(2798)), (14_484, None), (20_000, Some(5772)), (20_000, None), (20_000, Some(11_484))];

/// The largest block of category 1 to 6 in bits; `None` if there is no such category, or if it does
/// not have this TTI.
pub fn largest_block(category: u8, tti: Tti) -> Option<u32> {
    let (long, short) = LARGEST.get(usize::from(category).checked_sub(1)?)?;
    match tti {
        Tti::Long => Some(*long),
        Tti::Short => *short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_have_the_blocks_of_their_table() {
        let mbps = |category, tti| {
            let rate = |bits| f64::from(bits) / Tti::span(tti).as_secs_f64() / 1e6;
            largest_block(category, tti).map(rate).map(|rate| (rate * 1000.0).round() / 1000.0)
        };
        let all = [1, 2, 3, 4, 5, 6].map(|category| (mbps(category, Tti::Long), mbps(category, Tti::Short)));
        let expected = [
            (Some(0.711), None),
            (Some(1.448), Some(1.399)),
            (Some(1.448), None),
            (Some(2.0), Some(2.886)),
            (Some(2.0), None),
            (Some(2.0), Some(5.742)),
        ];
        assert_eq!(all, expected);
        assert_eq!([0, 7].map(|category| largest_block(category, Tti::Long)), [None, None]);
        let round_trips = [Tti::Short, Tti::Long].map(|tti| tti.span() * u64::from(tti.processes()));
        assert_eq!(round_trips, [Span::from_millis(16), Span::from_millis(40)]);
    }
}
