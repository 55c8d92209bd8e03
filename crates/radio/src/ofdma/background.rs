//! Other users of the cell, as the share of the resource blocks that they take: always, or in
//! bursts whose durations, and those of the pauses, are exponentially distributed.

use airpath_core::{Direction, Instant, RandomStream, Seed, Span};

use super::config;

/// After this many mean bursts and pauses without a look, the state is drawn again.
const MOST_STEPS: u64 = 64;

/// The load of one cell.
#[derive(Clone, Debug)]
pub struct Background {
    config: config::Background,
    /// Of each direction.
    bursts: [Bursts; 2],
}

#[derive(Clone, Debug)]
struct Bursts {
    is_on: bool,
    /// When it changes.
    until: Instant,
    stream: RandomStream,
}

impl Background {
    /// The load of the cell called `name`.
    pub fn new(config: &config::Background, seed: Seed, name: &str) -> Self {
        let bursts = Direction::BOTH.map(|direction| {
            let stream = seed.stream(&format!("{name}/background/{}", direction.name()));
            Bursts { is_on: true, until: Instant::ZERO, stream }
        });
        Self { config: config.clone(), bursts }
    }

    /// Resource blocks of `total` that others take in a direction in the slot that begins at `now`.
    /// A slot before that of the last call has its state.
    pub fn blocks(&mut self, direction: Direction, now: Instant, total: u32) -> u32 {
        let share = match direction {
            Direction::Down => self.config.downlink,
            Direction::Up => self.config.uplink,
        };
        let is_on = match self.config.on.zip(self.config.off) {
            None => true,
            Some((on, off)) => self.bursts[direction as usize].at(now, on, off),
        };
        if is_on { libm::round(share.get() * f64::from(total)) as u32 } else { 0 }
    }
}

impl Bursts {
    fn at(&mut self, now: Instant, on: Span, off: Span) -> bool {
        let exponential = |stream: &mut RandomStream, mean: Span| {
            Span::from_secs_f64(-libm::log(1.0 - stream.uniform()) * mean.as_secs_f64()) + Span::from_nanos(1)
        };
        if now >= self.until && now.since(self.until) >= (on + off).saturating_mul(MOST_STEPS)
            || self.until == Instant::ZERO
        {
            // What the state is long after the last look does not depend on it.
            let share = on.as_secs_f64() / (on + off).as_secs_f64();
            self.is_on = self.stream.uniform() < share;
            self.until = now + exponential(&mut self.stream, if self.is_on { on } else { off });
        }
        while self.until <= now {
            self.is_on = !self.is_on;
            self.until += exponential(&mut self.stream, if self.is_on { on } else { off });
        }
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_take_their_share_in_bursts() {
        let text = "downlink = 0.5\nuplink = 0.25\non = \"20 ms\"\noff = \"60 ms\"";
        let mut background = Background::new(&toml::from_str(text).expect("a load"), Seed::new(1), "cell");
        let (mut busy, mut changes, mut last) = (0u32, 0u32, 0);
        for millis in 0..200_000 {
            let blocks = background.blocks(Direction::Down, Instant::ZERO + Span::from_millis(millis), 50);
            assert!([0, 25].contains(&blocks));
            (busy, changes) = (busy + u32::from(blocks > 0), changes + u32::from(blocks != last));
            last = blocks;
        }
        // A burst every 80 ms on average, two changes each; some are shorter than a subframe.
        assert!((45_000..55_000).contains(&busy) && (4400..5200).contains(&changes), "{busy} {changes}");
        let late = Instant::ZERO + Span::from_secs(1_000_000_000);
        assert!([0, 13].contains(&background.blocks(Direction::Up, late, 50)));
    }

    #[test]
    fn without_durations_the_load_is_constant() {
        let config = toml::from_str("downlink = 0.3\nuplink = 0.0").expect("a load");
        let mut background = Background::new(&config, Seed::new(1), "cell");
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        assert!((0..100).all(|millis| background.blocks(Direction::Down, at(millis), 10) == 3));
        assert_eq!(background.blocks(Direction::Up, at(7), 10), 0);
    }
}
