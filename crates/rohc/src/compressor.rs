//! The compressor: contexts by flow, the packets that keep them valid, and feedback.

mod context;
mod packets;

use crate::crc::Crc;
use crate::error::{ConfigError, FeedbackError};
use crate::feedback::Feedback;
use crate::framework::{Config, IR, Mode, is_feedback, read_feedback};
use crate::header::Header;
use crate::profile::Profile;
use crate::reader::Reader;
use context::Context;

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
        let header = Profile::COMPRESSING.into_iter().find_map(|profile| Header::parse(profile, packet, length));
        let Some(header) = header else { return self.send_uncompressed(packet, out) };
        let known = |slot: &Slot| matches!(&slot.flow, Flow::Compressed(context) if context.matches(&header));
        let cid = match self.contexts.iter().position(known) {
            Some(cid) => cid,
            None => self.begin(Flow::Compressed(Box::new(Context::new(&header)))),
        };
        let slot = &mut self.contexts[cid];
        slot.last_use = self.packets;
        if let Flow::Compressed(context) = &mut slot.flow {
            context.send(&self.config, cid as u16, &header, out);
        }
        header.length()
    }

    /// A context for a new flow: an unused one, or that of the flow that was quiet for longest.
    fn begin(&mut self, flow: Flow) -> usize {
        let slot = Slot { last_use: self.packets, flow };
        if self.contexts.len() < usize::from(self.config.contexts) {
            self.contexts.push(slot);
            return self.contexts.len() - 1;
        }
        let quietest = (0..self.contexts.len()).min_by_key(|cid| self.contexts[*cid].last_use);
        let cid = quietest.expect("a channel has at least one context");
        self.contexts[cid] = slot;
        cid
    }

    /// Profile 0x0000 (RFC 3095 §5.10).
    fn send_uncompressed(&mut self, packet: &[u8], out: &mut Vec<u8>) -> usize {
        let known = |slot: &Slot| matches!(slot.flow, Flow::Uncompressed { .. });
        let cid = self.contexts.iter().position(known);
        let cid = cid.unwrap_or_else(|| self.begin(Flow::Uncompressed { since_ir: 0, mode: Mode::Unidirectional }));
        let slot = &mut self.contexts[cid];
        slot.last_use = self.packets;
        let Flow::Uncompressed { since_ir, mode } = &mut slot.flow else { return 0 };
        let is_ir = *since_ir < context::REPEATS;
        *since_ir += 1;
        if *since_ir > context::IR_INTERVAL && *mode == Mode::Unidirectional {
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
            let feedback = Feedback::parse(&self.config, data)?;
            let slot = self.contexts.get_mut(usize::from(feedback.cid));
            match slot.ok_or(FeedbackError::NoContext { cid: feedback.cid })? {
                Slot { flow: Flow::Compressed(context), .. } => context.receive(&feedback),
                Slot { flow: Flow::Uncompressed { since_ir, mode }, .. } => {
                    *mode = feedback.mode.unwrap_or(*mode);
                    *since_ir = match feedback.acknowledgement {
                        crate::feedback::Acknowledgement::Ack => (*since_ir).max(context::REPEATS),
                        _ => 0,
                    };
                }
            }
            used += 1;
        }
        Ok(used)
    }
}
