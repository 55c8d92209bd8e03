//! The timeline of slots against an independent enumeration.

use airpath_core::{Instant, Span};
use airpath_radio::common::slots::{Occasions, Offsets, Slot, SlotError, SlotPattern, Timeline};
use airpath_radio::lte;
use airpath_radio::nr::tdd;
use proptest::prelude::*;

const ORACLE: &str = include_str!("../data/3gpp/timeline_oracle.csv");

fn pattern(name: &str) -> SlotPattern {
    match name {
        "FDD-15kHz" => SlotPattern::fdd(Span::from_millis(1)),
        "FDD-30kHz" => SlotPattern::fdd(Span::from_micros(500)),
        name => without_data_in_short_slots(tdd::named(name).expect("a pattern")),
    }
}

/// In the enumeration an S slot carries data from 8 downlink symbols on.
fn without_data_in_short_slots(named: &tdd::Named) -> SlotPattern {
    let mut periods = named.periods.clone();
    for period in periods.iter_mut().filter(|period| period.downlink_symbols < 8) {
        period.downlink_symbols = 0;
    }
    tdd::pattern(named.numerology, &periods).expect("sound")
}

/// Least, mean and largest of delays in slots, as milliseconds.
fn statistics(delays: &[f64], pattern: &SlotPattern) -> [f64; 3] {
    let millis = pattern.duration().as_secs_f64() * 1e3;
    let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = delays.iter().copied().fold(0.0, f64::max);
    [least, delays.iter().sum::<f64>() / delays.len() as f64, largest].map(|slots| slots * millis)
}

/// Delays of the downlink, from its data to their repetition, and of the uplink by scheduling
/// request and grant, for packets in all slots. They come in the middle of a slot. Occasions begin
/// at the first uplink slot.
#[test]
fn delays_are_those_of_the_enumeration() {
    let mut rows = 0;
    for line in ORACLE.lines().skip(1) {
        let (name, numbers) = line.split_once(',').expect("a name");
        let numbers: Vec<f64> = numbers.split(',').map(|number| number.parse().expect("a number")).collect();
        let pattern = pattern(name);
        let offsets = Offsets {
            assignment_to_data: 0,
            data_to_feedback: numbers[0] as u32,
            feedback_to_attempt: numbers[3] as u32,
            grant_to_data: numbers[1] as u32,
            received_to_grant: numbers[2] as u32,
        };
        let timeline = Timeline::new(pattern.clone(), offsets);
        let period = (numbers[4] / (pattern.duration().as_secs_f64() * 1e3)).round() as u64;
        let requests = Occasions::new(period, pattern.uplink_from(0));
        assert!(requests.fit(&pattern), "{line}");

        let slots = 1000..1000 + period * pattern.period();
        let until_end = |slot: u64, last: u64| (last + 1 - slot) as f64 - 0.5;
        let down: Vec<f64> = slots.clone().map(|slot| until_end(slot, timeline.data(slot + 1))).collect();
        let repeat = |slot: u64| {
            let data = timeline.data(slot + 1);
            (timeline.next_attempt(timeline.feedback(data)) - data) as f64
        };
        let harq: Vec<f64> = slots.clone().map(repeat).collect();
        let up = slots.map(|slot| {
            let grant = timeline.grant_after(requests.at_or_after(slot + 1));
            until_end(slot, timeline.granted(grant).next().expect("a granted slot"))
        });
        let up: Vec<f64> = up.collect();

        let found = [down, harq, up].map(|delays| statistics(&delays, &pattern)).concat();
        for (found, expected) in found.iter().zip(&numbers[5..]) {
            assert!((found - expected).abs() < 6e-4, "{line}: {found:?}");
        }
        rows += 1;
    }
    assert_eq!(rows, 13);
}

/// By hand: DDDSU with all offsets 4. Uplink slots are 4, 9, 14, …
#[test]
fn ddd_s_u_by_hand() {
    let offsets = Offsets { assignment_to_data: 0, ..Offsets::LTE_FDD };
    let timeline = Timeline::new(pattern("DDDSU"), offsets);
    assert_eq!((timeline.feedback(0), timeline.feedback(1), timeline.feedback(3)), (4, 9, 9));
    assert_eq!(timeline.next_attempt(4), 8);
    assert_eq!(timeline.next_attempt(9), 13);
    // 10 − 4 = 6 is a D slot; 5 is the last but one.
    assert_eq!(timeline.granted(5).collect::<Vec<_>>(), [9]);
    assert_eq!(timeline.granted(6).collect::<Vec<_>>(), [14]);
    assert_eq!(timeline.granted(4).count(), 0);
    assert_eq!((timeline.last_grant(9), timeline.last_grant(14), timeline.last_grant(8)), (Some(5), Some(10), None));
    assert_eq!(timeline.grant_after(4), 8);
}

