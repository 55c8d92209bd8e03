//! The order of the hops, as data: for each hop and direction, where a packet goes next.

use airpath_core::{Direction, FlowId, Packet, UserId};
use serde::{Deserialize, Serialize};

/// One of the two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// In the fixed network.
    Server,
    /// Behind the cell.
    Mobile,
}

impl Side {
    /// The side that sends packets of `direction`.
    pub const fn at_start_of(direction: Direction) -> Self {
        match direction {
            Direction::Down => Self::Server,
            Direction::Up => Self::Mobile,
        }
    }

    /// The side that receives packets of `direction`.
    pub const fn at_end_of(direction: Direction) -> Self {
        match direction {
            Direction::Down => Self::Mobile,
            Direction::Up => Self::Server,
        }
    }

    /// The other side.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Server => Self::Mobile,
            Self::Mobile => Self::Server,
        }
    }

    /// The direction in which this side sends.
    pub const fn sends(self) -> Direction {
        match self {
            Self::Server => Direction::Down,
            Self::Mobile => Direction::Up,
        }
    }
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// To this hop.
    Hop(usize),
    /// To the bearer of its user.
    Cell,
    /// To the access link of its flow, or to this hop if the flow has none; without a hop it has
    /// arrived.
    Access(Option<usize>),
    /// To the end point: it has arrived.
    End,
}

/// The route of every packet: server → access (where the flow has one) → fixed network →
/// middleboxes → bearer of the user → mobile, and the reverse.
#[derive(Clone, Debug)]
pub struct Route {
    fixed: usize,
    first_cell: usize,
    /// Where packets enter, by direction.
    entry: [Next; 2],
    /// Where packets that leave a hop go, by hop and direction.
    next: Vec<[Next; 2]>,
    cell_of: Vec<usize>,
    access_of: Vec<usize>,
    flows: usize,
}

/// The hops that a [`Route`] connects, as indices into the list of hops.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The fixed network.
    pub fixed: usize,
    /// The middleboxes at the border of fixed network and radio, from the fixed network on.
    pub middleboxes: Vec<usize>,
    /// The first bearer; the others follow it.
    pub first_cell: usize,
    /// The bearer of each user.
    pub cell_of: Vec<usize>,
    /// The access link of each flow's server; empty if servers have none.
    pub access_of: Vec<usize>,
    /// With access links, the number of flows: on the path, connection k of a flow has the number
    /// of the flow plus k times this.
    pub flows: usize,
}

impl Route {
    /// The route over `hops` hops that `plan` describes.
    pub fn new(hops: usize, plan: Plan) -> Self {
        let Plan { fixed, middleboxes, first_cell, cell_of, access_of, flows } = plan;
        let mut next = vec![[Next::End; 2]; hops];
        let mut set = |hop: usize, down: Next, up: Next| next[hop] = [down, up];
        access_of.iter().for_each(|access| set(*access, Next::Hop(fixed), Next::End));
        let after = |index: usize| middleboxes.get(index).map_or(Next::Cell, |middlebox| Next::Hop(*middlebox));
        set(fixed, after(0), Next::Access(None));
        let mut last = fixed;
        for (index, middlebox) in middleboxes.iter().enumerate() {
            set(*middlebox, after(index + 1), Next::Hop(last));
            last = *middlebox;
        }
        cell_of.iter().for_each(|cell| set(*cell, Next::End, Next::Hop(last)));
        Self { fixed, first_cell, entry: [Next::Access(Some(fixed)), Next::Cell], next, cell_of, access_of, flows }
    }

    /// The route over a single hop between all servers and all mobiles.
    pub fn through_one_hop() -> Self {
        let plan = Plan { first_cell: 1, ..Plan::default() };
        Self { entry: [Next::Hop(0); 2], next: vec![[Next::End; 2]], ..Self::new(1, plan) }
    }

    /// The first hop of `packet`.
    ///
    /// # Panics
    /// If there is no such user.
    #[inline]
    pub fn first_hop(&self, direction: Direction, packet: &Packet) -> usize {
        self.resolve(self.entry[direction as usize], packet).expect("every packet crosses a hop")
    }

    /// The hop to which `packet` goes after `hop`; `None` if it has arrived.
    #[inline]
    pub fn next_hop(&self, hop: usize, direction: Direction, packet: &Packet) -> Option<usize> {
        self.resolve(self.next[hop][direction as usize], packet)
    }

    #[inline]
    fn resolve(&self, next: Next, packet: &Packet) -> Option<usize> {
        match next {
            Next::Hop(hop) => Some(hop),
            Next::Cell => Some(self.cell_of[packet.user.index()]),
            Next::Access(otherwise) => self.access(packet.flow).or(otherwise),
            Next::End => None,
        }
    }

    #[inline]
    fn access(&self, FlowId(flow): FlowId) -> Option<usize> {
        if self.access_of.is_empty() {
            return None;
        }
        self.access_of.get((flow as usize).checked_rem(self.flows)?).copied()
    }

    /// The fixed network.
    pub const fn fixed(&self) -> usize {
        self.fixed
    }

    /// The bearer number `index`, from 0; `None` if the path does not have it.
    pub fn cell(&self, index: usize) -> Option<usize> {
        Some(self.first_cell + index).filter(|hop| self.cell_of.contains(hop))
    }

    /// The bearer of a user.
    pub fn cell_of(&self, user: UserId) -> Option<usize> {
        self.cell_of.get(user.index()).copied()
    }

    /// Number of users.
    pub const fn users(&self) -> usize {
        self.cell_of.len()
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Ecn, Slot};

    use super::*;

    fn walk(route: &Route, direction: Direction, flow: u32, user: u32) -> Vec<usize> {
        let (flow, user) = (FlowId(flow), UserId::new(user));
        let packet = Packet { id: 0, size: 40, flow, user, ecn: Ecn::NotEct, slot: Slot(0) };
        let first = route.first_hop(direction, &packet);
        std::iter::successors(Some(first), |hop| route.next_hop(*hop, direction, &packet)).collect()
    }

    #[test]
    fn packets_cross_the_hops_in_order() {
        let cell_of = vec![2, 3, 2];
        let plan = Plan { fixed: 0, middleboxes: vec![1], first_cell: 2, cell_of, access_of: vec![4, 5], flows: 3 };
        let route = Route::new(6, plan.clone());
        assert_eq!(walk(&route, Direction::Down, 1, 1), [5, 0, 1, 3]);
        assert_eq!(walk(&route, Direction::Up, 0, 2), [2, 1, 0, 4]);
        assert_eq!(walk(&route, Direction::Down, 7, 1), [5, 0, 1, 3], "another connection of flow 1");
        assert_eq!(walk(&route, Direction::Down, 2, 0), [0, 1, 2], "a flow without an access link");
        assert_eq!(walk(&route, Direction::Up, 2, 0), [2, 1, 0]);
        let route = Route::new(6, Plan { middleboxes: vec![], ..plan });
        assert_eq!(walk(&route, Direction::Down, 0, 1), [4, 0, 3]);
        assert_eq!(walk(&route, Direction::Up, 1, 0), [2, 0, 5]);
        let plan = Plan { middleboxes: vec![1, 2], first_cell: 3, cell_of: vec![3], ..Plan::default() };
        let two = Route::new(4, plan);
        assert_eq!(walk(&two, Direction::Down, 0, 0), [0, 1, 2, 3]);
        assert_eq!(walk(&two, Direction::Up, 0, 0), [3, 2, 1, 0]);
        assert_eq!((route.cell(0), route.cell(1), route.cell(2)), (Some(2), Some(3), None));
    }
}
