//! Scenarios and presets: typed TOML in, objects out.
//!
//! A scenario is read from a text, with values from the command line laid over it and those of a
//! preset or a profile under it; every error names the file, the line and the key. What is resolved
//! is printed again as a scenario that gives the same run ([`Scenario::to_toml`]).
//!
//! | module | what |
//! | --- | --- |
//! | [`document`] | TOML with the origin of every value |
//! | [`preset`] | named bearer parameters with their sources |
//! | `environment` | radio conditions, by the name of an environment and what differs from it |
//! | [`links`] | plain links: the `[fixed]` and `[access]` tables |
//! | [`middlebox`] | the `[middlebox]` table |
//! | [`proxy`] | the `[proxy]` table |
//! | [`live`] | the configuration of a live proxy |
//! | [`planned_path`] | the path of a scenario: its hops, their order, and planned changes |
//! | [`bearer`] | the `[bearer]` table and the objects made from it |
//! | `capacity` | rate and round trip of a bearer, measured in virtual time |
//! | [`steering`] | the `[steering]` table: which of two bearers carries a flow |
//! | [`work`] | the `[[flow]]` tables |
//! | `kind` | the kinds of workloads |
//! | [`page`] | web pages: those that are shipped, and page files |
//! | `stream` | streams: their settings, and files of frames (`video`) |
//! | `voice` | calls |
//! | `exchanges` | remote terminals, files of their sessions; mail |
//! | [`change`] | the `[[change]]` tables, and changes that are commanded while a link runs |
//! | `check` | what is wrong between tables that are right by themselves |
//! | [`archive`] | a scenario with its files, as it is stored in a result folder |
//! | [`tcp`] | the `[tcp]` tables: a profile and what differs |
//! | [`quic`] | the transport of a flow, and the `[quic]` tables
//! | [`error`] | what is wrong, where, and what to do next |

pub mod archive;
pub mod bearer;
mod capacity;
pub mod change;
mod check;
pub mod document;
mod environment;
pub mod error;
mod exchanges;
mod kind;
mod layers;
pub mod links;
pub mod live;
pub mod middlebox;
mod mobile;
mod model_keys;
pub mod page;
pub mod planned_path;
pub mod preset;
pub mod proxy;
pub mod quic;
pub mod steering;
mod stream;
pub mod tcp;
mod video;
mod voice;
pub mod work;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;
use std::path::Path;

use airpath_core::{Classes, Instant, Seed, Span, UserId};
use airpath_link::Bearer;
use airpath_radio::Models;
use serde::{Deserialize, Serialize};

pub use archive::Archive;
pub use bearer::{BearerConfig, Cells, Which};
pub use change::{Hop, Order, PlannedChange, TimedOrder};
pub use error::{Origin, ScenarioError};
pub use kind::Kind;
pub use links::{BothWays, OneWay};
pub use live::{LiveConfig, Prefix};
pub use middlebox::MiddleboxConfig;
pub use page::ReadPage;
pub use planned_path::{PlannedPath, Users};
pub use preset::Preset;
pub use proxy::{BudgetSource, ProxyConfig};
pub use work::{FlowGroup, Work};

use document::Node;
use mobile::{MobileGroup, read_mobiles};
use steering::SteeringConfig;

/// The version of the scenario format that this crate reads and writes.
pub const FORMAT: u32 = 1;

/// A scenario with every value resolved.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    format: u32,
    /// Its name.
    pub name: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The run ends then, if its flows are not over before.
    pub duration: Span,
    /// What is logged where a log is kept.
    pub log: Log,
    /// The network between servers and cell.
    pub fixed: BothWays,
    /// The link of each flow's server to the fixed network; none if servers sit right at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<BothWays>,
    /// The middlebox between fixed network and radio access, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middlebox: Option<MiddleboxConfig>,
    /// The proxy between fixed network and middlebox, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyConfig>,
    /// The radio access.
    pub bearer: BearerConfig,
    /// That of a second interface of each mobile, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_bearer: Option<BearerConfig>,
    /// The choice between the two bearers, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steering: Option<SteeringConfig>,
    #[serde(rename = "mobile")]
    groups: Vec<MobileGroup>,
    #[serde(rename = "flow")]
    flow_groups: Vec<FlowGroup>,
    #[serde(rename = "change")]
    changes: Vec<PlannedChange>,
}