#[test]
fn time_and_slots_convert() {
    let pattern = SlotPattern::fdd(Span::from_micros(500));
    let at = |nanos| Instant::from_nanos(nanos);
    assert_eq!([0, 1, 499_999, 500_000].map(|nanos| pattern.slot_at(at(nanos))), [0, 0, 0, 1]);
    assert_eq!([0, 1, 499_999, 500_000].map(|nanos| pattern.slot_from(at(nanos))), [0, 1, 1, 1]);
    assert_eq!((pattern.start(3), pattern.end(3)), (at(1_500_000), at(2_000_000)));
}

#[test]
fn occasions_repeat_from_their_offset() {
    let occasions = Occasions::new(10, 4);
    assert_eq!([0, 4, 5, 14, 15].map(|slot| occasions.at_or_after(slot)), [4, 4, 14, 14, 24]);
    assert!(!Occasions::new(3, 4).fit(&pattern("DDDSU")));
}

#[test]
fn timelines_without_answers_or_grants_are_refused() {
    let slots = || vec![Slot::DOWNLINK, Slot::UPLINK];
    let tables = |feedback, grants, repetitions| {
        let pattern = SlotPattern::tdd(Span::from_millis(1), slots(), 8).expect("sound");
        Timeline::of_tables(pattern, Offsets::LTE_FDD, feedback, grants, repetitions).err()
    };
    let grants = || vec![vec![5], vec![]];
    assert_eq!(tables(vec![5, 0], grants(), vec![0, 10]), None);
    assert_eq!(tables(vec![4, 0], grants(), vec![0, 10]), Some(SlotError::NoFeedback { index: 0 }));
    assert_eq!(tables(vec![5, 0], vec![vec![], vec![]], vec![0, 10]), Some(SlotError::NoGrant { index: 1 }));
    assert_eq!(tables(vec![5, 0], grants(), vec![0, 9]), Some(SlotError::NoRepetition { index: 1 }));
    let empty = SlotPattern::tdd(Span::from_millis(1), Vec::new(), 8).expect_err("no slots");
    assert!(empty.to_string().contains("1 to 160 slots, not 0"));
}

/// LTE TDD: a round trip is longer and uneven, and never shorter than that of FDD.
#[test]
fn tdd_of_lte_takes_longer_than_fdd() {
    for configuration in 0..lte::tdd::CONFIGURATIONS {
        let timeline = lte::tdd::timeline(configuration, 7, 4).expect("a configuration");
        let trips = (0..10).filter(|slot| timeline.pattern().carries_downlink(*slot));
        let trips: Vec<u64> = trips.map(|slot| timeline.next_attempt(timeline.feedback(slot)) - slot).collect();
        assert!(trips.iter().all(|trip| (8..=19).contains(trip)), "{configuration}: {trips:?}");
    }
}

proptest! {
    /// The look-ups agree with a search, and each uplink slot can be granted.
    #[test]
    fn look_ups_agree_with_a_search(
        kinds in prop::collection::vec(0usize..4, 1..40), k1 in 0u32..20, k2 in 0u32..40, processing in 0u32..20,
        slot in 0u64..500,
    ) {
        let special = Slot { downlink: 10, uplink: 2 };
        let short = Slot { downlink: 6, uplink: 4 };
        let slots: Vec<Slot> = kinds.iter().map(|kind| [Slot::DOWNLINK, Slot::UPLINK, special, short][*kind]).collect();
        let Ok(pattern) = SlotPattern::tdd(Span::from_micros(500), slots.clone(), 8) else {
            let carries = |fits: fn(&Slot) -> bool| slots.iter().any(fits);
            prop_assert!(!carries(|slot| slot.downlink >= 8) || !carries(|slot| slot.uplink == 14));
            return Ok(());
        };
        let down = |from: u64| (from..).find(|slot| slots[*slot as usize % slots.len()].downlink >= 8).expect("one");
        let up = |from: u64| (from..).find(|slot| slots[*slot as usize % slots.len()].uplink == 14).expect("one");
        let offsets = Offsets {
            assignment_to_data: 1,
            data_to_feedback: k1,
            feedback_to_attempt: processing,
            grant_to_data: k2,
            received_to_grant: processing,
        };
        let timeline = Timeline::new(pattern.clone(), offsets);
        prop_assert_eq!(timeline.data(slot), down(slot + 1));
        let data = down(slot);
        prop_assert_eq!(timeline.feedback(data), up(data + u64::from(k1)));
        prop_assert_eq!(timeline.next_attempt(slot), down(slot + u64::from(processing)));
        prop_assert_eq!(timeline.grant_after(slot), down(slot + u64::from(processing)));
        let grant = down(slot);
        prop_assert_eq!(timeline.granted(grant).next(), Some(up(grant + u64::from(k2))));
        let uplink = up(slot + 100);
        let last = timeline.last_grant(uplink).expect("late enough");
        prop_assert!(last + u64::from(k2) <= uplink && down(last) == last && down(last + 1) + u64::from(k2) > uplink);
        prop_assert!(timeline.granted(last).any(|each| each == uplink));
    }
}
