//! The error rate of a scheme over a profile, from the C/I threshold of each of many random blocks.
//!
//! For given data, fading and noise, a block is decoded above some C/I and not below it. This is
//! exact for antipodal symbols and a maximum-likelihood decoder, since each rival code word loses
//! by a margin that grows with the amplitude; 8-PSK has rare exceptions. One search of seven
//! decodings per block thus gives its threshold on the whole axis, and the error rate at a C/I is
//! the share of blocks with a higher threshold, monotone by construction.

use crate::coding::Decoders;
use crate::fading::Fading;
use crate::modulation::Reception;
use crate::noise::Noise;
use crate::profile::Profile;
use crate::schemes::{Part, Scheme};

/// The axis of the tables, in dB.
#[derive(Clone, Copy, Debug)]
pub struct Axis;

impl Axis {
    /// Values of C/I.
    pub const POINTS: usize = 121;

    /// C/I number `i`, in dB: from −10 to 50 dB in halves.
    pub fn decibels(i: usize) -> f64 {
        i as f64 / 2.0 - 10.0
    }

    fn ratio(i: usize) -> f64 {
        libm::pow(10.0, Self::decibels(i) / 10.0)
    }
}

/// Generator of random blocks of a scheme over a profile.
#[derive(Debug)]
pub struct Simulation<'a> {
    scheme: &'a Scheme,
    fading: Fading,
    interferer_fades: bool,
    noise: Noise,
    receiver: Receiver,
}

#[derive(Debug, Default)]
struct Receiver {
    decoders: Decoders,
    soft: Vec<f32>,
}

/// A part of a block: the bits sent, and the reception of each transmission.
struct Drawn<'a> {
    part: &'a Part,
    block: Vec<bool>,
    coded: Vec<bool>,
    receptions: Vec<Reception>,
}

impl<'a> Simulation<'a> {
    /// The blocks of `seed`.
    pub fn new(scheme: &'a Scheme, profile: Profile, seed: u64) -> Self {
        Self {
            scheme,
            fading: Fading::new(profile, &scheme.frames),
            interferer_fades: profile != Profile::Static,
            noise: Noise::new(seed, &format!("{}/{}", scheme.name, profile.name())),
            receiver: Receiver::default(),
        }
    }

    /// For one more block: the index on the axis of the lowest C/I at which it is decoded with one
    /// transmission, with two, …; [`Axis::POINTS`] where none is high enough. Each transmission
    /// fades independently.
    pub fn thresholds(&mut self) -> Vec<usize> {
        let scheme = self.scheme;
        let mut headers: Vec<Drawn> = scheme.header.iter().map(|part| Drawn::new(part, &mut self.noise)).collect();
        let mut data: Vec<Drawn> = scheme.data.iter().map(|part| Drawn::new(part, &mut self.noise)).collect();
        let mut usable = Vec::new();
        let mut thresholds = Vec::new();
        let mut bound = Axis::POINTS;
        for attempt in 0..scheme.attempts {
            let gains = self.gains();
            for drawn in headers.iter_mut().chain(&mut data) {
                drawn.send(scheme, attempt, &gains, &mut self.noise);
            }
            let receiver = &mut self.receiver;
            // A transmission without its header cannot be assigned to the block.
            let mut header_alone = |i| headers.iter().all(|header| receiver.decode(header, i, |k| k == attempt));
            usable.push(lowest(Axis::POINTS, &mut header_alone));
            bound = lowest(bound, |i| data.iter().all(|drawn| receiver.decode(drawn, i, |k| usable[k] <= i)));
            thresholds.push(bound);
        }
        thresholds
    }

    /// The C/I of each burst relative to its mean. Signal and interferer fade with the same
    /// statistics, but independently (TS 45.005 §6.3).
    fn gains(&mut self) -> Vec<f64> {
        let mut gains = self.fading.powers(&mut self.noise);
        if self.interferer_fades {
            let interferer = self.fading.powers(&mut self.noise);
            gains.iter_mut().zip(interferer).for_each(|(gain, power)| *gain /= power.max(1e-9));
        }
        gains
    }
}

impl<'a> Drawn<'a> {
    fn new(part: &'a Part, noise: &mut Noise) -> Self {
        let block = noise.bits(part.bits);
        let coded = part.coding.encode(&block);
        Self { part, block, coded, receptions: Vec::new() }
    }

    fn send(&mut self, scheme: &Scheme, attempt: usize, gains: &[f64], noise: &mut Noise) {
        let sent: Vec<bool> = self.part.sent(attempt).iter().map(|k| self.coded[*k]).collect();
        self.receptions.push(Reception::new(scheme.modulation, self.part, &sent, gains, noise));
    }
}

