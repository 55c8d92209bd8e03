//! One run of a scenario under the virtual clock.

use std::sync::atomic::{AtomicBool, Ordering};

use airpath_app::Transfer;
use airpath_core::{ComponentId, FlowId, Instant, Seed, Sink, Span};
use airpath_link::{Bearer, Departure};
use airpath_result::summary::Ended;
use airpath_scenario::{Hop, Scenario, ScenarioError, TimedOrder, Work};

use crate::capture::Captures;
use crate::flow::{DatagramsFlow, Flow, Identity, PingFlow, TransactionsFlow, TransferFlow};
use crate::route::{Route, Side};
use crate::world::World;

/// How often the loop looks whether it should stop: every so many events.
const STOP_CHECK: u64 = 1 << 12;

/// A scenario that is being run.
pub struct Simulation<'a> {
    world: World<'a>,
    flows: Vec<Flow>,
    unfinished: usize,
    /// Changes of conditions that are still to come, the next one last.
    changes: Vec<TimedOrder>,
    /// When that is.
    next_change: Instant,
    end: Instant,
    now: Instant,
    events: u64,
    names: Vec<String>,
}

/// The objects of a scenario before anything has happened.
pub struct Setup {
    hops: Vec<Box<dyn Bearer>>,
    route: Route,
    flows: Vec<Flow>,
    changes: Vec<TimedOrder>,
    names: Vec<String>,
    duration: Span,
}

impl Setup {
    /// Builds the topology and the flows of `scenario`, which must have some.
    pub fn new(scenario: &Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        scenario.require_flows()?;
        Self::network(scenario, seed)
    }

    /// The same for a scenario that may have no flows: then there is nothing to run, but a network to put packets on.
    pub fn network(scenario: &Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        let mobiles = scenario.mobiles();
        let cells = scenario.build_cells(seed)?;
        let planned = scenario.flows();
        let mut hops: Vec<Box<dyn Bearer>> = vec![scenario.build_fixed(seed)];
        let mut names = vec!["fixed".to_owned()];
        let cell_of = cells.of_user.iter().map(|cell| 1 + cell).collect();
        for (name, bearer) in cells.bearers {
            names.push(name);
            hops.push(bearer);
        }
        let mut access_of = Vec::new();
        for flow in &planned {
            if let Some(access) = scenario.build_access(&flow.name, seed) {
                access_of.push(hops.len());
                names.push(format!("access-{}", flow.name));
                hops.push(access);
            }
        }
        let server = component(names.len())?;
        names.push("server".to_owned());
        let mut mobile_of = Vec::with_capacity(mobiles.len());
        for mobile in &mobiles {
            mobile_of.push(component(names.len())?);
            names.push(mobile.name.clone());
        }
        let route = Route { hops: hops.len(), fixed: 0, cell_of, access_of, server, mobile_of };
        let flows = planned.iter().enumerate().map(|(index, planned)| {
            let identity = Identity {
                id: FlowId(index as u32),
                name: planned.name.clone(),
                user: planned.user,
                start: Instant::ZERO + planned.start,
            };
            match &planned.work {
                Work::Transfer { transfer, tcp } => {
                    Flow::Transfer(Box::new(TransferFlow::new(identity, Transfer::clone(transfer), tcp)))
                }
                Work::Transactions { transactions, tcp } => {
                    Flow::Transactions(Box::new(TransactionsFlow::new(identity, *transactions, tcp)))
                }
                Work::Ping(ping) => Flow::Ping(Box::new(PingFlow::new(identity, *ping))),
                Work::Datagrams(datagrams) => Flow::Datagrams(Box::new(DatagramsFlow::new(identity, *datagrams))),
            }
        });
        let flows = flows.collect();
        Ok(Self { flows, changes: scenario.timed_orders(), hops, route, names, duration: scenario.duration })
    }

    /// The names of the components, by their number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The network without the flows: its hops, the names of all components, and the changes of conditions that the
    /// scenario has.
    pub(crate) fn into_network<'a>(self, sink: Option<&'a mut dyn Sink>) -> (World<'a>, Vec<String>, Vec<TimedOrder>) {
        let nodes = self.hops.len();
        (World::new(self.hops, self.route, nodes, sink), self.names, self.changes)
    }

    /// Makes ready to run, with events going to `sink` and packets to `captures`.
    pub fn start<'a>(self, sink: Option<&'a mut dyn Sink>, captures: Option<Captures>) -> Simulation<'a> {
        let nodes = self.hops.len() + 2 * self.flows.len();
        let mut world = World::new(self.hops, self.route, nodes, sink);
        world.captures = captures;
        for flow in &self.flows {
            let identity = flow.identity();
            let first = match flow {
                Flow::Datagrams(flow) => flow.source(),
                Flow::Transfer(_) | Flow::Ping(_) | Flow::Transactions(_) => Side::Mobile,
            };
            world.agenda.wake(world.route.node(identity.id, first), Some(identity.start));
        }
        let mut changes = self.changes;
        changes.reverse();
        Simulation {
            world,
            unfinished: self.flows.len(),
            flows: self.flows,
            next_change: next_of(&changes),
            changes,
            end: Instant::ZERO + self.duration,
            now: Instant::ZERO,
            events: 0,
            names: self.names,
        }
    }
}

