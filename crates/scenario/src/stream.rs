//! Flows of kind `stream`.

use std::path::{Path, PathBuf};

use airpath_app::streaming::{Generated, Settings, Video, VideoError};

use crate::document::{Node, join};
use crate::error::ScenarioError;
use crate::video;

/// A flow of kind `stream`.
pub(crate) struct StreamFlow {
    pub settings: Settings,
    pub video: Video,
    /// The file of the video, if it is not generated.
    pub file: Option<PathBuf>,
    /// The other keys, resolved.
    pub table: toml::Table,
}

/// Whether the flow `node` has TCP below RTP, so that it has TCP settings.
pub(crate) fn is_over_tcp(node: &Node) -> bool {
    node.get("transport").and_then(Node::as_str) == Some("tcp")
}

/// Reads the keys of a flow of kind `stream`; paths start from `folder`.
pub(crate) fn read_flow(mut node: Node, folder: &Path, at: &str) -> Result<StreamFlow, ScenarioError> {
    let place = join(at, "video");
    let given = node.take("video").unwrap_or_else(|| Node::table(node.origin().clone()));
    let settings: Settings = node.read(at)?;
    let mut table = toml::Table::try_from(settings).expect("settings are a table");
    let wrong = |error: VideoError| {
        ScenarioError::new(error.message, given.origin_of(error.field).clone(), join(&place, error.field))
    };
    let (video, file) = if given.is_table() {
        let generated: Generated = given.read(&place)?;
        table.insert("video".to_owned(), toml::Value::try_from(generated).expect("parameters are a table"));
        (generated.video().map_err(wrong)?, None)
    } else {
        let name: String = given.read(&place)?;
        let file = folder.join(&name);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            let message = format!("the video file `{}` cannot be read: {error}", file.display());
            ScenarioError::new(message, given.origin().clone(), &place)
                .help(format!("check the path; a table of {{ rate, duration }} generates a video; {}", video::COMMAND))
        })?;
        (video::parse(&text, &name)?, Some(file))
    };
    settings.check(&video).map_err(|error| {
        ScenarioError::new(error.message, node.origin_of(error.field).clone(), join(at, error.field))
    })?;
    Ok(StreamFlow { settings, video, file, table })
}
