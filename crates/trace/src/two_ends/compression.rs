//! Acknowledgements that arrive in bunches: ACK compression (Zhang, Shenker and Clark, SIGCOMM 1991).

use super::passage::Passage;

/// How acknowledgements were pushed together on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Pairs of acknowledgements without data that were sent one after the other, some time apart, and both arrived.
    pub pairs: u64,
    /// Those that arrived within less than a quarter of the time that lay between them when they were sent.
    pub compressed: u64,
    /// Bunches: acknowledgements in a row that are compressed, each to the one before.
    pub bunches: u64,
    /// Acknowledgements in the largest bunch.
    pub largest: u64,
}

/// The share of their distance that compressed acknowledgements keep at most. It is a choice: a queue that serves them at the rate of
/// data keeps all of it.
const KEPT: u64 = 4;

/// The compression of the acknowledgements among a direction's packets.
pub(super) fn of(passages: &[Passage]) -> Compression {
    let mut compression = Compression::default();
    let mut bunch = 0;
    let mut before: Option<&Passage> = None;
    for passage in passages.iter().filter(|passage| !passage.packet.is_counted()) {
        let distances = before.replace(passage).and_then(|before| {
            let (one, other) = (before.arrival()?, passage.arrival()?);
            Some((passage.packet.time.since(before.packet.time), other.since(one)))
        });
        let compressed = match distances {
            Some((sent, arrived)) if !sent.is_zero() => {
                compression.pairs += 1;
                arrived.saturating_mul(KEPT) < sent
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
