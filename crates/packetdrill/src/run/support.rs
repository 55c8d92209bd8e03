//! Which scripts can run.

use super::calls;
use crate::Finding;
use crate::script::{Action, Packet, Script, TcpOption};
use crate::settings::is_harmless;
use crate::values;

/// The first part of `script` that this end point does not have.
pub fn unsupported(script: &Script<'_>) -> Option<Finding> {
    script.events.iter().find_map(|event| {
        let reason = match &event.action {
            Action::Unsupported(reason) => Some(reason.clone()),
            // An option that arrives and that this end point does not have is skipped by it.
            Action::Arrival(_) => None,
            Action::Departure(packet) => of_packet(packet),
            Action::Call(call) => calls::unsupported(call),
            Action::Command(command) => command
                .lines()
                .find(|line| !is_harmless(line))
                .map(|line| format!("the command `{}` within a script", line.trim())),
            Action::Code(code) => code.unsupported.clone().or_else(|| {
                let names = code.names();
                names.into_iter().find(|name| !values::is_known(name)).map(|name| format!("the field {name}"))
            }),
        };
        reason.map(|what| Finding::new(event.at.line, what))
    })
}

fn of_packet(packet: &Packet) -> Option<String> {
    let options = packet.options.as_deref().unwrap_or_default();
    options.iter().find_map(|option| match option {
        TcpOption::Other(text) => Some(format!("the option {text}")),
        _ => None,
    })
}
