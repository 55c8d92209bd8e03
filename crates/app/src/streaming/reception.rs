//! Reception of a stream as reports describe it (RFC 3550 §6.4.1, appendix A).

use airpath_core::{Instant, Span};
use airpath_wire::rtcp::ReportBlock;

use super::{CLOCK, middle, ticks};

/// Reception of the stream as reports describe it (RFC 3550 §6.4.1, appendix A).
#[derive(Clone, Copy, Debug, Default)]
pub struct Reception {
    /// Packets, duplicates included.
    packets: u32,
    /// Highest number of a packet.
    highest: Option<u32>,
    /// Packets and the highest number plus one, at the last report.
    reported: (u32, u32),
    /// Arrival minus timestamp of the last packet, in units of the RTP clock.
    transit: Option<u32>,
    /// Inter-arrival jitter, in these units.
    jitter: f64,
    /// The last sender report: the middle of its time, and when it arrived.
    last_report: Option<(u32, Instant)>,
}

impl Reception {
    /// Adds a packet (RFC 3550 §A.8).
    pub fn add(&mut self, now: Instant, number: u32, timestamp: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.highest = self.highest.max(Some(number));
        let transit = ticks(now.since(Instant::ZERO)).wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let change = transit.wrapping_sub(before) as i32;
            self.jitter += (f64::from(change.unsigned_abs()) - self.jitter) / 16.0;
        }
    }

    /// Adds the time of a sender report that arrives.
    pub const fn sender_report(&mut self, now: Instant, ntp: u64) {
        self.last_report = Some((middle(ntp), now));
    }

    /// Highest number of a packet.
    pub const fn highest(&self) -> Option<u32> {
        self.highest
    }

    /// Inter-arrival jitter (§6.4.1).
    pub fn jitter(&self) -> Span {
        Span::from_secs_f64(self.jitter / CLOCK as f64)
    }

    /// The block of a report at `now` on the stream of `ssrc` whose first packet has this sequence
    /// number, if a packet has arrived (§A.3).
    pub fn block(&mut self, now: Instant, ssrc: u32, sequence: u16) -> Option<ReportBlock> {
        let expected = self.highest? + 1;
        let (packets_before, expected_before) = std::mem::replace(&mut self.reported, (self.packets, expected));
        let interval = expected - expected_before;
        let lost = interval.saturating_sub(self.packets.wrapping_sub(packets_before));
        let (last_report, delay) = self.last_report.map_or((0, 0), |(report, arrived)| {
            (report, ((u128::from(now.since(arrived).as_nanos()) << 16) / 1_000_000_000) as u32)
        });
        Some(ReportBlock {
            ssrc,
            fraction_lost: (u64::from(lost) * 256).checked_div(interval.into()).unwrap_or(0).min(255) as u8,
            lost: i64::from(expected).saturating_sub(self.packets.into()) as i32,
            highest: u32::from(sequence) + self.highest?,
            jitter: self.jitter as u32,
            last_report,
            delay,
        })
    }
}
