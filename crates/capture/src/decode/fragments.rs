//! Reassembly of IP packets from fragments (RFC 791 §3.2, RFC 8200 §4.5).
//!
//! Memory is bounded: `MOST` packets at a time, each of at most 64 KiB. The oldest packet is
//! dropped first. A packet that waits too long, by the clock of the capture, is dropped too.

use std::net::IpAddr;

use airpath_core::{Instant, Span};
use airpath_wire::ip::Protocol;

use super::part::Part;
use crate::skipped::{Cause, Counts};

/// Maximum number of packets in reassembly.
const MOST: usize = 64;
/// Maximum length of a packet's payload, in bytes.
const LONGEST: usize = 1 << 16;
/// Maximum number of fragments of a packet: those of the longest packet on links with the least
/// MTU, of 68 bytes (RFC 791 §3.2).
const MOST_PIECES: usize = LONGEST / 48 + 1;
/// Reassembly timeout (RFC 8200 §4.5; RFC 791 has 15 s, hosts take up to this).
const PATIENCE: Span = Span::from_secs(60);

/// Identifies the packet of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub identification: u32,
    /// In IPv6 the first fragment determines it, and an identification belongs to one sender: it is
    /// zero here.
    pub protocol: Protocol,
}

/// A fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    /// Offset of its first byte in the packet's payload.
    pub offset: usize,
    /// Whether no other fragment follows it.
    pub is_last: bool,
    /// The protocol after the IP header, in the first fragment.
    pub protocol: Protocol,
    pub payload: Part<'a>,
}

/// The packets with missing fragments.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: Vec<Packet>,
    /// The payload that was completed last.
    complete: Vec<u8>,
}

#[derive(Debug)]
struct Packet {
    key: Key,
    began: Instant,
    protocol: Protocol,
    /// Its captured payload.
    payload: Vec<u8>,
    /// Received fragments in order: start, end of the captured bytes, end.
    pieces: Vec<Piece>,
    /// End of the payload, once the last fragment has arrived.
    end: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: usize,
    captured: usize,
    end: usize,
}

impl Fragments {
    /// Adds a fragment that was captured at `now`, and returns the packet's payload and what comes
    /// first in it, where this was the last that was missing.
    ///
    /// # Errors
    /// [`Cause::Fragment`] where others are missing; [`Cause::Malformed`] and [`Cause::Incomplete`]
    /// where it cannot belong to a packet. Packets that are given up are counted in `skipped`.
    pub fn add(
        &mut self,
        now: Instant,
        key: Key,
        fragment: Fragment<'_>,
        skipped: &mut Counts,
    ) -> Result<(Protocol, Part<'_>), Cause> {
        let end = fragment.offset + fragment.payload.length;
        // All but the last have a multiple of eight bytes.
        if end > LONGEST || fragment.payload.length == 0 || !(fragment.is_last || end.is_multiple_of(8)) {
            return Err(Cause::Malformed);
        }
        self.give_up(now, skipped);
        let at = match self.waiting.iter().position(|packet| packet.key == key) {
            Some(at) => at,
            None => {
                if self.waiting.len() == MOST {
                    self.waiting.remove(0);
                    skipped.add(Cause::Incomplete);
                }
                self.waiting.push(Packet {
                    key,
                    began: now,
                    protocol: fragment.protocol,
                    payload: Vec::new(),
                    pieces: Vec::new(),
                    end: None,
                });
                self.waiting.len() - 1
            }
        };
        let packet = &mut self.waiting[at];
        if packet.add(fragment).is_none() {
            // Overlaps are an attack or damage, and the whole packet is discarded (RFC 5722 §4).
            self.waiting.remove(at);
            return Err(Cause::Incomplete);
        }
        if !packet.is_complete() {
            return Err(Cause::Fragment);
        }
        let mut packet = self.waiting.remove(at);
        let length = packet.end.expect("it is complete");
        packet.payload.truncate(packet.captured());
        self.complete = packet.payload;
        Ok((packet.protocol, Part { bytes: &self.complete, length }))
    }

    /// The number of packets with missing fragments.
    pub const fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn give_up(&mut self, now: Instant, skipped: &mut Counts) {
        self.waiting.retain(|packet| {
            let stays = now.since(packet.began) <= PATIENCE;
            if !stays {
                skipped.add(Cause::Incomplete);
            }
            stays
        });
    }
}

impl Packet {
    /// `None` where the fragment overlaps another, contradicts the end of the payload, or exceeds
    /// the maximum number of fragments.
    fn add(&mut self, fragment: Fragment<'_>) -> Option<()> {
        let (start, bytes) = (fragment.offset, fragment.payload.bytes);
        let piece = Piece { start, captured: start + bytes.len(), end: start + fragment.payload.length };
        let place = self.pieces.partition_point(|other| other.start < start);
        if self.pieces.get(place).is_some_and(|other| (other.start, other.end) == (piece.start, piece.end)) {
            // A duplicate by the network or the capture.
            return Some(());
        }
        let overlaps = place.checked_sub(1).is_some_and(|before| self.pieces[before].end > piece.start)
            || self.pieces.get(place).is_some_and(|after| after.start < piece.end);
        let exceeds = self.end.is_some_and(|end| piece.end > end || fragment.is_last)
            || fragment.is_last && self.pieces.last().is_some_and(|last| last.end > piece.end);
        if overlaps || exceeds || self.pieces.len() == MOST_PIECES {
            return None;
        }
        self.pieces.insert(place, piece);
        if fragment.is_last {
            self.end = Some(piece.end);
        }
        if start == 0 {
            self.protocol = fragment.protocol;
        }
        if self.payload.len() < piece.captured {
            self.payload.resize(piece.captured, 0);
        }
        self.payload[start..piece.captured].copy_from_slice(bytes);
        Some(())
    }

    fn is_complete(&self) -> bool {
        let mut reached = 0;
        self.pieces.iter().all(|piece| std::mem::replace(&mut reached, piece.end) == piece.start)
            && self.end == Some(reached)
    }

    /// Bytes up to the first that was not captured.
    fn captured(&self) -> usize {
        let cut = self.pieces.iter().find(|piece| piece.captured < piece.end);
        cut.or(self.pieces.last()).map_or(0, |piece| piece.captured)
    }
}
