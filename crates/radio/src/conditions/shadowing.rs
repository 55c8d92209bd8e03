//! Shadowing: the slow, log-normal part of a radio signal's variation, by what stands in the way.
//!
//! In decibels it is a Gaussian process whose correlation falls exponentially with distance (M.
//! Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics Letters
//! 27(23), 1991), here a function of the place: who comes back to a place finds the same shadow.
//! Its values are known at points a 32nd of the correlation distance apart, with straight lines
//! between them. Points 16 correlation distances apart are independent draws (their correlation
//! would be 10⁻⁷); what lies between two of them is found by halving, each time from the exact
//! conditional distribution given both ends. So a value takes nine draws wherever it is, and
//! depends on nothing but the place.

use airpath_core::Seed;

use super::indexed_random::IndexedRandom;

/// A standard Gaussian process over distance, in units of the correlation distance.
#[derive(Clone, Debug)]
pub struct Shadowing {
    random: IndexedRandom,
    /// For each halving, from the widest: the weight of the sum of both ends, and that of the new
    /// draw.
    weights: [(f64, f64); HALVINGS],
    /// The points between which the last value was found: the number of the first, and the values
    /// of both.
    last: Option<(u64, f64, f64)>,
}

/// Points in a correlation distance.
const POINTS: f64 = 32.0;
/// From one independent point to the next there are 2⁹.
const HALVINGS: usize = 9;

impl Shadowing {
    /// That of the stream `path`.
    pub fn new(seed: Seed, path: &str) -> Self {
        let mut weights = [(0.0, 0.0); HALVINGS];
        for (halving, weights) in weights.iter_mut().enumerate() {
            let half = (1u64 << (HALVINGS - 1 - halving)) as f64 / POINTS;
            let correlation = libm::exp(-half);
            let square = correlation * correlation;
            *weights = (correlation / (1.0 + square), ((1.0 - square) / (1.0 + square)).sqrt());
        }
        Self { random: IndexedRandom::new(seed, path), weights, last: None }
    }

    /// The value at `distance` correlation distances, not negative.
    #[inline]
    pub fn at(&mut self, distance: f64) -> f64 {
        let place = distance * POINTS;
        let point = place as u64;
        let (first, second) = match self.last {
            Some((last, first, second)) if last == point => (first, second),
            Some((last, _, second)) if last + 1 == point => (second, self.point(point + 1)),
            _ => (self.point(point), self.point(point + 1)),
        };
        self.last = Some((point, first, second));
        first + (second - first) * (place - point as f64)
    }

    fn point(&self, point: u64) -> f64 {
        let mut begin = point >> HALVINGS << HALVINGS;
        let mut low = self.random.gaussian(begin);
        if point == begin {
            return low;
        }
        let mut high = self.random.gaussian(begin + (1 << HALVINGS));
        let mut half = 1 << (HALVINGS - 1);
        for (of_ends, of_draw) in self.weights {
            let middle = begin + half;
            let value = of_ends * (low + high) + of_draw * self.random.gaussian(middle);
            match point.cmp(&middle) {
                std::cmp::Ordering::Equal => return value,
                std::cmp::Ordering::Less => high = value,
                std::cmp::Ordering::Greater => (begin, low) = (middle, value),
            }
            half >>= 1;
        }
        unreachable!("halving ends at each point between two others")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gaussian_with_exponential_correlation() {
        // 4000 places that are 20 correlation distances apart: independent but for 10⁻⁸.
        let mut process = Shadowing::new(Seed::new(1), "a");
        let places = (0..4000).map(|place| f64::from(place) * 20.0);
        let mut mean = |apart: f64| {
            let products = places.clone().map(|place| process.at(place) * process.at(place + apart));
            products.sum::<f64>() / 4000.0
        };
        // At a point; the standard deviation of each is about √(1 + ρ²)/√4000, below 0.0224: five
        // of them.
        assert!((mean(0.0) - 1.0).abs() < 0.112, "variance");
        for apart in [0.25, 1.0, 2.0] {
            let (found, expected) = (mean(apart), libm::exp(-apart));
            assert!((found - expected).abs() < 0.112, "correlation over {apart}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_value_depends_on_the_place_only() {
        let mut forth = Shadowing::new(Seed::new(1), "a");
        let values: Vec<f64> = (0..2000).map(|place| forth.at(f64::from(place) * 0.037)).collect();
        let mut back = Shadowing::new(Seed::new(1), "a");
        for (place, value) in values.iter().enumerate().rev() {
            assert_eq!(back.at(place as f64 * 0.037), *value);
        }
        assert_eq!(Shadowing::new(Seed::new(1), "a").at(1e9), forth.at(1e9));
        assert_ne!(Shadowing::new(Seed::new(1), "b").at(0.5), back.at(0.5));
    }

    #[test]
    fn it_is_continuous() {
        let mut process = Shadowing::new(Seed::new(1), "a");
        let mut before = process.at(0.0);
        for step in 1..100_000 {
            let value = process.at(f64::from(step) * 0.001);
            // A point differs from the next by a Gaussian of deviation √(2(1 − e^(−1/32))) ≈ 0.248;
            // a step is 1/31 of that.
            assert!((value - before).abs() < 0.05, "{before} to {value} at {step}");
            before = value;
        }
    }
}
