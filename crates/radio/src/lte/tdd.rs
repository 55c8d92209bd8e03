//! TDD of LTE (frame structure 2): subframes, special subframes, and the fixed tables of feedback
//! and grants.

use std::sync::LazyLock;

use crate::common::csv::{rows, value};
use crate::common::slots::{Offsets, Slot, SlotPattern, Timeline};
use crate::lte::tables::TTI;

/// Uplink-downlink configurations (TS 36.211 Table 4.2-2): 0 to 6.
pub const CONFIGURATIONS: u8 = 7;
/// Special subframe configurations with normal cyclic prefix (TS 36.211 Table 4.2-1): 0 to 9.
pub const SPECIAL_CONFIGURATIONS: u8 = 10;

/// Downlink symbols from which on a special subframe carries PDSCH: configurations 0 and 5, which
/// have 3, do not (TS 36.213 §7.1.7).
const LEAST_DOWNLINK: u8 = 4;

/// Subframes of a frame.
const SUBFRAMES: usize = 10;

/// The subframes of an uplink-downlink configuration with a special subframe configuration; the
/// period is a frame. `None` if there is no such configuration.
pub fn pattern(configuration: u8, special: u8) -> Option<SlotPattern> {
    let subframes = TABLES.subframes.get(usize::from(configuration))?;
    let special = *TABLES.special.get(usize::from(special))?;
    let slots = subframes.iter().map(|kind| match kind {
        b'D' => Slot::DOWNLINK,
        b'U' => Slot::UPLINK,
        _ => special,
    });
    Some(SlotPattern::tdd(TTI, slots.collect(), LEAST_DOWNLINK).expect("the standard's patterns are sound"))
}

/// The timeline of a configuration. `processing` is the time of the base station in subframes, from
/// what it received to an attempt or a grant that depends on it; the rest follows from TS 36.213
/// Tables 10.1.3.1-1 and 8-2. `None` if there is no such configuration.
pub fn timeline(configuration: u8, special: u8, processing: u32) -> Option<Timeline> {
    let pattern = pattern(configuration, special)?;
    let Timing { feedback, grants, repetitions, .. } = &TABLES.timing[usize::from(configuration)];
    let offsets = Offsets { feedback_to_attempt: processing, received_to_grant: processing, ..Offsets::LTE_FDD };
    let timeline = Timeline::of_tables(pattern, offsets, feedback.to_vec(), grants.to_vec(), repetitions.to_vec());
    Some(timeline.expect("the tables answer, grant and repeat each subframe"))
}

/// HARQ processes of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// Of the downlink (TS 36.213 Table 7-1).
    pub downlink: u8,
    /// Of the uplink (TS 36.213 Table 8-1).
    pub uplink: u8,
}

/// The HARQ processes of a configuration; `None` if there is no such configuration.
pub fn processes(configuration: u8) -> Option<Processes> {
    TABLES.timing.get(usize::from(configuration)).map(|timing| timing.processes)
}

struct Tables {
    subframes: Vec<[u8; SUBFRAMES]>,
    special: Vec<Slot>,
    timing: Vec<Timing>,
}

struct Timing {
    /// From each downlink subframe to the subframe of its feedback.
    feedback: [u16; SUBFRAMES],
    /// From each subframe with grants to the uplink subframes that they are for.
    grants: [Vec<u16>; SUBFRAMES],
    /// From each uplink subframe to the repetition of its block.
    repetitions: [u16; SUBFRAMES],
    processes: Processes,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let subframes = rows(include_str!("../../data/3gpp/lte_tdd.csv"));
    let subframes = subframes.map(|[_, _, kinds @ ..]: [&str; 12]| kinds.map(|kind| kind.as_bytes()[0]));
    let special = rows(include_str!("../../data/3gpp/lte_tdd_special.csv"));
    let special = special
        .map(|[_, downlink, _, uplink]: [&str; 4]| Slot { downlink: value(downlink), uplink: value(uplink) })
        .collect();
    Tables { subframes: subframes.collect(), special, timing: (0..CONFIGURATIONS).map(timing).collect() }
});

