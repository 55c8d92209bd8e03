//! One direction of PPP: packets wait, become frames, and become packets again at the other end.
//!
//! A frame enters the stream of octets when the next link has too few octets to fill its next
//! transmission. A frame that lost an octet has a wrong FCS and is discarded; the flag between two
//! frames is not lost with it, so that the next one is sound.

use std::collections::VecDeque;

use airpath_core::{Context, DropCause, Instant, Packet};

use super::config;
use super::octets::Run;
use super::stream::Fate;
use super::van_jacobson::{Compressor, Decompressor, Form, PLAIN_HEADERS};
use crate::common::arq::rlc_queue::RlcQueue;

/// One direction of PPP, both its ends.
#[derive(Debug)]
pub struct Ppp {
    queue: RlcQueue,
    overhead: u32,
    /// The share of octets that are sent as two: of headers and what PPP adds, and of the data
    /// behind them.
    escaped: [f64; 2],
    /// What the frames so far are short of their share of escaped octets.
    owed: f64,
    /// Frames that are not complete at the other end.
    frames: VecDeque<Framed>,
    /// The number of the first of them.
    first: u64,
    /// Header compression, if it is on.
    compression: Option<(Compressor, Decompressor)>,
}

#[derive(Clone, Copy, Debug)]
struct Framed {
    packet: Packet,
    form: Form,
    /// Octets whose fate is not known yet.
    outstanding: u32,
    is_damaged: bool,
}

impl Ppp {
    /// An idle one, with this queue.
    pub fn new(ppp: &config::Ppp, queue: RlcQueue) -> Self {
        Self {
            queue,
            overhead: ppp.overhead.get() as u32,
            escaped: [ppp.escaped_headers.unwrap_or(ppp.escaped), ppp.escaped].map(|share| share.get()),
            owed: 0.0,
            frames: VecDeque::new(),
            first: 0,
            compression: ppp
                .compressed_header
                .map(|header| (Compressor::new(header.get() as u32), Decompressor::default())),
        }
    }

    /// Takes a packet to send; `lost` is called for packets that give way to it in a full queue.
    ///
    /// # Errors
    /// Why the queue drops the packet instead.
    pub fn enqueue(&mut self, now: Instant, packet: Packet, lost: impl FnMut(Packet)) -> Result<(), DropCause> {
        self.queue.enqueue(now, packet, lost)
    }

    /// Packets and bytes that wait to be framed.
    pub fn backlog(&self) -> (u32, u64) {
        self.queue.backlog()
    }

