//! The two ends of a link: network namespaces with an interface each, which know each other's address and send everything
//! over the link.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::namespace::{self, NetworkNamespace};
use crate::nat::{Forwarding, Masquerade};
use crate::netlink::Netlink;
use crate::port::Port;
use crate::{LinkError, household, sys};

/// What lies at the server's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// A closed laboratory: a namespace for a server.
    Server,
    /// What the host reaches, behind address translation.
    Outside,
}

/// How packets get from the kernel into this process and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// TUN interfaces.
    Tun,
    /// Packet sockets on virtual Ethernet pairs, where there is no `/dev/net/tun`.
    Ethernet,
}

impl Device {
    /// The better one of those that this host has.
    pub fn of_host() -> Self {
        if sys::has_tun() { Self::Tun } else { Self::Ethernet }
    }

    /// Its name in messages and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tun => "tun",
            Self::Ethernet => "veth",
        }
    }
}

/// What to make.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What lies at the server's end.
    pub far_end: FarEnd,
    /// How packets are carried.
    pub device: Device,
    /// Whether the kernel may hand over TCP in segments larger than the link's packets.
    pub offload: bool,
    /// The largest IP packet on the link, in bytes.
    pub mtu: u32,
    /// Kernel parameters for the namespaces that are made, by their names in sysctl(8).
    pub parameters: &'a [(String, String)],
}

/// The addresses of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Which of the links of this host it is.
    number: u8,
}

/// The two ends of a link.
#[derive(Debug)]
pub struct Laboratory {
    /// Where the command runs.
    pub mobile: NetworkNamespace,
    /// Where the server runs, if the outside does not lie there.
    pub server: Option<NetworkNamespace>,
    /// The end at the mobile.
    pub mobile_port: Port,
    /// The end at the server.
    pub server_port: Port,
    /// Who has which address.
    pub addresses: Addresses,
    /// How packets are carried.
    pub device: Device,
    /// The host's namespace, and the name of the server's interface in its own.
    home: NetworkNamespace,
    server_interface: String,
    /// Kept: the translation lasts as long as it.
    _translation: Option<Masquerade>,
}

/// The interface at either end, as programs see it.
const INTERFACE: &str = "air0";

/// Packets that wait for this process at either end, should it be kept from taking them in for a moment. No queue of the
/// link: in time it is empty.
const QUEUE_LENGTH: u32 = 10_000;

impl Addresses {
    /// Length of the prefix that both ends share.
    const PREFIX_V4: u8 = 30;
    const PREFIX_V6: u8 = 64;

    /// Bearer addresses behind an operator's translation: from the block that is shared for that (RFC 6598).
    pub const fn server_v4(self) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.number, 1)
    }

    /// The mobile's.
    pub const fn mobile_v4(self) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.number, 2)
    }

    /// From a prefix for local use (RFC 4193).
    pub const fn server_v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd61, 0x6972, 0x7061, self.number as u16, 0, 0, 0, 1)
    }

    /// The mobile's.
    pub const fn mobile_v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd61, 0x6972, 0x7061, self.number as u16, 0, 0, 0, 2)
    }

    fn of_server(self) -> [(IpAddr, u8); 2] {
        [(self.server_v4().into(), Self::PREFIX_V4), (self.server_v6().into(), Self::PREFIX_V6)]
    }

    fn of_mobile(self) -> [(IpAddr, u8); 2] {
        [(self.mobile_v4().into(), Self::PREFIX_V4), (self.mobile_v6().into(), Self::PREFIX_V6)]
    }
}

