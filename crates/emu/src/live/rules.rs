//! The routing rules that lead packets of the mobiles through the TUN interface.
//!
//! | priority | rule | reason |
//! | --- | --- | --- |
//! | first | packets from the TUN interface, and of the router itself: go to the last one | the kernel routes them as without a proxy |
//! | + 1 | from a mobile: look up the table of the proxy | uplink |
//! | + 2 | to a mobile: look up the table of the proxy | downlink |
//! | + 3 | nothing | the target of the first ones |
//!
//! The table has default routes through the TUN interface. When the process ends, the kernel
//! removes the interface and with it the routes. The table is then empty, the lookup finds nothing,
//! and the rules after these apply: the router forwards the packets past the proxy. It does the
//! same while the interface is down.
//!
//! The rules have a protocol number of their own, by which they are found and removed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_scenario::{LiveConfig, Prefix, live};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use serde::{Deserialize, Serialize};

use crate::netlink::Netlink;

/// The protocol number of the rules (`FRA_PROTOCOL`). Iproute2's rt_protos assigns none from 100 to
/// 185.
pub const PROTOCOL: u8 = 165;

/// The interface of packets that the router itself sends (ip-rule(8)).
const LOOPBACK: &str = "lo";

const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

/// What determines the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulePlan {
    mobiles: Vec<Prefix>,
    interfaces: Vec<String>,
    device: String,
    table: u32,
    priority: u32,
}

impl RulePlan {
    /// The rules of a configuration.
    pub fn of(config: &LiveConfig) -> Self {
        let LiveConfig { mobiles, interfaces, device, table, priority, .. } = config.clone();
        Self { mobiles, interfaces, device, table, priority }
    }

