//! What a radio block carries: new RLC blocks, or repeated ones in the scheme in which they may be.

use airpath_core::{Instant, Packet};

use super::coding_scheme::CodingScheme;
use crate::common::arq::acknowledged::{Pdu, Sender};

/// An RLC block of EGPRS of which half was sent, in a radio block of the scheme with half its payload.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    pdu: Pdu,
    scheme: CodingScheme,
    received: bool,
}

/// A radio block that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct RadioBlock {
    /// Its scheme.
    pub scheme: CodingScheme,
    /// What it carries: one RLC block or two, each by itself right or in error.
    pub pdus: [Option<Pdu>; 2],
    /// It carries the first or the second half of the one.
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    First,
    Second { first_received: bool },
}

/// Fills a radio block: the half that is left, what is to be repeated, something new, or else what was sent and not
/// acknowledged, from `repeat_from` on. `less` octets of new blocks are taken by something else. `None`: there is nothing.
pub fn fill(
    sender: &mut Sender,
    half: &mut Option<Half>,
    repeat_from: &mut u64,
    (current, less): (CodingScheme, u32),
    at: Instant,
    mut dropped: impl FnMut(Packet),
) -> Option<RadioBlock> {
    if let Some(Half { pdu, scheme, received }) = half.take() {
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
        let pdu = sender.repeat_from(*repeat_from).or_else(|| sender.repeat_from(0))?;
        *repeat_from = pdu.sequence + 1;
        let scheme = original(&pdu).repeated_as(current);
        let part = if scheme.payload() < original(&pdu).payload() { Part::First } else { Part::Whole };
        block = Some(RadioBlock { scheme, pdus: [Some(pdu), None], part });
    }
    block
}

impl RadioBlock {
    /// Which transmission of an RLC block this is for a receiver that combines them: only those in the scheme of the
    /// first are combined.
    pub fn attempt(&self, pdu: &Pdu) -> u32 {
        if original(pdu) == self.scheme { pdu.attempt } else { 1 }
    }

    /// What the receiver has got whole, given whether it decoded what this block carries of it. The first half of an RLC
    /// block is kept in `half` until the second is sent.
    pub fn completes(&self, pdu: &Pdu, received: bool, half: &mut Option<Half>) -> bool {
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
