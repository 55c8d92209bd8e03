//! The packet as links and bearers carry it: a small handle with what a link needs.
//!
//! Headers and payload stay in the packet buffer of the simulator or the emulator, at the index
//! [`Packet::slot`]. So a queue of packets is compact, needs no allocation, and is the same under
//! both clocks.

use serde::{Deserialize, Serialize};

/// One IP packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Unique within the run, in order of creation; joins the rows of the packet log.
    pub id: u64,
    /// Size of the whole IP packet in bytes, headers included.
    pub size: u32,
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// The mobile that it goes to or comes from.
    pub user: UserId,
    /// Its ECN field (RFC 3168 §5); a queue may change it.
    pub ecn: Ecn,
    /// Index of its headers and payload in the packet buffer.
    pub slot: Slot,
}

/// A flow, counted from zero in the order of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowId(pub u32);

/// A mobile, counted from zero in the order of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UserId(pub u16);

/// Index into the packet buffer of the simulator or the emulator; opaque to everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot(pub u32);

/// The direction in which a packet crosses a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards the mobile.
    Down,
    /// From the mobile.
    Up,
}

impl Direction {
    /// Both, downlink first.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];

    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// `down` or `up`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct,
    /// ECN-capable, codepoint ECT(0).
    Ect0,
    /// ECN-capable, codepoint ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// The two bits of the IP header.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// The codepoint in the two lowest bits of `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}
