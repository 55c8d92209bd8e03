//! The path of a scenario: its hops, their order, and the planned changes of conditions.

use airpath_core::Seed;
use airpath_link::queue::Discipline;
use airpath_path::route::Plan;
use airpath_path::{Change, Hop, Route, Topology};
use airpath_proxy::Proxy;

use crate::change::{Hop as Target, TimedOrder};
use crate::error::{Origin, ScenarioError};
use crate::{PlannedFlow, Scenario, stream_name};

/// The users whose path is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Users {
    /// Every mobile of the scenario, with an access link for each flow.
    All,
    /// The first mobile, with both of its interfaces if it has two; no access links.
    First,
}

/// The path of a scenario before one run.
pub struct PlannedPath {
    /// The hops, in this order: fixed network, proxy, middlebox, cells, access links.
    pub topology: Topology,
    /// Planned changes of conditions, in the order of their times.
    pub changes: Vec<Change>,
}

/// Whether a table in `value` is a queue with one of these disciplines.
fn has_discipline(value: &toml::Value, names: &[&str]) -> bool {
    match value {
        toml::Value::Table(table) => {
            table.get("discipline").and_then(toml::Value::as_str).is_some_and(|name| names.contains(&name))
                || table.values().any(|value| has_discipline(value, names))
        }
        toml::Value::Array(values) => values.iter().any(|value| has_discipline(value, names)),
        _ => false,
    }
}

impl Scenario {
    /// Whether a queue of the fixed network or of the bearer treats flows differently, so that
    /// packets need the numbers of their flows.
    pub fn distinguishes_flows(&self) -> bool {
        let bearers = [Some(&self.bearer), self.second_bearer.as_ref()].into_iter().flatten();
        let tables = [toml::Value::try_from(&self.fixed)].into_iter().chain(bearers.map(toml::Value::try_from));
        tables.flatten().any(|table| has_discipline(&table, &Discipline::BY_FLOW))
    }

    /// Builds the path between the servers and `users` for a run with this seed.
    ///
    /// # Errors
    /// If the bearers cannot be built, there are more than 16,777,216 components, or the path of
    /// [`Users::First`] is to have access links or steering.
    pub fn build_path(&self, seed: Seed, users: Users) -> Result<PlannedPath, ScenarioError> {
        if users == Users::First {
            self.check_link()?;
        }
        let mut mobiles = self.user_names();
        let mut cells = self.build_cells(seed)?;
        if users == Users::First && self.second_bearer.is_some() {
            if mobiles.len() > 2 {
                let message = format!("a link has one mobile, but there are {}", mobiles.len() / 2);
                let help = "with a second bearer, leave out the other mobiles";
                return Err(ScenarioError::new(message, Origin::default(), "mobile").help(help));
            }
        } else if users == Users::First {
            mobiles.truncate(1);
            cells.of_user.truncate(1);
            cells.bearers.truncate(cells.of_user.iter().map(|cell| cell + 1).max().unwrap_or(0));
        }
        let mut hops = vec![("fixed".to_owned(), Hop::Bearer(self.build_fixed(seed)))];
        let mut plan = Plan::default();
        if let Some(config) = self.proxy.clone() {
            plan.middleboxes.push(hops.len());
            let mut proxy = Proxy::new(config, seed.stream("proxy/initial-sequences"));
            if users == Users::All {
                // A simulation reports them by flow.
                proxy.record_round_trips();
            }
            hops.push(("proxy".to_owned(), Hop::middlebox(Box::new(proxy))));
        }
        if let Some(middlebox) = &self.middlebox {
            plan.middleboxes.push(hops.len());
            hops.push(("middlebox".to_owned(), Hop::middlebox(middlebox.build())));
        }
        plan.first_cell = hops.len();
        plan.cell_of = cells.of_user.iter().map(|cell| plan.first_cell + cell).collect();
        hops.extend(cells.bearers.into_iter().map(|(name, bearer)| (name, Hop::Bearer(bearer))));
        if users == Users::All && self.access.is_some() {
            for PlannedFlow { name, namesakes, .. } in self.flows() {
                let name = stream_name(&name, namesakes);
                let access = self.build_access(&name, seed).expect("the scenario has access links");
                plan.access_of.push(hops.len());
                hops.push((format!("access-{name}"), Hop::Bearer(access)));
            }
            // Steering has a flow of probes for each interface.
            plan.flows = plan.access_of.len() + self.steering.map_or(0, |_| mobiles.len());
        }
        let components = hops.len() + 1 + mobiles.len();
        if components > MOST_COMPONENTS {
            let message = format!("mobiles and access links are {components} components of the run");
            return Err(ScenarioError::new(message, Origin::default(), "").help("the limit is 16,777,216 components"));
        }
        let route = Route::new(hops.len(), plan);
        let changes = self.timed_orders().into_iter();
        let changes = changes.filter_map(|TimedOrder { at, order }| {
            Some(Change { at, hop: order.hop.index(&route)?, command: order.command })
        });
        let changes = changes.collect();
        Ok(PlannedPath { topology: Topology { hops, route, mobiles }, changes })
    }

    /// Checks that programs, not flows of the scenario, can use the path.
    fn check_link(&self) -> Result<(), ScenarioError> {
        let refuse =
            |key, message: &str, help: &str| Err(ScenarioError::new(message, Origin::default(), key).help(help));
        if self.access.is_some() {
            let help = "move its keys into `fixed`";
            return refuse("access", "a link has one path, but `access` gives each flow its own", help);
        }
        if self.steering.is_some() {
            let help = "remove the table, or run the scenario with `airpath run`";
            return refuse("steering", "programs on a link choose their interface themselves", help);
        }
        Ok(())
    }
}

/// Components of a run: their numbers have 24 bits in the event log.
const MOST_COMPONENTS: usize = 1 << 24;

impl Target {
    /// The index of this bearer among the hops of `route`; `None` if the path does not have it.
    pub fn index(self, route: &Route) -> Option<usize> {
        match self {
            Self::Fixed => Some(route.fixed()),
            Self::Cell(cell) => route.cell(cell),
        }
    }
}
