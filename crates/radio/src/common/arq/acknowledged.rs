//! The acknowledged mode of radio link control, without a technology: numbered PDUs, a window,
//! status reports with a bitmap, selective repetition, and delivery in sequence.
//!
//! A packet is cut into PDUs, and a PDU may carry the end of one packet and the beginning of the
//! next (concatenation). So the packets of one direction are a stream of bytes here, and a PDU is a
//! range of it. The bytes themselves are nowhere: the [`Sender`] keeps the packets' handles until
//! the [`Receiver`] has the stream up to their ends.
//!
//! ```text
//!   enqueue ─► Sender ── Pdu ─────────► Receiver ─► Sender::hand_over ─► packets, in sequence
//!                 ▲                        │
//!                 └─ handle ◄── Status ◄── report
//! ```
//!
//! The content of a transmission, its duration and its losses depends on the technology, which also
//! decides when to poll, to report, to repeat without a request, and to discard.
//!
//! Sequence numbers are absolute here. On the air they are taken modulo something (TS 25.322
//! §9.2.2.3: 4096; TS 44.060 §9.1.1: 128 for GPRS, 2048 for EGPRS), which is unambiguous as long as
//! the window is at most half of that: so the modulus bounds the window and does nothing else.
//!
//! Work is constant for a PDU on average, and in steady state nothing is allocated.
//!
//! ```
//! use airpath_core::{Ecn, FlowId, Instant, Packet, Slot, UserId};
//! use airpath_radio::common::arq::acknowledged::{Receiver, Sender, Settings, Status};
//! use airpath_radio::common::arq::rlc_queue::RlcQueue;
//!
//! let settings = Settings { window: 512, packet_overhead: 0, end_overhead: 1 };
//! let (mut sender, mut receiver) = (Sender::new(settings, RlcQueue::unlimited()), Receiver::new(settings.window));
//! let packet = Packet { id: 7, size: 100, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
//! sender.enqueue(Instant::ZERO, packet, |_| {}).expect("room");
//! let mut next = || sender.next_new(Instant::ZERO, 40, 0, |_| {}).expect("something to send");
//! let [first, lost, last] = [next(), next(), next()];
//!
//! receiver.receive(&first);
//! receiver.receive(&last);
//! let mut status = Status::default();
//! receiver.report(&mut status);
//! sender.handle(&status, u64::MAX);
//! let again = sender.next_repeat().expect("the lost one");
//! assert_eq!((again.sequence, again.attempt), (lost.sequence, 2));
//! receiver.receive(&again);
//! sender.hand_over(receiver.complete(), |delivered| assert_eq!(delivered.id, 7));
//! ```

mod bits;
mod framing;
mod receiver;
mod sender;

pub use framing::Framing;
pub use receiver::{Receiver, Reception};
pub use sender::{Sender, Settings};

/// A PDU as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Its sequence number, counted from zero.
    pub sequence: u64,
    /// Where in the stream what it carries begins.
    pub offset: u64,
    /// How many bytes of the stream it carries; the rest of its payload is length indicators and
    /// padding.
    pub length: u32,
    /// The how-many-eth time it is sent, from 1.
    pub attempt: u32,
    /// What its maker wants to remember of it, such as the coding scheme of its first transmission.
    pub tag: u8,
    /// The number of this transmission among all of the sender, from zero.
    pub transmission: u64,
}

/// A receiver's report of the PDUs that it has: an acknowledgement of all up to a number, and a
/// bitmap of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// It has all PDUs below.
    pub next_expected: u64,
    /// The bitmap begins with this PDU
    pub from: u64,
    /// and ends before this one.
    pub to: u64,
    /// From the word with `from` to that with the last one below `to`; PDU number n is bit n mod 64
    /// of its word. Set: received.
    words: Vec<u64>,
}

impl Status {
    /// Whether PDU `sequence` of the bitmap's range was received.
    ///
    /// # Panics
    /// If it is not in the range.
    pub fn has(&self, sequence: u64) -> bool {
        assert!((self.from..self.to).contains(&sequence), "the bitmap covers {}..{}", self.from, self.to);
        self.word(sequence / 64) >> (sequence % 64) & 1 == 1
    }

    /// The number of PDUs that the bitmap reports missing.
    pub fn missing(&self) -> u64 {
        (self.to - self.from)
            - self.indexes().map(|index| u64::from((self.word(index) & self.mask(index)).count_ones())).sum::<u64>()
    }

    /// Shortens the bitmap to its first `bits` bits, for where no more fit into a report.
    pub fn shorten(&mut self, bits: u64) {
        self.to = self.to.min(self.from + bits);
    }

    /// The numbers of the words that the bitmap touches.
    fn indexes(&self) -> std::ops::Range<u64> {
        if self.from == self.to { 0..0 } else { self.from / 64..(self.to - 1) / 64 + 1 }
    }

    fn word(&self, index: u64) -> u64 {
        self.words[(index - self.from / 64) as usize]
    }

    /// The bits of a word that the bitmap covers.
    fn mask(&self, index: u64) -> u64 {
        bits::mask(index, self.from, self.to)
    }
}
