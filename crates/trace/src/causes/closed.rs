//! The causes of a connection that both ends have closed: its data has arrived, so that the time of
//! later segments is closing time, and the state of the analysis is not needed any more.

use super::radio_states::RadioStates;
use super::timeline::{Label, Timeline};
use super::{Account, Cause, Causes, Confidence, Phase, Piece, Stamp};
use airpath_capture::read::LATEST;
use airpath_core::Instant;
use airpath_observe::{Events, Observation};

/// The causes of a connection, open or closed.
#[derive(Debug)]
pub enum ConnectionCauses {
    /// Data may follow.
    Open(Box<Causes>),
    /// Both ends have closed it.
    Closed(Box<ClosedCauses>),
}

/// What remains of [`Causes`].
#[derive(Debug)]
pub struct ClosedCauses {
    /// The last observation.
    last: Option<Stamp>,
    /// Bytes delivered at the time of the last observation, which the timeline does not have.
    delivered: [u64; 2],
    timeline: Timeline,
    account: Account,
    radio_states: RadioStates,
}

impl ConnectionCauses {
    /// Takes the next observation; see [`Causes::observe`].
    pub fn observe(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        match self {
            Self::Open(causes) => causes.observe(observation, settled),
            Self::Closed(causes) => causes.observe(observation, settled),
        }
    }

    /// Whether it is open, and all data has arrived.
    pub fn may_close(&self) -> bool {
        matches!(self, Self::Open(causes) if causes.phase == Phase::Closing)
    }

    /// Drops the state of the analysis.
    #[must_use]
    pub fn close(self) -> Self {
        match self {
            Self::Open(mut causes) => Self::Closed(Box::new(ClosedCauses::of(&mut causes))),
            closed @ Self::Closed(_) => closed,
        }
    }

    /// Ends the connection; see [`Causes::finish`].
    pub fn finish(self, settled: &mut impl FnMut(&Piece)) -> Account {
        match self {
            Self::Open(causes) => causes.finish(settled),
            Self::Closed(causes) => causes.finish(settled),
        }
    }
}

impl ClosedCauses {
    /// Decides the pending time of a connection by the evidence so far.
    pub(super) fn of(causes: &mut Causes) -> Self {
        let mut stalls = Vec::new();
        causes.receiver.end(&mut causes.timeline);
        causes.sender.end(&mut causes.timeline, &mut stalls);
        let mut account = std::mem::take(&mut causes.account);
        stalls.into_iter().for_each(|stall| account.add_stall(stall));
        let mut timeline = std::mem::take(&mut causes.timeline);
        timeline.shrink_to_fit();
        let radio_states = std::mem::take(&mut causes.radio_states);
        let delivered = [0, 1].map(|end| causes.delivered[end] - causes.delivered_before[end]);
        let last = causes.last;
        Self { last, delivered, timeline, account, radio_states }
    }

    fn observe(&mut self, observation: &Observation, settled: &mut impl FnMut(&Piece)) {
        let time = observation.time.min(LATEST).max(self.last.map_or(observation.time, |last| last.time));
        let now = Stamp { time, ..Stamp::of(observation) };
        if let Some(last) = self.last.replace(now)
            && time > last.time
        {
            let closing = Label::Known(Cause::Closing, Confidence::High);
            self.timeline.push(last, now, closing, std::mem::take(&mut self.delivered));
        }
        if observation.events.contains(Events::ACK_LOST_SEGMENT) {
            self.timeline.doubt();
        }
        let (account, states) = (&mut self.account, &mut self.radio_states);
        self.timeline.settle(Instant::FAR_FUTURE, &mut |piece| account.add(piece, states, settled));
    }

    /// Emits all pieces, and returns their sum.
    pub(super) fn finish(self, settled: &mut impl FnMut(&Piece)) -> Account {
        let Self { mut timeline, mut account, radio_states: mut states, .. } = self;
        timeline.finish(&mut |piece| account.add(piece, &mut states, settled));
        account.radio_states = states.found;
        account
    }
}
