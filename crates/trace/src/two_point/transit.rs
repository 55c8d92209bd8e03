//! A packet in transit, and its fate.

use airpath_core::{Instant, Span};

use super::digest::PacketDigest;

/// A packet in transit from one end to the other, by the first capture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// The packet in the capture at the sender; its time is by the first capture's clock.
    pub packet: PacketDigest,
    /// Its fate.
    pub fate: Fate,
    /// Bytes of its payload that arrived: fewer where it was segmented and some segments were lost.
    pub arrived_bytes: u32,
    /// Whether it was a spurious retransmission: earlier copies of all its bytes arrived, and a
    /// closed window did not refuse them.
    pub spurious: bool,
    /// When the packet before this one arrived, if that was a packet of another connection of the
    /// client: the path carried the other one until then. Packets of the own connection without
    /// data do not count.
    pub others_until: Option<Instant>,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet arrived.
    Arrived {
        /// When, by the first capture's clock.
        time: Instant,
        /// In which frame of the receiver's capture.
        frame: u64,
    },
    /// The packet did not arrive, and a packet sent later did.
    Lost,
    /// Neither the packet nor one sent later arrived before the captures ended; or the packet was
    /// sent before the other capture began.
    Unknown,
}

impl Transit {
    /// The time of arrival.
    pub const fn arrival(&self) -> Option<Instant> {
        match self.fate {
            Fate::Arrived { time, .. } => Some(time),
            Fate::Lost | Fate::Unknown => None,
        }
    }

    /// The one-way delay. With fitted clocks it may be zero for the fastest packets.
    pub fn delay(&self) -> Option<Span> {
        self.arrival().map(|arrival| arrival.since(self.packet.time))
    }
}
