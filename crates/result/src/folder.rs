//! A result folder that is being written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use airpath_core::Classes;
use airpath_eventlog::EventLog;

use crate::summary::Summary;

/// A result folder: `scenario.toml` (resolved), `summary.json`, and if asked for `events/` and `captures/`.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why a result folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is in use.
    #[error("{0}: this folder is not empty; name another one, or remove it")]
    NotEmpty(PathBuf),
    /// It could not be written.
    #[error("{path}: {source}; what was written before is kept, and the summary says that the run is not complete")]
    Output {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Folder {
    /// Begins the result of `scenario`, which is the resolved scenario as TOML, in a new or an empty folder.
    ///
    /// # Errors
    /// Where the folder holds anything, or cannot be written.
    pub fn create(path: &Path, scenario: &str) -> Result<Self, FolderError> {
        let folder = Self { path: path.to_owned() };
        fs::create_dir_all(path).map_err(|source| folder.error("", source))?;
        if fs::read_dir(path).map_err(|source| folder.error("", source))?.next().is_some() {
            return Err(FolderError::NotEmpty(path.to_owned()));
        }
        folder.write("scenario.toml", scenario)?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins the event log of repetition `number`, with tables for `classes`.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn event_log(&self, number: u64, components: &[String], classes: Classes) -> Result<EventLog, FolderError> {
        let name = "events";
        EventLog::create(&self.path.join(name), number as u32, components.to_vec(), classes)
            .map_err(|source| self.error(name, source))
    }

    /// The folder for packet captures.
    pub fn captures(&self) -> PathBuf {
        self.path.join("captures")
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// Where it cannot be written; an earlier one is then still there.
    pub fn save(&self, summary: &Summary) -> Result<(), FolderError> {
        self.write("summary.json", &summary.to_json())
    }

    /// Writes a file so that there is the old one or the new one at any time, never half of one.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let (path, draft) = (self.path.join(name), self.path.join(format!("{name}.draft")));
        fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path)).map_err(|source| self.error(name, source))
    }

    /// An error of the file `name` in this folder.
    pub fn error(&self, name: &str, source: io::Error) -> FolderError {
        FolderError::Output { path: self.path.join(name), source }
    }
}
