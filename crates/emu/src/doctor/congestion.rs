//! Congestion controls that the TCP of links can have.

use super::Check;
use crate::namespace;

/// Those that studies and tests of airpath set.
const USED: [&str; 2] = ["reno", "cubic"];

/// Which ones there are, and which may be set in a link: of those that the host does not allow to everybody a namespace
/// takes none, even from root.
pub fn controls() -> Check {
    let name = "congestion controls";
    let read = |key: &str| namespace::parameter(&format!("net.ipv4.tcp_{key}")).unwrap_or_default();
    let known = read("available_congestion_control");
    // New namespaces hide what is allowed, so the host is asked.
    let (allowed, default) = (read("allowed_congestion_control"), read("congestion_control"));
    let lacking = |of: &str| -> Vec<&str> {
        USED.into_iter().filter(|name| !of.split_whitespace().any(|each| each == *name)).collect()
    };
    let finding = format!("{default} unless told otherwise; {allowed} can be set in links; the kernel has {known}");
    if lacking(&allowed).is_empty() {
        let meaning = "--sysctl net.ipv4.tcp_congestion_control=… takes those that can be set";
        return Check::ok(name, finding, meaning);
    }
    let missing = lacking(&allowed).join(" and ");
    let load = lacking(&known).iter().map(|each| format!("modprobe tcp_{each}; ")).collect::<String>();
    Check::limited(
        name,
        finding,
        format!("--sysctl net.ipv4.tcp_congestion_control does not take {missing}"),
        format!(
            "as root: {load}sysctl -w net.ipv4.tcp_allowed_congestion_control='{}'",
            [allowed.as_str(), &lacking(&allowed).join(" ")].join(" ")
        ),
    )
}
