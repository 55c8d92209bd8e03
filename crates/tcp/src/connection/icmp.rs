//! ICMP errors about segments of this end. The caller has matched them with the connection by
//! addresses and ports; here their sequence number is checked (RFC 5927 §4.1).

use airpath_core::{Context, Instant};
use airpath_wire::tcp::TcpHeader;

use super::Connection;
use super::opening::TIMESTAMPS_LENGTH;
use crate::sequence::from_wire;
use crate::state::{Outcome, State};

impl Connection {
    /// A segment that begins with `sequence` was too large for a link, which carries `most` bytes
    /// of TCP header and payload (RFC 1191 §6.4, RFC 8201 §5.4). Segments become smaller, and
    /// larger ones in flight are sent again, without a reduction of the window
    /// (`tcp_simple_retransmit` of Linux). Returns whether the error is about a segment in flight.
    pub fn handle_packet_too_big(&mut self, now: Instant, sequence: u32, most: u32) -> bool {
        self.now = now;
        if !self.opening.is_over() || !self.is_in_flight(sequence) {
            return false;
        }
        let options = if self.options.timestamps { TIMESTAMPS_LENGTH } else { 0 };
        let size = most.saturating_sub(TcpHeader::MIN_LENGTH as u32 + options).max(1);
        if size < self.sender.segment_size {
            let (sender, mut shared) = self.sending();
            sender.reduce_segment_size(size, &mut shared);
        }
        true
    }

    /// The peer is unreachable for a segment that begins with `sequence`. While this end opens the
    /// connection, that ends the attempt, as in Linux; later the error is soft (RFC 1122 §4.2.3.9,
    /// RFC 5461 §4). Returns whether the attempt has ended.
    pub fn handle_unreachable(&mut self, now: Instant, sequence: u32, cx: &mut Context<'_>) -> bool {
        let ends = self.state == State::SynSent && self.is_in_flight(sequence);
        if ends {
            self.now = now;
            self.end(now, Outcome::Unreachable, cx);
        }
        ends
    }

    /// Whether `sequence` is between the oldest unacknowledged number and the next one.
    fn is_in_flight(&self, sequence: u32) -> bool {
        let sender = &self.sender;
        from_wire(self.id.initial_sequence, sender.acknowledged, sequence)
            .is_some_and(|number| sender.acknowledged <= number && number < sender.next)
    }
}
