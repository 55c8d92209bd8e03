//! The decompressor: contexts by identifier, the check of each header, and feedback.

mod context;
mod packets;

use std::time::Duration;

use crate::crc::Crc;
use crate::error::{ConfigError, DecompressError};
use crate::feedback::{Acknowledgement, Feedback};
use crate::framework::{Config, IR, IR_DYN, Mode};
use crate::profile::{Profile, Version};
use crate::reader::Reader;
use crate::tcp;
use crate::v2;
use context::Context;

/// Packets that fail between two negative acknowledgements of one context: about those that are in
/// flight while the first one is.
const NACK_INTERVAL: u32 = 8;

/// The receiving end of a channel.
#[derive(Clone, Debug)]
pub struct Decompressor {
    config: Config,
    /// By context identifier.
    slots: Vec<Slot>,
    feedback: Vec<u8>,
}

/// What is known by one context identifier.
#[derive(Clone, Debug, Default)]
struct Slot {
    flow: Flow,
    /// Packets that have failed since the last negative acknowledgement; none was sent if `None`.
    since_nack: Option<u32>,
}

/// A packet that has arrived: its first bytes, the length of all of it, and its first octet.
#[derive(Clone, Copy)]
struct Received<'a> {
    version: Version,
    now: Duration,
    packet: &'a [u8],
    length: usize,
    cid: u16,
    first: u8,
}

#[derive(Clone, Debug, Default)]
enum Flow {
    #[default]
    Unknown,
    Uncompressed,
    Compressed(Box<Context>),
    /// Version 2 of the profiles.
    Version2(Box<v2::decompressor::Context>),
    /// Profile 0x0006.
    Tcp(Box<tcp::decompressor::Context>),
}

impl Flow {
    /// Whether the static part of its context is valid.
    fn has_static(&self) -> bool {
        match self {
            Self::Unknown | Self::Uncompressed => false,
            Self::Compressed(context) => context.validity.has_static,
            Self::Version2(context) => context.validity.has_static,
            Self::Tcp(context) => context.validity.has_static,
        }
    }
}

