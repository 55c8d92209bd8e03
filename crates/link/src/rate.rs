//! The serialiser: a transmitter of constant rate that sends packets in sequence.

use airpath_core::{Bitrate, Instant, Span};

/// A transmitter of constant rate.
///
/// Its time is exact: the end of a transmission is a rational number of nanoseconds, and only the
/// reported time is rounded, up, to the nanosecond of the last bit. For any number of consecutive
/// packets, n bits thus take n/rate seconds.
#[derive(Clone, Debug)]
pub struct Serialiser {
    /// Bits per second.
    rate: u64,
    /// End of the last transmission, rounded up.
    free_at: Instant,
    /// The rounding, in nanoseconds / rate; less than one nanosecond.
    rounded_up: u64,
    /// The last size, and its transmission time: links mostly see one size.
    last: Transmission,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    size: u32,
    /// Whole nanoseconds.
    whole: u64,
    /// The fraction, in nanoseconds / rate.
    rest: u64,
}

impl Transmission {
    fn new(size: u32, rate: u64) -> Self {
        let scaled = u128::from(size) * 8 * 1_000_000_000;
        let whole = u64::try_from(scaled / u128::from(rate)).expect("4 GiB at 1 bit/s are 3.4e19 ns, less than 2^65");
        Self { size, whole, rest: (scaled % u128::from(rate)) as u64 }
    }
}

impl Serialiser {
    /// A transmitter of `rate`, idle from the origin on.
    pub fn new(rate: Bitrate) -> Self {
        let rate = rate.as_bps();
        let last = Transmission::new(0, rate);
        Self { rate, free_at: Instant::ZERO, rounded_up: 0, last }
    }

    /// The rate.
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// Revokes what it was given: it is free from `at` on.
    pub const fn restart(&mut self, at: Instant) {
        (self.free_at, self.rounded_up) = (at, 0);
    }

    /// End of all transmissions so far.
    #[inline]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Sends `size` bytes, from `ready` on or as soon as it is free. Returns the times of the first
    /// and of the last bit.
    #[inline]
    pub fn send(&mut self, ready: Instant, size: u32) -> (Instant, Instant) {
        // `free_at` is rounded up, so the exact time is later than `ready` if and only if it is.
        if ready >= self.free_at {
            (self.free_at, self.rounded_up) = (ready, 0);
        }
        let start = self.free_at;
        if size != self.last.size {
            self.last = Transmission::new(size, self.rate);
        }
        let Transmission { whole, rest, .. } = self.last;
        if rest <= self.rounded_up {
            self.rounded_up -= rest;
            self.free_at = start + Span::from_nanos(whole);
        } else {
            self.rounded_up += self.rate - rest;
            self.free_at = start + Span::from_nanos(whole + 1);
        }
        (start, self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn packets_follow_each_other() {
        let mut serialiser = Serialiser::new(Bitrate::from_bps(1_000_000));
        assert_eq!(serialiser.send(at(0), 125), (at(0), at(1_000_000)));
        assert_eq!(serialiser.send(at(500_000), 250), (at(1_000_000), at(3_000_000)));
        assert_eq!(serialiser.send(at(9_000_000), 125), (at(9_000_000), at(10_000_000)), "an idle time ends at once");
    }

    proptest! {
        #[test]
        fn a_busy_period_takes_exactly_as_long_as_its_bits(
            bps in 1u64..2_000_000_000,
            sizes in prop::collection::vec(1u32..2000, 1..200),
        ) {
            let mut serialiser = Serialiser::new(Bitrate::from_bps(bps));
            let mut bits = 0;
            for size in sizes {
                let (_, end) = serialiser.send(at(7), size);
                bits += u128::from(size) * 8;
                let exact = (bits * 1_000_000_000).div_ceil(u128::from(bps));
                prop_assert_eq!(u128::from(end.as_nanos()), 7 + exact);
            }
        }

        #[test]
        fn two_in_series_at_the_same_rate_do_not_drift(bps in 1_000_000u64..2_000_000_000) {
            let mut first = Serialiser::new(Bitrate::from_bps(bps));
            let mut second = first.clone();
            let mut ends = (Instant::ZERO, Instant::ZERO);
            for _ in 0..1000 {
                ends.0 = first.send(Instant::ZERO, 1500).1;
                ends.1 = second.send(ends.0, 1500).1;
            }
            let last = Bitrate::from_bps(bps).time_for(airpath_core::Bytes::new(1500));
            let lag = ends.1.since(ends.0);
            prop_assert!(lag.abs_diff(last) <= Span::from_nanos(2), "{lag} after {last}");
        }
    }
}
