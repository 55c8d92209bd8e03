//! Other programs that examples use.

use std::env;
use std::path::Path;

use super::Check;

/// Each program with its use.
const PROGRAMS: [(&str, &str); 3] =
    [("sh", "--serve"), ("python3", "the server of `make demo`"), ("curl", "the client of `make demo`")];

/// Whether the programs that the demonstration and the examples use are installed.
pub fn found() -> Check {
    let name = "programs";
    let is_there = |program: &str| {
        env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| is_program(&folder.join(program))))
    };
    let (there, missing): (Vec<_>, Vec<_>) = PROGRAMS.into_iter().partition(|(program, _)| is_there(program));
    let list = |programs: &[(&str, &str)]| programs.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if missing.is_empty() {
        return Check::ok(name, list(&there), "the demonstration can be shown with real programs");
    }
    let uses = missing.iter().map(|(program, use_)| format!("{program} is {use_}")).collect::<Vec<_>>().join(", ");
    let step = format!("install them (as root: apt-get install {})", list(&missing).replace(',', ""));
    Check::limited(name, format!("not found: {}", list(&missing)), uses, step)
}

fn is_program(path: &Path) -> bool {
    use nix::unistd::{AccessFlags, access};
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}