impl Decompressor {
    /// One that has received nothing.
    ///
    /// # Errors
    /// If the configuration makes no sense.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config: *config, slots: Vec::new(), feedback: Vec::new() })
    }

    /// Contexts in use.
    pub fn contexts(&self) -> usize {
        self.slots.iter().filter(|slot| !matches!(slot.flow, Flow::Unknown)).count()
    }

    /// Decompresses a packet of `length` bytes whose first bytes are `packet`: its whole ROHC
    /// header, or all of it. It arrives at `now`, since any moment that stays the same. Appends the
    /// original headers to `out` and returns how many bytes of the packet they replace; the others
    /// follow them as they are.
    ///
    /// # Errors
    /// If the packet is to be discarded; `out` is then as before.
    pub fn decompress(
        &mut self,
        now: Duration,
        packet: &[u8],
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let length = length.max(packet.len());
        let mut reader = Reader::new(packet);
        let (cid, first) = self.config.read_start(&mut reader)?;
        let index = usize::from(cid);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        let received = Received { version: self.config.version, now, packet, length, cid, first };
        let is_replicated = first == IR && reader.peek() == Some(Profile::Tcp.octet());
        let result = if is_replicated {
            self.replicate(received, &mut reader, out)
        } else {
            self.slots[index].decompress(received, &mut reader, out)
        };
        self.report(cid, first, result.as_ref().err());
        result
    }

    /// An IR-CR packet of TCP (RFC 6846 §7.2): the context is that of another one, and what differs
    /// from it.
    fn replicate(
        &mut self,
        received: Received<'_>,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let Received { packet, length, cid, .. } = received;
        reader.octet()?;
        let crc_at = reader.position();
        let check = ContextCrc { packet, crc_at, crc: reader.octet()? };
        let octet = reader.octet()?;
        let base = if octet & 0x80 != 0 { self.config.read_base(reader)? } else { cid };
        let mut context = match self.slots.get(usize::from(base)).map(|slot| &slot.flow) {
            Some(Flow::Tcp(context)) if context.validity.has_dynamic => context.replicated(),
            _ => return Err(DecompressError::NoContext { cid: base }),
        };
        context.read_replicate(reader)?;
        check.verify(reader.position())?;
        context.finish_replicated(length - reader.position(), octet & 0x7f, out)?;
        self.slots[usize::from(cid)].flow = Flow::Tcp(Box::new(context));
        Ok(reader.position())
    }

    /// Feedback for the compressor at the other end that waits to be sent: elements that are
    /// complete packets by themselves, or precede a packet.
    pub fn feedback(&self) -> &[u8] {
        &self.feedback
    }

    /// Forgets the feedback that waits: it was sent.
    pub fn clear_feedback(&mut self) {
        self.feedback.clear();
    }

    /// Notes feedback about a packet that was decompressed, or was not.
    fn report(&mut self, cid: u16, first: u8, error: Option<&DecompressError>) {
        if self.config.mode == Mode::Unidirectional {
            return;
        }
        let slot = &mut self.slots[usize::from(cid)];
        let acknowledgement = match error {
            None => {
                slot.since_nack = None;
                let is_due = match &slot.flow {
                    Flow::Compressed(context) if self.config.mode == Mode::Reliable => context.is_acknowledged(),
                    // The compressor waits for this; for others there is nothing to learn.
                    _ => is_context(first),
                };
                if !is_due {
                    return;
                }
                Acknowledgement::Ack
            }
            // The one is no failure, and the other needs no repair.
            Some(DecompressError::Unconfirmed | DecompressError::Late) => return,
            Some(error) => {
                let failures = slot.since_nack.map_or(NACK_INTERVAL, |since| since + 1);
                slot.since_nack = Some(failures % NACK_INTERVAL);
                if failures < NACK_INTERVAL {
                    return;
                }
                // After reordering the context may be one of another profile. What cannot be
                // replicated is to be sent as a whole.
                let is_unknown =
                    first == IR || matches!(error, DecompressError::NoContext { .. }) || !slot.flow.has_static();
                if is_unknown { Acknowledgement::StaticNack } else { Acknowledgement::Nack }
            }
        };
        let sequence = match &slot.flow {
            Flow::Compressed(context) => Some((u32::from(context.sequence()) & 0xfff, 12)),
            Flow::Version2(context) => Some((u32::from(context.msn()) & 0x3fff, 14)),
            Flow::Tcp(context) => Some((u32::from(context.msn()) & 0x3fff, 14)),
            Flow::Unknown | Flow::Uncompressed => None,
        };
        let feedback = Feedback { cid, acknowledgement, mode: Some(self.config.mode), sequence };
        let is_formal = match slot.flow {
            Flow::Version2(_) | Flow::Tcp(_) => true,
            Flow::Unknown => self.config.version == Version::Two,
            Flow::Uncompressed | Flow::Compressed(_) => false,
        };
        if is_formal {
            feedback.emit_formal(&self.config, &mut self.feedback);
        } else {
            feedback.emit(&self.config, &mut self.feedback);
        }
    }
}

/// Whether a packet carries a context: IR, IR-DYN, or `co_repair` of version 2.
const fn is_context(first: u8) -> bool {
    first & 0xfe == IR || first == IR_DYN || first == v2::CO_REPAIR
}

impl Slot {
    fn decompress(
        &mut self,
        received: Received<'_>,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let Received { now, length, cid, first, .. } = received;
        if let Flow::Version2(context) = &mut self.flow
            && first == v2::CO_REPAIR
        {
            return context.receive_repair(length, cid, reader, out);
        }
        if is_context(first) && first != v2::CO_REPAIR {
            return self.receive_context(received, reader, out);
        }
        match &mut self.flow {
            Flow::Unknown => Err(DecompressError::NoContext { cid }),
            Flow::Uncompressed => {
                out.push(first);
                Ok(reader.position())
            }
            Flow::Compressed(context) => context.receive(now, length, cid, first, reader, out),
            Flow::Version2(context) => context.receive(length, cid, first, reader, out),
            Flow::Tcp(context) => context.receive(length, cid, first, reader, out),
        }
    }

