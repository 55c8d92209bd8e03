//! Flows of kind `voice`.

use airpath_app::voice::Settings;

use crate::document::{Node, join};
use crate::error::ScenarioError;

/// Reads the keys of a flow of kind `voice`.
pub(crate) fn read_flow(node: Node, at: &str) -> Result<Settings, ScenarioError> {
    let settings: Settings = node.read(at)?;
    settings.check().map_err(|error| {
        ScenarioError::new(error.message, node.origin_of(error.field).clone(), join(at, error.field))
    })?;
    Ok(settings)
}