    /// Frames the packet that is next; `dropped` is called for those that the queue drops instead.
    pub fn frame(
        &mut self,
        now: Instant,
        cx: &mut Context<'_>,
        mut dropped: impl FnMut(Packet, &mut Context<'_>),
    ) -> Option<Run> {
        let packet = self.queue.dequeue(now, |packet| dropped(packet, cx))?;
        let (form, size) = match &mut self.compression {
            Some((compressor, _)) => compressor.compress(&packet, cx.segment(packet.slot).as_ref()),
            None => (Form::Plain, packet.size),
        };
        let plain = size + self.overhead;
        let data = packet.size.saturating_sub(PLAIN_HEADERS);
        let [of_headers, of_data] = self.escaped;
        self.owed += f64::from(plain - data) * of_headers + f64::from(data) * of_data;
        let escaped = self.owed as u32;
        self.owed -= f64::from(escaped);
        let octets = plain + escaped;
        let run = Run { frame: self.first + self.frames.len() as u64, octets };
        self.frames.push_back(Framed { packet, form, outstanding: octets, is_damaged: false });
        Some(run)
    }

    /// Octets have come to the other end, or are lost.
    pub fn settle(&mut self, run: Run, fate: Fate) {
        let index = (run.frame - self.first) as usize;
        let frame = &mut self.frames[index];
        frame.outstanding -= run.octets;
        frame.is_damaged |= fate == Fate::Lost;
    }

    /// The next frame whose fate is known: its packet, or the cause of its loss.
    pub fn next_complete(&mut self) -> Option<(Packet, Result<(), DropCause>)> {
        let Framed { packet, form, outstanding: 0, is_damaged } = *self.frames.front()? else { return None };
        self.frames.pop_front();
        self.first += 1;
        let Some((_, decompressor)) = &mut self.compression else {
            return Some((packet, if is_damaged { Err(DropCause::AttemptsExhausted) } else { Ok(()) }));
        };
        let fate = if is_damaged {
            decompressor.lose(packet.flow, form);
            Err(DropCause::AttemptsExhausted)
        } else if decompressor.receive(packet.flow, form) {
            Ok(())
        } else {
            Err(DropCause::Decompression)
        };
        Some((packet, fate))
    }

    /// Loses what waits to be framed.
    pub fn clear(&mut self, now: Instant, lost: impl FnMut(Packet)) {
        self.queue.clear(now, lost);
    }

    /// A call begins. Header compression is negotiated for it, so that neither end has a
    /// connection (RFC 1332 §4).
    pub fn begin_call(&mut self) {
        if let Some((compressor, decompressor)) = &mut self.compression {
            compressor.restart();
            *decompressor = Decompressor::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, FlowId, SegmentInfo, SegmentLookup, Slot, UserId};

    use super::*;

    fn octets(toml: &str, size: u32) -> u32 {
        let ppp: config::Ppp = toml::from_str(toml).expect("a table");
        let mut ppp = Ppp::new(&ppp, RlcQueue::unlimited());
        let packet = Packet { id: 0, size, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) };
        assert_eq!(ppp.enqueue(Instant::ZERO, packet, |_| {}), Ok(()));
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, Default::default());
        ppp.frame(Instant::ZERO, &mut cx, |_, _| {}).expect("it waits").octets
    }

    /// Each packet is 100 bytes of a connection, the first at offset 0.
    struct Stream;

    impl SegmentLookup for Stream {
        fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
            let offset = i64::from(slot.0) * 100;
            Some(SegmentInfo { offset, length: 100, ack: 0.into(), flags: 0x10, ..SegmentInfo::default() })
        }
    }

    #[test]
    fn the_next_call_has_no_connection() {
        let ppp: config::Ppp = toml::from_str("overhead = \"8 B\"\ncompressed_header = \"5 B\"").expect("a table");
        let mut ppp = Ppp::new(&ppp, RlcQueue::unlimited());
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, Default::default());
        cx.with_segments(&Stream);
        let mut slots = 0..;
        let mut send = |ppp: &mut Ppp, fate| {
            let slot = Slot(slots.next().expect("numbers are endless"));
            let packet = Packet { id: 0, size: 140, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot };
            ppp.enqueue(Instant::ZERO, packet, |_| {}).expect("room");
            let run = ppp.frame(Instant::ZERO, &mut cx, |_, _| {}).expect("it waits");
            ppp.settle(run, fate);
            (run.octets, ppp.next_complete().expect("its fate is known").1)
        };
        assert_eq!(send(&mut ppp, Fate::Delivered), (148, Ok(())));
        assert_eq!(send(&mut ppp, Fate::Delivered), (113, Ok(())));
        assert_eq!(send(&mut ppp, Fate::Lost), (113, Err(DropCause::AttemptsExhausted)));
        ppp.begin_call();
        assert_eq!(send(&mut ppp, Fate::Delivered), (148, Ok(())));
        assert_eq!(send(&mut ppp, Fate::Delivered), (113, Ok(())));
    }

    #[test]
    fn what_is_sent_as_two_depends_on_what_is_sent() {
        assert_eq!(octets("overhead = \"8 B\"", 540), 548);
        assert_eq!(octets("overhead = \"8 B\"\nescaped = 0.25", 540), 548 + 137);
        assert_eq!(octets("overhead = \"8 B\"\nescaped = 1.0\nescaped_headers = 0.25", 540), 548 + 500 + 12);
        assert_eq!(octets("overhead = \"8 B\"\nescaped = 1.0\nescaped_headers = 0.5", 24), 32 + 16, "headers alone");
    }
}
