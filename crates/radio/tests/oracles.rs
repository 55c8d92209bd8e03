//! The bearers against what can be calculated by hand.

use crate::common::{cell, dch, dch_384, hs_dsch_384, paced, saturate};
use airpath_core::{DropCause, Instant, Span};
use airpath_link::Bearer;
use airpath_link::testing::{Arrival, Polling, drive};

const HORIZON: Instant = Instant::from_nanos(100_000_000_000_000);

/// The time from arrival to departure of each packet, in milliseconds.
fn delays(mut bearer: impl Bearer, arrivals: &[Arrival]) -> Vec<f64> {
    let outcome = drive(&mut bearer, arrivals, Polling::OnTime, HORIZON);
    assert_eq!(outcome.departures.len(), arrivals.len());
    outcome
        .departures
        .iter()
        .map(|(_, departure)| departure.due.since(arrivals[departure.packet.id as usize].at).as_secs_f64() * 1e3)
        .collect()
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Whether the mean of `samples` is `expected`, within five standard errors of the samples' own
/// spread.
fn assert_mean(samples: &[f64], expected: f64) {
    let mean = mean(samples);
    let variance = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>() / samples.len() as f64;
    let tolerance = 5.0 * (variance / samples.len() as f64).sqrt() + 1e-9;
    assert!((mean - expected).abs() < tolerance, "{mean} instead of {expected} ± {tolerance}");
}

/// The mean of the largest of `n` geometric numbers of attempts that each fail with `p`:
/// the sum over k of P(the largest exceeds k) = 1 − (1 − p^k)^n.
fn expected_attempts(p: f64, n: f64) -> f64 {
    (0..200).map(f64::from).map(|k| 1.0 - libm::pow(1.0 - libm::pow(p, k), n)).sum()
}

#[test]
fn a_pdu_of_a_dch_takes_geometrically_many_rounds_of_100_ms() {
    // 5 ms to the next TTI, its 10 ms, 20 ms to arrive; what failed goes 89 ms after the end of its
    // TTI, in the next TTI that begins: ten TTIs after the last time.
    let arrivals = paced(20_000, Span::from_millis(5), Span::from_secs(2), 40);
    for p in [0.1, 0.2] {
        let delays = delays(dch(&dch_384(&format!("bler = {p}")), 1), &arrivals);
        assert!(delays.iter().all(|delay| ((delay - 35.0) / 100.0).fract().abs() < 1e-6));
        assert_mean(&delays, 35.0 + 100.0 * p / (1.0 - p));
    }
}

#[test]
fn a_packet_of_a_dch_waits_for_the_last_of_its_pdus() {
    // 480 bytes fill one TTI; all 12 PDUs have to get through.
    let arrivals = paced(10_000, Span::from_millis(5), Span::from_secs(2), 480);
    for p in [0.01, 0.1, 0.2] {
        let by_pdu = delays(dch(&dch_384(&format!("bler = {p}")), 1), &arrivals);
        assert_mean(&by_pdu, 35.0 + 100.0 * (expected_attempts(p, 12.0) - 1.0));
        let by_tti = delays(dch(&dch_384(&format!("bler = {p}\nerror_unit = \"tti\"")), 1), &arrivals);
        assert_mean(&by_tti, 35.0 + 100.0 * (expected_attempts(p, 1.0) - 1.0));
    }
}

#[test]
fn a_block_of_a_cell_takes_geometrically_many_rounds_of_six_ttis() {
    // 1 ms to the next TTI, its 2 ms, 20 ms to arrive; 9.5 ms after the end of a TTI is 12 ms after
    // its beginning.
    let arrivals = paced(20_000, Span::from_millis(1), Span::from_secs(1), 96);
    for p in [0.1, 0.5] {
        let delays = delays(cell(&hs_dsch_384(&format!("bler = {p}")), &[None]), &arrivals);
        assert!(delays.iter().all(|delay| ((delay - 23.0) / 12.0).fract().abs() < 1e-6));
        assert_mean(&delays, 23.0 + 12.0 * p / (1.0 - p));
    }
}

#[test]
fn a_packet_that_arrives_as_a_tti_begins_goes_in_the_next() {
    let at = |micros| paced(1, Span::from_micros(micros), Span::ZERO, 96);
    let delay = |micros| delays(cell(&hs_dsch_384(""), &[None]), &at(micros))[0];
    assert_eq!([0, 1, 1_999, 2_000].map(delay), [24.0, 23.999, 22.001, 24.0]);
}

#[test]
fn saturated_goodput_is_what_errors_and_padding_leave() {
    let time = Span::from_secs(2000);
    // 1500 bytes take 38 PDUs of 40 bytes, 47 of 32.
    for p in [0.0f64, 0.01, 0.1, 0.2] {
        for (goodput, share) in [
            (saturate(&mut dch(&dch_384(&format!("bler = {p}")), 1), 1, time), 1500.0 / 1520.0),
            (saturate(&mut cell(&hs_dsch_384(&format!("bler = {p}")), &[None]), 1, time), 1500.0 / 1504.0),
        ] {
            let measured = goodput.bytes[0] as f64 * 8.0 / time.as_secs_f64();
            let expected = 384_000.0 * (1.0 - p) * share;
            // A million TTIs or two of PDUs: five standard errors of the share of errors, and the
            // 50 packets inside.
            let tolerance = 384_000.0 * 5.0 * (p * (1.0 - p) / 1e6).sqrt() + 50.0 * 12_000.0 / time.as_secs_f64();
            assert!((measured - expected).abs() < tolerance, "{measured} instead of {expected} ± {tolerance}");
        }
    }
}

#[test]
fn what_is_given_up_is_the_share_that_fails_so_often() {
    let packets = 20_000u64;
    let arrivals = paced(packets, Span::from_millis(1), Span::from_secs(1), 96);
    for (p, attempts) in [(0.3f64, 1), (0.3, 2), (0.5, 3)] {
        let config = hs_dsch_384(&format!("bler = {p}\nmax_attempts = {attempts}"));
        let outcome = drive(&mut cell(&config, &[None]), &arrivals, Polling::OnTime, HORIZON);
        let lost = outcome.lost(DropCause::AttemptsExhausted).packets as f64;
        let expected = libm::pow(p, f64::from(attempts)) * packets as f64;
        assert!((lost - expected).abs() < 5.0 * expected.sqrt(), "{lost} instead of {expected}");
        for drop in &outcome.drops {
            // Given up at the end of the last attempt.
            let after = drop.time.since(arrivals[drop.packet.id as usize].at);
            assert_eq!(after, Span::from_millis(1 + 2 + 12 * (attempts as u64 - 1)));
        }
    }
}

#[test]
fn chase_combining_saves_attempts() {
    let attempts = |more: &str| {
        let mut bearer = cell(&hs_dsch_384(&format!("bler = 0.5\n{more}")), &[None]);
        let radio = saturate(&mut bearer, 1, Span::from_secs(400)).radio;
        let sum =
            |each: fn(&airpath_core::RadioEvent) -> u16| radio.iter().map(|(_, e)| f64::from(each(e))).sum::<f64>();
        sum(|event| event.pdus) / sum(|event| event.pdus - event.repeated)
    };
    // Without combining 1/(1 − p) = 2. With it 1 + p₁ + p₁p₂ + …, where at CQI 1 of the curve in
    // harq.rs x₁ = log₁₀(0.5^-0.7 − 1) = −0.2041, x₂ = x₁ + 3.0103 · 1.1547 = 3.2719, p₂ =
    // 10^(−3.2719/0.7) = 2e-5. 200,000 blocks: a standard error of 0.003 and 0.001.
    let (none, chase) = (attempts("combining = \"none\""), attempts("combining = \"chase\"\ncqi = 1"));
    assert!((none - 2.0).abs() < 0.02, "{none}");
    assert!((chase - 1.5).abs() < 0.01, "{chase}");
}

#[test]
fn out_of_sequence_delivery_does_not_wait() {
    // Six packets of one block each, back to back: those behind a block in error overtake it, or
    // wait for it.
    let arrivals = paced(6, Span::from_millis(1), Span::from_millis(2), 96);
    let run = |seed, in_sequence| {
        let config = hs_dsch_384(&format!("bler = 0.3\nin_sequence = {in_sequence}"));
        let seed = airpath_core::Seed::new(seed);
        let mut bearer = airpath_radio::study::hs_dsch_simple::HsDschSimple::new(&config, &[None], seed, "cell")
            .expect("sound parameters");
        let departures = drive(&mut bearer, &arrivals, Polling::OnTime, HORIZON).departures;
        let mut due = [Instant::ZERO; 6];
        departures.iter().for_each(|(_, departure)| due[departure.packet.id as usize] = departure.due);
        due
    };
    let mut overtakes = 0;
    for seed in 0..100 {
        let (complete, in_order) = (run(seed, false), run(seed, true));
        overtakes += usize::from(!complete.is_sorted());
        // In sequence each leaves when it and all before it are complete.
        let mut latest = Instant::ZERO;
        for (complete, in_order) in complete.into_iter().zip(in_order) {
            latest = latest.max(complete);
            assert_eq!(in_order, latest);
        }
    }
    assert!(overtakes > 50, "{overtakes}");
}