impl<'a> Simulation<'a> {
    /// Runs to the end, or until `stop` is set or the sink or the captures have failed. A change of conditions comes
    /// before all that happens at the same time.
    pub fn run(&mut self, stop: &AtomicBool) -> Ended {
        while self.unfinished > 0 {
            let Some((now, node)) = self.world.agenda.pop() else { return Ended::Duration };
            if now >= self.next_change && self.next_change <= self.end {
                // It may make something else the next to happen.
                self.world.agenda.wake(node, Some(now));
                self.change();
                continue;
            }
            if now > self.end {
                self.now = self.end;
                return Ended::Duration;
            }
            self.now = now;
            self.events += 1;
            if self.events.is_multiple_of(STOP_CHECK) && (stop.load(Ordering::Relaxed) || self.world.has_failed()) {
                return Ended::Interrupted;
            }
            match self.world.route.end_of(node) {
                None => self.serve(now, node as usize),
                Some((flow, side)) => {
                    let flow = &mut self.flows[flow.0 as usize];
                    let was_over = flow.is_over();
                    let wakeup = flow.wake(now, side, &mut self.world);
                    self.unfinished -= usize::from(!was_over && flow.is_over());
                    self.world.agenda.wake(node, wakeup);
                }
            }
        }
        Ended::Finished
    }

    /// Carries out the next change of conditions.
    #[cold]
    fn change(&mut self) {
        let TimedOrder { at, order } =
            self.changes.pop().expect("there is a time for the next change only if there is one");
        let done = self.world.command(at, hop_index(order.hop), &order.command);
        done.expect("what the scenario's bearers cannot do was refused when it was read");
        self.next_change = next_of(&self.changes);
    }

    /// Moves on what has left a hop.
    #[inline]
    fn serve(&mut self, now: Instant, hop: usize) {
        while let Some((direction, Departure { packet, .. })) = &self.world.pop(now, hop) {
            let direction = *direction;
            if !self.world.forward(now, hop, direction, packet) {
                continue;
            }
            let side = Side::at_end_of(direction);
            let flow = &mut self.flows[packet.flow.0 as usize];
            let was_over = flow.is_over();
            let wakeup = flow.receive(now, side, packet, &mut self.world);
            self.world.free(packet.slot);
            self.unfinished -= usize::from(!was_over && flow.is_over());
            self.world.agenda.wake(self.world.route.node(packet.flow, side), wakeup);
        }
        self.world.rearm(hop);
    }

    /// The time that the run has reached.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Wake-ups that were served.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Packets that were created.
    pub const fn packets(&self) -> u64 {
        self.world.packets
    }

    /// Packets that are on their way.
    pub fn under_way(&self) -> u64 {
        self.world.under_way()
    }

    /// The flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The hops, each with its name.
    pub fn hops(&self) -> impl Iterator<Item = (&str, &dyn Bearer)> {
        self.names.iter().map(String::as_str).zip(self.world.hops.iter().map(AsRef::as_ref))
    }

    /// How many users there are.
    pub const fn users(&self) -> usize {
        self.world.route.cell_of.len()
    }

    /// Ends the captures, writing out what they hold.
    pub fn finish_captures(&mut self) -> std::io::Result<()> {
        self.world.captures.take().map_or(Ok(()), Captures::finish)
    }
}

/// When the next of these is, which stands last.
fn next_of(changes: &[TimedOrder]) -> Instant {
    changes.last().map_or(Instant::FAR_FUTURE, |next| next.at)
}

/// The place of a bearer among the hops.
pub(crate) const fn hop_index(hop: Hop) -> usize {
    match hop {
        Hop::Fixed => 0,
        Hop::Cell(cell) => 1 + cell,
    }
}

fn component(index: usize) -> Result<ComponentId, ScenarioError> {
    u16::try_from(index).map(ComponentId).map_err(|_| {
        ScenarioError::new("too many mobiles and access links for one run", Default::default(), "")
            .help("65,535 components in all are possible")
    })
}
