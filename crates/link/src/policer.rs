//! The policer: a token bucket that drops what exceeds it. It delays no packet.

use airpath_core::{Bitrate, Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policer at the entry of a link: a token bucket. A packet that finds tokens for all its bytes
/// takes them and passes; any other packet is dropped and takes none. The bucket is full at first.
///
/// This is the single rate meter of RFC 2697 §3 in its colour-blind mode, with `rate` as CIR,
/// `burst` as CBS and an EBS of 0, where red packets are dropped. `police rate … burst … drop` of
/// `tc` in Linux does the same (`tcf_police_act`).
///
/// ```toml
/// policer = { rate = "10 Mbit/s", burst = "100 kB" }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// The rate at which tokens arrive. IP headers count.
    pub rate: Bitrate,
    /// Size of the bucket: what may pass at once after a pause. At least 1,500 B, or else no
    /// packet of full size would pass.
    pub burst: Bytes,
}

/// The least burst: the largest packet of an Ethernet (RFC 894).
const LEAST_BURST: Bytes = Bytes::new(1_500);

/// An invalid policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicerError {
    /// No packet of full size would ever pass.
    #[error("a `burst` of {burst} drops every larger packet: use at least {LEAST_BURST}, the largest packet")]
    SmallBurst {
        /// The burst.
        burst: Bytes,
    },
}

impl Policer {
    /// Checks the parameters together.
    pub fn check(&self) -> Result<(), PolicerError> {
        if self.burst < LEAST_BURST { Err(PolicerError::SmallBurst { burst: self.burst }) } else { Ok(()) }
    }
}

/// The bucket of a [`Policer`].
///
/// Its content is exact: a token is 1/(8·10⁹) of a byte, so that each nanosecond brings as many as
/// the rate has bits per second.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: u128,
    capacity: u128,
    tokens: u128,
    /// Time of these tokens.
    at: Instant,
}

const TOKENS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl TokenBucket {
    /// A full bucket.
    pub fn new(policer: Policer) -> Self {
        let capacity = u128::from(policer.burst.get()) * TOKENS_PER_BYTE;
        Self { rate: policer.rate.as_bps().into(), capacity, tokens: capacity, at: Instant::ZERO }
    }

    /// Whether a packet of `size` bytes passes now.
    pub fn admits(&mut self, now: Instant, size: u32) -> bool {
        let arrived = u128::from(now.since(self.at).as_nanos()) * self.rate;
        self.tokens = self.capacity.min(self.tokens + arrived);
        self.at = now;
        let left = self.tokens.checked_sub(u128::from(size) * TOKENS_PER_BYTE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Span;
    use proptest::prelude::*;

    fn bucket(bps: u64, bytes: u64) -> TokenBucket {
        TokenBucket::new(Policer { rate: Bitrate::from_bps(bps), burst: Bytes::new(bytes) })
    }

    fn after(nanos: u64) -> Instant {
        Instant::ZERO + Span::from_nanos(nanos)
    }

    /// RFC 2697 §3: `Tc(t) - B >= 0` is green, and then Tc decreases by B; else it does not.
    #[test]
    fn a_burst_passes_and_then_the_rate() {
        // A byte per microsecond.
        let mut bucket = bucket(8_000_000, 3_000);
        assert!(bucket.admits(after(0), 1_500), "the bucket is full at first");
        assert!(bucket.admits(after(0), 1_500));
        assert!(!bucket.admits(after(999), 1), "one nanosecond too early");
        assert!(bucket.admits(after(1_000), 1), "what was dropped took no tokens");
        assert!(!bucket.admits(after(1_500_999), 1_500));
        assert!(bucket.admits(after(1_501_000), 1_500));
    }

    #[test]
    fn a_full_bucket_gains_nothing() {
        let mut bucket = bucket(8_000_000, 1_500);
        assert!(bucket.admits(Instant::ZERO + Span::from_secs(1_000_000), 1_500));
        assert!(!bucket.admits(Instant::ZERO + Span::from_secs(1_000_000), 1));
    }

    #[test]
    fn the_burst_holds_a_packet() {
        let policer = |bytes| Policer { rate: Bitrate::from_bps(1), burst: Bytes::new(bytes) };
        assert_eq!(policer(1_500).check(), Ok(()));
        assert_eq!(policer(1_499).check(), Err(PolicerError::SmallBurst { burst: Bytes::new(1_499) }));
    }

    proptest! {
        /// A packet passes if and only if in no interval that ends with it more passes than the
        /// burst and what the rate brings.
        #[test]
        fn what_passes_is_exactly_the_burst_and_the_rate(
            bps in 1u64..2_000_000_000,
            bytes in 1_500u64..100_000,
            packets in prop::collection::vec((0u64..3_000_000, 40u32..1_500), 1..300),
        ) {
            let mut bucket = bucket(bps, bytes);
            let mut now = 0;
            let mut passed: Vec<(u64, u64)> = Vec::new();
            for (gap, size) in packets {
                now += gap;
                let admitted = bucket.admits(after(now), size);
                let mut sum = u128::from(size);
                let mut fits = sum <= u128::from(bytes);
                for (at, size) in passed.iter().rev() {
                    sum += u128::from(*size);
                    let brought = u128::from(now - at) * u128::from(bps);
                    fits &= sum * TOKENS_PER_BYTE <= u128::from(bytes) * TOKENS_PER_BYTE + brought;
                }
                prop_assert_eq!(admitted, fits);
                if admitted {
                    passed.push((now, size.into()));
                }
            }
        }
    }
}
