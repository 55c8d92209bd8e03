//! Convolutional codes of rate 1/n and their maximum-likelihood decoding: the Viterbi algorithm on
//! soft values.

/// The codes of GSM (TS 45.003 annex B) used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Rate 1/2, 16 states: G0 = 1 + D³ + D⁴, G1 = 1 + D + D³ + D⁴. CS-1 to CS-3 and TCH.
    Half,
    /// Rate 1/3, 64 states: G4 = 1 + D² + D³ + D⁵ + D⁶, G7 = 1 + D + D² + D³ + D⁶, G5 = 1 + D + D⁴
    /// + D⁶. MCS-1 to MCS-9.
    Third,
}

impl Code {
    /// Generator polynomials: bit d is the power Dᵈ.
    const fn generators(self) -> &'static [u8] {
        match self {
            Self::Half => &[0b1_1001, 0b1_1011],
            Self::Third => &[0b110_1101, 0b100_1111, 0b101_0011],
        }
    }

    /// Memory of the encoder in bits; this number of zeros terminates a block.
    pub const fn memory(self) -> usize {
        match self {
            Self::Half => 4,
            Self::Third => 6,
        }
    }

    /// Coded bits per input bit.
    pub const fn outputs(self) -> usize {
        self.generators().len()
    }

    /// The output for a register (newest bit lowest), the first generator's bit highest.
    fn output(self, register: usize) -> usize {
        self.generators().iter().fold(0, |word, generator| {
            let parity = (register as u8 & generator).count_ones() & 1;
            (word << 1) | parity as usize
        })
    }

    /// Encodes a block that is terminated by [`memory`](Self::memory) zeros, which this function
    /// adds.
    pub fn encode(self, block: &[bool]) -> Vec<bool> {
        let tail = std::iter::repeat_n(false, self.memory());
        self.encode_from(0, block.iter().copied().chain(tail))
    }

    /// Encodes a block with tail-biting: the encoder begins in its final state.
    ///
    /// # Panics
    /// If the block is shorter than the encoder's memory.
    pub fn encode_circular(self, block: &[bool]) -> Vec<bool> {
        let end = &block[block.len() - self.memory()..];
        let state = end.iter().fold(0, |state, bit| (state << 1) | usize::from(*bit));
        self.encode_from(state, block.iter().copied())
    }

    fn encode_from(self, mut register: usize, bits: impl Iterator<Item = bool>) -> Vec<bool> {
        let outputs = self.outputs();
        let mut coded = Vec::new();
        for bit in bits {
            register = ((register << 1) | usize::from(bit)) & ((2 << self.memory()) - 1);
            let word = self.output(register);
            coded.extend((0..outputs).rev().map(|i| word >> i & 1 == 1));
        }
        coded
    }
}

/// A decoder of one code, with its working memory.
#[derive(Clone, Debug)]
pub struct Viterbi {
    code: Code,
    /// The output for each register.
    words: Vec<u8>,
    metrics: Vec<f32>,
    next: Vec<f32>,
    /// For each step, the states whose better predecessor is the one with its oldest bit set.
    survivors: Vec<u64>,
    decoded: Vec<bool>,
}

/// Less than any possible metric of a block.
const UNREACHABLE: f32 = -1e30;

impl Viterbi {
    /// A decoder of `code`.
    pub fn new(code: Code) -> Self {
        let states = 1 << code.memory();
        Self {
            code,
            words: (0..2 * states).map(|register| code.output(register) as u8).collect(),
            metrics: vec![0.0; states],
            next: vec![0.0; states],
            survivors: Vec::new(),
            decoded: Vec::new(),
        }
    }

    /// The most likely block, without its tail. `soft` has the log-likelihood ratio ln(P(0)/P(1))
    /// of each coded bit, 0 for punctured bits.
    pub fn decode(&mut self, soft: &[f32]) -> &[bool] {
        self.metrics.fill(UNREACHABLE);
        self.metrics[0] = 0.0;
        self.survivors.clear();
        self.run(soft);
        let steps = soft.len() / self.code.outputs();
        self.trace_back(0, steps, 0);
        self.decoded.truncate(steps - self.code.memory());
        &self.decoded
    }

    /// The most likely block of a tail-biting code: three passes from an unknown state, and the
    /// result is the second one's. This is worse than maximum likelihood only if the state has not
    /// converged after one pass, which is rare.
    pub fn decode_circular(&mut self, soft: &[f32]) -> &[bool] {
        self.metrics.fill(0.0);
        self.survivors.clear();
        (0..3).for_each(|_| self.run(soft));
        let steps = soft.len() / self.code.outputs();
        let best =
            (0..self.metrics.len()).fold(0, |best, s| if self.metrics[s] > self.metrics[best] { s } else { best });
        self.trace_back(best, 3 * steps, steps);
        self.decoded.truncate(steps);
        &self.decoded
    }

