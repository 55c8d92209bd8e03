//! Proportional rate reduction (RFC 6937, and the bounds of RFC 9937): during a fast recovery, or
//! after an ECN echo, the window shrinks in proportion to the delivered data, so that sending never
//! pauses.

use serde::{Deserialize, Serialize};

/// State of one recovery.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ProportionalReduction {
    /// The window at the end (`ssthresh`).
    threshold: u64,
    /// Bytes outstanding at the start (`RecoverFS`).
    flight_size: u64,
    /// Bytes delivered since (`prr_delivered`).
    delivered: u64,
    /// Bytes sent since (`prr_out`).
    sent: u64,
    window: u64,
}

impl ProportionalReduction {
    /// Starts a recovery with `flight_size` bytes outstanding, which ends with a window of
    /// `threshold`.
    pub const fn new(threshold: u64, flight_size: u64, window: u64) -> Self {
        Self { threshold, flight_size: if flight_size == 0 { 1 } else { flight_size }, delivered: 0, sent: 0, window }
    }

    /// The current window.
    #[inline]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// `bytes` were sent.
    #[inline]
    pub const fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// An acknowledgement delivered `bytes`; `pipe` bytes are still in the network. `progress` is
    /// whether it acknowledged new data cumulatively and reported no new loss (RFC 6937 §3).
    pub fn on_ack(&mut self, bytes: u64, pipe: u64, progress: bool, segment_size: u64) {
        self.delivered += bytes;
        let quota = if pipe > self.threshold {
            (self.delivered as u128 * self.threshold as u128).div_ceil(self.flight_size as u128) as u64
        } else {
            // Packet conservation, and a segment more with progress (RFC 9937 §6.2).
            let bound = self.delivered.saturating_sub(self.sent).max(bytes);
            let limit = if progress { bound + segment_size } else { bound };
            self.sent + limit.min(self.threshold - pipe)
        };
        let mut allowed = quota.saturating_sub(self.sent);
        if self.sent == 0 {
            // The fast retransmit itself is always sent.
            allowed = allowed.max(segment_size);
        }
        self.window = pipe + allowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_in_proportion_to_what_arrives() {
        // RFC 6937 §4: of 20 segments the first is lost and the window is to be halved, so one
        // segment is sent for every two that arrive.
        let mut prr = ProportionalReduction::new(10, 20, 20);
        let (mut pipe, mut sent) = (19, Vec::new());
        for ack in 0..19 {
            pipe -= 1;
            prr.on_ack(1, pipe, false, 1);
            let out = prr.window().saturating_sub(pipe);
            prr.on_sent(out);
            pipe += out;
            sent.push((ack, out));
        }
        let total: u64 = sent.iter().map(|(_, out)| out).sum();
        assert!((9..=11).contains(&total), "{sent:?}");
        assert!(sent.iter().all(|(_, out)| *out <= 1), "never a burst: {sent:?}");
        assert!((9..=10).contains(&pipe), "{pipe}");
    }

    #[test]
    fn fills_up_to_the_threshold_after_heavy_loss() {
        let mut prr = ProportionalReduction::new(10, 20, 20);
        prr.on_ack(1, 3, false, 1);
        assert_eq!(prr.window(), 4, "conservative: one segment sent for one delivered");
        prr.on_sent(1);
        prr.on_ack(1, 3, true, 1);
        assert_eq!(prr.window(), 5, "one more with progress");
        prr.on_sent(2);
        prr.on_ack(1, 4, false, 1);
        assert_eq!(prr.window(), 5, "as much as is delivered, though as much was sent before (RFC 9937)");
    }

    #[test]
    fn the_reduction_is_proportional_above_the_threshold() {
        // RFC 6937 §3: ceil(prr_delivered · ssthresh / RecoverFS) - prr_out.
        let mut prr = ProportionalReduction::new(7, 10, 10);
        assert_eq!(prr.window(), 10);
        prr.on_ack(1, 9, false, 1);
        assert_eq!(prr.window(), 9 + 1);
        prr.on_sent(1);
        prr.on_ack(2, 8, true, 1);
        assert_eq!(prr.window(), 8 + 2, "three tenths of seven, rounded up, less the one sent");
        prr.on_sent(2);
        prr.on_ack(1, 8, false, 1);
        assert_eq!(prr.window(), 8, "four tenths are three, which were sent");
        // At the threshold itself, the bound of the data delivered applies.
        prr.on_ack(4, 7, true, 1);
        assert_eq!(prr.window(), 7, "it never exceeds the threshold");
        prr.on_ack(0, 3, false, 1);
        assert_eq!(prr.window(), 3 + 4, "eight delivered and three sent allow five, the threshold four");
    }

    #[test]
    fn the_fast_retransmission_is_always_sent() {
        // Nothing was outstanding, and nothing was delivered.
        let mut prr = ProportionalReduction::new(2, 0, 2);
        prr.on_ack(0, 4, false, 1);
        assert_eq!(prr.window(), 5);
        prr.on_sent(1);
        prr.on_ack(0, 4, false, 1);
        assert_eq!(prr.window(), 4);
    }
}
