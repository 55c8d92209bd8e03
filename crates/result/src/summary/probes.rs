//! The columns of probes, which are pings, datagrams and transactions, and of datagram streams.

use airpath_app::Samples;
use airpath_app::arrivals::Analysis;
use airpath_app::datagrams::Receiver;
use airpath_core::Span;
use serde::Serialize;

/// The columns of pings, datagrams and transactions in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct ProbesRow {
    /// Echo requests, datagrams or requests sent.
    pub sent: u64,
    /// Replies, datagrams or responses received.
    pub received: u64,
    /// Those not received.
    pub lost: u64,
    /// Least delay: round trip of a ping, one way of a datagram, latency of a transaction.
    pub delay_min_s: Option<f64>,
    /// Mean delay.
    pub delay_mean_s: Option<f64>,
    /// Median delay.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile of the delay.
    pub delay_p95_s: Option<f64>,
    /// Greatest delay.
    pub delay_max_s: Option<f64>,
}

/// The columns of datagram streams in a flow's row; see [`Analysis`].
#[derive(Clone, Debug, Serialize)]
pub struct StreamRow {
    /// Duplicates.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Mean time from one arrival to the next.
    pub inter_arrival_mean_s: Option<f64>,
    /// Its median.
    pub inter_arrival_p50_s: Option<f64>,
    /// Its 95th percentile.
    pub inter_arrival_p95_s: Option<f64>,
    /// The longest.
    pub inter_arrival_max_s: Option<f64>,
    /// Gaps: from the last datagram before a burst of losses to the first after it.
    pub gaps: u64,
    /// Their mean length.
    pub gap_mean_s: Option<f64>,
    /// The longest.
    pub gap_max_s: Option<f64>,
    /// Datagrams lost in the longest burst.
    pub gap_most_lost: u64,
    /// Delay threshold of late datagrams.
    pub late_threshold_s: f64,
    /// Late datagrams.
    pub late: u64,
    /// Delay periods: consecutive datagrams without loss, all late.
    pub delay_periods: u64,
    /// Their mean length.
    pub delay_period_mean_s: Option<f64>,
    /// The longest.
    pub delay_period_max_s: Option<f64>,
}

impl ProbesRow {
    /// The row of `sent` probes with `received` arrivals with these delays.
    pub fn of(sent: u64, received: u64, delays: &Samples) -> Self {
        let quantile = |q| delays.quantile(q).map(Span::as_secs_f64);
        Self {
            sent,
            received,
            lost: sent - received,
            delay_min_s: quantile(0.0),
            delay_mean_s: delays.mean_s(),
            delay_p50_s: quantile(0.5),
            delay_p95_s: quantile(0.95),
            delay_max_s: quantile(1.0),
        }
    }
}

impl StreamRow {
    /// The row of `receiver`, where datagrams with a delay above `late` are late.
    pub fn of(receiver: &Receiver, late: Span) -> Self {
        let analysis = Analysis::of(receiver.arrivals(), late);
        let quantile = |samples: &Samples, q| samples.quantile(q).map(Span::as_secs_f64);
        Self {
            duplicates: receiver.duplicates(),
            reordered: analysis.reordered,
            inter_arrival_mean_s: analysis.inter_arrival.mean_s(),
            inter_arrival_p50_s: quantile(&analysis.inter_arrival, 0.5),
            inter_arrival_p95_s: quantile(&analysis.inter_arrival, 0.95),
            inter_arrival_max_s: quantile(&analysis.inter_arrival, 1.0),
            gaps: analysis.gaps.count(),
            gap_mean_s: analysis.gaps.mean_s(),
            gap_max_s: quantile(&analysis.gaps, 1.0),
            gap_most_lost: analysis.longest_burst,
            late_threshold_s: late.as_secs_f64(),
            late: analysis.late,
            delay_periods: analysis.delay_periods.count(),
            delay_period_mean_s: analysis.delay_periods.mean_s(),
            delay_period_max_s: quantile(&analysis.delay_periods, 1.0),
        }
    }
}
