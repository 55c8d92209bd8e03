//! Shared by several tests.

use airpath_core::{Direction, Ecn, FlowId, Instant, Packet, Slot, UserId};
use airpath_link::testing::Arrival;

/// A packet down to the only user.
pub fn arrival(id: usize, at: Instant, size: u32) -> Arrival {
    let packet =
        Packet { id: id as u64, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(id as u32) };
    Arrival { at, direction: Direction::Down, packet }
}

/// The mean of correlated samples, and its standard error from the means of `batches` of them.
#[allow(dead_code, reason = "not every test program draws")]
pub fn mean_and_error(samples: &[f64], batches: usize) -> (f64, f64) {
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
    let means: Vec<f64> = samples.chunks_exact(samples.len() / batches).map(mean).collect();
    let centre = mean(&means);
    let variance = means.iter().map(|mean| (mean - centre) * (mean - centre)).sum::<f64>() / (means.len() - 1) as f64;
    (centre, (variance / means.len() as f64).sqrt())
}
