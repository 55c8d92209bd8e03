//! What a capture lacks, so that less can be said of its connections, or something else.

use airpath_observe::{Connection, End, Events};

/// What the capture of the connections lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortcomings {
    /// Segments whose options the snap length cut off, or that were malformed: what their selective acknowledgements and timestamps said is
    /// not known.
    pub options_cut: u64,
    /// Segments longer than the other end takes in one piece: the capturing host's interface cuts them into packets, or put them
    /// together from some, so that the packets on the network were more and smaller.
    pub super_segments: u64,
    /// Bytes that were acknowledged and are not in the capture: the capturing host dropped packets, or they went another way. They look like
    /// losses, and were none.
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
