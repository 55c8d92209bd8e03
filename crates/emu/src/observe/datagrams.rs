//! The datagrams of a flow in one direction.

use airpath_app::datagrams::{LATE, Receiver};
use airpath_result::summary::{ProbesRow, StreamRow, TrafficRow};

use super::Passage;

/// Maximum number of datagrams whose times are stored, 24 bytes each; documented in
/// docs/result-folder.md.
const MOST_TIMES: u64 = 1 << 22;

/// Times of the datagrams that have arrived.
#[derive(Debug, Default)]
pub(super) struct Arrivals(Receiver);

impl Arrivals {
    /// Adds a datagram that leaves the link.
    pub fn add(&mut self, passage: Passage) {
        if let Some(number) = passage.number.filter(|number| *number < MOST_TIMES) {
            self.0.receive(passage.due, number as u32, passage.entered);
        }
    }

    /// The rows of the summary of a flow with this traffic.
    pub fn rows(&self, traffic: &TrafficRow) -> (ProbesRow, StreamRow) {
        let sent = traffic.offered_packets;
        let received = (traffic.delivered_packets - self.0.duplicates()).min(sent);
        (ProbesRow::of(sent, received, &self.0.delays()), StreamRow::of(&self.0, LATE))
    }
}
