//! The slots of a cell, and the one timeline of its downlink and uplink: which slot carries data,
//! its feedback, the next attempt, a grant and the granted block.
//!
//! All rules have the form "the first fitting slot at or after". The pattern repeats, so the
//! distances are computed once, and each question is answered by one look-up.

use airpath_core::{Instant, Span};

/// OFDM symbols of a slot with normal cyclic prefix: 14 of a slot of NR (TS 38.211 Table 4.3.2-1)
/// and of a subframe of LTE (TS 36.211 §6.2.3).
pub const SYMBOLS: u8 = 14;

/// The symbols of a slot for each direction. With TDD their sum is at most 14, and the rest is the
/// guard period; with FDD both directions have all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Symbols towards the mobiles, at the begin of the slot.
    pub downlink: u8,
    /// Symbols from the mobiles, at its end.
    pub uplink: u8,
}

impl Slot {
    /// D: all symbols are for the downlink.
    pub const DOWNLINK: Self = Self { downlink: SYMBOLS, uplink: 0 };
    /// U: all symbols are for the uplink.
    pub const UPLINK: Self = Self { downlink: 0, uplink: SYMBOLS };
    /// A slot of FDD.
    pub const PAIRED: Self = Self { downlink: SYMBOLS, uplink: SYMBOLS };
}

/// Why a pattern or its timeline cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// Too many or no slots.
    #[error("a pattern must have 1 to {MAX_SLOTS} slots, not {slots}")]
    Length {
        /// Its slots.
        slots: usize,
    },
    /// A slot with more symbols than there are.
    #[error("slot {index} has {downlink} downlink and {uplink} uplink symbols: their sum must be at most {SYMBOLS}")]
    Symbols {
        /// The slot, from zero.
        index: usize,
        /// Its downlink symbols.
        downlink: u8,
        /// Its uplink symbols.
        uplink: u8,
    },
    /// No slot for downlink data.
    #[error("no slot has the {least} downlink symbols that data need: add a D slot")]
    NoDownlink {
        /// The least symbols of a slot that carries downlink data.
        least: u8,
    },
    /// No slot for feedback and uplink data.
    #[error("no slot is a U slot: HARQ feedback and uplink data need one")]
    NoUplink,
    /// Feedback of a downlink slot is missing.
    #[error("downlink slot {index} has no feedback")]
    NoFeedback {
        /// The slot, from zero.
        index: usize,
    },
    /// A block of an uplink slot cannot be sent again.
    #[error("uplink slot {index} has no slot for the repetition of its block")]
    NoRepetition {
        /// The slot, from zero.
        index: usize,
    },
    /// An uplink slot cannot be granted.
    #[error("uplink slot {index} has no grant")]
    NoGrant {
        /// The slot, from zero.
        index: usize,
    },
}

/// The longest pattern: 20 ms of NR with 120 kHz.
const MAX_SLOTS: usize = 160;

/// A repeating pattern of slots. Slots are counted from the origin of time, and slot 0 is the first
/// of the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPattern {
    duration: Span,
    slots: Box<[Slot]>,
    least_downlink: u8,
    /// From each slot to the first that carries downlink data, zero for itself.
    to_downlink: Box<[u16]>,
    /// The same for the uplink.
    to_uplink: Box<[u16]>,
}

impl SlotPattern {
    /// Slots of FDD: each carries both directions.
    ///
    /// # Panics
    /// If the duration is zero.
    pub fn fdd(duration: Span) -> Self {
        Self::of_valid(duration, vec![Slot::PAIRED], SYMBOLS).expect("both directions")
    }

    /// Slots of TDD. A slot carries downlink data if it has at least `least_downlink` downlink
    /// symbols; HARQ feedback and uplink data need a whole U slot.
    ///
    /// # Errors
    /// If there are no slots or too many, a slot has too many symbols, or no slot carries downlink
    /// data or none carries uplink data.
    ///
    /// # Panics
    /// If the duration is zero.
    pub fn tdd(duration: Span, slots: Vec<Slot>, least_downlink: u8) -> Result<Self, SlotError> {
        if let Some(index) = slots.iter().position(|slot| slot.downlink.saturating_add(slot.uplink) > SYMBOLS) {
            let Slot { downlink, uplink } = slots[index];
            return Err(SlotError::Symbols { index, downlink, uplink });
        }
        Self::of_valid(duration, slots, least_downlink)
    }

