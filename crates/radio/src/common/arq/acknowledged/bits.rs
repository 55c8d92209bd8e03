//! A set of sequence numbers within a window that moves on.

use std::collections::VecDeque;

/// A bitmap of the sequence numbers around a window. What lies far enough below is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    /// The number of the first word that is kept: sequence numbers 64 · `first` and up.
    first: u64,
    words: VecDeque<u64>,
}

impl Bits {
    /// Whether it has that number.
    #[inline]
    pub fn has(&self, sequence: u64) -> bool {
        self.word(sequence / 64) >> (sequence % 64) & 1 == 1
    }

    /// Takes in a number, which is not forgotten yet.
    #[inline]
    pub fn insert(&mut self, sequence: u64) {
        self.add(sequence / 64, 1 << (sequence % 64));
    }

    /// Takes out a number.
    #[inline]
    pub fn remove(&mut self, sequence: u64) {
        self.subtract(sequence / 64, 1 << (sequence % 64));
    }

    /// The numbers from 64 · `index` on, as bits.
    #[inline]
    pub fn word(&self, index: u64) -> u64 {
        index.checked_sub(self.first).and_then(|place| self.words.get(place as usize)).copied().unwrap_or(0)
    }

    /// Takes in several numbers of a word, which is not forgotten yet.
    #[inline]
    pub fn add(&mut self, index: u64, numbers: u64) {
        let place = (index - self.first) as usize;
        while self.words.len() <= place {
            self.words.push_back(0);
        }
        self.words[place] |= numbers;
    }

    /// Takes out several numbers of a word.
    #[inline]
    pub fn subtract(&mut self, index: u64, numbers: u64) {
        if let Some(word) = index.checked_sub(self.first).and_then(|place| self.words.get_mut(place as usize)) {
            *word &= !numbers;
        }
    }

    /// Forgets the words that lie wholly below a number.
    pub fn forget_below(&mut self, sequence: u64) {
        let first = (sequence / 64).max(self.first);
        let gone = ((first - self.first) as usize).min(self.words.len());
        self.words.drain(..gone);
        self.first = first;
    }

    /// Forgets all, and everything below a number for good.
    pub fn restart(&mut self, sequence: u64) {
        self.words.clear();
        self.first = sequence / 64;
    }

    /// The lowest number in the set that is not below `sequence`.
    pub fn first_from(&self, sequence: u64) -> Option<u64> {
        let mut index = (sequence / 64).max(self.first);
        let mut word = self.word(index) & mask(index, sequence, u64::MAX);
        let end = self.first + self.words.len() as u64;
        while word == 0 {
            index += 1;
            if index >= end {
                return None;
            }
            word = self.word(index);
        }
        Some(index * 64 + u64::from(word.trailing_zeros()))
    }

    /// The lowest number not in the set that is not below `sequence`.
    pub fn first_gap_from(&self, sequence: u64) -> u64 {
        let mut index = sequence / 64;
        let mut word = !self.word(index) & mask(index, sequence, u64::MAX);
        while word == 0 {
            index += 1;
            word = !self.word(index);
        }
        index * 64 + u64::from(word.trailing_zeros())
    }
}

/// The bits of a word that are numbers in `from..to`.
#[inline]
pub const fn mask(index: u64, from: u64, to: u64) -> u64 {
    below(index, to) & !below(index, from)
}

/// The bits of a word that are numbers below `end`.
#[inline]
const fn below(index: u64, end: u64) -> u64 {
    let bits = end.saturating_sub(index * 64);
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_and_gaps_across_words() {
        let mut bits = Bits::default();
        for sequence in [0, 1, 2, 63, 64, 65, 200] {
            bits.insert(sequence);
        }
        assert_eq!(bits.first_gap_from(0), 3);
        assert_eq!(bits.first_gap_from(63), 66);
        assert_eq!(bits.first_from(3), Some(63));
        assert_eq!(bits.first_from(66), Some(200));
        assert_eq!(bits.first_from(201), None);
        bits.remove(200);
        assert_eq!(bits.first_from(66), None);
    }

    #[test]
    fn forgets_what_lies_behind() {
        let mut bits = Bits::default();
        (0..300).for_each(|sequence| bits.insert(sequence));
        bits.forget_below(130);
        assert!(!bits.has(127), "a whole word below is gone");
        assert!(bits.has(130) && bits.has(299));
        assert_eq!(bits.words.len(), 3);
        bits.forget_below(5);
        assert_eq!(bits.first, 2, "what is forgotten does not come back");
        bits.forget_below(10_000);
        bits.insert(10_001);
        assert_eq!(bits.first_from(0), Some(10_001));
    }

    #[test]
    fn masks() {
        assert_eq!(mask(0, 0, 64), u64::MAX);
        assert_eq!(mask(1, 66, 68), 0b1100);
        assert_eq!(mask(1, 0, 64), 0);
        assert_eq!(mask(0, 70, 80), 0);
        assert_eq!(mask(2, 0, u64::MAX), u64::MAX);
    }
}
