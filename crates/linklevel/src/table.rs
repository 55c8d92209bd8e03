//! A scheme's table: the block error rate over C/I, for each profile and number of transmissions.

use std::fmt::Write;

use crate::profile::Profile;
use crate::schemes::Scheme;
use crate::simulate::{Axis, Simulation};

/// A rate needs this number of blocks on either side; otherwise its field is empty.
pub const LEAST: u32 = 10;

/// Number of failed blocks of one profile at each C/I.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Blocks simulated.
    pub blocks: u32,
    /// For each number of transmissions, from one, and each point of the axis.
    pub failed: Vec<Vec<u32>>,
}

/// Simulates `blocks` blocks.
pub fn count(scheme: &Scheme, profile: Profile, seed: u64, blocks: u32) -> Counts {
    let mut simulation = Simulation::new(scheme, profile, seed);
    let mut failed = vec![vec![0; Axis::POINTS]; scheme.attempts];
    for _ in 0..blocks {
        for (failed, threshold) in failed.iter_mut().zip(simulation.thresholds()) {
            failed[..threshold].iter_mut().for_each(|count| *count += 1);
        }
    }
    Counts { blocks, failed }
}

/// The table of a scheme as CSV. `blocks` is the number of simulated blocks per profile.
pub fn table(scheme: &Scheme, seed: u64, blocks: u32) -> String {
    let columns: Vec<(Profile, Counts)> =
        Profile::ALL.into_iter().map(|profile| (profile, count(scheme, profile, seed, blocks))).collect();
    let mut csv = format!(
        "# Share of blocks of {} not decoded after 1, 2, … transmissions, an ideal receiver.\n\
         # Made by linklevel {}: linklevel table {} --seed {seed} --blocks {blocks}\n\
         # Empty: fewer than {LEAST} of {blocks} blocks on one side.\n",
        scheme.name,
        env!("CARGO_PKG_VERSION"),
        scheme.name,
    );
    csv += "ci_db";
    for (profile, counts) in &columns {
        for attempt in 1..=counts.failed.len() {
            let _ = write!(csv, ",{}/{attempt}", profile.name());
        }
    }
    csv.push('\n');
    for point in 0..Axis::POINTS {
        let _ = write!(csv, "{}", Axis::decibels(point));
        for (_, counts) in &columns {
            for failed in &counts.failed {
                let failed = failed[point];
                let resolved = (LEAST..=counts.blocks - LEAST).contains(&failed);
                let rate = f64::from(failed) / f64::from(counts.blocks);
                csv += &if resolved { format!(",{rate:.5}") } else { ",".into() };
            }
        }
        csv.push('\n');
    }
    csv
}