/// Which classes of events are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// Every step of every packet, and the packets of QUIC in datagrams.
    pub packets: bool,
    /// The state of TCP senders.
    pub tcp: bool,
    /// Transmissions on the air, and the states of radio connections.
    pub radio: bool,
    /// Progress of applications.
    pub app: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self { packets: true, tcp: true, radio: true, app: true }
    }
}

impl Log {
    /// These classes as a set.
    pub fn classes(self) -> Classes {
        [
            (self.packets, Classes::PACKET.with(Classes::QUIC)),
            (self.tcp, Classes::TCP),
            (self.radio, Classes::RADIO.with(Classes::STATE)),
            (self.app, Classes::APP),
        ]
        .into_iter()
        .filter(|(on, _)| *on)
        .fold(Classes::CHANGE, |all, (_, class)| all.with(class))
    }
}

/// One mobile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobile {
    /// Its name.
    pub name: String,
    /// The group that it belongs to.
    pub group: String,
    /// Its class of radio conditions, where the bearer has classes.
    pub class: Option<String>,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct PlannedFlow {
    /// Its name.
    pub name: String,
    /// How many `[[flow]]` tables before its own have the same name.
    pub namesakes: u32,
    /// Which workload.
    pub kind: Kind,
    /// The interface of its mobile: users after those of the first bearer are interfaces on the
    /// second.
    pub user: UserId,
    /// Whether `[steering]` chooses its bearer.
    pub steered: bool,
    /// When it starts, from the beginning of the run.
    pub start: Span,
    /// What it does.
    pub work: Work,
}

impl Scenario {
    /// Reads the scenario `text`. `file` is what errors call it, `folder` what relative paths in it
    /// start from, and `sets` are values to lay over it, as dotted paths and TOML values.
    pub fn read(text: &str, file: &str, folder: &Path, sets: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::read_with(text, file, folder, sets, &Models::shipped())
    }

    /// The same with a list of bearer models other than those of airpath.
    ///
    /// # Errors
    /// If the scenario cannot be run.
    pub fn read_with(
        text: &str,
        file: &str,
        folder: &Path,
        sets: &[(String, String)],
        models: &Models,
    ) -> Result<Self, ScenarioError> {
        let mut node = Node::parse(text, file)?;
        preset::refuse(&node, file)?;
        write_out(&mut node);
        for (path, value) in sets {
            // Without the table there is one mobile: this is the table of that one.
            if path.starts_with("mobile.") && node.get("mobile").is_none() {
                node.set("mobile", "[{}]")?;
            }
            node.set(path, value)?;
            write_out(&mut node);
        }
        let format = Format::check(&mut node, "scenario", file)?;
        let empty = || Node::table(Origin::File(file.to_owned()));
        let fixed = BothWays::read(node.take("fixed").unwrap_or_else(empty), "fixed", folder)?;
        let access = node.take("access").map(|node| BothWays::read(node, "access", folder)).transpose()?;
        let middlebox = node.take("middlebox").map(MiddleboxConfig::read).transpose()?;
        let proxy = node.take("proxy").map(|table| proxy::read(proxy::resolve(table, folder)?)).transpose()?;
        let bearer = node.take("bearer").ok_or_else(|| missing(&node, "bearer", "preset = \"umts-dch-384\""))?;
        let (mut bearer, bearer_table) = BearerConfig::read(Which::First, bearer, folder, models)?;
        let second = node.take("second_bearer");
        let second = second.map(|table| BearerConfig::read(Which::Second, table, folder, models)).transpose()?;
        let (second_bearer, second_table) = second.unzip();
        let mobiles = node.get("mobile").is_some().then(|| take_list(&mut node, "mobile")).transpose()?;
        let groups = read_mobiles(mobiles, &bearer_table, folder, &bearer.fading(models))?;
        if let Some(conditions) = bearer.conditions() {
            let own = |group: &MobileGroup| iter::repeat_n(group.conditions.clone(), group.count as usize);
            // Mostly all mobiles have those of the bearer.
            if groups.iter().any(|group| group.conditions.is_some()) {
                conditions.of_mobiles = groups.iter().flat_map(own).collect();
            }
        }
        let tcp = node.take("tcp").unwrap_or_else(empty);
        // Read once for its errors, even if every flow has settings of its own.
        tcp::Settings::read(None, "tcp", &tcp)?;
        let quic = node.take("quic").unwrap_or_else(empty);
        quic::Settings::read(None, "quic", &quic)?;
        let flows = take_list(&mut node, "flow")?;
        tcp::refuse_unused(&tcp, &flows)?;
        let flow_groups = flows
            .into_iter()
            .enumerate()
            .map(|(index, flow)| FlowGroup::read(flow, &format!("flow.{index}"), &tcp, &quic, folder))
            .collect::<Result<Vec<_>, _>>()?;
        check::refuse_without_flows("tcp", "TCP", &tcp, flow_groups.iter().map(|group| group.tcp.is_some()))?;
        check::refuse_without_flows("quic", "QUIC", &quic, flow_groups.iter().map(|group| group.quic.is_some()))?;
        let change_tables = take_list(&mut node, "change")?;
        let changes = change_tables
            .iter()
            .enumerate()
            .map(|(index, change)| PlannedChange::read(change.clone(), &format!("change.{index}")))
            .collect::<Result<Vec<_>, _>>()?;
        let known = [
            "format",
            "name",
            "seed",
            "duration",
            "fixed",
            "access",
            "middlebox",
            "proxy",
            "bearer",
            "second_bearer",
            "steering",
            "tcp",
            "quic",
            "mobile",
            "flow",
            "change",
            "log",
        ];
        let steering_table = node.take("steering");
        let rest = node.split(&["name", "seed", "duration", "log"]);
        if let Some(key) = node.keys().next() {
            return Err(node.unknown_key("", key, &known));
        }
        let rest: Rest = rest.read("")?;
        let steering = steering_table.as_ref().map(|node| SteeringConfig::read(node, rest.duration)).transpose()?;
        if let Some(table) = &steering_table {
            let refuse = |message: &str, help: &str| {
                Err(ScenarioError::new(message, table.origin().clone(), "steering").help(help))
            };
            if second_bearer.is_none() {
                return refuse("steering needs two bearers", "add the table [second_bearer], or remove this one");
            }
            if proxy.is_some() || middlebox.is_some() {
                let help = "remove one of the two";
                return refuse("a proxy or middlebox sends on the bearer on which a connection began", help);
            }
        }
        let (proxy, of_bearer) = match proxy {
            Some(table) => (Some(table.config), [table.budget_of_bearer, table.rate_of_bearer]),
            None => (None, [None, None]),
        };
        let mut scenario = Self {
            format,
            name: rest.name,
            seed: rest.seed,
            duration: rest.duration,
            log: rest.log,
            fixed,
            access,
            middlebox,
            proxy,
            bearer,
            second_bearer,
            steering,
            groups,
            flow_groups,
            changes,
        };
        scenario.check(file, [Some(&bearer_table), second_table.as_ref()])?;
        scenario.check_changes(&change_tables)?;
        scenario.measure_bearer(of_bearer)?;
        Ok(scenario)
    }

