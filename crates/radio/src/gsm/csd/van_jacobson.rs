//! Compression of TCP/IP headers as Van Jacobson devised it (RFC 1144): both ends keep the last
//! header of each connection, and what goes between them is how the next one differs.
//!
//! A lost frame also loses the reference of the next deltas: the far end continues from a
//! header that is not the sender's, and the checksums of TCP fail there, until a segment comes
//! whole. That is one that TCP sends again, or that repeats an acknowledgement
//! ([`Headers::Whole`]).

use airpath_core::headers::{Headers, PLAIN_HEADERS};
use airpath_core::{FlowId, Packet};

/// Connections that are remembered (RFC 1144 §3.2.2: 16 by default).
const CONNECTIONS: usize = 16;

/// How the headers of a packet were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are, and nothing is remembered of them: TYPE_IP.
    Plain,
    /// As they are, to be remembered: UNCOMPRESSED_TCP.
    Whole,
    /// As a difference: COMPRESSED_TCP.
    Difference,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Compressor {
    /// Bytes of a difference, instead of the 40 of IP and TCP header.
    compressed: u32,
    /// The connections that it remembers, the latest first.
    connections: Vec<FlowId>,
}

impl Compressor {
    /// One that has sent nothing.
    pub const fn new(compressed: u32) -> Self {
        Self { compressed, connections: Vec::new() }
    }

    /// How it sends the headers of `packet`, and the packet's size then.
    pub fn compress(&mut self, packet: &Packet) -> (Form, u32) {
        if packet.headers == Headers::Other {
            return (Form::Plain, packet.size);
        }
        let known = self.connections.iter().position(|flow| *flow == packet.flow);
        if let Some(index) = known {
            self.connections.remove(index);
        }
        self.connections.insert(0, packet.flow);
        self.connections.truncate(CONNECTIONS);
        match packet.headers {
            Headers::Difference if known.is_some() => {
                (Form::Difference, (packet.size + self.compressed).saturating_sub(PLAIN_HEADERS))
            }
            _ => (Form::Whole, packet.size),
        }
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Decompressor {
    /// Connections with a loss and no uncompressed header since.
    out_of_step: Vec<FlowId>,
}

impl Decompressor {
    /// A packet has come. Whether its headers are what they were.
    pub fn receive(&mut self, flow: FlowId, form: Form) -> bool {
        match form {
            Form::Plain => true,
            Form::Whole => {
                self.out_of_step.retain(|other| *other != flow);
                true
            }
            Form::Difference => !self.out_of_step.contains(&flow),
        }
    }

    /// A packet was lost.
    pub fn lose(&mut self, flow: FlowId, form: Form) {
        if form != Form::Plain && !self.out_of_step.contains(&flow) {
            self.out_of_step.push(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, Slot, UserId};

    use super::*;

    fn packet(flow: u32, size: u32, headers: Headers) -> Packet {
        Packet { id: 0, size, flow: FlowId(flow), user: UserId(0), ecn: Ecn::NotEct, headers, slot: Slot(0) }
    }

    #[test]
    fn differences_need_something_that_they_differ_from() {
        let mut compressor = Compressor::new(5);
        let mut form = |flow, headers| compressor.compress(&packet(flow, 808, headers));
        assert_eq!(form(1, Headers::Other), (Form::Plain, 808));
        assert_eq!(form(1, Headers::Difference), (Form::Whole, 808), "it has sent nothing of this connection");
        assert_eq!(form(1, Headers::Difference), (Form::Difference, 773));
        assert_eq!(form(1, Headers::Whole), (Form::Whole, 808));
        (2..18).for_each(|flow| assert_eq!(form(flow, Headers::Whole).0, Form::Whole));
        assert_eq!(form(1, Headers::Difference).0, Form::Whole, "there were 16 others since");
    }

    #[test]
    fn after_a_loss_only_what_comes_whole_is_understood() {
        let mut decompressor = Decompressor::default();
        let flow = FlowId(3);
        assert!(decompressor.receive(flow, Form::Difference));
        decompressor.lose(flow, Form::Difference);
        assert!(!decompressor.receive(flow, Form::Difference));
        assert!(decompressor.receive(FlowId(4), Form::Difference), "another connection");
        assert!(decompressor.receive(flow, Form::Plain));
        assert!(!decompressor.receive(flow, Form::Difference));
        assert!(decompressor.receive(flow, Form::Whole));
        assert!(decompressor.receive(flow, Form::Difference));
    }
}
