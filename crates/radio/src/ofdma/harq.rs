//! Hybrid ARQ of one mobile (TS 36.321 §5.3.2, §5.4.2; TS 38.321 §5.3.2, §5.4.2): asynchronous
//! processes downwards, transmissions at planned times upwards.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::UplinkHarq;
use super::plan::DownlinkTimes;
use super::rlc::Block;
use super::transport_block::Sent;
use super::transport_format::TransportFormat;

/// The processes of a carrier of the downlink. What is looked at in each slot lies together.
#[derive(Clone, Debug)]
pub struct Downlink {
    /// When each can be used, with what is in it or for a new block.
    free_at: Box<[Instant]>,
    contents: Box<[Contents]>,
    /// What is to be sent again.
    sent: Box<[Option<Box<Sent>>]>,
    /// The processes that are used: the first ones.
    used: usize,
}

/// A process of the downlink of a mobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub carrier: usize,
    pub number: usize,
}

/// What is in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Nothing.
    Nothing,
    /// A block that is to be sent again. The mobile has got an assignment for it.
    Known,
    /// The same, but the mobile has missed all assignments.
    Unknown,
}

impl Contents {
    const fn of_block(is_known: bool) -> Self {
        if is_known { Self::Known } else { Self::Unknown }
    }
}

impl Downlink {
    /// All idle.
    pub fn new(processes: u8) -> Self {
        let count = usize::from(processes);
        Self {
            free_at: vec![Instant::ZERO; count].into(),
            contents: vec![Contents::Nothing; count].into(),
            sent: vec![None; count].into(),
            used: count,
        }
    }

    /// Uses only this number of processes, or all if there are fewer. None must hold a block.
    pub fn limit(&mut self, processes: u8) {
        self.used = self.sent.len().min(processes.into());
    }

    fn processes(&self) -> impl Iterator<Item = (Contents, Instant)> {
        self.contents.iter().copied().zip(self.free_at.iter().copied()).take(self.used)
    }

    /// The process whose block is to be sent again at `now`, the one that has waited longest. A
    /// mobile that has missed all its assignments must listen for new data to get it.
    #[inline]
    pub fn repeat_at(&self, now: Instant, listens: bool) -> Option<usize> {
        let due = |contents, free_at: Instant| {
            free_at <= now && (contents == Contents::Known || (contents == Contents::Unknown && listens))
        };
        let all = self.processes().enumerate().filter(|(_, (contents, free_at))| due(*contents, *free_at));
        all.min_by_key(|(_, (_, free_at))| *free_at).map(|(index, _)| index)
    }

    /// A process for a new block.
    #[inline]
    pub fn idle(&self, now: Instant) -> Option<usize> {
        self.processes().position(|(contents, free_at)| contents == Contents::Nothing && free_at <= now)
    }

    /// When a block is to be sent again next, of those with this `is_known`.
    #[inline]
    pub fn next_repeat(&self, is_known: bool) -> Option<Instant> {
        self.next(Contents::of_block(is_known))
    }

    /// When a process is free for a new block.
    #[inline]
    pub fn next_idle(&self) -> Option<Instant> {
        self.next(Contents::Nothing)
    }

    #[inline]
    fn next(&self, wanted: Contents) -> Option<Instant> {
        self.processes().filter(|(contents, _)| *contents == wanted).map(|(_, free_at)| free_at).min()
    }

    /// Whether a block is to be sent again.
    pub fn has_repeats(&self) -> bool {
        self.contents.iter().any(|contents| *contents != Contents::Nothing)
    }

    /// The format of the block of a process that is to be sent again.
    pub fn format(&self, process: usize) -> Option<TransportFormat> {
        self.sent[process].as_ref().map(|sent| sent.format)
    }

    /// The block of a process that is to be sent again.
    pub fn take(&mut self, process: usize) -> Option<Box<Sent>> {
        self.contents[process] = Contents::Nothing;
        self.sent[process].take()
    }

    /// A block of a process was sent at these times; `again` is it if it is to be sent again.
    pub fn transmitted(&mut self, process: usize, times: &DownlinkTimes, again: Option<Box<Sent>>) {
        self.free_at[process] = times.next_attempt;
        self.contents[process] = again.as_ref().map_or(Contents::Nothing, |sent| Contents::of_block(sent.is_known));
        self.sent[process] = again;
    }

    /// All processes are idle: the connection is new.
    pub fn clear(&mut self, mut given_up: impl FnMut(Block)) {
        self.free_at.fill(Instant::ZERO);
        self.contents.fill(Contents::Nothing);
        self.sent.iter_mut().filter_map(Option::take).for_each(|sent| given_up(sent.block));
    }
}

/// A transmission of the uplink that is to come.
#[derive(Clone, Debug)]
pub enum Planned {
    /// A new block by a grant.
    New(TransportFormat),
    /// A new block by a grant without a request.
    Prescheduled(TransportFormat),
    /// The block of a process once more.
    Again(Box<Sent>),
}

/// The transmissions of the uplink, by time. Those of one slot are at most one.
#[derive(Clone, Debug, Default)]
pub struct Uplink {
    planned: VecDeque<(Instant, Planned)>,
    /// When processes can be granted again whose blocks were sent and are done with, by time.
    free_at: VecDeque<Instant>,
}

