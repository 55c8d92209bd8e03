//! Namespaces that this process may create.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use super::Check;
use super::attempt::{Place, in_child, in_network, with_privileges, words};
use crate::namespace;
use crate::supervisor::Environment;

/// Whether this process may administer the network.
pub fn privileges(privileged: bool) -> Check {
    if privileged {
        return Check::ok("privileges", "may administer the network", "links to the outside are not refused");
    }
    Check::limited(
        "privileges",
        "may not administer the network",
        "links with --serve are made in a user namespace; links to the outside are refused",
        "for links to the outside, run airpath as root",
    )
}

/// User namespaces, in which ordinary users may create the other ones.
pub fn user(privileged: bool) -> Check {
    let name = "user namespaces";
    match in_child(Place::Here, || namespace::enter_user_namespace().map(|()| String::new()).map_err(words)) {
        Ok(_) => Check::ok(name, "can be created", "links with --serve need no privilege"),
        Err(error) if privileged => {
            Check::limited(name, error, "only root can create links, as now", obstacle().unwrap_or(USE_PRIVILEGES))
        }
        Err(error) => Check::missing(name, error, "an ordinary user cannot create links", next_step()),
    }
}

/// Network namespaces: the ends of links.
pub fn network() -> Check {
    let name = "network namespaces";
    match in_network(|| Ok(())) {
        Ok(_) => Check::ok(name, "can be created", "each end of a link has a network of its own"),
        Err(error) => Check::missing(name, error, "no link can be made", next_step()),
    }
}

/// Kernel parameters that can be set in network namespaces.
pub fn parameters(has_networks: bool) -> Check {
    let name = "kernel parameters";
    match in_network(|| namespace::set(namespace::FORWARDING, "1")) {
        Ok(_) => Check::ok(name, "can be set in namespaces", "links carry IPv6, and --sysctl sets more of them"),
        Err(_) if !has_networks => Check::limited(name, NO_NETWORK, "nothing by itself", NO_NETWORK_STEP),
        Err(error) => Check::limited(
            name,
            error,
            "links carry IPv4 only, --sysctl fails, and a link to the outside cannot be put into another link",
            "make /proc/sys writable; in a container, start that with --privileged",
        ),
    }
}

/// PID namespaces, which end all programs of a link with it.
pub fn processes() -> Check {
    let name = "PID namespaces";
    match with_privileges(|| in_child(Place::First, || Ok(String::new()))) {
        Ok(_) => Check::ok(name, "can be created", "whatever a command starts ends with its link"),
        Err(error) => Check::missing(name, error, "no command can be started on a link", next_step()),
    }
}

/// Mount namespaces, which provide the host names of the ends of a link.
pub fn names() -> Check {
    let name = "mount namespaces";
    let seen = with_privileges(|| {
        in_child(Place::First, || {
            let hosts = vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), "airpath-doctor".to_owned())];
            Environment { hosts, ..Environment::default() }.enter()?;
            let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
            let seen = hosts.lines().any(|line| line.ends_with("\tairpath-doctor"));
            if seen { Ok(String::new()) } else { Err("the file of hosts cannot be replaced".to_owned()) }
        })
    });
    match seen {
        Ok(_) => Check::ok(name, "can be created", "programs on a link can use the host names `server` and `mobile`"),
        Err(error) => Check::limited(
            name,
            error,
            "programs on a link cannot use the host names `server` and `mobile`; AIRPATH_SERVER and AIRPATH_MOBILE have the addresses",
            next_step(),
        ),
    }
}

/// The finding of checks that need a network namespace, where there is none.
pub const NO_NETWORK: &str = "cannot be tried without network namespaces";
/// The next step for that.
pub const NO_NETWORK_STEP: &str = "see network namespaces";

const USE_PRIVILEGES: &str =
    "run airpath as root; in a container, start the container with --privileged, or run airpath outside of it";

fn next_step() -> String {
    match obstacle() {
        Some(obstacle) => format!("{obstacle}; or {USE_PRIVILEGES}"),
        None => USE_PRIVILEGES.to_owned(),
    }
}

/// The setting of the host that denies user namespaces to ordinary users, and how to change it.
fn obstacle() -> Option<&'static str> {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    [
        // Debian and its derivatives.
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
        // Ubuntu since 23.10: namespaces can be created, but have no capabilities.
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ]
    .into_iter()
    .find_map(|(path, value, step)| is(path, value).then_some(step))
}
