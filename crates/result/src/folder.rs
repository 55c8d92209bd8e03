//! A result folder during writing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use airpath_core::Classes;
use airpath_eventlog::EventLog;

use crate::summary::Summary;

/// The folder, in a result folder, of the scenario's input files.
pub const INPUTS: &str = "inputs";

/// A result folder: `scenario.toml` (resolved), its input files, `summary.json`, and optionally
/// `events/` and `captures/`.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// A result folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is not empty.
    #[error("{0}: this folder is not empty; name another one, or remove it")]
    NotEmpty(PathBuf),
    /// A file cannot be written.
    #[error("{path}: {source}; what was written before is kept, and the summary marks the run as incomplete")]
    Output {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl Folder {
    /// Creates the result of `scenario`, the resolved scenario as TOML, in a new or an empty
    /// folder. `files` are its input files: the path in the folder, and the present path, which may
    /// be the same.
    ///
    /// # Errors
    /// The folder has other content, or cannot be written.
    pub fn create(path: &Path, scenario: &str, files: &[(PathBuf, PathBuf)]) -> Result<Self, FolderError> {
        let folder = Self { path: path.to_owned() };
        fs::create_dir_all(path).map_err(|source| folder.error("", source))?;
        let inputs = path.join(INPUTS);
        if !holds_only(path, std::slice::from_ref(&inputs)).map_err(|source| folder.error("", source))? {
            return Err(FolderError::NotEmpty(path.to_owned()));
        }
        let files: Vec<(PathBuf, &PathBuf)> = files.iter().map(|(place, file)| (path.join(place), file)).collect();
        let places: Vec<PathBuf> = files.iter().map(|(place, _)| place.clone()).collect();
        if inputs.exists() && !holds_only(&inputs, &places).map_err(|source| folder.error(INPUTS, source))? {
            return Err(FolderError::NotEmpty(inputs));
        }
        folder.write("scenario.toml", scenario)?;
        for (path, file) in files {
            fs::create_dir_all(&inputs)
                .and_then(|()| copy(file, &path))
                .map_err(|source| FolderError::Output { path, source })?;
        }
        Ok(folder)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins the event log of repetition `number`, with tables for `classes`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn event_log(&self, number: u64, components: &[String], classes: Classes) -> Result<EventLog, FolderError> {
        let name = "events";
        EventLog::create(&self.path.join(name), number as u32, components.to_vec(), classes)
            .map_err(|source| self.error(name, source))
    }

    /// The folder for packet captures.
    pub fn captures(&self) -> PathBuf {
        self.path.join("captures")
    }

    /// The folder for TCP headers, which a replay through a proxy needs.
    pub fn headers(&self) -> PathBuf {
        self.path.join("headers")
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// It cannot be written; an earlier file then stays.
    pub fn save(&self, summary: &Summary) -> Result<(), FolderError> {
        self.write("summary.json", &summary.to_json())
    }

    /// Replaces a file atomically: at any time there is the old one or the new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let (path, draft) = (self.path.join(name), self.path.join(format!("{name}.draft")));
        fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path)).map_err(|source| self.error(name, source))
    }

    /// An error of the file `name` in this folder.
    pub fn error(&self, name: &str, source: io::Error) -> FolderError {
        FolderError::Output { path: self.path.join(name), source }
    }
}

/// Whether `folder` contains only what is allowed.
fn holds_only(folder: &Path, allowed: &[PathBuf]) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if !allowed.contains(&entry?.path()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies a file, unless it is already at that path.
fn copy(file: &Path, place: &Path) -> io::Result<()> {
    if place.exists() && place.canonicalize()? == file.canonicalize()? {
        return Ok(());
    }
    fs::copy(file, place).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder of a test, removed at the end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("airpath-result-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_of_the_scenario_are_kept_beside_it() {
        let here = Temporary::new("inputs");
        let (trace, out) = (here.0.join("trace.down"), here.0.join("out"));
        fs::write(&trace, "3\n").unwrap();
        let place = Path::new(INPUTS).join("trace.down");
        Folder::create(&out, "", &[(place.clone(), trace)]).unwrap();
        assert_eq!(fs::read_to_string(out.join(&place)).unwrap(), "3\n");
        // Again with the same path, where the file already is.
        fs::remove_file(out.join("scenario.toml")).unwrap();
        Folder::create(&out, "", &[(place.clone(), out.join(&place))]).unwrap();
        assert_eq!(fs::read_to_string(out.join(&place)).unwrap(), "3\n");
    }

    #[test]
    fn what_lies_in_the_folder_is_not_mixed_with_a_result() {
        let here = Temporary::new("strangers");
        let inputs = here.0.join(INPUTS);
        fs::create_dir(&inputs).unwrap();
        fs::write(inputs.join("mine"), "").unwrap();
        let error = Folder::create(&here.0, "", &[]).map(drop).unwrap_err().to_string();
        assert!(error.contains("inputs: this folder is not empty"), "{error}");
        fs::write(here.0.join("mine"), "").unwrap();
        let error = Folder::create(&here.0, "", &[]).map(drop).unwrap_err().to_string();
        assert!(error.contains("this folder is not empty") && !error.contains("inputs"), "{error}");
    }
}
