//! Runs a check that would change this process in a child process.

use std::fs::File;
use std::io::{self, Read, Write};

use nix::fcntl::OFlag;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::pipe2;

use crate::namespace::{NetworkNamespace, enter_user_namespace, is_privileged};
use crate::{LinkError, sys};

/// The finding or the error, as text.
pub type Tried = Result<String, String>;

/// Namespace of the child process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// That of this process.
    Here,
    /// In a PID namespace of its own, as the first process.
    First,
}

/// Runs `work` in a child process and returns its result.
pub fn in_child(place: Place, work: impl FnOnce() -> Tried) -> Tried {
    let words = |error: io::Error| error.to_string();
    let (answer, report) = pipe2(OFlag::O_CLOEXEC).map_err(|error| words(error.into()))?;
    let mut report = File::from(report);
    let child = sys::fork(place == Place::First, || {
        let (text, code) = match work() {
            Ok(text) => (text, 0),
            Err(text) => (text, 1),
        };
        // This fails only if the parent has ended.
        let _ = report.write_all(text.as_bytes());
        code
    });
    let child = child.map_err(words)?;
    drop(report);
    let mut text = String::new();
    File::from(answer).read_to_string(&mut text).map_err(words)?;
    match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, 0)) => Ok(text),
        Ok(WaitStatus::Exited(_, 1)) => Err(text),
        Ok(_) => Err("the process that tried it was ended from outside".to_owned()),
        Err(error) => Err(words(error.into())),
    }
}

/// Runs `work` in a child process that may create namespaces, in a user namespace if necessary.
pub fn with_privileges(work: impl FnOnce() -> Tried) -> Tried {
    in_child(Place::Here, || {
        if !is_privileged() {
            enter_user_namespace().map_err(words)?;
        }
        work()
    })
}

/// Runs `work` in a child process in a new network namespace.
pub fn in_network(work: impl FnOnce() -> Result<(), LinkError>) -> Tried {
    with_privileges(|| {
        NetworkNamespace::create().map_err(words)?;
        work().map_err(words)?;
        Ok(String::new())
    })
}

/// The text of an error, without its reference to `airpath doctor`.
pub fn words(error: LinkError) -> String {
    match error {
        LinkError::Namespace(kind, error) => format!("no {kind} namespace: {error}"),
        other => other.to_string(),
    }
}
