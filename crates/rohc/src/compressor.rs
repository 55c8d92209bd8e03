//! The compressor: contexts by flow, the packets that keep them valid, and feedback.

mod context;
mod packets;
mod reliable;
mod updates;

use crate::crc::Crc;
use crate::error::{ConfigError, FeedbackError};
use crate::feedback::{Acknowledgement, Feedback};
use crate::framework::{Config, IR, Mode, is_feedback, read_feedback};
use crate::header::Header;
use crate::profile::{Profile, Version};
use crate::reader::Reader;
use crate::refresh::{IR_INTERVAL, REPEATS};
use crate::tcp;
use crate::tcp::compressor::Base;
use crate::v2;
use context::Context;

/// Step of the first sequence number from one packet of the channel to the next: odd and near 2¹⁶
/// divided by the golden ratio, so that contexts begin far apart.
const FIRST_MSN_STEP: u64 = 40_503;

/// The sending end of a channel.
#[derive(Clone, Debug)]
pub struct Compressor {
    config: Config,
    /// By context identifier.
    contexts: Vec<Slot>,
    /// Packets so far, which orders the contexts by their last use.
    packets: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    last_use: u64,
    flow: Flow,
}

#[derive(Clone, Debug)]
enum Flow {
    /// All that no other profile compresses; packets since the last IR packet.
    Uncompressed {
        since_ir: u32,
        mode: Mode,
    },
    Compressed(Box<Context>),
    /// Version 2 of the profiles.
    Version2(Box<v2::compressor::Context>),
    /// Profile 0x0006.
    Tcp(Box<tcp::compressor::Context>),
}

