//! Hybrid ARQ at the base station: processes of a mobile. Each sends a block and waits for
//! its answer (TS 25.321 §11.6.1).

use airpath_core::{Instant, Span};

use super::transport_block::TransportBlock;
use super::unit::Block;

/// The processes of one mobile, the same number on each carrier. Blocks of all carriers are
/// numbered together (TS 25.321 §11.6.1).
#[derive(Debug)]
pub struct Harq {
    processes: Vec<Process>,
    /// Processes of a carrier.
    each: usize,
    window: u64,
    /// The number of the next new block.
    next: u64,
}

#[derive(Debug)]
struct Process {
    /// When the answer to its last transmission is there.
    free_at: Instant,
    /// What it has to send again then.
    sent: Option<Sent>,
}

/// A block that was sent, in vain so far.
#[derive(Debug)]
pub struct Sent {
    pub block: Block,
    pub cqi: u8,
    pub air: TransportBlock,
    /// The share of the cell's power that it is to have.
    pub share: f64,
    pub attempts: u32,
    /// The sum of the C/I of its attempts, as ratios.
    pub sum: f64,
}

impl Harq {
    /// Processes that have nothing to send; no block is sent that is `window` beyond one that is
    /// not answered.
    pub fn new(processes: u8, carriers: u8, window: u64) -> Self {
        let idle = || Process { free_at: Instant::ZERO, sent: None };
        let each = usize::from(processes);
        let all = std::iter::repeat_with(idle).take(each * usize::from(carriers)).collect();
        Self { processes: all, each, window, next: 0 }
    }

    /// The processes of a carrier, with their numbers.
    fn of(&self, carrier: u8) -> impl Iterator<Item = (usize, &Process)> {
        self.processes.iter().enumerate().skip(usize::from(carrier) * self.each).take(self.each)
    }

    /// How many processes the first carrier has: theirs are the first numbers.
    pub const fn on_first_carrier(&self) -> usize {
        self.each
    }

    /// The number of the next new block.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Whether any block is to be sent again.
    pub fn has_repeats(&self) -> bool {
        self.processes.iter().any(|process| process.sent.is_some())
    }

    /// The process of a carrier with the block that is to be sent again first, and since when that
    /// may be; `None` if it may not be at `now`.
    pub fn repeat_at(&self, carrier: u8, now: Instant) -> Option<(Instant, usize)> {
        let due = |(index, process): (usize, &Process)| {
            (process.sent.is_some() && process.free_at <= now).then_some((process.free_at, index))
        };
        self.of(carrier).filter_map(due).min()
    }

    /// When the next answer of any process is there: the numbers of all carriers are one sequence.
    pub fn next_answer(&self, now: Instant) -> Option<Instant> {
        self.processes.iter().map(|process| process.free_at).filter(|at| *at > now).min()
    }

    /// When the next block of a carrier that is to be sent again may be.
    pub fn next_repeat(&self, carrier: u8, now: Instant) -> Option<Instant> {
        let pending = self.of(carrier).filter(|(_, process)| process.sent.is_some());
        pending.map(|(_, process)| process.free_at).filter(|at| *at > now).min()
    }

    /// What a process has to send again.
    pub fn sent(&self, process: usize) -> Option<&Sent> {
        self.processes[process].sent.as_ref()
    }

    /// A process of a carrier for a new block, if there is one.
    pub fn idle(&self, carrier: u8, now: Instant) -> Option<usize> {
        let oldest =
            self.processes.iter().filter_map(|process| process.sent.as_ref()).map(|sent| sent.block.number).min();
        if oldest.is_some_and(|oldest| self.next >= oldest + self.window) {
            return None;
        }
        let is_idle = |process: &Process| process.sent.is_none() && process.free_at <= now;
        self.of(carrier).find(|(_, process)| is_idle(process)).map(|(index, _)| index)
    }

    /// Numbers a new block.
    pub const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Takes what a process is to send again.
    pub fn take(&mut self, process: usize) -> Option<Sent> {
        self.processes[process].sent.take()
    }

    /// A process has sent at `now`, and does not again for `round_trip`. What was in vain is kept.
    pub fn transmitted(&mut self, process: usize, now: Instant, round_trip: Span, in_vain: Option<Sent>) {
        self.processes[process] = Process { free_at: now + round_trip, sent: in_vain };
    }

    /// Gives up all that is to be sent again.
    pub fn clear(&mut self, mut lost: impl FnMut(Block)) {
        for process in &mut self.processes {
            if let Some(sent) = process.sent.take() {
                lost(sent.block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::umts::hsdpa::transport_block::CqiTable;

    #[test]
    fn what_is_given_up_is_not_sent_again() {
        let mut harq = Harq::new(6, 1, 16);
        let block = Block { number: harq.number(), units: Vec::new() };
        let in_vain = Sent { block, cqi: 16, air: CqiTable::D.block(16), share: 1.0, attempts: 1, sum: 10.0 };
        harq.transmitted(2, Instant::ZERO, Span::from_millis(12), Some(in_vain));
        let answered = Instant::ZERO + Span::from_millis(12);
        assert_eq!(harq.repeat_at(0, answered), Some((answered, 2)));
        let mut lost = Vec::new();
        harq.clear(|block| lost.push(block.number));
        assert_eq!((lost, harq.has_repeats(), harq.repeat_at(0, answered)), (vec![0], false, None));
    }
    #[test]
    fn carriers_have_processes_of_their_own_and_numbers_in_common() {
        let mut harq = Harq::new(2, 2, 3);
        let at = |millis: u64| Instant::ZERO + Span::from_millis(millis);
        let round_trip = Span::from_millis(12);
        for (carrier, expected) in [(0, 0), (1, 2), (0, 1)] {
            let process = harq.idle(carrier, at(0)).expect("an idle process");
            assert_eq!(process, expected);
            let block = Block { number: harq.number(), units: Vec::new() };
            let in_vain = Sent { block, cqi: 16, air: CqiTable::D.block(16), share: 1.0, attempts: 1, sum: 10.0 };
            harq.transmitted(process, at(0), round_trip, (carrier == 1).then_some(in_vain));
        }
        assert_eq!((harq.repeat_at(0, at(12)), harq.repeat_at(1, at(12))), (None, Some((at(12), 2))));
        assert_eq!((harq.next_repeat(0, at(0)), harq.next_repeat(1, at(0))), (None, Some(at(12))));
        assert_eq!(harq.idle(1, at(0)), Some(3));
        harq.number();
        assert_eq!(harq.idle(1, at(0)), None, "block 1 is not answered: no more than 3 from it on");
    }
}