fn timing(configuration: u8) -> Timing {
    let mut timing = Timing {
        feedback: [0; SUBFRAMES],
        grants: Default::default(),
        repetitions: [0; SUBFRAMES],
        processes: Processes { downlink: 0, uplink: 0 },
    };
    let mut phich = Vec::new();
    let all = rows(include_str!("../../data/3gpp/lte_tdd_timing.csv"));
    for [what, _, subframe, number] in all.filter(|row: &[&str; 4]| value::<u8>(row[1]) == configuration) {
        match what {
            "ack" => {
                let (uplink, after): (usize, u16) = (value(subframe), value(number));
                timing.feedback[(uplink + 2 * SUBFRAMES - usize::from(after)) % SUBFRAMES] = after;
            }
            // Configuration 0 has more uplink than downlink subframes: some grant a second one.
            "grant" | "grant-second" => timing.grants[value::<usize>(subframe)].push(value(number)),
            "phich" => phich.push((value::<usize>(subframe), value::<u16>(number))),
            "dl-processes" => timing.processes.downlink = value(number),
            "ul-processes" => timing.processes.uplink = value(number),
            _ => panic!("`{what}` in the table of TDD timing"),
        }
    }
    for (uplink, after) in phich {
        let answer = (uplink + usize::from(after)) % SUBFRAMES;
        timing.repetitions[uplink] = after + repetition(configuration, uplink, answer, &timing.grants[answer]);
    }
    timing
}

