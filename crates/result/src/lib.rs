//! The result folder, whatever made the result: a simulation, an emulated link, a measurement.
//!
//! | module | what |
//! | --- | --- |
//! | [`summary`] | `summary.json`: one row a flow, a link, a user of the radio, a repetition |
//! | [`folder`] | the folder: nothing in it is ever overwritten by half a file |
//!
//! What the columns of the event log mean is said at `airpath_eventlog`; `docs/result-folder.md`
//! has it all from the reader's side.

pub mod folder;
pub mod summary;

pub use folder::{Folder, FolderError, INPUTS};
pub use summary::{Rows, Summary};
