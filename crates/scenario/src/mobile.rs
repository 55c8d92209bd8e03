//! The `[[mobile]]` tables.

use std::path::Path;

use airpath_core::UserId;
use airpath_radio::conditions;
use serde::{Deserialize, Serialize};

use crate::document::{Node, join};
use crate::environment;
use crate::error::{Origin, ScenarioError};

/// Mobiles that are alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MobileGroup {
    #[serde(default = "mobile")]
    pub name: String,
    #[serde(default = "one")]
    pub count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Where its class was written.
    #[serde(skip)]
    pub class_origin: Origin,
    /// Its radio conditions, if they are not those of the bearer: a `environment` is resolved by
    /// then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<conditions::Config>,
}

/// The keys of `[[mobile]]`.
const MOBILE_KEYS: [&str; 5] = ["name", "count", "class", "environment", "conditions"];

impl MobileGroup {
    /// Reads a `[[mobile]]` table at the path `at`; `below` are the conditions of the bearer.
    fn read(
        mut node: Node,
        below: Option<&Node>,
        folder: &Path,
        at: &str,
        fading: &environment::Fading,
    ) -> Result<Self, ScenarioError> {
        if let Some(key) = node.keys().find(|key| !MOBILE_KEYS.contains(key)) {
            return Err(node.unknown_key(at, key, &MOBILE_KEYS));
        }
        let mut given = node.take("conditions");
        if let Some(environment) = node.take("environment") {
            given.get_or_insert_with(|| Node::table(environment.origin().clone())).insert("environment", environment);
        }
        let mut group: Self = node.read(at)?;
        group.class_origin = node.origin_of("class").clone();
        if let Some(given) = given {
            let origin = given.origin().clone();
            let at = join(at, "conditions");
            let mut below = below.cloned().ok_or_else(|| {
                ScenarioError::new("the bearer has no radio conditions", origin, &at)
                    .help("remove the mobile's, or name a preset that has them, such as `gprs-3+1`")
            })?;
            if environment::is_complete(&given) {
                below = below.split(&["network"]);
            }
            let resolved = environment::resolve(given, Some(below), folder, &at, fading)?;
            group.conditions = Some(environment::read(&resolved, folder, &at)?);
        }
        Ok(group)
    }
}

fn mobile() -> String {
    "mobile".to_owned()
}

fn one() -> u32 {
    1
}

/// Rejects more mobiles than a run can have, before anything is made for them.
fn check_number(tables: &[Node]) -> Result<(), ScenarioError> {
    let mut total: u64 = 0;
    for (index, table) in tables.iter().enumerate() {
        let Some(count) = table.get("count") else {
            total += 1;
            continue;
        };
        let at = format!("mobile.{index}.count");
        total += u64::from(count.read::<u32>(&at)?);
        if total > UserId::LIMIT.into() {
            let message = format!("{total} mobiles are too many for one run");
            return Err(ScenarioError::new(message, count.origin().clone(), at).help("the limit is 16,000,000 mobiles"));
        }
    }
    Ok(())
}

/// Reads the `[[mobile]]` tables; one mobile if there are none. `bearer` is the table of the
/// bearer.
pub(crate) fn read_mobiles(
    tables: Option<Vec<Node>>,
    bearer: &Node,
    folder: &Path,
    fading: &environment::Fading,
) -> Result<Vec<MobileGroup>, ScenarioError> {
    let Some(tables) = tables else {
        return Ok(vec![MobileGroup {
            name: mobile(),
            count: one(),
            class: None,
            class_origin: Origin::Default,
            conditions: None,
        }]);
    };
    check_number(&tables)?;
    let below = bearer.get("conditions");
    let read = |(index, table)| MobileGroup::read(table, below, folder, &format!("mobile.{index}"), fading);
    tables.into_iter().enumerate().map(read).collect()
}
