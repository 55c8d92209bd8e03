//! The packet as links and bearers carry it: a small handle with what a link needs.
//!
//! Headers and payload stay in the packet buffer of the simulator or the emulator, at the index
//! [`Packet::slot`]. So a queue of packets is compact, needs no allocation, and is the same under
//! both clocks.

use std::fmt;

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

/// A mobile, counted from zero in the order of the scenario. Three bytes keep a [`Packet`] at 24.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub struct UserId([u8; 3]);

impl UserId {
    /// Mobiles that a run can have: their numbers have 24 bits, and their addresses in captures lie
    /// in 10.0.0.0/8.
    pub const LIMIT: u32 = 16_000_000;

    /// The mobile with this number.
    ///
    /// # Panics
    /// If the number is not below [`Self::LIMIT`].
    #[inline]
    pub const fn new(number: u32) -> Self {
        assert!(number < Self::LIMIT, "a run has at most 16,000,000 mobiles");
        // The highest byte first, so that the order is that of the numbers.
        let [_, high, middle, low] = number.to_be_bytes();
        Self([high, middle, low])
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> u32 {
        let [high, middle, low] = self.0;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// Its number, as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.number() as usize
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UserId").field(&self.number()).finish()
    }
}

impl From<UserId> for u32 {
    fn from(user: UserId) -> Self {
        user.number()
    }
}

impl TryFrom<u32> for UserId {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        let is_valid = number < Self::LIMIT;
        is_valid.then(|| Self::new(number)).ok_or_else(|| format!("mobiles have numbers below {}", Self::LIMIT))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_24_bytes() {
        assert_eq!((size_of::<Packet>(), size_of::<UserId>()), (24, 3));
    }

    #[test]
    fn mobiles_are_in_the_order_of_their_numbers() {
        let numbers = [0, 1, 255, 256, 65_535, 65_536, 99_999, UserId::LIMIT - 1];
        assert!(numbers.map(UserId::new).is_sorted());
        assert_eq!(numbers.map(UserId::new).map(UserId::number), numbers);
        assert_eq!(UserId::try_from(UserId::LIMIT), Err("mobiles have numbers below 16000000".to_owned()));
        assert_eq!(format!("{:?}", UserId::new(70_000)), "UserId(70000)");
    }
}
