//! The interfaces of a capture, and the clocks of their timestamps.

use airpath_core::Instant;

use super::LinkType;

/// An interface that packets were captured on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Link type of its frames.
    pub link_type: LinkType,
    /// Bytes that were kept of each frame at most; 0 where there was no limit or it is unknown.
    pub snap_length: u32,
    /// Its short name; empty where the file has none.
    pub name: String,
    /// Its description; empty where the file has none.
    pub description: String,
    /// Packets that the capturing host dropped, if the file counts them. They look like loss on the
    /// path.
    pub dropped: u64,
}

/// Meaning of a timestamp's units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    resolution: Resolution,
    /// Seconds to be added.
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// Nanoseconds in a unit.
    Nanoseconds(u64),
    /// Units in a nanosecond.
    PerNanosecond(u64),
    /// Two to this power are the units in a second.
    Binary(u8),
}

/// The latest supported time of a capture, in the year 2116: the sum of four differences between
/// two times fits into 64 bits.
pub const LATEST: Instant = Instant::from_nanos(1 << 62);

impl Clock {
    /// Microseconds: the default.
    pub const MICROSECONDS: Self = Self { resolution: Resolution::Nanoseconds(1_000), offset: 0 };

    /// The clock whose unit is 10⁻ⁿ s, or 2⁻ⁿ s where the upper bit of `resolution` is set: the
    /// option `if_tsresol`.
    #[must_use]
    pub fn with_resolution(self, resolution: u8) -> Self {
        let power = resolution & 0x7F;
        let resolution = if resolution & 0x80 != 0 {
            Resolution::Binary(power)
        } else if power <= 9 {
            Resolution::Nanoseconds(10u64.pow(u32::from(9 - power)))
        } else {
            // All times are zero if a nanosecond has more units than `u64` can count.
            Resolution::PerNanosecond(10u64.checked_pow(u32::from(power - 9)).unwrap_or(u64::MAX))
        };
        Self { resolution, ..self }
    }

    /// The clock that starts `offset` seconds after 1970: the option `if_tsoffset`.
    #[must_use]
    pub const fn with_offset(self, offset: i64) -> Self {
        Self { offset, ..self }
    }

    /// The time of `units`; `None` before 1970 and after 2116.
    #[inline]
    pub fn time(&self, units: u64) -> Option<Instant> {
        let nanoseconds = match self.resolution {
            Resolution::Nanoseconds(each) => i128::from(units) * i128::from(each),
            Resolution::PerNanosecond(each) => i128::from(units / each),
            // 2⁶⁴ units of 10⁹ ns each stay below 2⁹⁴.
            Resolution::Binary(power) => (i128::from(units) * 1_000_000_000) >> power,
        };
        let nanoseconds = nanoseconds + i128::from(self.offset) * 1_000_000_000;
        (0..=i128::from(LATEST.as_nanos())).contains(&nanoseconds).then(|| Instant::from_nanos(nanoseconds as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_every_size() {
        let clock = Clock::MICROSECONDS;
        let nanos = |resolution: u8, units: u64| clock.with_resolution(resolution).time(units).map(Instant::as_nanos);
        assert_eq!(clock.time(7), Some(Instant::from_nanos(7_000)));
        assert_eq!(nanos(0, 7), Some(7_000_000_000));
        assert_eq!(nanos(9, 7), Some(7));
        assert_eq!(nanos(12, 7_999), Some(7));
        assert_eq!(nanos(127, u64::MAX), Some(1), "a unit is too small to be distinguished from the next");
        assert_eq!(nanos(0x80 | 10, 512), Some(500_000_000));
        assert_eq!(nanos(0x80 | 127, u64::MAX), Some(0));
        assert_eq!(nanos(0x80, 3), Some(3_000_000_000));
        assert_eq!(nanos(0, u64::MAX), None);
    }

    #[test]
    fn times_before_1970_and_after_2116_are_refused() {
        let clock = Clock::MICROSECONDS.with_offset(-2);
        assert_eq!(clock.time(2_000_001), Some(Instant::from_nanos(1_000)));
        assert_eq!(clock.time(1_999_999), None);
        assert_eq!(Clock::MICROSECONDS.with_offset(i64::MAX).time(0), None);
        assert_eq!(Clock::MICROSECONDS.with_offset(i64::MIN).time(u64::MAX), None);
    }
}