impl Compressor {
    /// One that has sent nothing.
    ///
    /// # Errors
    /// If the configuration makes no sense.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config: *config, contexts: Vec::new(), packets: 0 })
    }

    /// Contexts in use.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Compresses a packet of `length` bytes whose first bytes are `packet`: all its headers, or
    /// all of it. Appends the ROHC header to `out` and returns how many bytes of the packet it
    /// replaces; the others follow it as they are.
    pub fn compress(&mut self, packet: &[u8], length: usize, out: &mut Vec<u8>) -> usize {
        self.packets += 1;
        let profiles = Profile::COMPRESSING.into_iter().filter(|profile| self.config.profiles.contains(*profile));
        let header = profiles.filter_map(|profile| Header::parse(profile, packet, length)).find(is_supported);
        let Some(header) = header else { return self.send_uncompressed(packet, out) };
        let known = |slot: &Slot| match &slot.flow {
            Flow::Uncompressed { .. } => false,
            Flow::Compressed(context) => context.matches(&header),
            Flow::Version2(context) => context.matches(&header),
            Flow::Tcp(context) => context.matches(&header),
        };
        let known = self.contexts.iter().position(known);
        let (config, packets) = (self.config, self.packets);
        let cid = known.unwrap_or_else(|| self.begin(|old| Flow::new(&config, packets, &header, old)));
        let slot = &mut self.contexts[cid];
        slot.last_use = self.packets;
        match &mut slot.flow {
            Flow::Uncompressed { .. } => {}
            Flow::Compressed(context) => context.send(&self.config, cid as u16, &header, out),
            Flow::Version2(context) => {
                context.send(&self.config, cid as u16, &header, length - header.length(), out);
            }
            Flow::Tcp(_) => self.send_tcp(cid, &header, length - header.length(), out),
        }
        header.length()
    }

    /// Profile 0x0006: a new context may be replicated from another one.
    fn send_tcp(&mut self, cid: usize, header: &Header, payload: usize, out: &mut Vec<u8>) {
        let base = self.base(cid, header);
        let (before, others) = self.contexts.split_at_mut(cid);
        let Some((slot, after)) = others.split_first_mut() else { return };
        let base = base.and_then(|base| {
            let slot = if base < cid { before.get(base) } else { after.get(base - cid - 1) };
            slot.and_then(Slot::tcp).map(|context| Base { cid: base as u16, context })
        });
        if let Flow::Tcp(context) = &mut slot.flow {
            context.send(&self.config, cid as u16, base, header, payload, out);
        }
    }

    /// The context from which that of `cid` is replicated, if it is new: of those that fit, the one
    /// with most ports in common, and then the one that was used last.
    fn base(&self, cid: usize, header: &Header) -> Option<usize> {
        let new = self.contexts[cid].tcp().filter(|context| context.is_replicable())?;
        let fits = |(index, slot): (usize, &Slot)| {
            let common = slot.tcp().filter(|_| index != cid)?.common_ports(new, header)?;
            Some((common, slot.last_use, index))
        };
        self.contexts.iter().enumerate().filter_map(fits).max().map(|(.., index)| index)
    }

    /// A context for a new flow: an unused one, or that of the flow that was quiet for longest,
    /// which `flow` receives.
    fn begin(&mut self, flow: impl FnOnce(Option<&Flow>) -> Flow) -> usize {
        let last_use = self.packets;
        if self.contexts.len() < usize::from(self.config.contexts) {
            self.contexts.push(Slot { last_use, flow: flow(None) });
            return self.contexts.len() - 1;
        }
        let quietest = (0..self.contexts.len()).min_by_key(|cid| self.contexts[*cid].last_use);
        let cid = quietest.expect("a channel has at least one context");
        let flow = flow(Some(&self.contexts[cid].flow));
        self.contexts[cid] = Slot { last_use, flow };
        cid
    }

    /// Profile 0x0000 (RFC 3095 §5.10).
    fn send_uncompressed(&mut self, packet: &[u8], out: &mut Vec<u8>) -> usize {
        let known = |slot: &Slot| matches!(slot.flow, Flow::Uncompressed { .. });
        let cid = self.contexts.iter().position(known);
        let uncompressed = Flow::Uncompressed { since_ir: 0, mode: Mode::Unidirectional };
        let cid = cid.unwrap_or_else(|| self.begin(|_| uncompressed));
        let slot = &mut self.contexts[cid];
        slot.last_use = self.packets;
        let Flow::Uncompressed { since_ir, mode } = &mut slot.flow else { return 0 };
        let is_ir = *since_ir < REPEATS;
        *since_ir += 1;
        if *since_ir > IR_INTERVAL && *mode == Mode::Unidirectional {
            *since_ir = 0;
        }
        let start = out.len();
        // A packet that is no IP packet could be taken for something else than a normal packet.
        let first = packet.first().copied().filter(|octet| *octet < 0xe0);
        match first {
            Some(first) if !is_ir => {
                self.config.begin(out, cid as u16, first);
                1
            }
            _ => {
                self.config.begin(out, cid as u16, IR);
                out.push(Profile::Uncompressed.octet());
                let crc = Crc::Eight.of(&out[start..]);
                out.push(crc);
                0
            }
        }
    }

    /// Receives feedback elements, those that the decompressor of the other end makes. Returns the
    /// number of elements that were used.
    ///
    /// # Errors
    /// That of the first element that makes no sense; those before it were used.
    pub fn receive_feedback(&mut self, feedback: &[u8]) -> Result<usize, FeedbackError> {
        let mut reader = Reader::new(feedback);
        let mut used = 0;
        while let Some(octet) = reader.peek() {
            if !is_feedback(octet) {
                reader.octet().map_err(|_| FeedbackError::Truncated)?;
                continue;
            }
            let data = read_feedback(&mut reader).map_err(|_| FeedbackError::Truncated)?;
            let cid = Feedback::cid(&self.config, data)?;
            let slot = self.contexts.get_mut(usize::from(cid)).ok_or(FeedbackError::NoContext { cid })?;
            match &mut slot.flow {
                Flow::Compressed(context) => context.receive(&Feedback::parse(&self.config, data)?),
                Flow::Version2(context) => context.receive(&Feedback::parse_formal(&self.config, data)?),
                Flow::Tcp(context) => context.receive(&Feedback::parse_formal(&self.config, data)?),
                Flow::Uncompressed { since_ir, mode } => {
                    let feedback = Feedback::parse(&self.config, data);
                    // A decompressor with version 2 requests an unknown context in its format.
                    let feedback = feedback.or_else(|error| match self.config.version {
                        Version::One => Err(error),
                        Version::Two => Feedback::parse_formal(&self.config, data),
                    })?;
                    *mode = feedback.mode.unwrap_or(*mode);
                    *since_ir = match feedback.acknowledgement {
                        Acknowledgement::Ack => (*since_ir).max(REPEATS),
                        _ => 0,
                    };
                }
            }
            used += 1;
        }
        Ok(used)
    }
}

impl Slot {
    fn tcp(&self) -> Option<&tcp::compressor::Context> {
        match &self.flow {
            Flow::Tcp(context) => Some(context),
            Flow::Uncompressed { .. } | Flow::Compressed(_) | Flow::Version2(_) => None,
        }
    }
}

impl Flow {
    /// The flow of this packet, in the place of `old`.
    fn new(config: &Config, packets: u64, header: &Header, old: Option<&Self>) -> Self {
        match (header.profile, config.version) {
            (Profile::Tcp, _) => {}
            (_, Version::One) => return Self::Compressed(Box::new(Context::new(header))),
            (_, Version::Two) => {
                // The first sequence number is arbitrary (RFC 5225 §6.3.2). It differs from that of
                // the flow before, so that the decompressor does not take it for a late packet.
                let msn = packets.wrapping_mul(FIRST_MSN_STEP) as u16;
                return Self::Version2(Box::new(v2::compressor::Context::new(header, config.reorder_ratio, msn)));
            }
        }
        let msn = match old {
            Some(Self::Tcp(context)) => context.next_msn(),
            _ => 0,
        };
        Self::Tcp(Box::new(tcp::compressor::Context::new(header, msn)))
    }
}

/// Whether the profile of the header can restore it.
fn is_supported(header: &Header) -> bool {
    header.profile != Profile::Tcp || tcp::options::are_supported(header.tcp_options())
}
