//! F-RTO: detection of spurious retransmission timeouts (RFC 5682).
//!
//! `sender/losses.rs` starts it at a timeout, `sender/acknowledge.rs` passes each acknowledgement
//! to it, and `sender/transmit.rs` sends new data instead of retransmissions in step 2b.

use serde::{Deserialize, Serialize};

/// State of the algorithm, from a timeout to its verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForwardRto {
    /// Not active.
    #[default]
    Off,
    /// The first segment was retransmitted; waits for the next acknowledgement (step 1).
    Repeated,
    /// New data may be sent instead of more retransmissions; waits for the next acknowledgement
    /// (step 2b).
    Forward {
        /// Segments that may still be sent.
        segments: u8,
    },
}

/// An acknowledgement after a timeout.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Whether it acknowledges new data cumulatively.
    pub advanced: bool,
    /// Whether it acknowledges everything that was outstanding at the timeout.
    pub complete: bool,
    /// With selective acknowledgements: whether it covers a segment that was sent once only, before
    /// the timeout. `None` without them.
    pub original_arrived: Option<bool>,
}

/// Result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Undecided.
    Open,
    /// No evidence that the timeout was spurious, or the algorithm is off: repair as after a loss.
    Lost,
    /// The timeout was spurious.
    Spurious,
}

impl ForwardRto {
    /// An acknowledgement came in.
    pub fn on_ack(&mut self, evidence: Evidence) -> Verdict {
        let verdict = match (*self, evidence.original_arrived) {
            // Without F-RTO, or after its verdict, a timeout counts as caused by loss.
            (Self::Off, _) => return Verdict::Lost,
            // RFC 5682 §3.1 step 3b, and as in Linux already before that step: originals arrive
            // although they were considered lost.
            (_, Some(true)) => Verdict::Spurious,
            // §3.1 step 2: duplicates carry no evidence here.
            (Self::Repeated, Some(false)) if !evidence.advanced => return Verdict::Open,
            // §2.1 step 2a: no new data, or all of it.
            _ if !evidence.advanced || evidence.complete => Verdict::Lost,
            // Step 2b.
            (Self::Repeated, _) => Verdict::Open,
            // §2.1 step 3b.
            (Self::Forward { .. }, None) => Verdict::Spurious,
            (Self::Forward { .. }, Some(false)) => Verdict::Lost,
        };
        *self = if verdict == Verdict::Open { Self::Forward { segments: 2 } } else { Self::Off };
        verdict
    }

    /// Segments of new data that may be sent now, in step 2b.
    pub const fn forward(self) -> Option<u8> {
        match self {
            Self::Forward { segments } => Some(segments),
            Self::Off | Self::Repeated => None,
        }
    }

    /// A segment of new data was sent.
    pub const fn on_sent(&mut self) {
        if let Self::Forward { segments } = self {
            *segments = segments.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVANCED: Evidence = Evidence { advanced: true, complete: false, original_arrived: None };

    #[test]
    fn frto_two_advancing_acks_mean_a_spurious_timeout() {
        let mut frto = ForwardRto::Repeated;
        assert_eq!(frto.on_ack(ADVANCED), Verdict::Open);
        assert_eq!(frto.forward(), Some(2));
        assert_eq!(frto.on_ack(ADVANCED), Verdict::Spurious);
        assert_eq!(frto, ForwardRto::Off);
    }

    #[test]
    fn frto_a_duplicate_ack_means_a_loss() {
        let duplicate = Evidence { advanced: false, ..ADVANCED };
        assert_eq!(ForwardRto::Repeated.on_ack(duplicate), Verdict::Lost);
        assert_eq!(ForwardRto::Forward { segments: 1 }.on_ack(duplicate), Verdict::Lost);
    }

    #[test]
    fn frto_with_sack_an_original_that_arrives_means_a_spurious_timeout() {
        let original = Evidence { original_arrived: Some(true), ..ADVANCED };
        assert_eq!(ForwardRto::Repeated.on_ack(original), Verdict::Spurious);
        assert_eq!(ForwardRto::Off.on_ack(original), Verdict::Lost);
    }
}
