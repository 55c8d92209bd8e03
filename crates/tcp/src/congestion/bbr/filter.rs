//! Maximum over a sliding window of rounds.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    at: u64,
    value: u64,
}

/// The greatest value of a window, estimated from three points as in Linux (`win_minmax.c`, after
/// Kathleen Nichols): the greatest, the greatest after it, and the greatest after that.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WindowedMax {
    points: [Point; 3],
}

impl WindowedMax {
    pub const fn new() -> Self {
        Self { points: [Point { at: 0, value: 0 }; 3] }
    }

    pub const fn get(&self) -> u64 {
        self.points[0].value
    }

    /// Adds `value` at `at`; values older than `window` are forgotten.
    pub fn update(&mut self, window: u64, at: u64, value: u64) {
        let new = Point { at, value };
        let [first, second, third] = &mut self.points;
        if value >= first.value || at - third.at > window {
            self.points = [new; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        let age = at - first.at;
        if age > window {
            (*first, *second, *third) = (*second, *third, new);
            if at - first.at > window {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.at == first.at && age > window / 4 {
            // A quarter of the window without a second best: take one of the second quarter.
            (*second, *third) = (new, new);
        } else if third.at == second.at && age > window / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_of_the_last_rounds() {
        let mut filter = WindowedMax::new();
        filter.update(10, 1, 100);
        for round in 2..=11 {
            filter.update(10, round, 60);
            assert_eq!(filter.get(), 100, "round {round}");
        }
        filter.update(10, 12, 50);
        assert_eq!(filter.get(), 60);
        filter.update(10, 13, 70);
        assert_eq!(filter.get(), 70);
    }

    #[test]
    fn after_a_long_gap_only_the_newest_counts() {
        let mut filter = WindowedMax::new();
        filter.update(10, 1, 100);
        filter.update(10, 30, 5);
        assert_eq!(filter.get(), 5);
    }
}
