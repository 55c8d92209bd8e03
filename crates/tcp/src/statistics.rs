//! Counters of a connection.

use airpath_core::Span;
use serde::{Deserialize, Serialize};

/// Counters of one end. "Data" is payload that this end sent. Those of every packet are first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Statistics {
    /// Segments sent, of any kind.
    pub segments: u64,
    /// Segments received, of any kind.
    pub received_segments: u64,
    /// Segments with payload sent.
    pub data_segments: u64,
    /// Payload bytes sent, including retransmissions.
    pub data_bytes: u64,
    /// Payload bytes sent, each counted once.
    pub unique_bytes: u64,
    /// Segments sent without payload, SYN, FIN and RST: acknowledgements and window probes.
    pub pure_acks: u64,
    /// Round trips measured for these statistics: one for each acknowledgement whose last segment
    /// was sent once, if no segment before it that it acknowledges was sent later (Karn's rule).
    /// That of the SYN is the first, as in tcptrace.
    pub rtt_samples: u64,
    /// Their sum.
    pub rtt_sum: Span,
    /// Their minimum.
    pub rtt_min: Option<Span>,
    /// Their maximum.
    pub rtt_max: Option<Span>,
    /// Segments with retransmitted payload.
    pub retransmitted_segments: u64,
    /// Retransmitted payload bytes.
    pub retransmitted_bytes: u64,
    /// Duplicate acknowledgements received (RFC 5681 §2, or with new selective acknowledgements).
    pub duplicate_acks: u64,
    /// Segments received without anything new.
    pub duplicate_segments: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast recoveries.
    pub fast_retransmits: u64,
    /// Tail loss probes sent.
    pub tail_probes: u64,
    /// Probes of a closed window sent.
    pub window_probes: u64,
    /// Window reductions that were detected as spurious and undone.
    pub undos: u64,
    /// Reductions of the congestion window because of ECN.
    pub ecn_reductions: u64,
    /// Segments received with a CE mark.
    pub marked_segments: u64,
}

impl Statistics {
    /// Mean round trip in seconds.
    pub fn rtt_mean_s(&self) -> Option<f64> {
        (self.rtt_samples > 0).then(|| self.rtt_sum.as_secs_f64() / self.rtt_samples as f64)
    }

    #[inline]
    pub(crate) fn round_trip(&mut self, sample: Span) {
        self.rtt_samples += 1;
        self.rtt_sum += sample;
        self.rtt_min = Some(self.rtt_min.map_or(sample, |least| least.min(sample)));
        self.rtt_max = Some(self.rtt_max.map_or(sample, |greatest| greatest.max(sample)));
    }
}