    /// The scenario as TOML, with every default written out: read again, it gives the same run.
    pub fn to_toml(&self) -> String {
        // Through a value, so that plain keys come before tables wherever the types put them.
        let value = toml::Value::try_from(self).expect("a scenario is made of tables and values");
        toml::to_string(&value).expect("a TOML value can be written")
    }

    /// The mobiles, in the order of their users.
    pub fn mobiles(&self) -> Vec<Mobile> {
        let several = |group: &MobileGroup| {
            let MobileGroup { name, count, class, .. } = group.clone();
            (0..count).map(move |index| Mobile {
                name: if count == 1 { name.clone() } else { format!("{name}-{index}") },
                group: name.clone(),
                class: class.clone(),
            })
        };
        self.groups.iter().flat_map(several).collect()
    }

    /// Whether there is anything to run.
    ///
    /// # Errors
    /// If there is no flow: a link carries what comes, but a simulation has only these.
    pub fn require_flows(&self) -> Result<(), ScenarioError> {
        if !self.flow_groups.is_empty() {
            return Ok(());
        }
        Err(ScenarioError::new("this table is missing: there is nothing to run", Origin::Default, "flow")
            .help("for a start, add [[flow]] with `kind = \"download\"` and `bytes = \"1 MB\"`"))
    }

    /// The orders of all `[[change]]` tables, in the order of their times; those of the same time
    /// in the order in which they were written.
    pub fn timed_orders(&self) -> Vec<TimedOrder> {
        let mobiles = self.mobiles();
        let timed = |change: &PlannedChange| {
            let orders = change.orders(self, &mobiles).expect("it was checked when it was read");
            let at = Instant::ZERO + change.at;
            orders.into_iter().map(move |order| TimedOrder { at, order })
        };
        let mut orders: Vec<TimedOrder> = self.changes.iter().flat_map(timed).collect();
        orders.sort_by_key(|timed| timed.at);
        orders
    }