    /// An IR or IR-DYN packet.
    fn receive_context(
        &mut self,
        received: Received<'_>,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let Received { version, now, packet, length, cid, first } = received;
        let number = reader.octet()?;
        let profile = Profile::of(number).ok_or(DecompressError::Profile { profile: u16::from(number) })?;
        let crc_at = reader.position();
        let crc = reader.octet()?;
        if profile == Profile::Uncompressed {
            // The CRC covers the octets before it (RFC 3095 §5.10.1).
            let start = start_of(packet);
            if first & 0xfe != IR {
                return Err(DecompressError::Type { octet: first });
            }
            if Crc::Eight.of(&packet[start..crc_at]) != crc {
                return Err(DecompressError::Crc);
            }
            self.flow = Flow::Uncompressed;
            return Ok(reader.position());
        }
        let check = ContextCrc { packet, crc_at, crc };
        if profile == Profile::Tcp {
            return self.receive_tcp_context(received, check, reader, out);
        }
        if version == Version::Two {
            return self.receive_version_2(received, profile, check, reader, out);
        }
        let mut context = match &self.flow {
            Flow::Compressed(known) if known.profile() == profile => (**known).clone(),
            _ if first == IR_DYN => return Err(DecompressError::NoContext { cid }),
            _ => Context::new(profile),
        };
        if first != IR_DYN {
            context.read_static(reader)?;
        } else if !context.validity.has_static {
            return Err(DecompressError::NoContext { cid });
        }
        if first & 1 == 0 && first != IR_DYN {
            // Without the dynamic part nothing can be decompressed; none of the profiles needs it.
            return Err(DecompressError::Unsupported { feature: "an IR packet without dynamic part" });
        }
        context.read_dynamic(now, reader)?;
        check.verify(reader.position())?;
        context.finish(length - reader.position(), out)?;
        self.flow = Flow::Compressed(Box::new(context));
        Ok(reader.position())
    }

    /// An IR packet of version 2 (RFC 5225 §6.8.2.1), which has no IR-DYN.
    fn receive_version_2(
        &mut self,
        received: Received<'_>,
        profile: Profile,
        check: ContextCrc<'_>,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let Received { length, first, .. } = received;
        if first != IR | 1 {
            return Err(DecompressError::Type { octet: first });
        }
        let known = match &self.flow {
            Flow::Version2(known) => Some(&**known),
            _ => None,
        };
        let (context, header) = v2::decompressor::Context::read_ir(known, profile, length, reader)?;
        check.verify(reader.position())?;
        out.extend_from_slice(header.as_bytes());
        self.flow = Flow::Version2(Box::new(context));
        Ok(reader.position())
    }

    /// An IR or IR-DYN packet of TCP (RFC 6846 §7.1).
    fn receive_tcp_context(
        &mut self,
        received: Received<'_>,
        check: ContextCrc<'_>,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        let unknown = DecompressError::NoContext { cid: received.cid };
        let mut context = match &self.flow {
            Flow::Tcp(known) => (**known).clone(),
            _ if received.first == IR_DYN => return Err(unknown),
            _ => tcp::decompressor::Context::new(),
        };
        match received.first {
            IR_DYN if !context.validity.has_static => return Err(unknown),
            IR_DYN => {}
            _ => context.read_static(reader)?,
        }
        context.read_dynamic(reader)?;
        check.verify(reader.position())?;
        context.finish(received.length - reader.position(), out)?;
        self.flow = Flow::Tcp(Box::new(context));
        Ok(reader.position())
    }
}

/// The CRC of an IR or IR-DYN packet, and where it is.
#[derive(Clone, Copy)]
struct ContextCrc<'a> {
    packet: &'a [u8],
    crc_at: usize,
    crc: u8,
}

impl ContextCrc<'_> {
    /// Compares it with that of the header, which ends at `end`.
    fn verify(self, end: usize) -> Result<(), DecompressError> {
        let Self { packet, crc_at, crc } = self;
        let parts = [&packet[start_of(packet)..crc_at], &[0], &packet[crc_at + 1..end]];
        let computed = parts.iter().fold(Crc::Eight.initial(), |value, bytes| Crc::Eight.update(value, bytes));
        if computed == crc { Ok(()) } else { Err(DecompressError::Crc) }
    }
}

/// Where the packet begins behind feedback and padding. [`Config::read_start`] has read them.
fn start_of(packet: &[u8]) -> usize {
    crate::framework::split_feedback(packet).map_or(0, |(feedback, _)| feedback.len())
}
