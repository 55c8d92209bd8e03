//! The content of a radio block: new RLC blocks, or repeated ones in a scheme that can carry them;
//! and its transmission.

use airpath_core::{Direction, Instant, Packet};

use super::adaptation::Adapter;
use super::air::Air;
use super::coding_scheme::CodingScheme;
use super::soft_combining::{Part, SoftCombining};
use crate::common::arq::acknowledged::{Pdu, Receiver, Sender};

/// An RLC block of EGPRS whose first half was sent, in a scheme with half its payload (TS 44.060
/// §8.1.1).
#[derive(Clone, Copy, Debug)]
pub struct Half {
    pdu: Pdu,
    scheme: CodingScheme,
    received: bool,
}

/// What sender and receiver remember of RLC blocks that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Repetition {
    /// An RLC block whose second half is to be sent.
    pub half: Option<Half>,
    /// The block from which the search for something to repeat goes on.
    from: u64,
    combining: SoftCombining,
}

/// RLC blocks that a mobile sent or received in one block period, on all of its timeslots.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeriodCounts {
    pub pdus: u16,
    pub repeated: u16,
    pub errored: u16,
    pub bytes: u32,
    /// Number of the coding scheme of the last block.
    pub last_scheme: u8,
    /// Blocks without RLC data since the last period with data: control messages, and the dummy
    /// blocks that keep a TBF. They have the coding of CS-1 (3GPP TS 45.003 §5.1.1.4).
    pub control: u16,
}

impl PeriodCounts {
    /// Counts an RLC block.
    #[inline]
    pub fn add(&mut self, scheme: CodingScheme, attempt: u32, received: bool) {
        self.pdus += 1;
        self.repeated += u16::from(attempt > 1);
        self.errored += u16::from(!received);
        self.bytes += scheme.payload();
        self.last_scheme = scheme.number();
    }
}

/// A radio block that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct RadioBlock {
    /// Its scheme.
    pub scheme: CodingScheme,
    /// Its RLC blocks, one or two, which are in error independently.
    pub pdus: [Option<Pdu>; 2],
    /// Whether it carries the whole of them, or half of one.
    part: Part,
}

/// Fills a radio block. In this order of preference: the second half of an RLC block, blocks
/// reported missing, new blocks, and blocks that are not acknowledged, in turn. New
/// blocks leave `less` octets free for other fields. Returns `None` if there is nothing to send.
pub fn fill(
    sender: &mut Sender,
    repetition: &mut Repetition,
    (current, less): (CodingScheme, u32),
    at: Instant,
    mut dropped: impl FnMut(Packet),
) -> Option<RadioBlock> {
    repetition.combining.forget_below(sender.first_unacknowledged());
    if let Some(Half { pdu, scheme, received }) = repetition.half.take() {
        return Some(RadioBlock { scheme, pdus: [Some(pdu), None], part: Part::Second { first_received: received } });
    }
    let mut block: Option<RadioBlock> = None;
    for place in 0..2 {
        let scheme = match sender.peek_repeat() {
            Some(repeat) => original(&repeat).repeated_as(current),
            None => current,
        };
        let fits = block.is_none_or(|block| block.scheme == scheme);
        let pdu = if !fits {
            None
        } else if sender.has_repeats() {
            sender.next_repeat()
        } else {
            sender.next_new(at, current.payload() - less, current as u8, &mut dropped)
        };
        let Some(pdu) = pdu else { break };
        let part = if scheme.payload() < original(&pdu).payload() { Part::First } else { Part::Whole };
        block.get_or_insert(RadioBlock { scheme, pdus: [None; 2], part }).pdus[place] = Some(pdu);
        if scheme.blocks() == 1 {
            break;
        }
    }
    if block.is_none() {
        let pdu = sender.repeat_from(repetition.from).or_else(|| sender.repeat_from(0))?;
        repetition.from = pdu.sequence + 1;
        let scheme = original(&pdu).repeated_as(current);
        let part = if scheme.payload() < original(&pdu).payload() { Part::First } else { Part::Whole };
        block = Some(RadioBlock { scheme, pdus: [Some(pdu), None], part });
    }
    block
}

/// The result of a transmission.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transmission {
    /// Whether the receiver decoded any of its RLC blocks.
    pub any_received: bool,
    /// RLC blocks that the receiver now has whole.
    pub completed: u32,
}

impl RadioBlock {
    /// Sends it over the air: counts its RLC blocks, and passes those that arrive whole to
    /// `receiver`.
    #[inline]
    pub fn transmit(
        &self,
        direction: Direction,
        repetition: &mut Repetition,
        receiver: &mut Receiver,
        mut adapter: Option<&mut Adapter>,
        air: &mut Air,
        counts: &mut PeriodCounts,
    ) -> Transmission {
        let mut sent = Transmission::default();
        for pdu in self.pdus.into_iter().flatten() {
            let attempt = repetition.combining.count(&pdu, original(&pdu), self.scheme, self.part);
            let received = air.receives(direction, self.scheme, attempt);
            counts.add(self.scheme, pdu.attempt, received);
            sent.any_received |= received;
            if let Some(adapter) = adapter.as_mut().filter(|_| attempt == 1) {
                adapter.count(received);
            }
            if self.completes(&pdu, received, &mut repetition.half) {
                receiver.receive(&pdu);
                sent.completed += 1;
            }
        }
        sent
    }

    /// Whether the receiver has an RLC block whole, if it decoded (`received`) the part in this
    /// radio block. The first half is kept in `half` until the second is sent.
    fn completes(&self, pdu: &Pdu, received: bool, half: &mut Option<Half>) -> bool {
        match self.part {
            Part::Whole => received,
            Part::First => {
                *half = Some(Half { pdu: *pdu, scheme: self.scheme, received });
                false
            }
            Part::Second { first_received } => first_received && received,
        }
    }
}

/// The scheme in which an RLC block was sent first.
fn original(pdu: &Pdu) -> CodingScheme {
    CodingScheme::ALL[usize::from(pdu.tag)]
}