impl Uplink {
    /// When the next transmission begins.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.planned.front().map(|(at, _)| *at)
    }

    /// Whether a block is to be sent again.
    pub fn has_repeats(&self) -> bool {
        self.planned.iter().any(|(_, planned)| matches!(planned, Planned::Again(_)))
    }

    /// Whether a new block is planned.
    pub fn has_grant(&self) -> bool {
        self.planned.iter().any(|(_, planned)| !matches!(planned, Planned::Again(_)))
    }

    /// Bytes of the new blocks that are planned.
    pub fn granted(&self) -> u64 {
        let bytes = |planned: &Planned| match planned {
            Planned::New(format) | Planned::Prescheduled(format) => u64::from(format.bits / 8),
            Planned::Again(_) => 0,
        };
        self.planned.iter().map(|(_, planned)| bytes(planned)).sum()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// Whether a process is free for a grant that is sent at `now`.
    #[inline]
    pub fn has_process(&self, now: Instant, harq: UplinkHarq) -> bool {
        match harq {
            UplinkHarq::ByFeedback => true,
            UplinkHarq::ByGrants { processes } => {
                let decoding = self.free_at.iter().rev().take_while(|at| **at > now).count();
                self.planned.len() + decoding < processes
            }
        }
    }

    /// A block is done with whose process can be granted again at `free_at`, not before the last
    /// one.
    pub fn done(&mut self, now: Instant, free_at: Instant) {
        while self.free_at.front().is_some_and(|at| *at <= now) {
            self.free_at.pop_front();
        }
        self.free_at.push_back(free_at);
    }

    /// Whether a transmission is planned for the slot that begins at `at`.
    #[inline]
    pub fn is_planned(&self, at: Instant) -> bool {
        self.planned.iter().any(|(planned, _)| *planned == at)
    }

    /// Plans a transmission for the slot that begins at `at`.
    pub fn plan(&mut self, at: Instant, planned: Planned) {
        let index = self.planned.partition_point(|(other, _)| *other <= at);
        self.planned.insert(index, (at, planned));
    }

    /// The transmission of the slot that begins at `now`.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<Planned> {
        self.planned.front().filter(|(at, _)| *at <= now)?;
        self.planned.pop_front().map(|(_, planned)| planned)
    }

    /// New blocks are not planned any more. Takes those that were to be sent again, with the times.
    pub fn cancel_grants(&mut self) -> Vec<(Instant, Box<Sent>)> {
        let repeated = |(at, planned)| match planned {
            Planned::Again(sent) => Some((at, sent)),
            Planned::New(_) | Planned::Prescheduled(_) => None,
        };
        self.planned.drain(..).filter_map(repeated).collect()
    }

    /// Nothing is planned any more: the connection is new.
    pub fn clear(&mut self, mut given_up: impl FnMut(Block)) {
        self.free_at.clear();
        for (_, planned) in self.planned.drain(..) {
            if let Planned::Again(sent) = planned {
                given_up(sent.block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::link_adaptation::{self, Coding, Combining, Decoder, Modulation, SoftBuffer};
    use crate::ofdma::plan::tests::plan;
    use crate::ofdma::repetition::Coverage;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn sent(is_known: bool) -> Sent {
        let modulation = Modulation::Qpsk;
        let format = TransportFormat { scheme: 0, modulation, blocks: 1, layers: 1, symbols: 14, bits: 16, mode: 0 };
        let block = link_adaptation::Block { modulation: Modulation::Qpsk, bits: 16, symbols: 144 };
        let soft = SoftBuffer::new(Decoder::new(Coding::Turbo), Combining::Chase, block);
        Sent { is_known, ..Sent::new(Block::default(), format, soft) }
    }

    #[test]
    fn a_block_is_sent_again_after_8_ms_at_the_earliest() {
        for (processing, feedback) in [(0, 15), (3, 18)] {
            let plan = plan(&format!("processing = \"{processing} ms\""));
            let mut downlink = Downlink::new(2);
            let times = plan.downlink_times(at(10), Coverage { connection: 0, transfer: 0 });
            downlink.transmitted(0, &times, Some(Box::new(sent(true))));
            assert_eq!((times.received, times.heard), (at(11), at(feedback)));
            assert_eq!((downlink.next_repeat(true), downlink.next_repeat(false)), (Some(at(18)), None));
            assert_eq!((downlink.repeat_at(at(17), true), downlink.repeat_at(at(18), false)), (None, Some(0)));
            assert_eq!(downlink.idle(at(10)), Some(1));
        }
    }

    #[test]
    fn the_uplink_has_as_many_processes_as_are_neither_granted_nor_decoded() {
        let (mut uplink, harq) = (Uplink::default(), UplinkHarq::ByGrants { processes: 2 });
        assert!(uplink.has_process(at(0), harq));
        uplink.plan(at(4), Planned::New(sent(true).format));
        uplink.plan(at(5), Planned::New(sent(true).format));
        assert!(!uplink.has_process(at(1), harq) && uplink.has_process(at(1), UplinkHarq::ByFeedback));
        assert!(uplink.take(at(4)).is_some());
        uplink.done(at(4), at(8));
        assert!(!uplink.has_process(at(7), harq) && uplink.has_process(at(8), harq));
    }

    #[test]
    fn a_block_with_missed_assignments_waits_until_the_mobile_listens() {
        let mut downlink = Downlink::new(2);
        let times = plan("processing = \"0 ms\"").downlink_times(at(10), Coverage { connection: 0, transfer: 0 });
        downlink.transmitted(0, &times, Some(Box::new(sent(false))));
        assert_eq!((downlink.next_repeat(true), downlink.next_repeat(false)), (None, Some(at(18))));
        assert_eq!((downlink.repeat_at(at(20), false), downlink.repeat_at(at(20), true)), (None, Some(0)));
    }
}
