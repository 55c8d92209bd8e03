//! What is known of the cause of a slice of time.

use airpath_observe::End;

use crate::causes::link_load::Load;
use crate::causes::{Cause, Confidence};

/// The label of a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::causes) enum Label {
    /// The cause is final.
    Known(Cause, Confidence),
    /// The limit of the sender in a round, unless the link turns out to be full.
    Limited(Limit, u32),
    /// A gap in the direction of the acknowledgements, of the radio log or inferred; data may get
    /// through.
    AcknowledgementGap(Confidence),
    /// A suspected gap of the link; and its load otherwise, once that is known.
    SuspectedGap(Option<Load>),
    /// The last flight so far of the data of a view was in transit. If the same end sends next, its
    /// application had no data meanwhile.
    Latency(View, Confidence),
}

impl Label {
    /// Whether evidence about the link can still change the cause.
    pub(in crate::causes) const fn is_open(self) -> bool {
        !matches!(self, Self::Known(..) | Self::Latency(..))
    }

    /// Whether no data was sent, as far as is known.
    pub(in crate::causes) const fn is_idle(self) -> bool {
        matches!(self, Self::Known(Cause::Application | Cause::Latency, _) | Self::Latency(..))
    }

    /// The cause if no further evidence comes.
    pub(super) const fn assumed(self) -> (Cause, Confidence) {
        match self {
            Self::Known(cause, confidence) => (cause, confidence),
            Self::Latency(_, confidence) => (Cause::Latency, confidence),
            Self::Limited(limit, _) => (limit.cause().0, Confidence::Low),
            Self::AcknowledgementGap(_) | Self::SuspectedGap(_) => (Cause::Radio, Confidence::Low),
        }
    }
}

/// What limits a sender that has data outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::causes) enum Limit {
    /// The application.
    Application,
    /// All data so far is sent, and the last flight is in transit: whether the application has no
    /// data, or waits for the other end, is not decided yet.
    LastFlight,
    /// The last flight was in transit before the other end sent data.
    Latency,
    /// The receive window, with data outstanding that may fill the link.
    ReceiveWindow,
    /// The receive window, with nothing outstanding.
    ClosedWindow,
    /// The sender's own window; slow start or congestion window is not decided yet.
    OwnWindowUndecided,
    /// The sender's own window, in slow start.
    SlowStart,
    /// The sender's own window, after slow start.
    CongestionWindow,
    /// Loss recovery.
    Recovery,
    /// The sender of a QUIC flow: what limits it is encrypted.
    Sender,
}

impl Limit {
    /// The sender's own window, in slow start or after it.
    pub(in crate::causes) const fn own_window(slow_start_over: bool) -> Self {
        if slow_start_over { Self::CongestionWindow } else { Self::SlowStart }
    }

    pub(in crate::causes) const fn cause(self) -> (Cause, Confidence) {
        match self {
            Self::Application => (Cause::Application, Confidence::Medium),
            Self::LastFlight | Self::Latency => (Cause::Latency, Confidence::Medium),
            Self::ReceiveWindow => (Cause::ReceiveWindow, Confidence::Medium),
            Self::ClosedWindow => (Cause::ReceiveWindow, Confidence::High),
            Self::OwnWindowUndecided | Self::CongestionWindow => (Cause::CongestionWindow, Confidence::Medium),
            Self::SlowStart => (Cause::SlowStart, Confidence::Medium),
            Self::Sender => (Cause::Sender, Confidence::Medium),
            // That the link was not full meanwhile is inferred.
            Self::Recovery => (Cause::Recovery, Confidence::Medium),
        }
    }
}

/// The packets that waited behind those of other connections, or for the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::causes) enum Waiting {
    /// Acknowledgements only: a sender that waits for them is delayed.
    Acknowledgement,
    /// Data, with the acknowledgement in it: so is an application that waits for a response.
    Data,
}

impl Waiting {
    /// Whether this wait is the cause, and not the limit of the sender.
    pub(super) const fn delays(self, limit: Cause) -> bool {
        is_clocked(limit) || matches!((self, limit), (Self::Data, Cause::Application | Cause::Latency))
    }
}

/// A wait that is known for any time of a connection, and is the cause of what some limits of the
/// sender would else have. An earlier one of two prevails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::causes) enum KnownWait {
    /// Acknowledgements of the far end queued in front of their link.
    ReturnQueue,
    /// A state of the radio delayed acknowledgements.
    RadioAcknowledgement,
    /// A state of the radio delayed data.
    RadioData,
}

impl KnownWait {
    pub(super) const COUNT: usize = 3;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::ReturnQueue, Self::RadioAcknowledgement, Self::RadioData];

    /// The wait for a state of the radio.
    pub(super) const fn of_radio(what: Waiting) -> Self {
        match what {
            Waiting::Acknowledgement => Self::RadioAcknowledgement,
            Waiting::Data => Self::RadioData,
        }
    }

    /// The cause of time that would else have the cause `limit`; `None` if it keeps that.
    pub(super) const fn cause(self, limit: Cause) -> Option<(Cause, Confidence)> {
        match self {
            Self::ReturnQueue if is_clocked(limit) || matches!(limit, Cause::Latency) => {
                Some((Cause::Queueing, Confidence::Medium))
            }
            Self::RadioAcknowledgement if Waiting::Acknowledgement.delays(limit) => {
                Some((Cause::Radio, Confidence::High))
            }
            Self::RadioData if Waiting::Data.delays(limit) => Some((Cause::Radio, Confidence::High)),
            _ => None,
        }
    }
}

/// The view that labels a slice. Rounds of the sender's view have even numbers, and those of the
/// receiver's view odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::causes) enum View {
    Sender,
    Receiver,
}

impl View {
    pub(in crate::causes) const fn of(round: u32) -> Self {
        if round.is_multiple_of(2) { Self::Sender } else { Self::Receiver }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// The end that sends the data of this view, in a capture at `near`.
    pub(super) const fn sender(self, near: End) -> End {
        match self {
            Self::Sender => near,
            Self::Receiver => near.other(),
        }
    }
}

/// Whether a sender that is limited so waits for acknowledgements.
pub(super) const fn is_clocked(cause: Cause) -> bool {
    matches!(cause, Cause::SlowStart | Cause::CongestionWindow | Cause::Recovery | Cause::Sender)
}
