//! Where the packets of an analysis come from.

use std::path::PathBuf;
use std::sync::Arc;

use super::TraceError;
use super::pipeline::read_ahead;
use super::reading::{Reading, STANDARD_INPUT, captured, logged};
use crate::event_log::{CapturePoint, EventLog};
use airpath_capture::decode::Decoded;

/// Where packets come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Captures, in the order of their times; [`STANDARD_INPUT`] stands for standard input.
    Captures(Vec<PathBuf>),
    /// The event log of a run, as a capture at one of its ends.
    Log(Arc<EventLog>, CapturePoint),
}

impl Default for Source {
    fn default() -> Self {
        Self::Captures(Vec::new())
    }
}

impl Source {
    /// Whether a capture is read from standard input.
    pub(super) fn is_standard_input(&self) -> bool {
        matches!(self, Self::Captures(files) if files.iter().any(|file| file.as_os_str() == STANDARD_INPUT))
    }

    /// The name for messages: the first file, or the log.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Captures(files) => files.first().map(|file| file.display().to_string()).unwrap_or_default(),
            Self::Log(log, _) => log.name().to_owned(),
        }
    }

    /// Passes the packets in their order to `take`. Stops when `take` returns `false`.
    ///
    /// # Errors
    /// As [`captured`].
    pub(super) fn packets(
        &self,
        one_thread: bool,
        take: impl FnMut(&Decoded<'_>) -> bool,
    ) -> Result<Reading, TraceError> {
        match self {
            Self::Captures(files) if one_thread => captured(files, take),
            Self::Captures(files) => read_ahead(files, take),
            Self::Log(log, point) => Ok(logged(log, *point, take)),
        }
    }
}
