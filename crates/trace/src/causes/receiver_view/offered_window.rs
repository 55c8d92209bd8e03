//! The right edges of the window that the receiver offered, with the timestamps that offered them:
//! a segment that arrives was sent into one of them.

use std::collections::VecDeque;

use airpath_wire::tcp::Timestamps;

/// Edges that are stored: with one for each timestamp, at 1000 Hz those of a second.
const EDGES: usize = 1024;

/// A right edge, and the first and the last timestamp that offered it; `None` without timestamps.
#[derive(Clone, Copy, Debug)]
struct Edge {
    first: Option<u32>,
    last: Option<u32>,
    edge: i64,
}

/// The window that an end offers, and offered.
#[derive(Clone, Debug, Default)]
pub(super) struct OfferedWindow {
    /// The last right edge. It is in place: each segment reads it.
    last: Option<Edge>,
    /// The edges before it.
    earlier: VecDeque<Edge>,
    /// Whether earlier edges were dropped because there were too many.
    edges_dropped: bool,
    /// Whether the edge known to the sender of a segment had been dropped.
    edge_unknown: bool,
}

impl OfferedWindow {
    /// A segment with this timestamp offers an edge. The edge does not move back.
    pub(super) fn offer(&mut self, edge: i64, stamp: Option<u32>) {
        let edge = self.last.map_or(edge, |last| last.edge.max(edge));
        let new = Edge { first: stamp, last: stamp, edge };
        match &mut self.last {
            Some(last) if last.edge == edge => last.last = stamp,
            // The last segment of a timestamp offers its edge.
            Some(last) if stamp.is_some() && last.first == stamp => last.edge = edge,
            Some(last) => {
                if stamp.is_some() && last.last == stamp {
                    last.last = stamp.map(|stamp| stamp.wrapping_sub(1));
                }
                let over = std::mem::replace(last, new);
                if self.earlier.len() == EDGES - 1 {
                    self.earlier.pop_front();
                    self.edges_dropped = true;
                }
                self.earlier.push_back(over);
            }
            None => self.last = Some(new),
        }
    }

    /// The stored edges, in order.
    fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.earlier.iter().chain(&self.last)
    }

    /// Whether the window allows a full segment after the data up to `highest`.
    pub(super) fn has_room(&self, highest: i64, segment: u32) -> bool {
        self.last.is_none_or(|last| last.edge - highest >= i64::from(segment))
    }

    /// Whether a known edge is at `end`.
    pub(super) fn ends_at(&self, end: i64) -> bool {
        self.edges().any(|offered| offered.edge == end)
    }

    /// Whether data up to `end` left no room for a full segment in the window of its sender: that
    /// of the timestamp that it echoes.
    pub(super) fn is_filled_by(&mut self, end: i64, segment: u32, timestamps: Option<Timestamps>) -> bool {
        let Some(Timestamps { echo, .. }) = timestamps else { return false };
        let is_since = |at: Option<u32>| at.is_some_and(|at| echo.wrapping_sub(at) as i32 >= 0);
        let known = self.edges().take_while(|offered| is_since(offered.first)).count();
        if known == 0 {
            self.edge_unknown |= self.edges_dropped;
            return false;
        }
        self.earlier.drain(..known - 1);
        let Some(&Edge { last, edge, .. }) = self.edges().next() else { return false };
        // The capture has segments with this timestamp, or with earlier and later ones.
        let has_echo = last.is_some_and(|last| last.wrapping_sub(echo) as i32 >= 0);
        has_echo && end + i64::from(segment) > edge
    }

    /// Whether the edge known to the sender of a segment had been dropped since the last call.
    pub(super) const fn take_unknown(&mut self) -> bool {
        std::mem::replace(&mut self.edge_unknown, false)
    }
}
