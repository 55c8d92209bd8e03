//! F-RTO: telling a spurious time-out from what is acknowledged next (RFC 5682).

/// Where the algorithm stands. It runs from a time-out until it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardRto {
    /// Does not run.
    #[default]
    Off,
    /// The first segment was sent again; waits for the next acknowledgement (step 1).
    Repeated,
    /// New data may be sent instead of more retransmissions, so many segments; waits for the
    /// acknowledgement after (step 2b).
    Forward {
        /// Segments that may still be sent.
        segments: u8,
    },
}

/// What an acknowledgement after a time-out says.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Something new was acknowledged cumulatively.
    pub advanced: bool,
    /// Everything that was outstanding at the time-out was.
    pub complete: bool,
    /// With selective acknowledgements: whether it tells of the arrival of something that was sent
    /// once only, before the time-out. `None` without them.
    pub original_arrived: Option<bool>,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not known yet.
    Open,
    /// The time-out was needed: repair the losses.
    Lost,
    /// The time-out was spurious.
    Spurious,
}

impl ForwardRto {
    /// An acknowledgement came in.
    pub fn on_ack(&mut self, evidence: Evidence) -> Verdict {
        let verdict = match (*self, evidence.original_arrived) {
            (Self::Off, _) => return Verdict::Lost,
            // RFC 5682 §3.1 step 3b, and already before that step, as in Linux: originals arrive
            // although they were given up.
            (_, Some(true)) => Verdict::Spurious,
            // §3.1 step 2: duplicates say nothing new here.
            (Self::Repeated, Some(false)) if !evidence.advanced => return Verdict::Open,
            // §2.1 step 2a: nothing new, or all at once.
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

    /// Segments of new data that may be sent now, if it is at that step.
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
    fn two_advancing_acknowledgements_tell_a_spurious_timeout() {
        let mut frto = ForwardRto::Repeated;
        assert_eq!(frto.on_ack(ADVANCED), Verdict::Open);
        assert_eq!(frto.forward(), Some(2));
        assert_eq!(frto.on_ack(ADVANCED), Verdict::Spurious);
        assert_eq!(frto, ForwardRto::Off);
    }

    #[test]
    fn a_duplicate_tells_a_loss() {
        let duplicate = Evidence { advanced: false, ..ADVANCED };
        assert_eq!(ForwardRto::Repeated.on_ack(duplicate), Verdict::Lost);
        assert_eq!(ForwardRto::Forward { segments: 1 }.on_ack(duplicate), Verdict::Lost);
    }

    #[test]
    fn an_original_that_arrives_tells_at_once() {
        let original = Evidence { original_arrived: Some(true), ..ADVANCED };
        assert_eq!(ForwardRto::Repeated.on_ack(original), Verdict::Spurious);
        assert_eq!(ForwardRto::Off.on_ack(original), Verdict::Lost);
    }
}
