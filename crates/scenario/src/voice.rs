//! Flows of kind `voice`.

use airpath_app::voice::{Playout, SettingError, Settings};

use crate::document::{Node, join};
use crate::error::ScenarioError;

/// Reads the keys of a flow of kind `voice`.
pub(crate) fn read_flow(node: Node, at: &str) -> Result<Settings, ScenarioError> {
    let mut settings: Settings = node.read(at)?;
    settings.check().map_err(|error| wrong(&node, at, error))?;
    if settings.jitter_buffer == Playout::Adaptive {
        // A resolved scenario has every value.
        settings.max_depth = Some(settings.greatest_depth());
    }
    Ok(settings)
}

/// A setting of the table `node`, which is at `at`, is out of range.
pub(crate) fn wrong(node: &Node, at: &str, error: SettingError) -> ScenarioError {
    ScenarioError::new(error.message, node.origin_of(error.field).clone(), join(at, error.field))
}
