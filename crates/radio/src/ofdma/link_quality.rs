//! The base station's view of the radio of a mobile: CQI reports and the outer loops
//! (TS 36.213 §7.2, TS 38.214 §5.2).

use std::collections::VecDeque;

use airpath_core::{Direction, Instant};

use super::Parameters;
use super::grid::Grid;
use super::plan::Plan;
use super::power_limit::PowerLimit;
use super::transport_format::Estimate;
use crate::common::link_adaptation::OuterLoop;
use crate::common::multiplexing::due::pop_due;
use crate::common::shared_channel::cqi_reports::Reports;

/// The radio of one mobile, as reported to the base station.
///
/// The base station measures the uplink as often and with the same delay as the mobile reports the
/// downlink, in the steps of CQIs.
#[derive(Clone, Debug)]
pub struct LinkQuality {
    reports: [Reports; 2],
    /// Above the CQI of each report are the layers of the downlink, and of the uplink the decibels
    /// above the highest CQI or, with any other, the shortage of power. In a narrowband there is
    /// the coverage mode that the report is for.
    heard: [u8; 2],
    /// Feedback to first transmissions, in transit to the outer loops.
    feedback: [VecDeque<(Instant, Feedback)>; 2],
    loops: [Option<OuterLoop>; 2],
    layers: u8,
    /// What follows from the last report and the outer loops.
    estimates: [Estimate; 2],
}

/// Feedback to the first transmission of a block.
#[derive(Clone, Copy, Debug)]
struct Feedback {
    /// The resource blocks of the transmission.
    blocks: u32,
    is_positive: bool,
}

/// The bits of a report that are its CQI, 0 to 15.
const CQI_BITS: u8 = 4;

/// All of them, which are the highest CQI, too.
const CQI: u8 = (1 << CQI_BITS) - 1;

/// The report at a SINR in decibels with the number of layers, up to `most`, that carries most; of
/// several the least.
fn report(grid: &Grid, sinr: f64, most: u8) -> u8 {
    let reported = |layers: u8| {
        let cqi = grid.cqi(sinr, layers);
        (grid.efficiency_of(cqi) * f64::from(layers), cqi | layers << CQI_BITS)
    };
    // `max_by` takes the last of equal ones.
    let best = (1..=most).rev().map(reported).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.expect("there is a layer").1
}

/// The report of the uplink at a SINR in decibels.
fn report_up(grid: &Grid, sinr: f64, power: &PowerLimit) -> u8 {
    let shortage = power.shortage(sinr);
    if shortage > 0 {
        return grid.cqi(sinr + power.gain(sinr, power.blocks(shortage)), 1) | shortage << CQI_BITS;
    }
    let cqi = grid.cqi(sinr, 1);
    let excess = if cqi == CQI { grid.excess(sinr).clamp(0.0, f64::from(CQI)) as u8 } else { 0 };
    cqi | excess << CQI_BITS
}

impl LinkQuality {
    /// Nothing reported yet.
    pub fn new(config: &Parameters) -> Self {
        let mobile = &config.mobile;
        let reports = || Reports::new(mobile.cqi_period, mobile.cqi_delay);
        let cell = &config.cell;
        let outer_loop = || OuterLoop::new(cell.target_bler, cell.step, cell.max_correction);
        Self {
            reports: [reports(), reports()],
            heard: [0; 2],
            feedback: Default::default(),
            loops: [outer_loop(), outer_loop()],
            layers: mobile.layers,
            estimates: [&config.down, &config.up].map(|grid| grid.estimate(grid.sinr_of(0))),
        }
    }

