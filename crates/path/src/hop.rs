//! A hop of a path: a bearer or a middlebox.

use airpath_core::Instant;
use airpath_core::{ConnectionTotals, Direction, PacketCounters, RadioTotals, UserId};
use airpath_link::Bearer;

use crate::middlebox::{Middlebox, MiddleboxHop};

/// A hop of a path.
pub enum Hop {
    /// A link or radio bearer: every packet that enters leaves or is dropped.
    Bearer(Box<dyn Bearer>),
    /// A middlebox with its counters.
    Middlebox(Box<MiddleboxHop>),
}

impl Hop {
    /// A hop that is this middlebox.
    pub fn middlebox(middlebox: Box<dyn Middlebox>) -> Self {
        Self::Middlebox(Box::new(MiddleboxHop::new(middlebox)))
    }

    /// When its state changes next without further calls.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        match self {
            Self::Bearer(bearer) => bearer.next_wakeup(),
            Self::Middlebox(middlebox) => middlebox.next_wakeup(),
        }
    }

    /// Packets in, out, dropped and inside in one direction.
    pub fn counters(&self, direction: Direction) -> PacketCounters {
        match self {
            Self::Bearer(bearer) => bearer.counters(direction),
            Self::Middlebox(middlebox) => middlebox.counters(direction),
        }
    }

    /// What `user` has transmitted on the air in one direction; `None` without a radio or such a
    /// user.
    pub fn radio_totals(&self, direction: Direction, user: UserId) -> Option<RadioTotals> {
        match self {
            Self::Bearer(bearer) => bearer.radio_totals(direction, user),
            Self::Middlebox(_) => None,
        }
    }

    /// What happened to the radio connection of `user`; `None` without a radio or such a user.
    pub fn connection_totals(&self, user: UserId) -> Option<ConnectionTotals> {
        match self {
            Self::Bearer(bearer) => bearer.connection_totals(user),
            Self::Middlebox(_) => None,
        }
    }

    /// Counters beside those of packets, by name.
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Bearer(bearer) => bearer.statistics(),
            Self::Middlebox(middlebox) => middlebox.statistics(),
        }
    }

    /// Whether it looks up whole headers.
    pub fn inspects_headers(&self) -> bool {
        match self {
            Self::Bearer(bearer) => bearer.inspects_headers(),
            Self::Middlebox(_) => false,
        }
    }

    /// Whether it looks up TCP headers.
    pub fn inspects_segments(&self) -> bool {
        match self {
            Self::Bearer(bearer) => bearer.inspects_segments(),
            Self::Middlebox(middlebox) => middlebox.inspects_segments(),
        }
    }
}
