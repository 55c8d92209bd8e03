//! The listener that feeds the collector and reports each connection that ends.

use super::collect::Collector;
use airpath_observe::flows::{Ending, FlowNumber, Listener};
use airpath_observe::{Connection, Observation};
use airpath_wire::segment::Segment;

/// Passes all events to `collector`, and calls `on_end` after each connection that ended.
pub struct Reporter<'a, 'b, F> {
    pub collector: &'a mut Collector<'b>,
    pub on_end: F,
}

impl<F: FnMut(FlowNumber, &mut Collector<'_>)> Listener for Reporter<'_, '_, F> {
    #[inline]
    fn observed(
        &mut self,
        flow: FlowNumber,
        observation: &Observation,
        segment: &Segment<'_>,
        connection: &Connection,
    ) {
        self.collector.observed(flow, observation, segment, connection);
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, ending: Ending) {
        self.collector.ended(flow, connection, ending);
        (self.on_end)(flow, self.collector);
    }
}