    /// The next time up to `now` at which the channel is to be measured.
    #[inline]
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        self.reports[1].due(now).and(self.reports[0].due(now))
    }

    /// Takes the measurement that is due: the SINR in decibels, downlink and uplink, if a cell
    /// serves the mobile; in a narrowband with the repetitions of a coverage mode.
    pub fn measure(&mut self, sinr: Option<[f64; 2]>, mode: u8, plan: &Plan) {
        let [down, up] = match (sinr, &plan.power) {
            (None, Some(_)) => [1 << CQI_BITS, 0],
            (Some([down, up]), Some(power)) => [report(&plan.down, down, self.layers), report_up(&plan.up, up, power)],
            (None, None) => [mode << CQI_BITS; 2],
            (Some([down, up]), None) => [plan.down.cqi(down, 1), plan.up.cqi(up, 1)].map(|cqi| cqi | mode << CQI_BITS),
        };
        self.reports[0].take(down);
        self.reports[1].take(up);
    }

    /// Hears the feedback and the reports that have come by `now`.
    #[inline]
    pub fn hear(&mut self, now: Instant, plan: &Plan) {
        self.hear_feedback(now, plan);
        for direction in Direction::BOTH {
            let heard = self.reports[direction as usize].heard(now);
            if heard != std::mem::replace(&mut self.heard[direction as usize], heard) {
                self.estimate_again(direction, plan);
            }
        }
    }

    /// Feedback to a first transmission in this number of resource blocks is sent. The base station
    /// can use it at `heard`.
    #[inline]
    pub fn send_feedback(&mut self, direction: Direction, heard: Instant, blocks: u32, is_positive: bool) {
        self.feedback[direction as usize].push_back((heard, Feedback { blocks, is_positive }));
    }

    /// Hears the feedback that has come by `now`. Nothing but the estimate depends on it, so no
    /// event is needed when it comes.
    #[inline]
    pub fn hear_feedback(&mut self, now: Instant, plan: &Plan) {
        for direction in Direction::BOTH {
            while let Some(feedback) = pop_due(&mut self.feedback[direction as usize], now) {
                self.learn(direction, feedback, plan);
            }
        }
    }

    /// The connection is new: no feedback is in transit.
    pub fn forget_feedback(&mut self) {
        self.feedback.iter_mut().for_each(VecDeque::clear);
    }

    /// Where the scheme cannot change any more, the correction stays: otherwise it would drift to
    /// its limit, and be wrong for as long as it took to come back.
    fn learn(&mut self, direction: Direction, feedback: Feedback, plan: &Plan) {
        let Some(outer) = &mut self.loops[direction as usize] else { return };
        let Feedback { blocks, is_positive } = feedback;
        let Estimate { sinr, efficiency, .. } = self.estimates[direction as usize];
        let grid = plan.grid(direction);
        let efficiency = match plan.power_gain(direction, sinr, blocks) {
            0.0 => efficiency,
            gain => grid.efficiency_at(sinr + gain),
        };
        if !grid.is_limit(efficiency, is_positive) {
            outer.record(is_positive);
            self.estimate_again(direction, plan);
        }
    }

    /// The CQI that was heard last.
    pub const fn cqi(&self, direction: Direction) -> u8 {
        self.heard[direction as usize] & CQI
    }

    /// In a narrowband, the coverage mode that the last report is for.
    pub const fn mode(&self, direction: Direction) -> u8 {
        self.heard[direction as usize] >> CQI_BITS
    }

    /// What the base station expects to get through.
    #[inline]
    pub const fn estimate(&self, direction: Direction) -> Estimate {
        self.estimates[direction as usize]
    }

    fn estimate_again(&mut self, direction: Direction, plan: &Plan) {
        let (cqi, grid) = (self.cqi(direction), plan.grid(direction));
        let correction = self.loops[direction as usize].as_ref().map_or(0.0, |outer| outer.offset().get());
        let sinr = grid.sinr_of(cqi) + correction;
        let other = self.heard[direction as usize] >> CQI_BITS;
        self.estimates[direction as usize] = match (direction, &plan.power) {
            (_, None) => Estimate { mode: other, ..grid.estimate(sinr) },
            (Direction::Up, Some(_)) if cqi == CQI => grid.estimate(sinr + f64::from(other)),
            (Direction::Up, Some(power)) => Estimate { blocks: power.blocks(other), ..grid.estimate(sinr) },
            (Direction::Down, Some(_)) => Estimate { layers: other.max(1), ..grid.estimate(sinr) },
        };
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;
    use crate::lte;
    use crate::ofdma::grid::tests::parameters;

    const DOWN: Direction = Direction::Down;

    /// The plan of a preset, and a mobile of it that was measured once.
    fn measured(preset: &str, sinr: f64) -> (Plan, LinkQuality) {
        let parameters = parameters::<lte::Config>(preset, "step = \"0.1 dB\"");
        let plan = Plan::new(&parameters, Seed::new(1), "cell").expect("sound parameters");
        let mut quality = LinkQuality::new(&parameters);
        quality.due(Instant::ZERO).expect("the first report");
        quality.measure(Some([sinr, sinr]), 0, &plan);
        quality.hear(Instant::ZERO, &plan);
        (plan, quality)
    }

    #[test]
    fn the_estimate_rises_to_the_highest_cqi_and_no_further() {
        let preset = include_str!("../../../../presets/lte-20mhz.toml");
        let (plan, mut quality) = measured(preset, 23.0);
        let highest = plan.down.efficiency_of(15);
        let before = quality.estimate(DOWN).efficiency;
        (0..1000).for_each(|_| quality.learn(DOWN, Feedback { blocks: 1, is_positive: true }, &plan));
        assert!(before < highest, "{before}");
        assert_eq!(quality.estimate(DOWN).efficiency, highest);
        // The correction is not more than it needs: one error has an effect at once.
        quality.learn(DOWN, Feedback { blocks: 1, is_positive: false }, &plan);
        assert!(quality.estimate(DOWN).efficiency < 0.99 * highest);
        // At the highest CQI there is nothing to correct upwards.
        let (plan, mut quality) = measured(preset, 45.0);
        (0..1000).for_each(|_| quality.learn(DOWN, Feedback { blocks: 1, is_positive: true }, &plan));
        quality.learn(DOWN, Feedback { blocks: 1, is_positive: false }, &plan);
        assert!(quality.estimate(DOWN).efficiency < highest);
    }

    #[test]
    fn the_estimate_falls_to_the_lowest_scheme_and_no_further() {
        let (plan, mut quality) = measured(include_str!("../../../../presets/lte-20mhz.toml"), -4.0);
        let scheme = |quality: &LinkQuality| {
            plan.down.allocate(quality.estimate(DOWN), 10_000, 100, 14).expect("a format").scheme
        };
        (0..20).for_each(|_| quality.learn(DOWN, Feedback { blocks: 1, is_positive: false }, &plan));
        assert_eq!(scheme(&quality), 0);
        let lowest = quality.estimate(DOWN);
        quality.learn(DOWN, Feedback { blocks: 1, is_positive: false }, &plan);
        assert_eq!(quality.estimate(DOWN), lowest);
        // 3 dB of blocks without errors, not 5 dB.
        (0..30).for_each(|_| quality.learn(DOWN, Feedback { blocks: 1, is_positive: true }, &plan));
        assert!(scheme(&quality) > 0);
    }

    #[test]
    fn a_report_has_how_far_the_uplink_is_above_the_highest_cqi() {
        let preset = include_str!("../../../../presets/lte-20mhz.toml");
        let sinr = |at: f64| {
            let (_, quality) = measured(preset, at);
            quality.estimate(Direction::Up).sinr
        };
        for (at, most) in [(25.0, 1.0), (30.0, 1.0), (5.0, 3.0)] {
            assert!((0.0..=most).contains(&(at - sinr(at))), "{at}: {}", sinr(at));
        }
    }

    #[test]
    fn a_mobile_out_of_range_reports_one_layer() {
        let nr = parameters::<crate::nr::Config>(include_str!("../../../../presets/nr-n41-100mhz.toml"), "");
        let lte = parameters::<lte::Config>(include_str!("../../../../presets/lte-20mhz.toml"), "");
        for (grid, layers) in [(&nr.down, 4), (&lte.down, 2)] {
            assert_eq!(report(grid, -9.0, layers), 1 << CQI_BITS, "CQI 0");
            assert_eq!(report(grid, 45.0, layers), 15 | layers << CQI_BITS);
        }
    }
}