    fn of_valid(duration: Span, slots: Vec<Slot>, least_downlink: u8) -> Result<Self, SlotError> {
        assert!(!duration.is_zero(), "slots take time");
        if slots.is_empty() || slots.len() > MAX_SLOTS {
            return Err(SlotError::Length { slots: slots.len() });
        }
        let to_downlink = distances(&slots, |slot| slot.downlink >= least_downlink.max(1));
        let to_uplink = distances(&slots, |slot| slot.uplink == SYMBOLS);
        Ok(Self {
            duration,
            to_downlink: to_downlink.ok_or(SlotError::NoDownlink { least: least_downlink })?,
            to_uplink: to_uplink.ok_or(SlotError::NoUplink)?,
            slots: slots.into(),
            least_downlink,
        })
    }

    /// The duration of a slot.
    pub const fn duration(&self) -> Span {
        self.duration
    }

    /// Slots after which the pattern repeats.
    pub fn period(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The symbols of slot `slot`.
    #[inline]
    pub fn symbols(&self, slot: u64) -> Slot {
        self.slots[self.place(slot)]
    }

    /// Whether slot `slot` carries downlink data.
    #[inline]
    pub fn carries_downlink(&self, slot: u64) -> bool {
        self.to_downlink[self.place(slot)] == 0
    }

    /// Whether slot `slot` carries uplink data and HARQ feedback.
    #[inline]
    pub fn carries_uplink(&self, slot: u64) -> bool {
        self.to_uplink[self.place(slot)] == 0
    }

    /// The first slot at or after `slot` that carries downlink data.
    #[inline]
    pub fn downlink_from(&self, slot: u64) -> u64 {
        slot + u64::from(self.to_downlink[self.place(slot)])
    }

    /// The first slot at or after `slot` that carries uplink data and HARQ feedback.
    #[inline]
    pub fn uplink_from(&self, slot: u64) -> u64 {
        slot + u64::from(self.to_uplink[self.place(slot)])
    }

    /// The slot in which `now` is; at the border of two, the later.
    #[inline]
    pub fn slot_at(&self, now: Instant) -> u64 {
        match self.duration {
            // Division by a constant is faster.
            MILLISECOND => now.as_nanos() / MILLISECOND.as_nanos(),
            HALF_MILLISECOND => now.as_nanos() / HALF_MILLISECOND.as_nanos(),
            duration => now.as_nanos() / duration.as_nanos(),
        }
    }

    /// The first slot that begins at or after `now`: the first that a packet can use that comes
    /// then.
    #[inline]
    pub fn slot_from(&self, now: Instant) -> u64 {
        let slot = self.slot_at(now);
        slot + u64::from(self.start(slot) < now)
    }

    /// When slot `slot` begins.
    #[inline]
    pub fn start(&self, slot: u64) -> Instant {
        Instant::ZERO + self.duration * slot
    }

    /// When slot `slot` ends.
    #[inline]
    pub fn end(&self, slot: u64) -> Instant {
        self.start(slot + 1)
    }

    /// The share of all symbols that are for the downlink.
    pub fn downlink_share(&self) -> f64 {
        self.share(|slot| slot.downlink)
    }

    /// The share of all symbols that are for the uplink.
    pub fn uplink_share(&self) -> f64 {
        self.share(|slot| slot.uplink)
    }

    fn share(&self, symbols: impl Fn(&Slot) -> u8) -> f64 {
        let sum: u32 = self.slots.iter().map(|slot| u32::from(symbols(slot))).sum();
        f64::from(sum) / (self.slots.len() * usize::from(SYMBOLS)) as f64
    }

    #[inline]
    fn place(&self, slot: u64) -> usize {
        // With FDD the pattern is one slot.
        if self.slots.len() == 1 { 0 } else { (slot % self.slots.len() as u64) as usize }
    }
}

/// The slots of 15 and 30 kHz.
const MILLISECOND: Span = Span::from_millis(1);
const HALF_MILLISECOND: Span = Span::from_micros(500);

/// The distance from each slot to the first that fits; `None` if none does.
fn distances(slots: &[Slot], fits: impl Fn(&Slot) -> bool) -> Option<Box<[u16]>> {
    let to_next = |from: usize| slots.iter().cycle().skip(from).take(slots.len()).position(&fits);
    (0..slots.len()).map(|from| to_next(from).map(|distance| distance as u16)).collect()
}

/// The least distances of the timeline, in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// From a downlink assignment to its data: K0.
    pub assignment_to_data: u32,
    /// From downlink data to their feedback: K1.
    pub data_to_feedback: u32,
    /// From feedback to the next attempt: the processing of the base station.
    pub feedback_to_attempt: u32,
    /// From a grant to the uplink data: K2.
    pub grant_to_data: u32,
    /// From what the base station received (a scheduling request, uplink data) to a grant that
    /// depends on it.
    pub received_to_grant: u32,
}

impl Offsets {
    /// LTE FDD: feedback after 4 ms (TS 36.213 §10.1.2.1), uplink data 4 ms after the grant (§8.0),
    /// and a base station that answers after 4 ms.
    pub const LTE_FDD: Self = Self {
        assignment_to_data: 0,
        data_to_feedback: 4,
        feedback_to_attempt: 4,
        grant_to_data: 4,
        received_to_grant: 4,
    };
}