    /// Reads a change that is to happen now, from a JSON object with the keys of `[[change]]` but
    /// for `at`.
    ///
    /// ```
    /// # let text = "format = 1\n[bearer]\npreset = \"umts-dch-384\"";
    /// # let scenario = airpath_scenario::Scenario::read(text, "s.toml", std::path::Path::new(""), &[])?;
    /// let orders = scenario.read_orders(r#"{"outage": "3 s"}"#)?;
    /// assert_eq!(orders.len(), 1);
    /// let error = scenario.read_orders(r#"{"outrage": "3 s"}"#).unwrap_err();
    /// assert!(error.to_string().contains("outrage: unknown key; did you mean `outage`?"));
    /// # Ok::<(), airpath_scenario::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// If it is no change, or for a mobile that is not there. Whether the bearer supports it is not
    /// checked.
    pub fn read_orders(&self, json: &str) -> Result<Vec<Order>, ScenarioError> {
        let argument = |mut error: ScenarioError| {
            if error.origin == Origin::Default {
                error.origin = Origin::Argument(json.trim().to_owned());
            }
            error
        };
        change::read_now(json, self, &self.mobiles()).map_err(argument)
    }

    /// The flows, in the order of their numbers.
    pub fn flows(&self) -> Vec<PlannedFlow> {
        let mobiles = self.mobiles();
        let mut flows = Vec::new();
        let mut tables: BTreeMap<&str, u32> = BTreeMap::new();
        for group in &self.flow_groups {
            let tables = tables.entry(group.name()).or_default();
            let namesakes = *tables;
            *tables += 1;
            let users: Vec<usize> = (0..mobiles.len()).filter(|user| is_for(group, &mobiles[*user])).collect();
            let several = users.len() as u64 * u64::from(group.count()) > 1;
            let first_user = match group.bearer().unwrap_or_default() {
                Which::First => 0,
                Which::Second => mobiles.len(),
            };
            let mut index = 0;
            for user in users {
                for _ in 0..group.count() {
                    flows.push(PlannedFlow {
                        name: if several { format!("{}-{index}", group.name()) } else { group.name().to_owned() },
                        namesakes,
                        kind: group.kind,
                        user: UserId::new((first_user + user) as u32),
                        steered: self.steering.is_some() && group.bearer().is_none(),
                        start: group.start(index).expect("the last start was checked"),
                        work: group.work.clone(),
                    });
                    index += 1;
                }
            }
        }
        flows
    }

    /// Makes the fixed network.
    pub fn build_fixed(&self, seed: Seed) -> Box<dyn Bearer> {
        Box::new(self.fixed.build(seed, "fixed"))
    }

    /// Makes the access link of the server of `flow`, if servers have one.
    pub fn build_access(&self, flow: &str, seed: Seed) -> Option<Box<dyn Bearer>> {
        let access = self.access.as_ref()?;
        Some(Box::new(access.build(seed, &format!("access-{flow}"))))
    }

    /// Makes the bearers of all mobiles: the first, and then the second of each if there is one.
    pub fn build_cells(&self, seed: Seed) -> Result<Cells, ScenarioError> {
        let mobiles = self.mobiles();
        let mut cells = self.bearer.build(&mobiles, seed)?;
        if let Some(second) = &self.second_bearer {
            let Cells { bearers, of_user } = second.build(&mobiles, seed)?;
            let first = cells.bearers.len();
            cells.bearers.extend(bearers);
            cells.of_user.extend(of_user.into_iter().map(|cell| first + cell));
        }
        Ok(cells)
    }

    /// The names of the users, in their order: the mobiles, and then the second interface of each
    /// if there is a second bearer.
    pub fn user_names(&self) -> Vec<String> {
        let mobiles = self.mobiles();
        let second = mobiles.iter().filter(|_| self.second_bearer.is_some());
        let second: Vec<String> = second.map(|mobile| format!("{}-second", mobile.name)).collect();
        mobiles.into_iter().map(|mobile| mobile.name).chain(second).collect()
    }

