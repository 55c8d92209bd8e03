//! Which scripts can run.

use airpath_tcp::Profile;

use super::calls;
use crate::Finding;
use crate::script::{Action, Script};
use crate::settings::{changes, is_harmless};
use crate::values;

/// The first part of `script` that this end point does not have.
pub fn unsupported(script: &Script<'_>) -> Option<Finding> {
    script.events.iter().find_map(|event| {
        let reason = match &event.action {
            Action::Unsupported(reason) => Some(reason.clone()),
            Action::Arrival(_) | Action::Departure(_) => None,
            Action::Call(call) => calls::unsupported(call),
            Action::Command(command) => command
                .lines()
                .find(|line| !is_harmless(line) && !changes(line, &mut Profile::Linux6.config()))
                .map(|line| format!("the command `{}` within a script", line.trim())),
            Action::Code(code) => code.unsupported.clone().or_else(|| {
                let names = code.names();
                names.into_iter().find(|name| !values::is_known(name)).map(|name| format!("the field {name}"))
            }),
        };
        reason.map(|what| Finding::new(event.at.line, what))
    })
}
