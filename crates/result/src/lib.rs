//! The result folder of a simulation, an emulated link, or a measurement.
//!
//! | module | what |
//! | --- | --- |
//! | [`summary`] | `summary.json`: one row per flow, link, radio user and repetition |
//! | [`folder`] | the folder; files are replaced atomically |
//!
//! The columns of the event log are documented at `airpath_eventlog`; `docs/result-folder.md` has
//! the reader's view.

pub mod folder;
pub mod summary;

pub use folder::{Folder, FolderError, INPUTS};
pub use summary::{Rows, Summary};