/// From a negative answer on the PHICH in subframe `answer` to the repetition of the block of
/// subframe `uplink` (TS 36.213 §8.0). It is that of a grant in the subframe of the answer. With
/// configuration 0 it is the second grant's for subframes 4 and 9, whose PHICH has I_PHICH 1
/// (§9.1.2), and where the answer comes in a special subframe.
fn repetition(configuration: u8, uplink: usize, answer: usize, grants: &[u16]) -> u16 {
    let is_second = configuration == 0 && ([4, 9].contains(&uplink) || [1, 6].contains(&answer));
    grants[usize::from(is_second)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (u8, SlotPattern, Timeline)> {
        (0..CONFIGURATIONS).map(|configuration| {
            let pattern = pattern(configuration, 7).expect("a configuration");
            (configuration, pattern, timeline(configuration, 7, 4).expect("a configuration"))
        })
    }

    #[test]
    fn configurations_have_the_letters_of_the_standard() {
        let letters = |configuration| {
            let pattern = pattern(configuration, 7).expect("a configuration");
            let letter = |slot| match pattern.symbols(slot) {
                Slot::DOWNLINK => 'D',
                Slot::UPLINK => 'U',
                _ => 'S',
            };
            (0..10).map(letter).collect::<String>()
        };
        assert_eq!((letters(0), letters(2)), ("DSUUUDSUUU".to_owned(), "DSUDDDSUDD".to_owned()));
        assert_eq!((letters(5), letters(6)), ("DSUDDDDDDD".to_owned(), "DSUUUDSUUD".to_owned()));
        assert!(pattern(7, 7).is_none() && pattern(2, 10).is_none() && timeline(7, 0, 4).is_none());
    }

    #[test]
    fn special_subframes_have_14_symbols_and_carry_data_but_in_two_configurations() {
        for special in 0..SPECIAL_CONFIGURATIONS {
            let Slot { downlink, uplink } = TABLES.special[usize::from(special)];
            assert!(downlink + uplink < 14, "{special}");
            let pattern = pattern(1, special).expect("a configuration");
            assert_eq!(pattern.carries_downlink(1), ![0, 5].contains(&special), "{special}");
            assert!(!pattern.carries_uplink(1));
        }
        let guards = rows(include_str!("../../data/3gpp/lte_tdd_special.csv"));
        let sums = guards.map(|[_, a, b, c]: [&str; 4]| value::<u8>(a) + value::<u8>(b) + value::<u8>(c));
        assert!(sums.eq([14; 10]));
    }

    /// Each downlink and special subframe is answered exactly once, at least 4 ms later.
    #[test]
    fn each_downlink_subframe_is_answered_exactly_once() {
        let answers = rows(include_str!("../../data/3gpp/lte_tdd_timing.csv"));
        let answers: Vec<[&str; 4]> = answers.filter(|row: &[&str; 4]| row[0] == "ack").collect();
        for (configuration, pattern, timeline) in all() {
            let of_this = answers.iter().filter(|row| value::<u8>(row[1]) == configuration);
            let mut answered: Vec<u64> =
                of_this.map(|row| (value::<u64>(row[2]) + 20 - value::<u64>(row[3])) % 10).collect();
            answered.sort_unstable();
            let downlink: Vec<u64> = (0..10).filter(|slot| pattern.carries_downlink(*slot)).collect();
            assert_eq!(answered, downlink, "{configuration}");
            for slot in downlink {
                let feedback = timeline.feedback(slot);
                assert!(pattern.carries_uplink(feedback) && (4..=13).contains(&(feedback - slot)), "{configuration}");
            }
        }
    }

    /// Each uplink subframe has a grant at least 4 ms before, in a subframe that has a PDCCH.
    #[test]
    fn each_uplink_subframe_has_a_grant() {
        for (configuration, pattern, timeline) in all() {
            for slot in (20..30).filter(|slot| pattern.carries_uplink(*slot)) {
                let grant = timeline.last_grant(slot).expect("a grant");
                assert!(pattern.carries_downlink(grant) && (4..=7).contains(&(slot - grant)), "{configuration} {slot}");
                assert!(timeline.granted(grant).any(|uplink| uplink == slot), "{configuration} {slot}");
            }
            for grant in 20..30 {
                for uplink in timeline.granted(grant) {
                    assert!(pattern.carries_uplink(uplink), "{configuration}: {grant} grants {uplink}");
                }
                assert!(timeline.granted(timeline.grant_from(grant)).next().is_some());
            }
        }
        // Configuration 0 grants two subframes at once, all others one.
        let most = |configuration| {
            let timeline = timeline(configuration, 7, 4).expect("a configuration");
            (0..10).map(|slot| timeline.granted(slot).count()).max()
        };
        assert_eq!((most(0), most(1), most(6)), (Some(2), Some(1), Some(1)));
    }

    /// As many blocks are in flight from one to its repetition as the uplink has processes; and
    /// each uplink subframe carries the repetitions of one other.
    #[test]
    fn uplink_repetitions_cover_the_processes() {
        for (configuration, pattern, timeline) in all() {
            let uplink: Vec<u64> = (0..10).filter(|slot| pattern.carries_uplink(*slot)).collect();
            for slot in &uplink {
                let next = timeline.next_uplink_attempt(*slot);
                assert!(pattern.carries_uplink(next) && (10..=14).contains(&(next - slot)), "{configuration} {slot}");
                let in_flight = (*slot..next).filter(|each| pattern.carries_uplink(*each)).count();
                let processes = processes(configuration).expect("a configuration").uplink;
                assert_eq!(in_flight, usize::from(processes), "{configuration} {slot}");
            }
            let mut repeated: Vec<u64> = uplink.iter().map(|slot| timeline.next_uplink_attempt(*slot) % 10).collect();
            repeated.sort_unstable();
            assert_eq!(repeated, uplink, "{configuration}");
        }
    }

    /// The processes are as many as can be in flight when each subframe carries a block: from a
    /// block to the first attempt after its feedback, with 4 ms of processing.
    #[test]
    fn downlink_processes_cover_the_round_trip() {
        for (configuration, pattern, timeline) in all() {
            let in_flight = |slot: u64| {
                let next = timeline.next_attempt(timeline.feedback(slot));
                (slot..next).filter(|each| pattern.carries_downlink(*each)).count()
            };
            let most = (0..10).filter(|slot| pattern.carries_downlink(*slot)).map(in_flight).max();
            let processes = processes(configuration).expect("a configuration");
            assert_eq!(most, Some(usize::from(processes.downlink)), "{configuration}");
        }
    }
}
