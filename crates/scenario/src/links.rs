//! Plain links in a scenario: read, checked and ready to be made as often as there are repetitions.

use std::path::{Path, PathBuf};

use airpath_core::Seed;
use airpath_link::config::Plan;
use airpath_link::duplex::Duplex;
use airpath_link::{Config, Pipe};
use serde::{Serialize, Serializer};

use crate::document::{Node, join};
use crate::error::ScenarioError;

/// A link in each direction.
#[derive(Clone, Debug, Serialize)]
pub struct BothWays {
    /// Towards the mobiles.
    pub down: OneWay,
    /// From the mobiles.
    pub up: OneWay,
}

/// A link in one direction.
#[derive(Clone, Debug)]
pub struct OneWay(Plan);

impl BothWays {
    /// Reads a link that is the same in both directions except for its tables `down` and `up`.
    /// Settings of the command line for both directions override these tables: a resolved scenario
    /// has nothing else.
    pub(crate) fn read(mut node: Node, at: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let (down, up) = (node.take("down"), node.take("up"));
        let one_way = |over: Option<Node>, key: &str| {
            let mut base = node.clone();
            let field = match over {
                Some(over) => {
                    let (for_both, for_one) = (node.given_as_arguments(), over.given_as_arguments());
                    base.overlay(over);
                    for_both.into_iter().chain(for_one).for_each(|given| base.overlay(given));
                    join(at, key)
                }
                None => at.to_owned(),
            };
            OneWay::read(&base, &field, folder)
        };
        Ok(Self { down: one_way(down, "down")?, up: one_way(up, "up")? })
    }

    /// Where its recorded links lie.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [self.down.file_mut(), self.up.file_mut()].into_iter().flatten()
    }

    /// Makes the pair; its generator streams are named after `name`.
    pub fn build(&self, seed: Seed, name: &str) -> Duplex<Pipe, Pipe> {
        Duplex::from_plans(&self.down.0, &self.up.0, seed, name)
    }
}

impl OneWay {
    /// Reads a link; relative paths in it start from `folder`.
    pub(crate) fn read(node: &Node, at: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let mut config: Config = node.read(at)?;
        config.recorded = config.recorded.map(|file| folder.join(file));
        let plan = config.prepare().map_err(|error| {
            let origin = node.get(error.field()).unwrap_or(node).origin().clone();
            ScenarioError::new(error.to_string(), origin, join(at, error.field()))
        })?;
        Ok(Self(plan))
    }

    /// Where its recorded link lies, if it is one.
    pub(crate) const fn file_mut(&mut self) -> Option<&mut PathBuf> {
        self.0.recorded_mut()
    }

    /// Its parameters.
    pub const fn config(&self) -> &Config {
        self.0.config()
    }
}

impl Serialize for OneWay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.config().serialize(serializer)
    }
}
