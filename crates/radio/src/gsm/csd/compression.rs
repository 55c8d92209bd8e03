//! Data compression on a link (ITU-T V.42bis): fewer octets go over it, and become those of before
//! at its end.
//!
//! What is compressed in one go is at least one octet, because a compressor that has nothing more
//! to send flushes its last codeword. A loss is a frame that the link has given up, or all after a
//! restart of the link, and that resets both dictionaries (V.42bis §7.2): no later octet suffers.

use std::collections::VecDeque;

use super::octets::Run;

/// The compression of one direction of a link.
#[derive(Clone, Debug)]
pub struct Compression {
    /// Octets before compression for each after.
    ratio: f64,
    /// What the octets so far are short of their share.
    owed: f64,
    /// What was compressed in one go and has not left the link, in order.
    runs: VecDeque<Compressed>,
}

#[derive(Clone, Copy, Debug)]
struct Compressed {
    /// Octets before compression.
    plain: u32,
    /// Octets on the link.
    octets: u32,
}

impl Compression {
    /// With this ratio, at least 1.
    pub fn new(ratio: f64) -> Self {
        Self { ratio, owed: 0.0, runs: VecDeque::new() }
    }

    /// What the link carries for these octets.
    pub fn compress(&mut self, run: Run) -> Run {
        self.owed += f64::from(run.octets) / self.ratio;
        let octets = (self.owed as u32).clamp(1, run.octets);
        self.owed = (self.owed - f64::from(octets)).max(0.0);
        self.runs.push_back(Compressed { plain: run.octets, octets });
        Run { octets, ..run }
    }

    /// The octets of before compression that these have carried, the first of those compressed.
    pub fn expand(&mut self, run: Run) -> Run {
        let mut left = run.octets;
        let mut plain = 0;
        while left > 0
            && let Some(first) = self.runs.front_mut()
        {
            let taken = left.min(first.octets);
            // All of it comes out with the last octet.
            let share = (u64::from(first.plain) * u64::from(taken) / u64::from(first.octets)) as u32;
            first.octets -= taken;
            first.plain -= share;
            left -= taken;
            plain += share;
            if first.octets == 0 {
                self.runs.pop_front();
            }
        }
        Run { octets: plain, ..run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_come_out_as_they_went_in() {
        let mut compression = Compression::new(2.5);
        let carried: u32 = (0..1_000).map(|frame| compression.compress(Run { frame, octets: 8 }).octets).sum();
        assert_eq!(carried, 3_200);
        let mut plain = 0;
        for (frame, octets) in [(0, 1), (0, 2), (1, 3)] {
            plain += compression.expand(Run { frame, octets }).octets;
        }
        assert_eq!(plain, 2 * 8, "3 octets for the first 8, and 3 for the next");
        let all = compression.expand(Run { frame: 2, octets: carried - 6 }).octets;
        assert_eq!(plain + all, 8_000);
    }

    #[test]
    fn a_single_octet_is_not_compressed_away() {
        let mut compression = Compression::new(4.0);
        for frame in 0..10 {
            assert_eq!(compression.compress(Run { frame, octets: 1 }).octets, 1);
            assert_eq!(compression.expand(Run { frame, octets: 1 }).octets, 1);
        }
    }
}
