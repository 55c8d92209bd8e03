//! The IP-ID of IPv4: how it changes from packet to packet of a flow.

use crate::header::Header;

/// The largest step of an IP-ID that counts packets of its host.
const ID_STEP: u16 = 20;
/// Packets whose IP-ID behaves otherwise, until the behaviour counts as changed.
const CHANGES: u8 = 3;

/// How the IP-ID of a flow changes (RFC 3095 §4.5.5, RFC 3843 §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IdBehavior {
    /// It counts packets, in network byte order.
    #[default]
    Sequential,
    /// It counts packets, with its octets swapped.
    Swapped,
    /// It follows no rule, and is sent as it is.
    Random,
    /// It never changes; with TCP, it is always zero (RFC 6846 §6.1.2).
    Constant,
}

/// Which IP-IDs a profile has as constant ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constants {
    /// None (RFC 3095).
    None,
    /// Zero (RFC 5225 §6.3.3, RFC 6846 §6.1.2).
    Zero,
    /// All (RFC 3843 §3.3).
    All,
}

impl IdBehavior {
    /// How the IP-ID went from one packet to the next.
    pub(crate) fn of(constants: Constants, from: u16, to: u16) -> Self {
        let is_step = |from: u16, to: u16| (1..=ID_STEP).contains(&to.wrapping_sub(from));
        let is_constant = match constants {
            Constants::None => false,
            Constants::Zero => from == to && to == 0,
            Constants::All => from == to,
        };
        if is_constant {
            Self::Constant
        } else if is_step(from, to) {
            Self::Sequential
        } else if is_step(from.swap_bytes(), to.swap_bytes()) {
            Self::Swapped
        } else {
            Self::Random
        }
    }

    /// Flags RND, NBO and SID of the dynamic chain.
    pub(crate) const fn flags(self) -> u8 {
        match self {
            Self::Sequential => 0x20,
            Self::Swapped => 0,
            Self::Random => 0x60,
            Self::Constant => 0x30,
        }
    }

    /// The behaviour with these flags.
    pub(crate) const fn from_flags(flags: u8) -> Self {
        match flags {
            _ if flags & 0x40 != 0 => Self::Random,
            _ if flags & 0x10 != 0 => Self::Constant,
            _ if flags & 0x20 != 0 => Self::Sequential,
            _ => Self::Swapped,
        }
    }

    /// The behaviour of the IP-ID of `header` as the two bits of RFC 5225 and RFC 6846. IPv6 counts
    /// as random, and only zero as constant.
    pub(crate) fn number(self, header: &Header) -> u8 {
        match self {
            _ if !header.is_v4() => 2,
            Self::Sequential => 0,
            Self::Swapped => 1,
            Self::Random => 2,
            Self::Constant => 3,
        }
    }

    /// The behaviour that these two bits mean.
    pub(crate) const fn from_number(number: u8) -> Self {
        match number & 0x03 {
            0 => Self::Sequential,
            1 => Self::Swapped,
            2 => Self::Random,
            _ => Self::Constant,
        }
    }

    /// Whether compressed packets of `header` carry offsets of the IP-ID.
    pub(crate) fn has_offset(self, header: &Header) -> bool {
        header.is_v4() && matches!(self, Self::Sequential | Self::Swapped)
    }

    /// The IP-ID less the sequence number.
    pub(crate) const fn offset(self, id: u16, sequence: u16) -> u16 {
        let id = if matches!(self, Self::Swapped) { id.swap_bytes() } else { id };
        id.wrapping_sub(sequence)
    }

    /// The IP-ID of this offset.
    pub(crate) const fn id(self, offset: u16, sequence: u16) -> u16 {
        let id = offset.wrapping_add(sequence);
        if matches!(self, Self::Swapped) { id.swap_bytes() } else { id }
    }
}

/// The behaviour that a compressor has found for a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdTracker {
    pub(crate) behavior: IdBehavior,
    changes: u8,
}

/// What the IP-ID of a packet means for the behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is as expected.
    None,
    /// It is another one, but that may be an exception.
    Exception,
    /// The behaviour has changed.
    Behavior,
}

impl IdTracker {
    /// Takes up the IP-ID of the next packet. `is_immediate` means that a change costs nothing.
    pub(crate) fn update(
        &mut self,
        constants: Constants,
        last: &Header,
        header: &Header,
        is_immediate: bool,
    ) -> Change {
        if !header.is_v4() {
            return Change::None;
        }
        let seen = IdBehavior::of(constants, last.id(), header.id());
        if seen == self.behavior {
            self.changes = 0;
            return Change::None;
        }
        self.changes += 1;
        if self.changes < CHANGES && !is_immediate {
            return Change::Exception;
        }
        self.set(seen);
        Change::Behavior
    }

    /// Sets the behaviour.
    pub(crate) const fn set(&mut self, behavior: IdBehavior) {
        *self = Self { behavior, changes: 0 };
    }
}
