//! The numbers of connections in the capture, out of those that each share of them gives.

use std::collections::BTreeMap;

use super::collect::END_OF_CAPTURE;
use super::lines::Lines;
use airpath_observe::flows::{FlowNumber, SHARDS};

/// Numbers connections in the order of their first segments.
pub struct Numbers {
    /// Whether numbers are needed after the connection has ended.
    keep: bool,
    begun: u64,
    shares: [Shard; SHARDS],
    /// For the text of a line.
    space: String,
}

#[derive(Default)]
struct Shard {
    begun: u64,
    /// Its numbers of the connections that are open, and those in the capture.
    open: BTreeMap<u64, FlowNumber>,
    /// Those in the capture of all, one after the other, if they are kept.
    all: Vec<FlowNumber>,
}

/// What the connections of a share did in one round of the capture.
#[derive(Default)]
pub struct Told {
    /// The frames that connections began with.
    pub begun: Vec<u64>,
    /// The connections that ended.
    pub ended: Vec<FlowNumber>,
    /// The lines of those of them that are told of.
    pub lines: Lines,
}

impl Told {
    /// The same without anything in it.
    pub fn cleared(mut self) -> Self {
        self.begun.clear();
        self.ended.clear();
        self.lines.clear();
        self
    }
}

impl Numbers {
    /// None has begun yet. With `keep` no number is forgotten.
    pub fn new(keep: bool) -> Self {
        Self { keep, begun: 0, shares: Default::default(), space: String::new() }
    }

    /// Connections that have begun.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Takes what the shares told of a round, and gives `line` the lines in the order in which the connections ended, and those that ended with the
    /// capture in the order of their numbers.
    pub fn round(&mut self, told: &[Told; SHARDS], mut line: impl FnMut(&str)) {
        let shares = || told.iter().enumerate();
        let mut begun: Vec<_> =
            shares().flat_map(|(share, told)| told.begun.iter().map(move |&frame| (frame, share))).collect();
        begun.sort_unstable();
        for (_, share) in begun {
            self.begun += 1;
            let share = &mut self.shares[share];
            share.begun += 1;
            share.open.insert(share.begun, FlowNumber(self.begun));
            if self.keep {
                share.all.push(FlowNumber(self.begun));
            }
        }
        let lines = shares().flat_map(|(share, told)| told.lines.iter().map(move |line| (share, line)));
        let mut lines: Vec<_> = lines.map(|(share, line)| (self.of(share, line.flow), share, line)).collect();
        // Those of one frame are all of one share, and in order.
        lines.sort_by_key(|(number, _, line)| (line.frame, (line.frame == END_OF_CAPTURE).then_some(*number)));
        for (number, share, told_line) in lines {
            line(told[share].lines.text(told_line, number, &mut self.space));
        }
        for (share, told) in self.shares.iter_mut().zip(told) {
            for flow in &told.ended {
                share.open.remove(&flow.0);
            }
        }
    }

    /// The connections that are open, in the order of their numbers, and the share of each.
    pub fn open(&self) -> Vec<(FlowNumber, usize)> {
        let shares = self.shares.iter().enumerate();
        let mut open: Vec<_> =
            shares.flat_map(|(share, of_share)| of_share.open.values().map(move |&number| (number, share))).collect();
        open.sort_unstable();
        open
    }

    /// The number in the capture of a connection of that number in its share: of one that ended, if they are kept.
    pub fn of(&self, share: usize, flow: FlowNumber) -> FlowNumber {
        let share = &self.shares[share];
        let number = if self.keep { share.all.get(flow.0 as usize - 1) } else { share.open.get(&flow.0) };
        *number.expect("a connection that is told of has begun")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::table::Fields;

    #[test]
    fn lines_come_in_the_order_of_the_capture() {
        let mut numbers = Numbers::new(false);
        let mut told: [Told; SHARDS] = Default::default();
        let mut end = |share: usize, flow, frame| {
            told[share].lines.add(FlowNumber(flow), frame, |mut line| {
                line.connection(FlowNumber(flow));
                line.text("share", Some(["a", "b"][share]));
                line
            });
        };
        end(0, 2, 50);
        end(1, 1, 40);
        end(1, 2, END_OF_CAPTURE);
        end(0, 1, END_OF_CAPTURE);
        told[0].begun = vec![2, 30];
        told[1].begun = vec![1, 10, 50];
        for told in &mut told[..2] {
            told.ended = vec![FlowNumber(1), FlowNumber(2)];
        }
        let mut lines = Vec::new();
        numbers.round(&told, |line| lines.push(line.to_owned()));
        let expected = [(1, "b"), (4, "a"), (2, "a"), (3, "b")];
        assert_eq!(lines, expected.map(|(number, share)| format!(r#"{{"connection":{number},"share":"{share}"}}"#)));
        assert_eq!(numbers.begun(), 5);
        assert_eq!(numbers.open(), [(FlowNumber(5), 1)], "what has ended is forgotten");
    }
}
