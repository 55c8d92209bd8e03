//! The causes, their confidence, the pieces of time with one cause, and their sums.

use core::fmt;

use airpath_core::{Instant, Span};
use airpath_observe::End;

use super::radio_states::{RadioState, RadioStates};
use super::stall::{Fate, Stall};

/// What a moment of a connection is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The handshake.
    SetUp,
    /// The applications have nothing to send: the time between request and reply, and think time.
    Application,
    /// The last data of a request or of a reply is in transit, and the link is not full.
    Latency,
    /// Slow start: the sender probes for the rate of the path, and has not reached it.
    SlowStart,
    /// The receive window limits the sender.
    ReceiveWindow,
    /// The congestion window, or a clamp on the sender's window, is smaller than the path's
    /// capacity.
    CongestionWindow,
    /// The sender of a QUIC flow does not send although the path could carry data: its windows, its
    /// pacing or its recovery from losses, which encryption hides.
    Sender,
    /// The link is full: it delivers at its rate.
    PathRate,
    /// The link is full, and more than a round trip of data queues before it.
    Queueing,
    /// The path carries data of other connections of the same host, and this one waits for it.
    Sharing,
    /// The path carries nothing, as in an outage of its radio.
    Radio,
    /// The path could carry data, but the sender waits for its retransmission timer.
    Timer,
    /// Loss recovery: lost data is retransmitted, and the link is not full.
    Recovery,
    /// The path carries spurious retransmissions.
    Spurious,
    /// All data has arrived; the connection closes.
    Closing,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 15;

    /// All causes, in the order of their declaration.
    pub const ALL: [Self; Self::COUNT] = [
        Self::SetUp,
        Self::Application,
        Self::Latency,
        Self::SlowStart,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Sender,
        Self::PathRate,
        Self::Queueing,
        Self::Sharing,
        Self::Radio,
        Self::Timer,
        Self::Recovery,
        Self::Spurious,
        Self::Closing,
    ];

    /// Whether the link is full: with data of this connection, or of others.
    pub const fn is_full_link(self) -> bool {
        matches!(self, Self::PathRate | Self::Queueing | Self::Sharing)
    }

    /// Whether its time is explained neither by the path, as a full link and latency are, nor by
    /// the applications.
    pub const fn is_avoidable(self) -> bool {
        !self.is_full_link() && !matches!(self, Self::Latency | Self::Application | Self::Closing)
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Application => "application",
            Self::Latency => "latency",
            Self::SlowStart => "slow-start",
            Self::ReceiveWindow => "receive-window",
            Self::CongestionWindow => "congestion-window",
            Self::Sender => "sender",
            Self::PathRate => "path-rate",
            Self::Queueing => "queueing",
            Self::Sharing => "sharing",
            Self::Radio => "radio",
            Self::Timer => "timer",
            Self::Recovery => "recovery",
            Self::Spurious => "spurious",
            Self::Closing => "closing",
        }
    }
}

/// The confidence of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// One of several explanations that the capture does not distinguish.
    Low,
    /// Inferred from times and rates.
    Medium,
    /// Observed in the packets, or in the radio log.
    High,
}

impl Confidence {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A stretch of time with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The cause.
    pub cause: Cause,
    /// Its confidence.
    pub confidence: Confidence,
    /// The end whose packets filled the link, where that is the cause and the end is known.
    pub full_by: Option<End>,
    /// Begin.
    pub begin: Instant,
    /// End.
    pub end: Instant,
    /// The frame at or before its begin.
    pub first_frame: u64,
    /// The frame at or after its end.
    pub last_frame: u64,
    /// Bytes of the client and of the server that were delivered meanwhile, as far as the capture
    /// shows: acknowledged, or arrived.
    pub delivered: [u64; 2],
}

/// The sum of a connection's pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Time by cause, in the order of [`Cause::ALL`]. They add up to the connection's elapsed time.
    pub times: [Span; Cause::COUNT],
    /// Its longest stalls, the longest first.
    pub stalls: Vec<Stall>,
    /// The states that the radio log has in the time of the radio and of the handshake, in order.
    pub radio_states: Vec<RadioState>,
}

impl Account {
    /// Stalls that are kept.
    pub const STALLS: usize = 8;

    /// Shorter times are no stalls: the least retransmission time-out of Linux.
    pub const SHORTEST_STALL: Span = Span::from_millis(200);

    /// The elapsed time: the sum of all causes.
    pub fn total(&self) -> Span {
        self.times.iter().fold(Span::ZERO, |sum, &time| sum + time)
    }

    /// Time attributed to a cause.
    pub const fn of(&self, cause: Cause) -> Span {
        self.times[cause as usize]
    }

    /// The cause with the most time; the first in the order of [`Cause::ALL`] if several have it.
    /// `None` for a connection without elapsed time.
    pub fn longest(&self) -> Option<Cause> {
        let longest = Cause::ALL.into_iter().rev().max_by_key(|cause| self.of(*cause))?;
        (!self.of(longest).is_zero()).then_some(longest)
    }

    /// The avoidable time.
    pub fn avoidable(&self) -> Span {
        let avoidable = Cause::ALL.into_iter().filter(|cause| cause.is_avoidable());
        avoidable.fold(Span::ZERO, |sum, cause| sum + self.of(cause))
    }

    /// Adds a settled piece, finds its states of the radio, and passes it on.
    pub(super) fn add(&mut self, piece: &Piece, states: &mut RadioStates, settled: &mut impl FnMut(&Piece)) {
        self.times[piece.cause as usize] += piece.end.since(piece.begin);
        states.name(piece);
        settled(piece);
    }

    pub(super) fn add_stall(&mut self, stall: Stall) {
        if stall.fate != Fate::Nagle && stall.length() < Self::SHORTEST_STALL {
            return;
        }
        let index = self.stalls.partition_point(|other| other.length() >= stall.length());
        if index < Self::STALLS {
            self.stalls.truncate(Self::STALLS - 1);
            self.stalls.insert(index, stall);
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for cause in Cause::ALL.into_iter().filter(|cause| !self.of(*cause).is_zero()) {
            let separator = if core::mem::take(&mut first) { "" } else { ", " };
            write!(f, "{separator}{} {}", cause.name(), self.of(cause))?;
        }
        Ok(())
    }
}
