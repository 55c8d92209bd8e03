//! Radio link control of one user in one direction: segmentation, and reassembly at the far end.
//!
//! A packet is cut into PDUs of one size, the last one padded; a PDU never carries parts of two
//! packets (no concatenation). PDUs of one packet are alike: what the far end has of a packet is a
//! number. So PDUs are not kept one by one but as [`Run`]s, and cost nothing each.
//!
//! There is no transmit window, unlike in the RLC of 3GPP TS 25.322: what waits for a
//! retransmission never holds up new PDUs. The study that this model comes from has none either.

use std::collections::VecDeque;

use airpath_core::{DropCause, Instant, Packet};

use super::rlc_queue::RlcQueue;

/// PDUs of one packet that are sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which packet of the user: counted from zero in the order of segmentation.
    pub packet: u64,
    /// How many PDUs.
    pub pdus: u32,
    /// The how-many-eth transmission of these PDUs this is, from 1.
    pub attempt: u32,
}

/// Sender and receiver of one user.
#[derive(Clone, Debug)]
pub struct Rlc {
    pdu: u32,
    in_sequence: bool,
    queue: RlcQueue,
    /// Packets with a PDU that was sent, from the oldest that is not complete.
    cut: VecDeque<Cut>,
    /// The number of the first of them.
    first: u64,
    /// PDUs of the last of them that were never sent.
    unsent: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cut {
    packet: Packet,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The far end lacks this number of its PDUs, never zero.
    Missing(u32),
    /// The far end has it all, but not yet one that came before.
    Complete,
    /// Delivered or given up.
    Done,
}

impl Rlc {
    /// An RLC that cuts into PDUs of `pdu` bytes and delivers packets in the order in which they
    /// came (`in_sequence`), or each as soon as it is complete.
    pub fn new(pdu: u32, in_sequence: bool, queue: RlcQueue) -> Self {
        Self { pdu, in_sequence, queue, cut: VecDeque::new(), first: 0, unsent: 0 }
    }

    /// Takes a packet to send; `lost` is called for packets that give way to it in a full queue.
    ///
    /// # Errors
    /// Why the queue drops the packet instead.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: Packet, lost: impl FnMut(Packet)) -> Result<(), DropCause> {
        self.queue.enqueue(now, packet, lost)
    }

    /// Whether there is anything that was never sent.
    #[inline]
    pub fn has_new(&self) -> bool {
        self.unsent > 0 || !self.queue.is_empty()
    }

    /// Packets that were not sent completely, and their bytes.
    #[inline]
    pub fn backlog(&self) -> (u32, u64) {
        let (packets, bytes) = self.queue.backlog();
        match self.cut.back() {
            Some(cut) if self.unsent > 0 => (packets + 1, bytes + u64::from(cut.packet.size)),
            _ => (packets, bytes),
        }
    }

    /// Cuts up to `room` PDUs that were never sent and appends them to `block`; returns their
    /// number. `dropped` is called for packets that the queue drops instead of sending them.
    pub fn segment(&mut self, now: Instant, room: u32, block: &mut Vec<Run>, mut dropped: impl FnMut(Packet)) -> u32 {
        let mut left = room;
        while left > 0 {
            if self.unsent == 0 {
                let Some(packet) = self.queue.dequeue(now, &mut dropped) else { break };
                self.unsent = packet.size.div_ceil(self.pdu).max(1);
                self.cut.push_back(Cut { packet, state: State::Missing(self.unsent) });
            }
            let pdus = left.min(self.unsent);
            block.push(Run { packet: self.first + self.cut.len() as u64 - 1, pdus, attempt: 1 });
            self.unsent -= pdus;
            left -= pdus;
        }
        room - left
    }

    /// Whether the packet was delivered or given up.
    #[inline]
    pub fn is_done(&self, packet: u64) -> bool {
        packet < self.first || self.cut[(packet - self.first) as usize].state == State::Done
    }

    /// Gives the far end `pdus` more PDUs of a packet; `deliver` is called for the packets that
    /// it passes on.
    #[inline]
    pub fn receive(&mut self, packet: u64, pdus: u32, deliver: impl FnMut(Packet)) {
        if self.is_done(packet) {
            return;
        }
        let cut = &mut self.cut[(packet - self.first) as usize];
        let State::Missing(missing) = cut.state else { unreachable!("a PDU is received once") };
        if pdus < missing {
            cut.state = State::Missing(missing - pdus);
        } else {
            cut.state = State::Complete;
            self.release(packet, deliver);
        }
    }

    /// Gives up a packet: its other PDUs are no longer sent, and delivery goes on behind it.
    /// Returns it, unless that was done before; `deliver` is called for the packets that waited for
    /// it.
    pub fn give_up(&mut self, packet: u64, deliver: impl FnMut(Packet)) -> Option<Packet> {
        if self.is_done(packet) {
            return None;
        }
        let index = (packet - self.first) as usize;
        if index + 1 == self.cut.len() {
            self.unsent = 0;
        }
        let cut = &mut self.cut[index];
        cut.state = State::Done;
        let given_up = cut.packet;
        self.release(packet, deliver);
        Some(given_up)
    }

    /// Gives up all packets that the far end does not have completely, and all that wait. `lost` is
    /// called for these, `deliver` for those that waited at the far end only for their turn.
    pub fn reset(&mut self, now: Instant, mut lost: impl FnMut(Packet), mut deliver: impl FnMut(Packet)) {
        for number in self.first..self.first + self.cut.len() as u64 {
            let complete = !self.is_done(number) && self.cut[(number - self.first) as usize].state == State::Complete;
            if !complete && let Some(packet) = self.give_up(number, &mut deliver) {
                lost(packet);
            }
        }
        self.queue.clear(now, lost);
    }

