//! What a capture lacks, with its effect on the analysis of its connections.

use airpath_observe::{Connection, End, Events};

/// What the capture of the connections lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortcomings {
    /// Segments whose options were cut by the snap length, or malformed: their SACK blocks and
    /// timestamps are missing.
    pub options_cut: u64,
    /// Segments larger than the other end's MSS: the interface of the capturing host splits or
    /// merges packets (TSO, GRO), so that the network carried more and smaller packets.
    pub super_segments: u64,
    /// Bytes acknowledged and not in the capture: the capturing host dropped packets, or they took
    /// another path. They look like losses.
    pub unseen_bytes: u64,
}

impl Shortcomings {
    /// Adds those of other connections.
    pub(super) const fn merge(&mut self, others: Self) {
        self.options_cut += others.options_cut;
        self.super_segments += others.super_segments;
        self.unseen_bytes += others.unseen_bytes;
    }

    /// Adds those of a connection.
    pub(super) fn add(&mut self, connection: &Connection) {
        for figures in End::BOTH.map(|end| connection.figures(end)) {
            self.options_cut += u64::from(figures.event(Events::OPTIONS_CUT));
            self.super_segments += u64::from(figures.event(Events::SUPER_SEGMENT));
            self.unseen_bytes += figures.unseen_bytes;
        }
    }
}
