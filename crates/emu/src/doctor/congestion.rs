//! Congestion controls that TCP on links can use.

use super::Check;
use crate::namespace;

/// Congestion controls that studies and tests of airpath use.
const USED: [&str; 2] = ["reno", "cubic"];

/// Available congestion controls, and those that a link may use: in a namespace the kernel accepts
/// only those that the host permits to all users, even from root.
pub fn controls() -> Check {
    let name = "congestion controls";
    let read = |key: &str| namespace::parameter(&format!("net.ipv4.tcp_{key}")).unwrap_or_default();
    let known = read("available_congestion_control");
    // New namespaces hide the permitted ones, so they are read on the host.
    let (allowed, default) = (read("allowed_congestion_control"), read("congestion_control"));
    let lacking = |of: &str| -> Vec<&str> {
        USED.into_iter().filter(|name| !of.split_whitespace().any(|each| each == *name)).collect()
    };
    let finding = format!("{default} by default; {allowed} can be set in links; the kernel has {known}");
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
