//! Why a link cannot be made, or ended before its command did.

use std::io;

use airpath_link::RecordingError;
use airpath_result::FolderError;
use airpath_scenario::ScenarioError;

/// What went wrong, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The result cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The recorded link cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// This host gives no such namespace.
    #[error("this host gives no {0} namespace: {1}; `airpath doctor` says what it allows")]
    Namespace(&'static str, #[source] io::Error),
    /// The outside cannot be reached without privileges.
    #[error(
        "a link to the outside needs root, or the capabilities to administer the network; run it as root, or give \
         `--serve` a server to put at the other end of the link"
    )]
    NoPrivilege,
    /// The host does not forward packets.
    #[error(
        "this host does not forward packets, so the outside cannot be reached over a link; \
         `sysctl -w net.ipv4.ip_forward=1` lets it, or give `--serve` a server to put at the other end"
    )]
    NoForwarding,
    /// A kernel parameter cannot be set.
    #[error("the kernel parameter `{key}` cannot be set to `{value}`: {source}")]
    Parameter {
        /// Its name.
        key: String,
        /// What it was to be.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// Something that the host should do failed.
    #[error("{0}: {1}")]
    Host(&'static str, #[source] io::Error),
    /// The server ended before the command began.
    #[error("the server {0} before it listened at any port; run it by itself to see why")]
    ServerEnded(String),
    /// A program cannot be run.
    #[error("{program}: {source}")]
    NotExecuted {
        /// What should have been run.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The process that looks after the programs is gone.
    #[error("the programs' parent was ended from outside")]
    ParentGone,
}

impl LinkError {
    /// `map_err` for something that the host should do, told by `what`.
    pub fn host(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Host(what, error)
    }
}