impl Laboratory {
    /// Makes both ends. Where this process lacks the privileges for that, it moves into a user namespace of its own first.
    /// The calling thread must be the only one; if it was privileged it is back in its network namespace in the end.
    ///
    /// # Errors
    /// Where the host does not allow it. What was made until then goes away with this process at the latest.
    pub fn make(plan: &Plan<'_>) -> Result<Self, LinkError> {
        let privileged = namespace::is_privileged();
        if !privileged {
            if plan.far_end == FarEnd::Outside {
                return Err(LinkError::NoPrivilege);
            }
            namespace::enter_user_namespace()?;
        }
        let home = NetworkNamespace::current().map_err(LinkError::host("the network namespace cannot be told"))?;
        let beyond = match plan.far_end {
            FarEnd::Server => Forwarding { v4: true, v6: true },
            FarEnd::Outside => Forwarding::of_host(),
        };
        if !beyond.v4 {
            return Err(LinkError::NoForwarding);
        }
        // Virtual Ethernet pairs have their near ends here, out of everybody's sight.
        let bench = match plan.device {
            Device::Tun => None,
            Device::Ethernet => Some(NetworkNamespace::create()?),
        };
        let maker = Maker { plan, bench: bench.as_ref(), beyond };
        let (server, server_port, server_interface, addresses, translation) = match plan.far_end {
            FarEnd::Server => {
                let server = NetworkNamespace::create()?;
                let (port, _) = maker.end(&server, INTERFACE)?;
                let addresses = Addresses { number: 0 };
                maker.configure(INTERFACE, addresses.of_server(), Scope::Made)?;
                (Some(server), port, INTERFACE.to_owned(), addresses, None)
            }
            FarEnd::Outside => {
                home.enter()?;
                let (port, name) = maker.end(&home, "air%d")?;
                let addresses = Addresses { number: number_of(&name)? };
                maker.configure(&name, addresses.of_server(), Scope::Host)?;
                let table = format!("airpath-{name}");
                let translation = Masquerade::install(&table, addresses.mobile_v4(), addresses.mobile_v6())?;
                (None, port, name, addresses, Some(translation))
            }
        };
        let mobile = NetworkNamespace::create()?;
        let (mobile_port, _) = maker.end(&mobile, INTERFACE)?;
        maker.configure(INTERFACE, addresses.of_mobile(), Scope::Made)?;
        if privileged {
            home.enter()?;
        }
        let device = plan.device;
        Ok(Self {
            mobile,
            server,
            mobile_port,
            server_port,
            addresses,
            device,
            home,
            server_interface,
            _translation: translation,
        })
    }

    /// Packets that the kernel dropped at either end because they were not taken in: the link never saw them.
    ///
    /// The calling thread is in another network namespace afterwards.
    pub fn overruns(&self) -> u64 {
        let server = self.server.as_ref().unwrap_or(&self.home);
        let ends = [(&self.mobile, INTERFACE), (server, self.server_interface.as_str())];
        ends.into_iter().filter_map(|(network, name)| network.dropped_before_sending(name)).sum()
    }
}

/// Whose namespace an interface is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// One that was made for the link.
    Made,
    /// The host's: nothing but the interface itself may be touched.
    Host,
}

struct Maker<'a> {
    plan: &'a Plan<'a>,
    bench: Option<&'a NetworkNamespace>,
    /// What is forwarded at the far end. Programs give up at once where there is no route, and try another address; where
    /// packets vanish they would wait.
    beyond: Forwarding,
}

