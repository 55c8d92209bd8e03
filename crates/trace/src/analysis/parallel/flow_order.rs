//! Numbers of connections in the capture, from the numbers that each shard assigns.

use std::collections::BTreeMap;

use super::batch::BatchResult;
use crate::analysis::collect::END_OF_CAPTURE;
use crate::analysis::json_lines::JsonLines;
use airpath_observe::flows::{FlowNumber, SHARDS};

/// Numbers connections in the order of their first segments.
pub struct FlowOrder {
    /// Whether numbers are needed after the connection has ended.
    keep: bool,
    begun: u64,
    shards: [ShardOrder; SHARDS],
    /// For the text of a line.
    buffer: String,
}

#[derive(Default)]
struct ShardOrder {
    begun: u64,
    /// The open connections: number in the capture by number in the shard.
    open: BTreeMap<u64, FlowNumber>,
    /// The numbers in the capture of all connections, in the order of the shard, with `keep`.
    all: Vec<FlowNumber>,
}

impl FlowOrder {
    /// No connection has begun. With `keep`, numbers stay after the end of a connection.
    pub fn new(keep: bool) -> Self {
        Self { keep, begun: 0, shards: Default::default(), buffer: String::new() }
    }

    /// Connections that have begun.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Takes the results of an epoch. Passes the lines, and those of QUIC flows, to `line` in the
    /// order in which the connections ended; those that ended with the capture come in the order of
    /// their numbers.
    pub fn merge(&mut self, results: &[BatchResult; SHARDS], quic: &JsonLines, mut line: impl FnMut(&str)) {
        let shards = || results.iter().enumerate();
        let mut begun: Vec<_> =
            shards().flat_map(|(shard, result)| result.begun.iter().map(move |&frame| (frame, shard))).collect();
        begun.sort_unstable();
        for (_, shard) in begun {
            self.begun += 1;
            let shard = &mut self.shards[shard];
            shard.begun += 1;
            shard.open.insert(shard.begun, FlowNumber(self.begun));
            if self.keep {
                shard.all.push(FlowNumber(self.begun));
            }
        }
        let of_shards =
            shards().flat_map(|(shard, result)| result.lines.iter().map(move |line| (shard, &result.lines, line)));
        let mut lines: Vec<_> =
            of_shards.map(|(shard, lines, line)| (self.number(shard, line.flow), lines, line)).collect();
        lines.extend(quic.iter().map(|line| (line.flow, quic, line)));
        // The lines of one frame come from one shard, and are in order.
        lines.sort_by_key(|(number, _, line)| (line.frame, (line.frame == END_OF_CAPTURE).then_some(*number)));
        for (number, lines, each) in lines {
            line(lines.text(each, number, &mut self.buffer));
        }
        for (shard, result) in self.shards.iter_mut().zip(results) {
            for flow in &result.ended {
                shard.open.remove(&flow.0);
            }
        }
    }

    /// The open connections in the order of their numbers, each with its shard.
    pub fn open(&self) -> Vec<(FlowNumber, usize)> {
        let shards = self.shards.iter().enumerate();
        let mut open: Vec<_> =
            shards.flat_map(|(shard, order)| order.open.values().map(move |&number| (number, shard))).collect();
        open.sort_unstable();
        open
    }

    /// Returns the number in the capture of connection `flow` of a shard; of an ended one with
    /// `keep` only.
    pub fn number(&self, shard: usize, flow: FlowNumber) -> FlowNumber {
        let shard = &self.shards[shard];
        let number = if self.keep { shard.all.get(flow.0 as usize - 1) } else { shard.open.get(&flow.0) };
        *number.expect("a reported connection has begun")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::table::Fields;

    #[test]
    fn lines_come_in_the_order_of_the_capture() {
        let mut order = FlowOrder::new(false);
        let mut results: [BatchResult; SHARDS] = Default::default();
        let mut end = |shard: usize, flow, frame| {
            results[shard].lines.add(FlowNumber(flow), frame, |mut line| {
                line.connection(FlowNumber(flow));
                line.text("shard", Some(["a", "b"][shard]));
                line
            });
        };
        end(0, 2, 50);
        end(1, 1, 40);
        end(1, 2, END_OF_CAPTURE);
        end(0, 1, END_OF_CAPTURE);
        results[0].begun = vec![2, 30];
        results[1].begun = vec![1, 10, 50];
        for result in &mut results[..2] {
            result.ended = vec![FlowNumber(1), FlowNumber(2)];
        }
        let mut lines = Vec::new();
        order.merge(&results, &JsonLines::default(), |line| lines.push(line.to_owned()));
        let expected = [(1, "b"), (4, "a"), (2, "a"), (3, "b")];
        assert_eq!(lines, expected.map(|(number, shard)| format!(r#"{{"connection":{number},"shard":"{shard}"}}"#)));
        assert_eq!(order.begun(), 5);
        assert_eq!(order.open(), [(FlowNumber(5), 1)], "ended connections are dropped");
    }
}
