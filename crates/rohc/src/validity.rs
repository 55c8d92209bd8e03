//! Which parts of a context count as valid (RFC 3095 §5.3.2.2.3, RFC 6846 §5.3.1.2).

use crate::error::DecompressError;

/// Failures among the last [`FAILURES_SEEN`] packets after which the dynamic part counts as
/// damaged, and then the static part (k₁, n₁, k₂, n₂ of RFC 3095 §5.3.2.2.3).
const FAILURES_OF_DYNAMIC: u32 = 2;
const FAILURES_OF_STATIC: u32 = 4;
const FAILURES_SEEN: u32 = 8;

/// The valid parts of a context.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Validity {
    pub(crate) has_static: bool,
    pub(crate) has_dynamic: bool,
    /// The last packets: a one for each that failed, the latest lowest.
    failures: u32,
}

impl Validity {
    /// The error of a compressed packet without the static part.
    pub(crate) const fn require_static(&self, cid: u16) -> Result<(), DecompressError> {
        if self.has_static { Ok(()) } else { Err(DecompressError::NoContext { cid }) }
    }

    /// The static part was received.
    pub(crate) const fn receive_static(&mut self) {
        (self.has_static, self.has_dynamic) = (true, false);
    }

    /// The dynamic part was received.
    pub(crate) const fn receive_dynamic(&mut self) {
        (self.has_dynamic, self.failures) = (true, 0);
    }

    /// Counts a compressed packet.
    pub(crate) const fn count(&mut self, is_failure: bool) {
        self.failures = self.failures << 1 | is_failure as u32;
        let failures = (self.failures & ((1 << FAILURES_SEEN) - 1)).count_ones();
        if is_failure && self.has_dynamic && failures >= FAILURES_OF_DYNAMIC {
            (self.has_dynamic, self.failures) = (false, 0);
        } else if is_failure && !self.has_dynamic && failures >= FAILURES_OF_STATIC {
            (self.has_static, self.failures) = (false, 0);
        }
    }
}