impl Receiver {
    /// Whether a part is decoded at point `i` of the axis from its `usable` transmissions.
    fn decode(&mut self, drawn: &Drawn, i: usize, usable: impl Fn(usize) -> bool) -> bool {
        let Self { decoders, soft } = self;
        soft.clear();
        soft.resize(drawn.coded.len(), 0.0);
        let mut any = false;
        for (attempt, reception) in drawn.receptions.iter().enumerate().filter(|(attempt, _)| usable(*attempt)) {
            reception.add_to(Axis::ratio(i), drawn.part.sent(attempt), soft);
            any = true;
        }
        any && decoders.recovers(drawn.part.coding, soft, &drawn.block, drawn.part.checked)
    }
}

/// The least number below `bound` from which `passes` holds, else `bound`.
fn lowest(bound: usize, mut passes: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, bound);
    while low < high {
        let middle = usize::midpoint(low, high);
        if passes(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolutional::Code;
    use crate::schemes::named;

    /// The number A(d) of paths that leave the all-zero path and return with weight d, for d below
    /// `limit`.
    fn spectrum(code: Code, limit: usize) -> Vec<usize> {
        let zero_run = vec![false; code.memory()];
        let mut counts = vec![0; limit];
        let mut open = vec![vec![true]];
        while let Some(path) = open.pop() {
            // The weight so far: that of the coded bits before the tail.
            let sent = &code.encode(&path)[..path.len() * code.outputs()];
            let weight = sent.iter().filter(|bit| **bit).count();
            if weight >= limit {
                continue;
            }
            if path.ends_with(&zero_run) {
                counts[weight] += 1;
                continue;
            }
            open.extend([false, true].map(|bit| path.iter().copied().chain([bit]).collect::<Vec<_>>()));
        }
        counts
    }

    /// The block error rate is below the union bound, and near it where errors are rare.
    #[test]
    fn coding_gain_matches_the_distance_spectrum() {
        let scheme = named("cs-1").expect("a scheme");
        let mut simulation = Simulation::new(&scheme, Profile::Static, 1);
        let blocks = 3000;
        let thresholds: Vec<usize> = (0..blocks).map(|_| simulation.thresholds()[0]).collect();
        let spectrum = spectrum(Code::Half, 12);
        assert_eq!(spectrum.iter().position(|count| *count > 0), Some(7));
        for decibels in [0.5, 1.0] {
            let point = (0..Axis::POINTS).find(|i| Axis::decibels(*i) == decibels).expect("a point of the axis");
            let measured = thresholds.iter().filter(|threshold| **threshold > point).count() as f64 / f64::from(blocks);
            let ratio = Axis::ratio(point);
            let tail = |distance: usize| libm::erfc((distance as f64 * ratio).sqrt()) / 2.0;
            let bound = 224.0 * spectrum.iter().enumerate().map(|(d, count)| *count as f64 * tail(d)).sum::<f64>();
            assert!(measured < 1.2 * bound && measured > 0.5 * bound, "{decibels} dB: {measured}, bound {bound}");
        }
    }

    #[test]
    fn a_block_is_decoded_above_its_threshold_and_not_below() {
        for (name, exceptions) in [("cs-3", 0), ("mcs-3", 0), ("mcs-6", 4)] {
            let scheme = named(name).expect("a scheme");
            let mut simulation = Simulation::new(&scheme, Profile::Tu50, 3);
            let mut noise = Noise::new(3, "gains");
            let mut wrong = 0;
            for _ in 0..10 {
                let mut drawn = Drawn::new(&scheme.data[0], &mut noise);
                drawn.send(&scheme, 0, &simulation.gains(), &mut noise);
                let receiver = &mut simulation.receiver;
                let threshold = lowest(Axis::POINTS, |i| receiver.decode(&drawn, i, |_| true));
                wrong += (0..80).filter(|i| receiver.decode(&drawn, *i, |_| true) != (*i >= threshold)).count();
            }
            assert!(wrong <= exceptions, "{name}: {wrong} of 800");
        }
    }

    #[test]
    fn a_further_transmission_never_hurts() {
        for name in ["mcs-1", "mcs-4", "mcs-9"] {
            let scheme = named(name).expect("a scheme");
            let mut simulation = Simulation::new(&scheme, Profile::Static, 1);
            let blocks: Vec<Vec<usize>> = (0..20).map(|_| simulation.thresholds()).collect();
            assert!(blocks.iter().all(|thresholds| thresholds.windows(2).all(|pair| pair[1] <= pair[0])), "{name}");
            // The energy of two is 3 dB more, and their bits make a stronger code; but that of
            // MCS-1 is strong already, and its headers are not combined.
            let least = if name == "mcs-1" { 0.5 } else { 2.5 };
            let mean = |k: usize| blocks.iter().map(|thresholds| thresholds[k] as f64).sum::<f64>() / 20.0 / 2.0;
            assert!(mean(0) - mean(1) > least, "{name}: {} dB", mean(0) - mean(1));
        }
    }
}