    /// Gives the proxy what is measured on the bearer of the first mobile: the budget that keeps it
    /// busy, and the rate of the queue. Each has an origin if it is wanted.
    fn measure_bearer(&mut self, [budget, rate]: [Option<Origin>; 2]) -> Result<(), ScenarioError> {
        let make = || -> Result<Box<dyn Bearer>, ScenarioError> {
            let mut cells = self.build_cells(Seed::new(self.seed))?;
            Ok(cells.bearers.swap_remove(cells.of_user[0]).1)
        };
        let nothing = |origin, field: &str, help: &str| {
            ScenarioError::new("the bearer carried nothing to the first mobile", origin, field).help(help)
        };
        let measured = |origin| {
            let help = "write the budget in bytes, or `adaptive`";
            capacity::budget(make)?.ok_or_else(|| nothing(origin, "proxy.budget", help))
        };
        let budget = budget.map(measured).transpose()?;
        let measured = |origin| {
            capacity::rate(make)?
                .ok_or_else(|| nothing(origin, "proxy.queue.rate", "write the rate, as in \"50 kbit/s\""))
        };
        let rate = rate.map(measured).transpose()?;
        let Some(proxy) = &mut self.proxy else { return Ok(()) };
        if let Some(budget) = budget {
            proxy.budget = BudgetSource::Fixed(budget);
        }
        if let (Some(queue), Some(rate)) = (&mut proxy.queue, rate) {
            queue.rate = rate;
        }
        Ok(())
    }
}

/// What the random streams of a flow and its access link are named after: the name of the flow, and
/// a number if `namesakes` tables before its own have the same name. So each flow has numbers of
/// its own.
pub fn stream_name(flow: &str, namesakes: u32) -> Cow<'_, str> {
    if namesakes == 0 { flow.into() } else { format!("{flow}/{}", namesakes + 1).into() }
}

impl Mobile {
    /// Whether `name` is its own or its group's.
    fn answers_to(&self, name: &str) -> bool {
        name == self.group || name == self.name
    }
}

fn is_for(group: &FlowGroup, mobile: &Mobile) -> bool {
    group.mobile().is_none_or(|name| mobile.answers_to(name))
}

/// Tables with a short form: a text is the value of this key.
const SHORT_FORMS: [(&str, &str); 4] =
    [("bearer", "preset"), ("second_bearer", "preset"), ("proxy", "preset"), ("tcp", "profile")];

/// Writes out the short forms, as `bearer = "gprs"`.
fn write_out(scenario: &mut Node) {
    for (table, key) in SHORT_FORMS {
        if scenario.get(table).is_some_and(|node| node.as_str().is_some())
            && let Some(text) = scenario.take(table)
        {
            scenario.insert(table, text.or_table_with(key));
        }
    }
}

/// The tables of the list `key`, which may be left out.
fn take_list(node: &mut Node, key: &str) -> Result<Vec<Node>, ScenarioError> {
    let Some(list) = node.take(key) else { return Ok(Vec::new()) };
    let origin = list.origin().clone();
    list.into_array().ok_or_else(|| match origin {
        Origin::Argument(_) => ScenarioError::new(format!("the scenario has no `[[{key}]]`"), origin, key)
            .help(format!("add one to the file, or set the list, as in `{key} = [{{ KEY = VALUE }}]`")),
        _ => ScenarioError::new("this is a list of tables", origin, key)
            .help(format!("write `[[{key}]]`, with two brackets")),
    })
}

fn missing(node: &Node, key: &str, example: &str) -> ScenarioError {
    ScenarioError::new("this table is missing", node.origin().clone(), key)
        .help(format!("for a start, give it `{example}`"))
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Format {
    /// Takes the format out of a `document`, the kind of `file`, and checks it.
    fn check(node: &mut Node, document: &str, file: &str) -> Result<u32, ScenarioError> {
        let format = node.split(&["format"]);
        let origin = format.get("format").map(|node| node.origin().clone());
        let Self { format } = format.read("").map_err(|error| match format.get("format") {
            Some(_) => error,
            None => error.help(format!("begin the {document} with `format = {FORMAT}`")),
        })?;
        if format != FORMAT {
            let origin = origin.unwrap_or_else(|| Origin::File(file.to_owned()));
            return Err(ScenarioError::new(format!("format {format} is not known"), origin, "format")
                .help(format!("this version reads format {FORMAT}")));
        }
        Ok(format)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    #[serde(default = "unnamed")]
    name: String,
    #[serde(default = "first_seed")]
    seed: u64,
    #[serde(default = "hour")]
    duration: Span,
    #[serde(default)]
    log: Log,
}

fn unnamed() -> String {
    "scenario".to_owned()
}

fn first_seed() -> u64 {
    1
}

fn hour() -> Span {
    Span::from_secs(3600)
}
