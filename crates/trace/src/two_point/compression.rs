//! ACK compression: acknowledgements that arrive closer together than they were sent (Zhang,
//! Shenker and Clark, SIGCOMM 1991).

use super::transit::Transit;

/// The compression of the acknowledgements of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Pairs of successive pure acknowledgements, sent some time apart, that both arrived.
    pub pairs: u64,
    /// Pairs that arrived within less than a quarter of the time between their sending.
    pub compressed: u64,
    /// Bunches: runs of acknowledgements, each compressed to the one before.
    pub bunches: u64,
    /// Acknowledgements in the largest bunch.
    pub largest: u64,
}

/// Compressed acknowledgements keep less than 1/4 of their spacing. The value is our choice: a
/// queue that serves acknowledgements at the rate of data keeps all of it.
const SPACING_DIVISOR: u64 = 4;

/// Measures the compression of the acknowledgements of a direction.
pub(super) fn of(transits: &[Transit]) -> Compression {
    let mut compression = Compression::default();
    let mut bunch = 0;
    let mut before: Option<&Transit> = None;
    for transit in transits.iter().filter(|transit| !transit.packet.is_counted()) {
        let distances = before.replace(transit).and_then(|before| {
            let (one, other) = (before.arrival()?, transit.arrival()?);
            Some((transit.packet.time.since(before.packet.time), other.since(one)))
        });
        let compressed = match distances {
            Some((sent, arrived)) if !sent.is_zero() => {
                compression.pairs += 1;
                arrived.saturating_mul(SPACING_DIVISOR) < sent
            }
            _ => false,
        };
        if compressed {
            compression.compressed += 1;
            compression.bunches += u64::from(bunch == 0);
            // The first of a bunch is the one before.
            bunch = if bunch == 0 { 2 } else { bunch + 1 };
            compression.largest = compression.largest.max(bunch);
        } else {
            bunch = 0;
        }
    }
    compression
}
