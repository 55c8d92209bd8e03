//! What a live proxy needs on a router. Nothing is changed.

use std::fs;
use std::net::TcpListener;

use airpath_scenario::LiveConfig;
use nix::unistd::User;

use super::{Check, explicit, ports};
use crate::live::rules::RulePlan;
use crate::namespace::{self, capability};
use crate::nat::Forwarding;
use crate::netlink::Netlink;
use crate::sys;

/// Checks everything that `config` needs.
pub fn examine(config: &LiveConfig) -> Vec<Check> {
    let mut checks = vec![rights(), device(), forwarding(config), interfaces(config), rules(config), filter()];
    checks.extend(translation());
    checks.extend(config.metrics.map(|address| match TcpListener::bind(address) {
        Ok(_) => Check::ok("metrics", format!("{address} is free"), "metrics are served there"),
        Err(error) => {
            let step = "end the program that uses it, or change `metrics`";
            Check::missing("metrics", format!("{address}: {error}"), "the proxy does not start", step)
        }
    }));
    checks.extend(config.user.as_deref().map(user));
    checks.extend(config.proxy.http.iter().flat_map(explicit::examine));
    checks
}

fn rights() -> Check {
    let name = "capability CAP_NET_ADMIN";
    if namespace::has_capability(capability::NET_ADMIN) {
        return Check::ok(name, "this process has it", "the proxy can set up its interface and rules");
    }
    Check::missing(name, "this process does not have it", "the proxy does not start", "run it as root")
}

fn device() -> Check {
    let name = "TUN interfaces";
    if sys::has_tun() {
        return Check::ok(name, "/dev/net/tun can be opened", "packets come through one");
    }
    Check::missing(name, "/dev/net/tun cannot be opened", "the proxy does not start", ports::device_step())
}

fn forwarding(config: &LiveConfig) -> Check {
    let name = "forwarding";
    let Forwarding { v4, v6 } = Forwarding::of_host();
    let listed = |is_v4: bool| config.mobiles.iter().any(|prefix| prefix.address.is_ipv4() == is_v4);
    for (needed, on, version, key) in
        [(listed(true), v4, "IPv4", namespace::FORWARDING), (listed(false), v6, "IPv6", "net.ipv6.conf.all.forwarding")]
    {
        if needed && !on {
            let finding = format!("this host does not forward {version}");
            return Check::missing(name, finding, "the proxy does not start", format!("sysctl -w {key}=1"));
        }
    }
    Check::ok(name, "this host forwards the packets of the mobiles", "it is a router")
}

fn interfaces(config: &LiveConfig) -> Check {
    let name = "interfaces";
    let mut netlink = match Netlink::open() {
        Ok(netlink) => netlink,
        Err(error) => return Check::missing(name, error.to_string(), "the proxy does not start", "run it as root"),
    };
    if netlink.index_of(&config.device).is_ok() {
        let finding = format!("there is an interface `{}` already", config.device);
        let step = "end the other proxy, or change `device`";
        return Check::missing(name, finding, "the proxy does not start", step);
    }
    let missing = config.interfaces.iter().find(|interface| netlink.index_of(interface).is_err());
    match missing {
        Some(interface) => {
            let finding = format!("there is no interface `{interface}`");
            let meaning = "no packet from a mobile is led through the proxy until there is";
            Check::limited(name, finding, meaning, "correct `interfaces`, or create it")
        }
        None => Check::ok(name, format!("the name `{}` is free", config.device), "the TUN interface gets it"),
    }
}

fn rules(config: &LiveConfig) -> Check {
    let name = "routing rules";
    let conflicts = Netlink::open().and_then(|mut netlink| RulePlan::of(config).conflicts(&mut netlink));
    match conflicts.as_deref() {
        Ok([]) => {
            let finding = format!("priority {} and table {} are free", config.priority, config.table);
            Check::ok(name, finding, "the rules of the proxy get them")
        }
        Ok([conflict, ..]) => {
            let step = "change `priority` or `table`";
            Check::missing(name, conflict.clone(), "the proxy does not start", step)
        }
        Err(error) => Check::missing(name, error.to_string(), "the proxy does not start", "run it as root"),
    }
}

/// Source validation (RFC 3704): the interface of the proxy gets the loose form, which accepts the
/// packets of both directions.
fn filter() -> Check {
    let name = "source validation";
    let key = "net.ipv4.conf.all.rp_filter";
    let value = namespace::parameter(key).unwrap_or_default();
    Check::ok(name, format!("{key} is {value}"), "the interface of the proxy accepts both directions")
}

/// Connection tracking sees a connection twice, with other sequence numbers.
fn translation() -> Option<Check> {
    let name = "connection tracking";
    let tracked: u64 = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count").ok()?.trim().parse().ok()?;
    if tracked == 0 {
        return Some(Check::ok(name, "no connection is tracked", "it does not see the proxy's connections"));
    }
    let finding = format!("{tracked} connections are tracked");
    let meaning = "rules that drop invalid packets, and address translation, fail for the mobiles";
    let step = "exempt the mobiles (nft: notrack), and translate addresses on another router";
    Some(Check::limited(name, finding, meaning, step))
}

fn user(name: &str) -> Check {
    match User::from_name(name) {
        Ok(Some(user)) => Check::ok("user", format!("`{name}` has number {}", user.uid), "the proxy becomes this user"),
        _ => Check::missing("user", format!("there is no user `{name}`"), "the proxy does not start", "correct `user`"),
    }
}