/// The timeline of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    pattern: SlotPattern,
    offsets: Offsets,
    /// From each slot with downlink data to its feedback; zero for other slots.
    feedback: Box<[u16]>,
    /// From each slot to the uplink slots that it can grant, in rising order; empty if it carries
    /// no grants.
    grants: Box<[Box<[u16]>]>,
    /// From each slot to the first that carries grants.
    to_grant: Box<[u16]>,
    /// From the grant of each uplink slot to the slot; zero for other slots.
    granted_by: Box<[u16]>,
    /// From each slot to the first in which the base station sends data or grants.
    to_control: Box<[u16]>,
    /// From each uplink slot to the next attempt of its block, if that does not follow from the
    /// grants.
    repetitions: Option<Box<[u16]>>,
}

impl Timeline {
    /// The timeline that follows from the offsets alone (FDD and NR): feedback in the first uplink
    /// slot, grants in every slot with downlink data.
    ///
    /// A slot can grant the first uplink slot at or after K2, and those for which it is the last
    /// slot that is early enough. So every uplink slot can be granted.
    pub fn new(pattern: SlotPattern, offsets: Offsets) -> Self {
        let k1 = u64::from(offsets.data_to_feedback);
        let k2 = u64::from(offsets.grant_to_data);
        let period = pattern.period();
        let feedback = |slot| pattern.uplink_from(slot + k1) - slot;
        let feedback = (0..period).map(|slot| if pattern.carries_downlink(slot) { feedback(slot) as u16 } else { 0 });
        // One period later, so that the last slot that is early enough is not before the origin.
        let late = (k2 / period + 2) * period;
        let granted_by = |uplink: u64| {
            let latest = (0..=late + uplink - k2).rev().find(|slot| pattern.carries_downlink(*slot));
            late + uplink - latest.expect("a pattern has a downlink slot in each period")
        };
        let granted_by: Box<[u16]> =
            (0..period).map(|slot| if pattern.carries_uplink(slot) { granted_by(slot) as u16 } else { 0 }).collect();
        let grants = (0..period).map(|slot| {
            let first = pattern.uplink_from(slot + k2);
            let is_last = |uplink: &u64| uplink - u64::from(granted_by[(uplink % period) as usize]) == slot;
            let all = (first..=slot + k2 + 2 * period).filter(|uplink| pattern.carries_uplink(*uplink));
            let all = all.filter(|uplink| *uplink == first || is_last(uplink)).map(|uplink| (uplink - slot) as u16);
            if pattern.carries_downlink(slot) { all.collect() } else { Box::default() }
        });
        let (feedback, grants) = (feedback.collect(), grants.collect());
        let (to_grant, to_control) = (pattern.to_downlink.clone(), pattern.to_downlink.clone());
        Self { to_grant, to_control, pattern, offsets, feedback, grants, granted_by, repetitions: None }
    }

    /// A timeline with fixed tables for each slot of the pattern (LTE TDD): the distance from
    /// downlink data to feedback, those from a grant to each uplink slot that it can be for, and
    /// the one from an uplink block to its next attempt. K1 and K2 of the offsets are not used.
    ///
    /// # Errors
    /// If a slot with downlink data has no feedback in an uplink slot, an uplink slot no grant, or
    /// its block no next attempt.
    ///
    /// # Panics
    /// If the tables are not as long as the pattern.
    pub fn of_tables(
        pattern: SlotPattern,
        offsets: Offsets,
        feedback: Vec<u16>,
        grants: Vec<Vec<u16>>,
        repetitions: Vec<u16>,
    ) -> Result<Self, SlotError> {
        let period = pattern.slots.len();
        let lengths = [feedback.len(), grants.len(), repetitions.len()];
        assert!(lengths == [period; 3], "an entry for each slot of the pattern");
        let answered = |slot: u64, after: u16| after > 0 && pattern.carries_uplink(slot + u64::from(after));
        if let Some(index) =
            (0..period).find(|slot| pattern.carries_downlink(*slot as u64) && !answered(*slot as u64, feedback[*slot]))
        {
            return Err(SlotError::NoFeedback { index });
        }
        let mut granted_by = vec![0; period];
        // The first of a list is the usual distance; of the others a slot has the latest grant.
        for rank in (0..period).rev() {
            for (slot, list) in grants.iter().enumerate() {
                if let Some(after) = list.get(rank) {
                    granted_by[(slot + usize::from(*after)) % period] = *after;
                }
            }
        }
        if let Some(index) = (0..period).find(|slot| pattern.carries_uplink(*slot as u64) && granted_by[*slot] == 0) {
            return Err(SlotError::NoGrant { index });
        }
        if let Some(index) =
            (0..period).find(|slot| pattern.carries_uplink(*slot as u64) && !answered(*slot as u64, repetitions[*slot]))
        {
            return Err(SlotError::NoRepetition { index });
        }
        let to_grant = |from: usize| grants.iter().cycle().skip(from).position(|list| !list.is_empty());
        let to_grant: Box<[u16]> =
            (0..period).map(|slot| to_grant(slot).expect("each uplink slot has a grant") as u16).collect();
        let to_control = pattern.to_downlink.iter().zip(&to_grant).map(|(data, grant)| *data.min(grant)).collect();
        let grants = grants.into_iter().map(|mut list| {
            list.sort_unstable();
            list.into()
        });
        let grants = grants.collect();
        Ok(Self {
            pattern,
            offsets,
            feedback: feedback.into(),
            grants,
            to_grant,
            granted_by: granted_by.into(),
            to_control,
            repetitions: Some(repetitions.into()),
        })
    }

