//! Runs scripts of the packetdrill language against the TCP of airpath, in virtual time.
//!
//! The language is that of google/packetdrill (Cardwell et al., USENIX ATC 2013), read by a parser
//! of this crate. Scripts are files of the user, such as those of the Linux kernel in
//! `tools/testing/selftests/net/packetdrill`; none is part of airpath, because they have another
//! licence. `docs/packetdrill.md` has the parts of the language and the differences to a kernel.
//!
//! ```
//! use airpath_packetdrill::{Outcome, run_text};
//!
//! let script = "
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!    +0 bind(3, ..., ...) = 0
//!    +0 listen(3, 1) = 0
//!    +0 < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
//!    +0 > S. 0:0(0) ack 1 <...>
//!   +.1 < . 1:1(0) ack 1 win 257
//!    +0 accept(3, ..., ...) = 4
//!    +0 write(4, ..., 12000) = 12000
//!    +0 > . 1:10001(10000) ack 1
//!    +0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%
//! ";
//! assert!(matches!(run_text(script, None), Outcome::Passed));
//! ```

mod code;
mod lexer;
mod parser;
mod position;
mod run;
mod script;
mod settings;
mod values;

use std::fmt;
use std::path::Path;

pub use position::{Position, SyntaxError};

/// Result of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The end point did what the script expects.
    Passed,
    /// It did something else.
    Failed(Finding),
    /// The script uses what this end point or this reader does not have.
    NotApplicable(Finding),
    /// The script, or a file that it names, cannot be read.
    Invalid(SyntaxError),
}

/// What was found, and at which line of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: u32,
    /// The description.
    pub what: String,
}

impl Finding {
    pub(crate) fn new(line: u32, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl Outcome {
    /// Word of the outcome in lists.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed(_) => "fail",
            Self::NotApplicable(_) => "not applicable",
            Self::Invalid(_) => "invalid",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Runs the script in the file `path`. Files that it names in its first command, such as
/// `defaults.sh`, are read for their `sysctl` commands; nothing is executed.
///
/// # Errors
/// If the file cannot be read.
pub fn run_file(path: &Path) -> std::io::Result<Outcome> {
    let bytes = std::fs::read(path)?;
    Ok(match std::str::from_utf8(&bytes) {
        Ok(text) => run_text(text, path.parent()),
        Err(error) => {
            let valid = str::from_utf8(&bytes[..error.valid_up_to()]).expect("it was found to be valid");
            let at = Position { line: 1, column: 1 }.after(valid);
            Outcome::Invalid(SyntaxError { at, problem: "this is not UTF-8".to_owned() })
        }
    })
}

/// Runs a script. The files that it names are relative to `folder`; without one they are skipped.
pub fn run_text(text: &str, folder: Option<&Path>) -> Outcome {
    let script = match parser::parse(text) {
        Ok(script) => script,
        Err(error) => return Outcome::Invalid(error),
    };
    let settings = match settings::read(&script, folder) {
        Ok(settings) => settings,
        Err(outcome) => return outcome,
    };
    if let Some(finding) = run::unsupported(&script) {
        return Outcome::NotApplicable(finding);
    }
    match run::Runner::new(&script, settings).run() {
        Ok(()) => Outcome::Passed,
        Err(run::Stop::Failed(finding)) => Outcome::Failed(finding),
        Err(run::Stop::NotApplicable(finding)) => Outcome::NotApplicable(finding),
    }
}
