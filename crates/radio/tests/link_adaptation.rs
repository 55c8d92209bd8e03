//! Link adaptation as a whole: the outer loop keeps its target, and the rates of NR.

use airpath_core::{Decibel, Probability, RandomStream, Seed};
use airpath_radio::common::link_adaptation::{Block, Coding, Decoder, Modulation, OuterLoop, Thresholds};
use airpath_radio::common::slots::{Slot, SlotPattern};
use airpath_radio::lte;
use airpath_radio::nr::tables::{self, Allocation, FormatTable, Numerology, Range};
use airpath_radio::nr::tdd;

fn db(db: f64) -> Decibel {
    Decibel::new(db).expect("finite")
}

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("within range")
}

/// The resource blocks and resource elements of each, of the simulated mobile.
const RESOURCE_BLOCKS: u32 = 50;
const ELEMENTS: u32 = 120;

/// Step and limit of the outer loop, in dB.
const STEP: f64 = 0.01;
const LIMIT: f64 = 20.0;

/// The share of first transmissions in error and the mean correction, for a signal-to-noise ratio
/// of each block. The mobile reports every 40 blocks, and the report is used 8 blocks later. The
/// base station has the thresholds of a decoder with the usual gap; the mobile has another gap.
fn adapt(snr: impl Fn(&mut RandomStream) -> f64, gap: f64, target: f64, blocks: u32) -> (f64, f64) {
    let usual = Decoder::new(Coding::Turbo);
    let decoder = Decoder { gap: db(gap), ..usual };
    let symbols = RESOURCE_BLOCKS * ELEMENTS;
    let cqis =
        Thresholds::of_formats(&usual, lte::tables::cqis(lte::tables::CqiTable::Qam64), symbols, probability(0.1));
    let schemes: Vec<Block> = lte::tables::schemes(lte::tables::McsTable::PdschQam64)
        .iter()
        .map(|mcs| Block {
            modulation: mcs.modulation,
            bits: lte::tables::transport_block_bits(mcs.i_tbs, RESOURCE_BLOCKS),
            symbols,
        })
        .collect();
    let thresholds = Thresholds::of_blocks(&usual, schemes.iter().copied(), probability(0.1));
    let limit = LIMIT;
    let mut outer = OuterLoop::new(probability(target), db(STEP), db(limit)).expect("sound");
    let mut random = Seed::new(1).stream("adapt");
    let (mut failed, mut offsets) = (0, 0.0);
    let (mut measured, mut reported) = (0, 0);
    for block in 0..blocks {
        let snr = db(snr(&mut random));
        if block % 40 == 0 {
            measured = cqis.cqi(snr);
        }
        if block % 40 == 8 || block == 0 {
            reported = measured;
        }
        let estimate = if reported == 0 { db(-10.0) } else { cqis.required(usize::from(reported) - 1) };
        let scheme = thresholds.select(outer.corrected(estimate)).unwrap_or(0);
        let decoded = !random.chance(decoder.errors(&schemes[scheme], snr));
        outer.record(decoded);
        failed += u32::from(!decoded);
        offsets += outer.offset().get();
        assert!(
            outer.offset().get().abs() < limit,
            "the loop keeps its target only within its limit, at block {block}"
        );
    }
    (f64::from(failed) / f64::from(blocks), offsets / f64::from(blocks))
}

/// Row I6. While the correction stays within its limit, the share of errors differs from the target
/// by at most limit · target / (step · blocks): 0.0005 and 0.001.
#[test]
fn the_outer_loop_keeps_its_target_whatever_the_gap() {
    let blocks = 200_000;
    for target in [0.05, 0.1] {
        let fixed = [0.5, 1.5, 2.5].map(|gap| adapt(|_| 12.3, gap, target, blocks));
        let fading = [0.5, 1.5, 2.5].map(|gap| {
            let state = std::cell::Cell::new((0.5f64, 0.5f64));
            let rayleigh = |random: &mut RandomStream| {
                // Independent Gaussian changes with a correlation of 0.995 from block to block.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.uniform()));
                let angle = 2.0 * std::f64::consts::PI * random.uniform();
                let step = libm::sqrt((1.0 - 0.995 * 0.995) / 2.0) * radius;
                let (i, q) = state.get();
                let next = (0.995 * i + step * libm::cos(angle), 0.995 * q + step * libm::sin(angle));
                state.set(next);
                20.0 + 10.0 * libm::log10(next.0 * next.0 + next.1 * next.1 + 1e-6)
            };
            adapt(rayleigh, gap, target, blocks)
        });
        for (share, _) in fixed.into_iter().chain(fading) {
            assert!((share - target).abs() <= LIMIT * target / (STEP * f64::from(blocks)), "{share} {target}");
        }
        // A decibel of gap is about a decibel of correction.
        for pair in fixed.windows(2).chain(fading.windows(2)) {
            let moved = pair[0].1 - pair[1].1;
            assert!((0.5..1.7).contains(&moved), "{moved}");
        }
    }
}

/// Bits a second of the downlink of 273 resource blocks with four layers of 256QAM.
fn downlink_rate(pattern: &SlotPattern) -> f64 {
    let best = tables::schemes(FormatTable::Qam256)[27];
    let bits = (0..pattern.period()).filter(|slot| pattern.carries_downlink(*slot)).map(|slot| {
        let Slot { downlink, .. } = pattern.symbols(slot);
        u64::from(tables::transport_block_bits(&best, 4, 273, Allocation::downlink(downlink)))
    });
    bits.sum::<u64>() as f64 / (pattern.duration().as_secs_f64() * pattern.period() as f64)
}

/// Row I3: blocks with PDCCH and DMRS carry 5 to 12 % less than the peak rate of the standard times
/// the share of downlink symbols.
#[test]
fn rates_of_nr_are_below_the_peak_by_control_and_reference_signals() {
    let mu = Numerology::new(1).expect("a numerology");
    let peak = tables::peak_rate(Range::Fr1, tables::Link::Down, mu, 273, 4, Modulation::Qam256).as_bps() as f64;
    let below = |pattern: &SlotPattern| 1.0 - downlink_rate(pattern) / (peak * pattern.downlink_share());
    let named = |name: &str| tdd::named(name).expect("a pattern").pattern();
    for pattern in [SlotPattern::fdd(mu.slot()), named("DDDSU"), named("DDDDDDDSUU")] {
        assert!((0.05..0.12).contains(&below(&pattern)), "{}", below(&pattern));
    }
}