    /// Installs the rules, and removes those of an earlier plan.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn install(&self, netlink: &mut Netlink) -> io::Result<()> {
        let old = self.installed(netlink)?;
        let new = self.rules();
        for rule in new.iter().filter(|rule| !old.iter().any(|old| is_same(old, rule))) {
            netlink.add_rule(rule.clone())?;
        }
        for rule in old.into_iter().filter(|old| !new.iter().any(|rule| is_same(old, rule))) {
            netlink.remove_rule(rule)?;
        }
        Ok(())
    }

    /// Installs rules and routes again that other programs have removed. Returns whether any were.
    ///
    /// # Errors
    /// Those of the kernel: `NetworkDown` while the interface is down, `NotFound` after its end.
    pub fn restore(&self, netlink: &mut Netlink) -> io::Result<bool> {
        let installed = self.installed(netlink)?;
        let has_rules = self.rules().iter().all(|rule| installed.iter().any(|old| is_same(old, rule)));
        if !has_rules {
            self.install(netlink)?;
        }
        let index = netlink.index_of(&self.device)?;
        let mut has_routes = true;
        for family in FAMILIES.into_iter().filter(|family| self.has_mobiles(*family)) {
            match netlink.add_default_route_to(self.table, index, any_address(family)) {
                Ok(()) => has_routes = false,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(!has_rules || !has_routes)
    }

    /// Removes all rules of this plan and of earlier ones with its priority.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn remove(&self, netlink: &mut Netlink) -> io::Result<()> {
        let mut rules = self.installed(netlink)?;
        // The last first: packets never skip to a rule that is gone.
        rules.sort_by_key(|rule| std::cmp::Reverse(action_order(rule)));
        rules.into_iter().try_for_each(|rule| netlink.remove_rule(rule))
    }

    /// Rules of others that use these priorities, or look up this table.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn conflicts(&self, netlink: &mut Netlink) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for family in FAMILIES {
            for rule in netlink.rules(family)?.iter().filter(|rule| !is_ours(rule)) {
                let priority = priority(rule);
                if self.priorities().contains(&priority) {
                    found.push(format!("another rule has priority {priority}"));
                } else if rule.attributes.contains(&RuleAttribute::Table(self.table)) {
                    found.push(format!("the rule with priority {priority} looks up table {}", self.table));
                }
            }
        }
        found.dedup();
        Ok(found)
    }

    fn priorities(&self) -> std::ops::Range<u32> {
        self.priority..self.priority + live::RULES
    }

    /// The rules of airpath with these priorities.
    fn installed(&self, netlink: &mut Netlink) -> io::Result<Vec<RuleMessage>> {
        let mut installed = Vec::new();
        for family in FAMILIES {
            let rules = netlink.rules(family)?.into_iter();
            installed.extend(rules.filter(|rule| is_ours(rule) && self.priorities().contains(&priority(rule))));
        }
        Ok(installed)
    }

    fn has_mobiles(&self, family: AddressFamily) -> bool {
        self.mobiles.iter().any(|prefix| family_of(prefix) == family)
    }

    /// The rules, in the order in which they are added: the lookups last.
    fn rules(&self) -> Vec<RuleMessage> {
        let last = self.priority + live::RULES - 1;
        let mut rules = Vec::new();
        for family in FAMILIES {
            if !self.has_mobiles(family) {
                continue;
            }
            let rule = |priority, action, attributes: &[RuleAttribute]| {
                let mut rule = RuleMessage::default();
                rule.header.family = family;
                rule.header.action = action;
                rule.attributes =
                    vec![RuleAttribute::Priority(priority), RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL))];
                rule.attributes.extend_from_slice(attributes);
                rule
            };
            rules.push(rule(last, RuleAction::Nop, &[]));
            for interface in [&self.device, LOOPBACK] {
                let attributes = [RuleAttribute::Iifname(interface.to_owned()), RuleAttribute::Goto(last)];
                rules.push(rule(self.priority, RuleAction::Goto, &attributes));
            }
            let table = RuleAttribute::Table(self.table);
            for prefix in self.mobiles.iter().filter(|prefix| family_of(prefix) == family) {
                let mut to = rule(
                    self.priority + 2,
                    RuleAction::ToTable,
                    &[table.clone(), RuleAttribute::Destination(prefix.address)],
                );
                to.header.dst_len = prefix.length;
                rules.push(to);
                let mut from = rule(
                    self.priority + 1,
                    RuleAction::ToTable,
                    &[table.clone(), RuleAttribute::Source(prefix.address)],
                );
                from.header.src_len = prefix.length;
                if self.interfaces.is_empty() {
                    rules.push(from);
                    continue;
                }
                for interface in &self.interfaces {
                    let mut from = from.clone();
                    from.attributes.push(RuleAttribute::Iifname(interface.clone()));
                    rules.push(from);
                }
            }
        }
        rules
    }
}

/// The address that stands for all of a family.
const fn any_address(family: AddressFamily) -> IpAddr {
    match family {
        AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

fn family_of(prefix: &Prefix) -> AddressFamily {
    match prefix.address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn is_ours(rule: &RuleMessage) -> bool {
    rule.attributes.contains(&RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)))
}

fn priority(rule: &RuleMessage) -> u32 {
    let found = rule.attributes.iter().find_map(|attribute| match attribute {
        RuleAttribute::Priority(priority) => Some(*priority),
        _ => None,
    });
    found.unwrap_or(0)
}

/// Lookups last.
const fn action_order(rule: &RuleMessage) -> u8 {
    match rule.header.action {
        RuleAction::Nop => 0,
        RuleAction::Goto => 1,
        _ => 2,
    }
}

/// Whether `installed` is the rule that `wanted` installs. The kernel adds attributes.
fn is_same(installed: &RuleMessage, wanted: &RuleMessage) -> bool {
    let selectors = |rule: &RuleMessage| {
        let is_selector = |attribute: &&RuleAttribute| {
            matches!(attribute, RuleAttribute::Source(_) | RuleAttribute::Destination(_) | RuleAttribute::Iifname(_))
        };
        rule.attributes.iter().filter(is_selector).count()
    };
    let header =
        |rule: &RuleMessage| (rule.header.family, rule.header.action, rule.header.src_len, rule.header.dst_len);
    header(installed) == header(wanted)
        && selectors(installed) == selectors(wanted)
        && wanted.attributes.iter().all(|attribute| installed.attributes.contains(attribute))
}
