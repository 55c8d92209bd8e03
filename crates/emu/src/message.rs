//! Messages on standard error.

use std::io::Write;

/// Writes a line to standard error. A link or a proxy continues if its reader has ended, or its
/// file is on a full disk: `eprintln!` would end it then.
pub fn message(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
