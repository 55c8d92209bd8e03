//! How much the timestamp of RTP grows: its stride (TS_STRIDE of RFC 3095 §4.5.3 and RFC 5225
//! §6.6.8).

use crate::scaling::common_divisor;

/// Steps of the timestamp after which a longer stride is chosen, if all are multiples of it.
const GROWTH_STEPS: u32 = 32;
/// The longest stride that a packet carries (29 bits).
const LONGEST_STRIDE: u32 = 1 << 29;

/// The stride that a compressor has found for a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stride {
    /// In units of the timestamp; 0 while the timestamp is constant.
    pub(crate) value: u32,
    /// Timestamps that were no multiple of the stride from the last one.
    misfits: u8,
    /// Steps of the timestamp since the last review of the stride, and their common divisor.
    steps: u32,
    divisor: u32,
}

/// What the timestamp of a packet means for the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrideChange {
    /// It is a multiple of the stride from the last one.
    None,
    /// It is not, but that may be an exception.
    Exception,
    /// The stride has changed.
    Stride,
}

impl Stride {
    /// Takes up the timestamp of the next packet.
    pub(crate) fn update(&mut self, last: u32, timestamp: u32) -> StrideChange {
        let step = (timestamp.wrapping_sub(last) as i32).unsigned_abs();
        if step == 0 {
            return StrideChange::None;
        }
        if self.value > 0 && timestamp % self.value == last % self.value {
            return self.review(step);
        }
        (self.steps, self.divisor) = (0, 0);
        if self.value == 0 {
            return self.set(step);
        }
        self.misfits = self.misfits.saturating_add(1);
        // The first one may be a wrap of the timestamp.
        if self.misfits > 1 {
            return self.set(common_divisor(self.value, step));
        }
        StrideChange::Exception
    }

    /// Whether the stride grows: the last steps have a larger common divisor.
    fn review(&mut self, step: u32) -> StrideChange {
        self.steps += 1;
        self.divisor = common_divisor(self.divisor, step);
        if self.steps < GROWTH_STEPS {
            return StrideChange::None;
        }
        let divisor = self.divisor;
        (self.steps, self.divisor, self.misfits) = (0, 0, 0);
        if divisor > self.value && divisor < LONGEST_STRIDE { self.set(divisor) } else { StrideChange::None }
    }

    const fn set(&mut self, stride: u32) -> StrideChange {
        // A stride of 1 fits every timestamp.
        self.value = if stride < LONGEST_STRIDE { stride } else { 1 };
        StrideChange::Stride
    }
}