    /// The slots.
    pub const fn pattern(&self) -> &SlotPattern {
        &self.pattern
    }

    /// The slot of the data that an assignment in slot `assignment` announces.
    #[inline]
    pub fn data(&self, assignment: u64) -> u64 {
        self.pattern.downlink_from(assignment + u64::from(self.offsets.assignment_to_data))
    }

    /// The slot of the feedback for downlink data in slot `data`.
    #[inline]
    pub fn feedback(&self, data: u64) -> u64 {
        debug_assert!(self.pattern.carries_downlink(data), "slot {data} carries no downlink data");
        data + u64::from(self.feedback[self.pattern.place(data)])
    }

    /// The first slot of the next downlink attempt after feedback in slot `feedback`.
    #[inline]
    pub fn next_attempt(&self, feedback: u64) -> u64 {
        self.pattern.downlink_from(feedback + u64::from(self.offsets.feedback_to_attempt))
    }

    /// The first slot at or after `slot` that carries grants.
    #[inline]
    pub fn grant_from(&self, slot: u64) -> u64 {
        slot + u64::from(self.to_grant[self.pattern.place(slot)])
    }

    /// The first slot of a grant that depends on what the base station received in slot `received`:
    /// a scheduling request, or uplink data with a buffer status report or in error.
    #[inline]
    pub fn grant_after(&self, received: u64) -> u64 {
        self.grant_from(received + u64::from(self.offsets.received_to_grant))
    }

    /// The first slot at or after `slot` in which the base station sends data or grants.
    #[inline]
    pub fn control_from(&self, slot: u64) -> u64 {
        slot + u64::from(self.to_control[self.pattern.place(slot)])
    }

    /// The slot of the next attempt of a block that was in error in uplink slot `data`.
    ///
    /// # Panics
    /// If slot `data` carries no uplink data.
    #[inline]
    pub fn next_uplink_attempt(&self, data: u64) -> u64 {
        match &self.repetitions {
            Some(repetitions) => data + u64::from(repetitions[self.pattern.place(data)]),
            None => self.granted(self.grant_after(data)).next().expect("a slot with grants"),
        }
    }

    /// The uplink slots that a grant in slot `grant` can be for, in rising order. Empty if the slot
    /// carries no grants.
    #[inline]
    pub fn granted(&self, grant: u64) -> impl Iterator<Item = u64> {
        self.grants[self.pattern.place(grant)].iter().map(move |after| grant + u64::from(*after))
    }

    /// The slot of the last grant for uplink slot `uplink`; `None` where it would be before the
    /// origin, or if the slot carries no uplink data.
    #[inline]
    pub fn last_grant(&self, uplink: u64) -> Option<u64> {
        let before = u64::from(self.granted_by[self.pattern.place(uplink)]);
        if before == 0 { None } else { uplink.checked_sub(before) }
    }
}

/// Occasions that repeat: for scheduling requests, random access, paging, CQI reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occasions {
    period: u64,
    offset: u64,
}

impl Occasions {
    /// Every `period` slots, from slot `offset` on.
    ///
    /// # Panics
    /// If the period is zero.
    pub fn new(period: u64, offset: u64) -> Self {
        assert!(period > 0, "occasions have a period");
        Self { period, offset }
    }

    /// The first occasion at or after `slot`.
    #[inline]
    pub fn at_or_after(&self, slot: u64) -> u64 {
        self.offset + slot.saturating_sub(self.offset).next_multiple_of(self.period)
    }

    /// Whether all occasions carry uplink data in `pattern`.
    pub fn fit(&self, pattern: &SlotPattern) -> bool {
        let mut all = (0..pattern.period()).map(|number| self.offset + number * self.period);
        all.all(|slot| pattern.carries_uplink(slot))
    }
}
