//! Where everything lies: the two sides of a flow, the hops between them, the nodes of the agenda.

use airpath_core::{ComponentId, Direction, FlowId};

/// The two sides of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In the fixed network.
    Server,
    /// Behind the cell.
    Mobile,
}

impl Side {
    /// The direction in which this side sends.
    pub const fn sends(self) -> Direction {
        match self {
            Self::Server => Direction::Down,
            Self::Mobile => Direction::Up,
        }
    }

    /// The side that `direction` leads to.
    pub const fn at_end_of(direction: Direction) -> Self {
        match direction {
            Direction::Down => Self::Mobile,
            Direction::Up => Self::Server,
        }
    }
}

/// Where each kind of hop lies in the list of hops, and each node on the agenda.
#[derive(Clone, Debug)]
pub struct Route {
    /// The number of hops: nodes and components from here on are no hops.
    pub hops: usize,
    /// The fixed network.
    pub fixed: usize,
    /// The bearer of each user.
    pub cell_of: Vec<usize>,
    /// The access link of each flow's server; empty if servers have none.
    pub access_of: Vec<usize>,
    /// The component of all servers.
    pub server: ComponentId,
    /// The component of each user's mobile.
    pub mobile_of: Vec<ComponentId>,
}

impl Route {
    /// The agenda's node for one end of a flow.
    #[inline]
    pub const fn node(&self, flow: FlowId, side: Side) -> u32 {
        self.hops as u32 + 2 * flow.0 + side as u32
    }

    /// The end of a flow that a node of the agenda stands for; `None` for a hop.
    #[inline]
    pub const fn end_of(&self, node: u32) -> Option<(FlowId, Side)> {
        match node.checked_sub(self.hops as u32) {
            None => None,
            Some(end) => Some((FlowId(end / 2), if end % 2 == 0 { Side::Server } else { Side::Mobile })),
        }
    }
}
