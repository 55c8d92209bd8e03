//! Which connection a flow belongs to, and which flows have ended.

use std::collections::BTreeMap;

use airpath_core::FlowId;
use airpath_path::MiddleboxContext;

/// The flows of connections.
#[derive(Debug, Default)]
pub struct Flows {
    connections: BTreeMap<FlowId, u32>,
    /// Those that have ended since the last call of [`Self::report_ended`].
    ended: Vec<FlowId>,
}

impl Flows {
    /// The number of the connection that has a flow.
    pub fn connection_of(&self, flow: FlowId) -> Option<u32> {
        self.connections.get(&flow).copied()
    }

    /// A flow belongs to a connection from now on.
    pub fn assign(&mut self, flow: FlowId, connection: u32) {
        self.connections.insert(flow, connection);
    }

    /// A flow belongs to no connection any more.
    pub fn release(&mut self, flow: FlowId) {
        self.connections.remove(&flow);
    }

    /// A flow has ended.
    pub fn end(&mut self, flow: FlowId) {
        self.release(flow);
        self.ended.push(flow);
    }

    /// Number of flows that belong to a connection.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Frees the addresses of the flows that have ended.
    pub fn report_ended(&mut self, cx: &mut MiddleboxContext<'_>) {
        self.ended.drain(..).for_each(|flow| cx.end_flow(flow));
    }
}