    /// Processes the soft values; each code word adds a step of survivors.
    fn run(&mut self, soft: &[f32]) {
        let outputs = self.code.outputs();
        let half = self.metrics.len() / 2;
        for word in soft.chunks_exact(outputs) {
            // The correlation of the received word with each of the 2ⁿ possible ones.
            let mut correlation = [0.0f32; 8];
            for (sent, sum) in correlation.iter_mut().enumerate().take(1 << outputs) {
                for (i, value) in word.iter().enumerate() {
                    *sum += if sent >> (outputs - 1 - i) & 1 == 0 { *value } else { -*value };
                }
            }
            let mut survivors = 0u64;
            for pair in 0..half {
                let (low, high) = (self.metrics[pair], self.metrics[pair + half]);
                for bit in 0..2 {
                    let state = 2 * pair + bit;
                    let from_low = low + correlation[usize::from(self.words[state]) & 7];
                    let from_high = high + correlation[usize::from(self.words[state + 2 * half]) & 7];
                    self.next[state] = if from_high > from_low { from_high } else { from_low };
                    survivors |= u64::from(from_high > from_low) << state;
                }
            }
            self.survivors.push(survivors);
            std::mem::swap(&mut self.metrics, &mut self.next);
        }
    }

    /// Traces the survivors back from `state` after step `last`, and stores the bits from step
    /// `first` on.
    fn trace_back(&mut self, mut state: usize, last: usize, first: usize) {
        let half = self.metrics.len() / 2;
        self.decoded.clear();
        for step in (first..last).rev() {
            self.decoded.push(state & 1 == 1);
            let oldest = (self.survivors[step] >> state & 1) as usize;
            state = (state >> 1) + oldest * half;
        }
        self.decoded.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(length: usize) -> Vec<bool> {
        (0..length).map(|i| (i * i + i / 3) % 7 < 3).collect()
    }

    fn soft(coded: &[bool]) -> Vec<f32> {
        coded.iter().map(|bit| if *bit { -1.0 } else { 1.0 }).collect()
    }

    #[test]
    fn a_single_one_puts_the_generators_out() {
        // The response to 1, 0, 0, 0, 0 lists the coefficients of the powers of D, generator by
        // generator.
        let coded = Code::Half.encode(&[true]);
        let of = |i: usize| coded.iter().skip(i).step_by(2).copied().map(u8::from).collect::<Vec<_>>();
        assert_eq!(of(0), [1, 0, 0, 1, 1]);
        assert_eq!(of(1), [1, 1, 0, 1, 1]);
        let coded = Code::Third.encode(&[true]);
        let of = |i: usize| coded.iter().skip(i).step_by(3).copied().map(u8::from).collect::<Vec<_>>();
        assert_eq!(of(0), [1, 0, 1, 1, 0, 1, 1]);
        assert_eq!(of(1), [1, 1, 1, 1, 0, 0, 1]);
        assert_eq!(of(2), [1, 1, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn what_was_coded_is_decoded() {
        for code in [Code::Half, Code::Third] {
            let block = block(100);
            assert_eq!(Viterbi::new(code).decode(&soft(&code.encode(&block))), block);
            assert_eq!(Viterbi::new(code).decode_circular(&soft(&code.encode_circular(&block))), block);
        }
    }

    /// The free distance: the least weight of a path that leaves the state zero and returns. Fewer
    /// errors than half of it are corrected, at any positions. 7 is the maximum of 16 states at
    /// rate 1/2 (Proakis, Digital Communications, tables of §8.2); the best code of rate 1/3 with
    /// 64 states has 15, that of the standard 14.
    #[test]
    fn fewer_errors_than_half_of_the_free_distance_are_corrected() {
        for (code, distance) in [(Code::Half, 7), (Code::Third, 14)] {
            let least = (0..1u32 << 10)
                .map(|rest| {
                    let block: Vec<bool> = std::iter::once(true).chain((0..10).map(|i| rest >> i & 1 == 1)).collect();
                    code.encode(&block).iter().filter(|bit| **bit).count()
                })
                .min();
            assert_eq!(least, Some(distance));
            let sent = block(60);
            let mut received = soft(&code.encode(&sent));
            for wrong in received[40..].iter_mut().take((distance - 1) / 2) {
                *wrong = -*wrong;
            }
            assert_eq!(Viterbi::new(code).decode(&received), sent);
        }
    }
}
