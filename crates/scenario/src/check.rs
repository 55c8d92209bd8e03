//! What is wrong between the tables of a scenario that are right by themselves.

use std::collections::BTreeMap;

use airpath_core::{ComponentId, Context, Instant, Seed, UserId};

use crate::bearer::Which;
use crate::change::{Hop, Order};
use crate::document::Node;
use crate::error::{Origin, ScenarioError, did_you_mean};
use crate::{Mobile, Scenario, is_for, layers};

impl Scenario {
    /// Whether the bearers support the `[[change]]` tables, tried on idle ones in the
    /// order of time.
    pub(crate) fn check_changes(&self, tables: &[Node]) -> Result<(), ScenarioError> {
        if tables.is_empty() {
            return Ok(());
        }
        let mobiles = self.mobiles();
        let mut fixed = self.build_fixed(Seed::default());
        let mut cells = self.build_cells(Seed::default())?;
        let mut changes: Vec<usize> = (0..self.changes.len()).collect();
        changes.sort_by_key(|index| self.changes[*index].at);
        let mut lost = Vec::new();
        let mut first = BTreeMap::new();
        for index in changes {
            let change = &self.changes[index];
            let refuse = |message: String, key: &str| {
                ScenarioError::new(message, tables[index].origin_of(key).clone(), format!("change.{index}.{key}"))
            };
            if let Some(other) = first.insert(change.target(), index) {
                let key = change.key();
                let message = format!("change.{other} changes `{key}` at the same time, {}", change.at);
                return Err(refuse(message, key).help("remove one of the two, or change its `at`"));
            }
            let orders = change.orders(self, &mobiles).map_err(|error| {
                let wrong = refuse(error.message, &error.field.unwrap_or_default());
                ScenarioError { help: error.help, ..wrong }
            })?;
            for Order { hop, command } in orders {
                let bearer = match hop {
                    Hop::Fixed => &mut fixed,
                    Hop::Cell(cell) => &mut cells.bearers[cell].1,
                };
                let mut cx = Context::new(None, &mut lost, ComponentId::default());
                bearer
                    .command(Instant::ZERO + change.at, &command, &mut cx)
                    .map_err(|error| refuse(error.to_string(), error.field()))?;
            }
        }
        Ok(())
    }

    /// What serde alone cannot see.
    pub(crate) fn check(&self, file: &str, bearers: [Option<&Node>; 2]) -> Result<(), ScenarioError> {
        let mobiles = self.mobiles();
        let wrong =
            |message: String, field: &str| Err(ScenarioError::new(message, Origin::File(file.to_owned()), field));
        if mobiles.is_empty() {
            return wrong("there is no mobile".to_owned(), "mobile");
        }
        for (index, group) in self.groups.iter().enumerate() {
            if self.groups[..index].iter().any(|other| other.name == group.name) {
                return wrong(format!("two groups of mobiles are called `{}`", group.name), "mobile.name");
            }
        }
        for group in &self.flow_groups {
            if !mobiles.iter().any(|mobile| is_for(group, mobile)) {
                let name = group.mobile().expect("a flow for every mobile has one");
                let known: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
                let error = ScenarioError::new(
                    format!("there is no mobile `{name}`"),
                    group.mobile_origin.clone(),
                    "flow.mobile",
                );
                return Err(error.help(did_you_mean(name, &known)));
            }
        }
        for group in &self.flow_groups {
            let users = mobiles.iter().filter(|mobile| is_for(group, mobile)).count() as u64;
            if group.start(users * u64::from(group.count()) - 1).is_none() {
                let message = "the last of these flows starts after more than 8760 h, a year";
                let error = ScenarioError::new(message, group.stagger_origin.clone(), "flow.stagger");
                return Err(error.help("make `stagger`, `start` or `count` smaller"));
            }
        }
        self.check_classes()?;
        self.check_users(&mobiles, file)?;
        // Building finds errors that depend on the model, such as a missing class. Mobiles of a
        // group differ in their names only, so one is enough where each has a bearer of its own.
        let configured = [Some(&self.bearer), self.second_bearer.as_ref()];
        for (bearer, table) in configured.into_iter().flatten().zip(bearers.into_iter().flatten()) {
            let mut built = mobiles.clone();
            if !bearer.is_shared() {
                built.dedup_by(|mobile, before| mobile.group == before.group);
            }
            bearer.build(&built, Seed::default()).map_err(|mut error| {
                error.origin = layers::origin_of(table, bearer.which().field_below(&error), &error.message);
                error
            })?;
        }
        Ok(())
    }

    /// Whether the bearer has the classes of the mobiles.
    fn check_classes(&self) -> Result<(), ScenarioError> {
        let known = self.bearer.classes();
        for (index, group) in self.groups.iter().enumerate() {
            let Some(class) = group.class.as_ref().filter(|class| !known.contains(class)) else { continue };
            let wrong = |message: String, help: String| {
                let field = format!("mobile.{index}.class");
                Err(ScenarioError::new(message, group.class_origin.clone(), field).help(help))
            };
            if known.is_empty() {
                let help =
                    "remove it, or use a bearer with `downlink.levels`, such as the preset `hs-dsch-classes-abc`";
                return wrong("the bearer has no classes".to_owned(), help.to_owned());
            }
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return wrong(format!("the bearer has no class `{class}`"), did_you_mean(class, &known));
        }
        Ok(())
    }

    /// Whether there are names and numbers for the second interfaces, and a bearer for each flow.
    fn check_users(&self, mobiles: &[Mobile], file: &str) -> Result<(), ScenarioError> {
        let wrong = |message: String, origin: &Origin, field: &str, help: &str| {
            Err(ScenarioError::new(message, origin.clone(), field).help(help))
        };
        if self.second_bearer.is_none() {
            return match self.flow_groups.iter().find(|group| group.bearer() == Some(Which::Second)) {
                Some(group) => wrong(
                    "the mobiles have one bearer".to_owned(),
                    &group.bearer_origin,
                    "flow.bearer",
                    "add the table [second_bearer], or remove this key",
                ),
                None => Ok(()),
            };
        }
        let origin = Origin::File(file.to_owned());
        if 2 * mobiles.len() > UserId::LIMIT as usize {
            let message = format!("two bearers of {} mobiles are too many for one run", mobiles.len());
            return wrong(message, &origin, "second_bearer", "the limit is 16,000,000 interfaces");
        }
        let mut names = self.user_names();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("a mobile has the name `{}`, which is that of a second interface", pair[0]);
            return wrong(message, &origin, "mobile.name", "give the mobile another name");
        }
        Ok(())
    }
}

/// Rejects settings of the command line for a transport that no flow uses; `uses` has each
/// flow's. A scenario without flows has programs.
pub fn refuse_without_flows(
    table: &str,
    transport: &str,
    settings: &Node,
    mut uses: impl ExactSizeIterator<Item = bool>,
) -> Result<(), ScenarioError> {
    let is_unused = uses.len() > 0 && !uses.any(|uses| uses);
    match settings.first_argument(table).filter(|_| is_unused) {
        Some((path, origin)) => {
            Err(ScenarioError::new(format!("no flow uses {transport}"), origin, path).help("remove it"))
        }
        None => Ok(()),
    }
}
