//! tcptrace's methods applied to our observations: they reproduce its wrong figures.

use std::collections::BTreeMap;

use airpath_core::Span;
use airpath_observe::{Connection, End, Events, Observation, Spread};
use airpath_wire::tcp::Flags;

/// tcptrace's results for a direction.
#[derive(Clone, Debug, Default)]
pub struct Reckoning {
    /// Its `wavg_owin`: outstanding bytes after each new segment, plus one, weighted with the time
    /// until the next new segment of the same sender; each product is truncated to an integer
    /// number of byte seconds.
    pub weighted_outstanding: f64,
    /// Its `RTT_full_sz`: a segment of one byte, such as a SYN, counts as one of 2^32 bytes, which
    /// no other exceeds.
    pub full_size: Spread,
}

/// Computes the results for both directions of a connection, the client's first.
pub fn reckon(connection: &Connection, observations: &[Observation]) -> [Reckoning; 2] {
    End::BOTH.map(|end| Reckoning {
        weighted_outstanding: weighted_outstanding(end, connection.elapsed(), observations),
        full_size: full_size(end, observations),
    })
}

fn weighted_outstanding(end: End, elapsed: Span, observations: &[Observation]) -> f64 {
    let mut acknowledged = None;
    let (mut opened, mut before) = (false, None);
    let mut sum = 0.0;
    for seen in observations {
        if seen.from != end {
            acknowledged = seen.acknowledged.or(acknowledged);
            continue;
        }
        opened |= seen.flags.contains(Flags::SYN);
        let again = Events::RETRANSMISSION | Events::OUT_OF_ORDER | Events::HARDWARE_DUPLICATE;
        let control = Flags::SYN | Flags::RST;
        if seen.flags.0 & control.0 != 0 || seen.events.0 & again.0 != 0 {
            continue;
        }
        let to = seen.offset + i64::from(seen.length);
        let since = acknowledged.unwrap_or(if opened { -1 } else { seen.offset + 1 });
        let outstanding = to - (since - 1);
        if let Some((time, outstanding)) = before.replace((seen.time, outstanding)) {
            let product = outstanding as f64 * seen.time.since(time).as_secs_f64();
            sum += product.floor().max(0.0);
        }
    }
    if elapsed.is_zero() { 0.0 } else { (sum / elapsed.as_secs_f64()).floor() }
}

fn full_size(end: End, observations: &[Observation]) -> Spread {
    let size = |seen: &Observation| {
        let control = [Flags::SYN, Flags::FIN].iter().filter(|flag| seen.flags.contains(**flag)).count();
        u64::from(seen.length) + control as u64
    };
    let sizes: BTreeMap<u64, u64> = observations.iter().map(|seen| (seen.frame, size(seen))).collect();
    let mut largest = 0;
    let mut spread = Spread::default();
    for (sample, of) in observations.iter().filter(|seen| seen.from != end).filter_map(|seen| seen.round_trip) {
        let size = if sizes[&of] == 1 { 1 << 32 } else { sizes[&of] };
        if size > largest {
            largest = size;
            spread = Spread::default();
        }
        if size == largest {
            spread.sample(sample);
        }
    }
    spread
}
