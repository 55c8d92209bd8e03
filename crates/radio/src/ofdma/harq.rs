//! Hybrid ARQ of one mobile (TS 36.321 §5.3.2, §5.4.2; TS 38.321 §5.3.2, §5.4.2): asynchronous
//! processes downwards, transmissions at planned times upwards.

use std::collections::VecDeque;

use airpath_core::Instant;

use super::UplinkHarq;
use super::plan::Plan;
use super::rlc::Block;
use super::transport_block::Sent;
use super::transport_format::TransportFormat;

/// The processes of the downlink.
#[derive(Clone, Debug)]
pub struct Downlink {
    processes: Vec<Process>,
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// When it can be used, with what is in it or for a new block.
    free_at: Instant,
    sent: Option<Sent>,
}

impl Downlink {
    /// All idle.
    pub fn new(processes: u8) -> Self {
        Self { processes: vec![Process::default(); processes.into()] }
    }

    /// The process whose block is to be sent again at `now`, the one that has waited longest. A
    /// mobile that has missed all its assignments must listen for new data to get it.
    #[inline]
    pub fn repeat_at(&self, now: Instant, listens: bool) -> Option<usize> {
        let can_be_sent = |sent: &Sent| sent.is_known || listens;
        let due = |process: &Process| process.free_at <= now && process.sent.as_ref().is_some_and(can_be_sent);
        let indexes = (0..self.processes.len()).filter(|index| due(&self.processes[*index]));
        indexes.min_by_key(|index| self.processes[*index].free_at)
    }

    /// A process for a new block.
    #[inline]
    pub fn idle(&self, now: Instant) -> Option<usize> {
        self.processes.iter().position(|process| process.sent.is_none() && process.free_at <= now)
    }

    /// When a block is to be sent again next, of those with this `is_known`.
    #[inline]
    pub fn next_repeat(&self, is_known: bool) -> Option<Instant> {
        let waits = |process: &&Process| process.sent.as_ref().is_some_and(|sent| sent.is_known == is_known);
        self.processes.iter().filter(waits).map(|process| process.free_at).min()
    }

    /// When a process is free for a new block.
    #[inline]
    pub fn next_idle(&self) -> Option<Instant> {
        self.processes.iter().filter(|process| process.sent.is_none()).map(|process| process.free_at).min()
    }

    /// The format of the block of a process that is to be sent again.
    pub fn format(&self, process: usize) -> Option<TransportFormat> {
        self.processes[process].sent.as_ref().map(|sent| sent.format)
    }

    /// The block of a process that is to be sent again.
    pub fn take(&mut self, process: usize) -> Option<Sent> {
        self.processes[process].sent.take()
    }

    /// A block of a process was sent at `now`; `again` is it if it is to be sent again. Returns
    /// when the base station has the feedback.
    pub fn transmitted(&mut self, process: usize, now: Instant, again: Option<Sent>, plan: &Plan) -> Instant {
        let feedback = plan.timeline().feedback(plan.number(now));
        let free_at = plan.start(plan.timeline().next_attempt(feedback));
        self.processes[process] = Process { free_at, sent: again };
        plan.start(feedback + 1) + plan.processing
    }

    /// All processes are idle: the connection is new.
    pub fn clear(&mut self, mut given_up: impl FnMut(Block)) {
        for process in &mut self.processes {
            process.free_at = Instant::ZERO;
            if let Some(sent) = process.sent.take() {
                given_up(sent.block);
            }
        }
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

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn sent(is_known: bool) -> Sent {
        let format =
            TransportFormat { scheme: 0, modulation: Modulation::Qpsk, blocks: 1, layers: 1, symbols: 14, bits: 16 };
        let block = link_adaptation::Block { modulation: Modulation::Qpsk, bits: 16, symbols: 144 };
        let soft = SoftBuffer::new(Decoder::new(Coding::Turbo), Combining::Chase, block);
        Sent { is_known, ..Sent::new(Block::default(), format, soft) }
    }

    #[test]
    fn a_block_is_sent_again_after_8_ms_at_the_earliest() {
        for (processing, feedback) in [(0, 15), (3, 18)] {
            let plan = plan(&format!("processing = \"{processing} ms\""));
            let mut downlink = Downlink::new(2);
            assert_eq!(downlink.transmitted(0, at(10), Some(sent(true)), &plan), at(feedback));
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
        downlink.transmitted(0, at(10), Some(sent(false)), &plan("processing = \"0 ms\""));
        assert_eq!((downlink.next_repeat(true), downlink.next_repeat(false)), (None, Some(at(18))));
        assert_eq!((downlink.repeat_at(at(20), false), downlink.repeat_at(at(20), true)), (None, Some(0)));
    }
}
