//! Parameters and deadlines of the procedures of TBFs.

use airpath_core::{Probability, Span};

use super::config::{Access, Config, access_spacing};
use super::multiframe::{block_from, end_of};

/// How long a mobile waits for a block in which it may send (T3180), and for a Packet Uplink
/// Ack/Nack after its last block (T3182), before it begins again with random access: 5 s each (TS
/// 44.060 §13.1, recalled). The network does not use the resources of the TBF again for T3169,
/// which is as long.
pub const ABNORMAL_RELEASE: Span = Span::from_secs(5);

/// The parameters that TBFs use. [`Config`] documents the keys of the same names in the tables
/// `cell`, `rlc` and `tbf`.
#[derive(Clone, Debug)]
pub struct Parameters {
    pub network_delay: Span,
    pub poll_interval: u32,
    pub ack_interval: u32,
    pub base_station_buffer: u64,
    pub access: Access,
    pub access_frames: u32,
    pub max_retrans: u32,
    pub assignment_wait: Span,
    pub reaction: Span,
    pub paging_multiframes: u64,
    pub non_drx: Span,
    /// The READY timer.
    pub ready: Span,
    pub t3168: Span,
    pub t3192: Span,
    pub countdown: u32,
    pub delayed_release: Span,
    pub extended_uplink: Span,
    pub keep_interval: Span,
    pub n3101: u32,
    pub n3103: u32,
    pub n3105: u32,
    pub t3195: Span,
    pub stuck: Probability,
}

impl Parameters {
    pub fn new(config: &Config) -> Self {
        let Config { cell, rlc, tbf, .. } = config;
        Self {
            network_delay: cell.network_delay,
            poll_interval: rlc.poll_interval,
            ack_interval: rlc.ack_interval,
            base_station_buffer: rlc.base_station_buffer.get(),
            access: tbf.access,
            access_frames: tbf.access_frames,
            max_retrans: tbf.max_retrans,
            assignment_wait: tbf.assignment_wait,
            reaction: tbf.reaction,
            paging_multiframes: tbf.paging_multiframes.into(),
            non_drx: tbf.non_drx,
            ready: tbf.ready,
            t3168: tbf.t3168,
            t3192: tbf.t3192,
            countdown: tbf.countdown,
            delayed_release: tbf.delayed_release,
            extended_uplink: tbf.extended_uplink,
            keep_interval: tbf.keep_interval,
            n3101: tbf.n3101,
            n3103: tbf.n3103,
            n3105: tbf.n3105,
            t3195: tbf.t3195,
            stuck: tbf.stuck,
        }
    }

    /// Frames over which access burst number `burst` is spread, from zero on.
    pub fn access_spread(&self, burst: u32) -> u32 {
        if burst == 0 { self.access_frames.max(8) } else { self.access_frames }
    }

    /// Frames that a mobile waits for an answer to access burst number `burst`, from zero on,
    /// before it repeats it: S, or T3146 after the last (TS 44.018 §3.5.2.1.2, recalled).
    pub fn access_wait(&self, burst: u32) -> u32 {
        let spacing = access_spacing(self.access_frames).expect("it was checked");
        if burst < self.max_retrans { spacing } else { self.access_frames + 2 * spacing }
    }

    /// The first block in which the network can respond to what it received in `block`.
    pub fn network_response(&self, block: u64) -> u64 {
        block_from(end_of(block) + self.network_delay)
    }

    /// The first block in which a mobile can use what an assignment in `block` gave it.
    pub fn assignment_start(&self, block: u64) -> u64 {
        block_from(end_of(block) + self.reaction)
    }
}
