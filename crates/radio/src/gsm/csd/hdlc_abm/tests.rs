//! Two stations over a line that loses frames.

use std::collections::VecDeque;

use airpath_core::{Probability, RandomStream, Seed, Span};

use super::*;

/// Two stations. Each may send a frame in each step of 20 ms; a frame takes seven steps.
struct Pair {
    stations: [Station; 2],
    waiting: [u64; 2],
    cut: [u64; 2],
    delivered: [u64; 2],
    lost: [u64; 2],
    line: [VecDeque<(u64, Frame)>; 2],
    errors: RandomStream,
    loss: Probability,
    step: u64,
}

fn settings(selective: bool) -> Settings {
    Settings { window: 61, acknowledgement_timer: Span::from_millis(480), attempts: 6, selective, payload: 24 }
}

impl Pair {
    fn new(settings: &Settings, seed: u64, loss: f64) -> Self {
        Self {
            stations: [Station::new(settings.clone()), Station::new(settings.clone())],
            waiting: [0; 2],
            cut: [0; 2],
            delivered: [0; 2],
            lost: [0; 2],
            line: Default::default(),
            errors: Seed::new(seed).stream("pair"),
            loss: Probability::new(loss).expect("within range"),
            step: 0,
        }
    }

    fn step(&mut self) -> [Option<Frame>; 2] {
        let now = Instant::ZERO + Span::from_millis(20) * self.step;
        for way in [0, 1] {
            while let Some((_, frame)) = self.line[way].front().copied().filter(|(at, _)| *at <= self.step) {
                self.line[way].pop_front();
                let Reaction { delivered, restarted_at } = self.stations[1 - way].receive(now, frame);
                self.delivered[way] += delivered;
                if let Some(position) = restarted_at {
                    self.lost[way] = position - self.delivered[way];
                    self.lost[1 - way] = self.cut[1 - way] - self.delivered[1 - way];
                }
            }
        }
        let frames = [0, 1].map(|way| {
            let frame = self.stations[way].next_frame(now, self.waiting[way], self.cut[way])?;
            if !frame.is_repeated() {
                self.waiting[way] -= u64::from(frame.octets());
                self.cut[way] += u64::from(frame.octets());
            }
            if !self.errors.chance(self.loss) {
                self.line[way].push_back((self.step + 7, frame));
            }
            Some(frame)
        });
        self.step += 1;
        frames
    }

    fn is_busy(&self) -> bool {
        [0, 1].iter().any(|way| self.stations[*way].is_busy(self.waiting[*way]) || !self.line[*way].is_empty())
    }
}

#[test]
fn all_arrives_whatever_is_lost_and_then_there_is_silence() {
    for selective in [true, false] {
        for loss in [0.0, 0.01, 0.1, 0.3] {
            for seed in 0..20 {
                let mut pair = Pair::new(&settings(selective), seed, loss);
                pair.waiting = [24 * 200, 24 * 50];
                while pair.is_busy() {
                    pair.step();
                    assert!(pair.step < 100_000, "{selective} {loss} {seed}: {:?}", pair.stations);
                }
                if pair.lost == [0; 2] {
                    assert_eq!(pair.delivered, [24 * 200, 24 * 50], "{selective} {loss} {seed}");
                }
            }
        }
    }
}