    /// Passes on what a change of `packet`'s state lets go.
    fn release(&mut self, packet: u64, mut deliver: impl FnMut(Packet)) {
        if !self.in_sequence {
            let cut = &mut self.cut[(packet - self.first) as usize];
            if cut.state == State::Complete {
                cut.state = State::Done;
                deliver(cut.packet);
            }
        }
        while let Some(cut) = self.cut.front() {
            match cut.state {
                State::Missing(_) => break,
                State::Complete => deliver(cut.packet),
                State::Done => {}
            }
            self.cut.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, Slot, UserId};

    use super::*;

    /// An RLC with packets of these sizes and PDUs of 40 bytes.
    fn rlc(in_sequence: bool, sizes: &[u32]) -> Rlc {
        let mut rlc = Rlc::new(40, in_sequence, RlcQueue::unlimited());
        for (id, size) in (0..).zip(sizes) {
            let (flow, user, slot) = (FlowId(0), UserId::new(0), Slot(0));
            let packet = Packet { id, size: *size, flow, user, ecn: Ecn::NotEct, slot };
            assert_eq!(rlc.enqueue(Instant::ZERO, packet, |_| {}), Ok(()));
        }
        rlc
    }

    fn segment(rlc: &mut Rlc, room: u32) -> Vec<(u64, u32)> {
        let mut block = Vec::new();
        let pdus = rlc.segment(Instant::ZERO, room, &mut block, |packet| panic!("{packet:?} was dropped"));
        assert_eq!(pdus, block.iter().map(|run| run.pdus).sum::<u32>());
        assert!(block.iter().all(|run| run.attempt == 1));
        block.iter().map(|run| (run.packet, run.pdus)).collect()
    }

    fn receive(rlc: &mut Rlc, packet: u64, pdus: u32) -> Vec<u64> {
        let mut delivered = Vec::new();
        rlc.receive(packet, pdus, |packet| delivered.push(packet.id));
        delivered
    }

    #[test]
    fn a_packet_is_cut_into_padded_pdus_of_its_own() {
        let mut rlc = rlc(true, &[100, 0, 40, 41]);
        assert_eq!(rlc.backlog(), (4, 181));
        assert_eq!(segment(&mut rlc, 2), [(0, 2)]);
        assert_eq!(rlc.backlog(), (4, 181), "a packet that is sent in part counts in full");
        assert_eq!(segment(&mut rlc, 3), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(rlc.backlog(), (1, 41));
        assert!(rlc.has_new());
        assert_eq!(segment(&mut rlc, 9), [(3, 2)]);
        assert!(!rlc.has_new());
    }

    #[test]
    fn delivery_in_sequence_waits_for_earlier_packets() {
        for in_sequence in [true, false] {
            let mut rlc = rlc(in_sequence, &[80, 80, 80]);
            segment(&mut rlc, 6);
            assert!(receive(&mut rlc, 1, 1).is_empty());
            let second = receive(&mut rlc, 1, 1);
            assert_eq!(second, if in_sequence { vec![] } else { vec![1] });
            assert_eq!((rlc.is_done(0), rlc.is_done(1)), (false, !in_sequence));
            assert_eq!(receive(&mut rlc, 0, 2), if in_sequence { vec![0, 1] } else { vec![0] });
            assert!(receive(&mut rlc, 0, 1).is_empty(), "it is done");
            assert_eq!(receive(&mut rlc, 2, 2), [2]);
        }
    }

    #[test]
    fn delivery_goes_on_behind_a_packet_that_is_given_up() {
        let mut rlc = rlc(true, &[80, 80, 80, 80]);
        assert_eq!(segment(&mut rlc, 5), [(0, 2), (1, 2), (2, 1)]);
        assert!(receive(&mut rlc, 1, 2).is_empty());
        let mut delivered = Vec::new();
        let given_up = rlc.give_up(0, |packet| delivered.push(packet.id)).map(|packet| packet.id);
        assert_eq!((given_up, delivered), (Some(0), vec![1]));
        assert_eq!(rlc.give_up(0, |_| {}), None, "once");
        // The last packet is not cut any further.
        assert_eq!(rlc.give_up(2, |_| {}).map(|packet| packet.id), Some(2));
        assert_eq!(rlc.backlog(), (1, 80));
        assert_eq!(segment(&mut rlc, 9), [(3, 2)]);
    }

    #[test]
    fn only_the_last_packet_has_unsent_pdus() {
        let mut rlc = rlc(true, &[80, 80]);
        assert_eq!(segment(&mut rlc, 3), [(0, 2), (1, 1)]);
        assert!(rlc.give_up(0, |_| {}).is_some());
        assert_eq!(segment(&mut rlc, 9), [(1, 1)]);
    }

    #[test]
    fn a_reset_loses_what_is_not_complete() {
        let mut rlc = rlc(true, &[80, 80, 80, 80, 80]);
        assert_eq!(segment(&mut rlc, 7), [(0, 2), (1, 2), (2, 2), (3, 1)]);
        // 1 is complete and waits for 0; 2 is given up; 3 is cut in part, and 4 waits.
        assert!(receive(&mut rlc, 1, 2).is_empty());
        assert!(rlc.give_up(2, |_| {}).is_some());
        let (mut lost, mut delivered) = (Vec::new(), Vec::new());
        rlc.reset(Instant::ZERO, |packet| lost.push(packet.id), |packet| delivered.push(packet.id));
        assert_eq!((lost, delivered), (vec![0, 3, 4], vec![1]));
        assert_eq!((rlc.has_new(), rlc.backlog()), (false, (0, 0)));
    }
}