impl Maker<'_> {
    /// Makes an interface in `network`, where the calling thread is, and the port to it. A `%d` in the name becomes the
    /// first free number.
    fn end(&self, network: &NetworkNamespace, name: &str) -> Result<(Port, String), LinkError> {
        let Some(bench) = self.bench else {
            return Port::tun(name, self.plan.offload).map_err(LinkError::host("no TUN interface can be made"));
        };
        let failed = LinkError::host;
        let names = (0..=u8::MAX).map(|number| name.replace("%d", &number.to_string()));
        let mut taken = Netlink::open().map_err(failed("the network cannot be configured"))?;
        let name = names
            .take(if name.contains("%d") { 256 } else { 1 })
            .find(|name| taken.index_of(name).is_err())
            .ok_or_else(|| {
                LinkError::Host("no name for an interface is free", std::io::ErrorKind::AlreadyExists.into())
            })?;
        bench.enter()?;
        let mut netlink = Netlink::open().map_err(failed("the network cannot be configured"))?;
        let what = failed("no virtual Ethernet pair can be made");
        let pair = (|| {
            // The bench may hold a pair already.
            let near = (0..).map(|number| format!("near{number}")).find(|near| netlink.index_of(near).is_err());
            let near = near.expect("there are more numbers than interfaces");
            netlink.add_veth(&near, &name)?;
            let (near, far) = (netlink.index_of(&near)?, netlink.index_of(&name)?);
            let addresses = (netlink.hardware_address(near)?, netlink.hardware_address(far)?);
            netlink.set_mtu(near, self.plan.mtu)?;
            netlink.set_no_arp(near)?;
            netlink.move_to(far, std::os::fd::AsFd::as_fd(network))?;
            netlink.set_up(near)?;
            Port::ethernet(near, addresses.0, addresses.1)
        })();
        let port = pair.map_err(what)?;
        network.enter()?;
        Ok((port, name))
    }

    /// Gives the interface `name` in the namespace of the calling thread its addresses and takes it up.
    fn configure(&self, name: &str, addresses: [(IpAddr, u8); 2], scope: Scope) -> Result<(), LinkError> {
        // The kernel must not talk over the link by itself: no link-local address, no solicitation of routers.
        let quiet = [("addr_gen_mode", "1"), ("accept_ra", "0"), ("router_solicitations", "0"), ("accept_dad", "0")];
        let has_v6 =
            quiet.iter().all(|(key, value)| namespace::set(&format!("net.ipv6.conf.{name}.{key}"), value).is_ok());
        if scope == Scope::Made {
            for (key, value) in self.plan.parameters {
                namespace::set(key, value)?;
            }
        }
        let configured = (|| {
            let mut netlink = Netlink::open()?;
            if scope == Scope::Made {
                let loopback = netlink.index_of("lo")?;
                netlink.set_up(loopback)?;
            }
            let index = netlink.index_of(name)?;
            netlink.set_mtu(index, self.plan.mtu)?;
            match self.plan.device {
                Device::Tun => netlink.set_queue_length(index, QUEUE_LENGTH)?,
                Device::Ethernet => netlink.set_no_arp(index)?,
            }
            netlink.set_up(index)?;
            for (address, prefix) in addresses.into_iter().filter(|(address, _)| has_v6 || address.is_ipv4()) {
                netlink.add_address(index, address, prefix)?;
                let leads_on = if address.is_ipv4() { self.beyond.v4 } else { self.beyond.v6 };
                if scope == Scope::Made && leads_on {
                    netlink.add_default_route(index, address)?;
                }
            }
            Ok(())
        })();
        configured.map_err(LinkError::host("an interface cannot be configured"))
    }
}

/// The number at the end of an interface's name.
fn number_of(name: &str) -> Result<u8, LinkError> {
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().map_err(|_| {
        LinkError::Host("too many links to the outside run on this host", std::io::ErrorKind::AddrInUse.into())
    })
}

/// What the programs of a link find around them.
pub fn surroundings(addresses: Addresses, far_end: FarEnd) -> household::Surroundings {
    let mut hosts: Vec<(IpAddr, String)> = Vec::new();
    let mut variables = Vec::new();
    let mut name = |address: IpAddr, name: &str| {
        hosts.push((address, name.to_owned()));
        variables.push((format!("AIRPATH_{}", name.to_uppercase()), address.to_string()));
    };
    // A name stands for one address, so that clients do not try two in turn, at the cost of round trips.
    name(addresses.mobile_v4().into(), "mobile");
    name(addresses.mobile_v6().into(), "mobile6");
    name(addresses.server_v4().into(), "server");
    name(addresses.server_v6().into(), "server6");
    let resolver = match far_end {
        FarEnd::Server => None,
        FarEnd::Outside => reachable_resolver(),
    };
    household::Surroundings { hosts, resolver, variables }
}

/// Where the host's resolver listens at its loopback interface, the one that stands behind it: from the mobile, the
/// host's loopback cannot be reached.
fn reachable_resolver() -> Option<String> {
    let local = |text: &str| {
        let servers = text.lines().filter_map(|line| line.strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok());
        let servers: Vec<IpAddr> = servers.collect();
        servers.is_empty() || servers.iter().any(IpAddr::is_loopback)
    };
    let configured = fs::read_to_string("/etc/resolv.conf").ok()?;
    if !local(&configured) {
        return None;
    }
    fs::read_to_string("/run/systemd/resolve/resolv.conf").ok().filter(|behind| !local(behind))
}
