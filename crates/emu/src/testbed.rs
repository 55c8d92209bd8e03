//! The two ends of a link: two network namespaces, each with one interface, between which all
//! traffic crosses the link.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::namespace::{self, NetworkNamespace};
use crate::nat::{Forwarding, Masquerade};
use crate::netlink::Netlink;
use crate::port::Port;
use crate::second_interface::{self, SecondAddresses, SecondInterface};
use crate::{LinkError, supervisor, sys};

/// What lies at the server's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// A closed testbed: a namespace for a server.
    Server,
    /// The host's network, behind address translation.
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
    /// The better one of those that this host supports.
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

/// How to build a testbed.
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
    /// Kernel parameters for the new namespaces, by their names in sysctl(8).
    pub parameters: &'a [(String, String)],
    /// Further names of the server, each with an address of its own: at most 60,000, each once.
    pub hosts: &'a [String],
    /// Address of an explicit proxy on the link, to which the mobile needs a route.
    pub proxy: Option<IpAddr>,
    /// Whether the mobile has a second interface, on a link to a server.
    pub second: bool,
    /// Whether MPTCP uses it.
    pub mptcp: bool,
}

impl Plan<'_> {
    /// Whether the link carries IPv6, which needs an MTU of 1,280 bytes (RFC 8200 §5). The kernel
    /// removes IPv6 from an interface with less.
    pub const fn carries_ipv6(&self) -> bool {
        self.mtu >= 1_280
    }
}

/// The addresses of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Number of the link among those of this host.
    number: u8,
}

/// The two ends of a link.
#[derive(Debug)]
pub struct Testbed {
    /// Where the command runs.
    pub mobile: NetworkNamespace,
    /// Where the server runs; none on a link to the host's network.
    pub server: Option<NetworkNamespace>,
    /// The port at the mobile.
    pub mobile_port: Port,
    /// The port at the server.
    pub server_port: Port,
    /// The mobile's second interface, if it has one.
    pub second: Option<SecondInterface>,
    /// The addresses of both ends.
    pub addresses: Addresses,
    /// How packets are carried.
    pub device: Device,
    /// The default congestion control of TCP in the namespaces of the link; empty if unknown.
    pub congestion_control: String,
    /// The host's namespace, and the name of the server's interface in its own.
    home: NetworkNamespace,
    server_interface: String,
    /// Address translation, removed when this is dropped.
    _translation: Option<Masquerade>,
}

/// Name of the interface at either end, as programs see it.
const INTERFACE: &str = "air0";

/// Length in packets of the kernel queue from which this process reads. It absorbs scheduling
/// delays of the process and is not a queue of the link.
pub(crate) const QUEUE_LENGTH: u32 = 10_000;

impl Addresses {
    /// Length of the prefix that both ends share.
    const PREFIX_V4: u8 = 30;
    const PREFIX_V6: u8 = 64;
    /// That of a closed link whose server has further addresses.
    const PREFIX_OF_HOSTS: u8 = 16;

    /// Bearer addresses behind an operator's translation: from the block that is shared for that
    /// (RFC 6598).
    pub const fn server_v4(self) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.number, 1)
    }

    /// The mobile's.
    pub const fn mobile_v4(self) -> Ipv4Addr {
        Ipv4Addr::new(100, 64, self.number, 2)
    }

    /// The address of a further name of the server, by its number from 0.
    fn host_v4(self, number: usize) -> Ipv4Addr {
        let [high, low] = u16::try_from(number + 3).unwrap_or(u16::MAX - 1).to_be_bytes();
        Ipv4Addr::new(100, 64, high, low)
    }

    /// From a prefix for local use (RFC 4193).
    pub const fn server_v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd61, 0x6972, 0x7061, self.number as u16, 0, 0, 0, 1)
    }

    /// The mobile's.
    pub const fn mobile_v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd61, 0x6972, 0x7061, self.number as u16, 0, 0, 0, 2)
    }

    /// Those of the mobile's second interface: in another network of the same block.
    pub const fn second(self) -> SecondAddresses {
        SecondAddresses {
            v4: Ipv4Addr::new(100, 65, self.number, 2),
            v6: Ipv6Addr::new(0xfd61, 0x6972, 0x7061, 0x100 + self.number as u16, 0, 0, 0, 2),
        }
    }

    const fn prefix_v4(hosts: &[String]) -> u8 {
        if hosts.is_empty() { Self::PREFIX_V4 } else { Self::PREFIX_OF_HOSTS }
    }

    fn of_server(self, hosts: &[String]) -> Vec<(IpAddr, u8)> {
        let further = (0..hosts.len()).map(|number| (self.host_v4(number).into(), 32));
        let own = [(self.server_v4().into(), Self::prefix_v4(hosts)), (self.server_v6().into(), Self::PREFIX_V6)];
        own.into_iter().chain(further).collect()
    }

    fn of_mobile(self, hosts: &[String]) -> Vec<(IpAddr, u8)> {
        vec![(self.mobile_v4().into(), Self::prefix_v4(hosts)), (self.mobile_v6().into(), Self::PREFIX_V6)]
    }
}

impl Testbed {
    /// Builds both ends. Without the privileges for that, this process enters a user namespace of
    /// its own first. The calling thread must be the only one; a privileged one is back in its
    /// network namespace afterwards.
    ///
    /// # Errors
    /// If the host does not permit it. What was built until then disappears with this process at
    /// the latest.
    pub fn build(plan: &Plan<'_>) -> Result<Self, LinkError> {
        let privileged = namespace::is_privileged();
        if !privileged {
            if plan.far_end == FarEnd::Outside {
                return Err(LinkError::NoPrivilege);
            }
            namespace::enter_user_namespace()?;
        }
        let home = NetworkNamespace::current().map_err(LinkError::host("the network namespace cannot be opened"))?;
        let forwarding = match plan.far_end {
            FarEnd::Server => Forwarding { v4: true, v6: true },
            FarEnd::Outside => Forwarding::of_host(),
        };
        if !forwarding.v4 {
            return Err(LinkError::NoForwarding);
        }
        // The near ends of virtual Ethernet pairs are in a namespace of their own, hidden from
        // programs.
        let near_ends = match plan.device {
            Device::Tun => None,
            Device::Ethernet => Some(NetworkNamespace::create()?),
        };
        let builder = Builder { plan, near_ends: near_ends.as_ref(), forwarding };
        let (server, server_port, server_interface, addresses, translation) = match plan.far_end {
            FarEnd::Server => {
                let server = NetworkNamespace::create()?;
                let (port, _) = builder.end(&server, INTERFACE)?;
                let addresses = Addresses { number: 0 };
                builder.configure(INTERFACE, addresses.of_server(plan.hosts), Scope::Link)?;
                if plan.second {
                    builder.route_at_server(addresses.second())?;
                }
                (Some(server), port, INTERFACE.to_owned(), addresses, None)
            }
            FarEnd::Outside => {
                home.enter()?;
                let (port, name) = builder.end(&home, "air%d")?;
                let addresses = Addresses { number: number_of(&name)? };
                builder.configure(&name, addresses.of_server(plan.hosts), Scope::Host)?;
                let table = format!("airpath-{name}");
                let translation = Masquerade::install(&table, addresses.mobile_v4(), addresses.mobile_v6())?;
                (None, port, name, addresses, Some(translation))
            }
        };
        let mobile = NetworkNamespace::create()?;
        let (mobile_port, _) = builder.end(&mobile, INTERFACE)?;
        builder.configure(INTERFACE, addresses.of_mobile(plan.hosts), Scope::Link)?;
        if let Some(proxy) = plan.proxy {
            let routed = Netlink::open().and_then(|mut netlink| {
                let index = netlink.index_of(INTERFACE)?;
                netlink.add_host_route(index, proxy)
            });
            routed.map_err(LinkError::host("the mobile cannot have a route to the proxy's address"))?;
        }
        let second = plan.second.then(|| builder.second_interface(&mobile, addresses)).transpose()?;
        let congestion_control = namespace::parameter("net.ipv4.tcp_congestion_control").unwrap_or_default();
        if privileged {
            home.enter()?;
        }
        let device = plan.device;
        Ok(Self {
            mobile,
            server,
            congestion_control,
            mobile_port,
            server_port,
            second,
            addresses,
            device,
            home,
            server_interface,
            _translation: translation,
        })
    }

    /// Packets that the kernel dropped at either end because this process did not read them in
    /// time, or that it could not pass to this process.
    ///
    /// The calling thread is in another network namespace afterwards.
    pub fn overruns(&self) -> u64 {
        let server = self.server.as_ref().unwrap_or(&self.home);
        let ends = [(&self.mobile, INTERFACE), (server, self.server_interface.as_str())];
        let second = self.second.as_ref().map(|_| (&self.mobile, second_interface::NAME));
        let interfaces = ends.into_iter().chain(second);
        let at_interfaces: u64 = interfaces.filter_map(|(network, name)| network.dropped_before_sending(name)).sum();
        let ports = [&self.mobile_port, &self.server_port];
        let second = self.second.as_ref().map(|second| &second.port);
        let at_ports: u64 = ports.into_iter().chain(second).map(Port::lost).sum();
        at_interfaces + at_ports
    }
}

/// The owner of an interface's namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The link: the namespace was created for it.
    Link,
    /// The host: nothing but the interface itself may be changed.
    Host,
}

struct Builder<'a> {
    plan: &'a Plan<'a>,
    near_ends: Option<&'a NetworkNamespace>,
    /// What is forwarded at the far end. Without a route programs fail at once and try another
    /// address; if packets were dropped silently, they would wait.
    forwarding: Forwarding,
}

impl Builder<'_> {
    /// Creates an interface in `network`, where the calling thread is, and the port to it. A `%d`
    /// in the name becomes the first free number.
    fn end(&self, network: &NetworkNamespace, name: &str) -> Result<(Port, String), LinkError> {
        let Some(near_ends) = self.near_ends else {
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
        near_ends.enter()?;
        let mut netlink = Netlink::open().map_err(failed("the network cannot be configured"))?;
        let what = failed("no virtual Ethernet pair can be made");
        let pair = (|| {
            // The namespace may have a pair already.
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
        if !self.plan.offload {
            sys::disable_transmit_offload(&name)
                .map_err(failed("--no-offload: the offload of the virtual Ethernet pair cannot be disabled"))?;
        }
        Ok((port, name))
    }

    /// Gives the server, in whose namespace the calling thread is, routes to a second interface of
    /// the mobile.
    fn route_at_server(&self, second: SecondAddresses) -> Result<(), LinkError> {
        let routed = Netlink::open().and_then(|mut netlink| {
            let index = netlink.index_of(INTERFACE)?;
            let addresses = second.prefixes().into_iter().map(|(address, _)| address);
            addresses
                .filter(|address| self.has_version(*address))
                .try_for_each(|address| netlink.add_host_route(index, address))
        });
        routed.map_err(LinkError::host("the server cannot have a route to the second interface"))?;
        if self.plan.mptcp { second_interface::enable_mptcp(None) } else { Ok(()) }
    }

    /// Creates the second interface of the mobile, in whose namespace the calling thread is.
    fn second_interface(&self, mobile: &NetworkNamespace, addresses: Addresses) -> Result<SecondInterface, LinkError> {
        let second = addresses.second();
        let (port, _) = self.end(mobile, second_interface::NAME)?;
        self.configure(second_interface::NAME, second.prefixes(), Scope::Link)?;
        let own = addresses.of_server(self.plan.hosts).into_iter().take(2);
        own.filter(|(address, _)| self.has_version(*address))
            .try_for_each(|server| second_interface::route_at_mobile(second, server))
            .map_err(LinkError::host("the second interface cannot have routes"))?;
        if self.plan.mptcp {
            let has_v6 = self.has_version(second.v6.into());
            second_interface::enable_mptcp(Some((second, has_v6)))?;
        }
        Ok(SecondInterface { port, addresses: second })
    }

    /// Whether the interfaces of the calling thread's namespace have the IP version of `address`.
    fn has_version(&self, address: IpAddr) -> bool {
        address.is_ipv4() || (self.plan.carries_ipv6() && fs::exists("/proc/sys/net/ipv6/conf/all").unwrap_or(false))
    }

    /// Configures the addresses of the interface `name` in the namespace of the calling thread and
    /// sets it up.
    fn configure(&self, name: &str, addresses: Vec<(IpAddr, u8)>, scope: Scope) -> Result<(), LinkError> {
        let has_v6 = self.plan.carries_ipv6() && silence_ipv6(name);
        if scope == Scope::Link {
            for (key, value) in self.plan.parameters {
                namespace::set(key, value)?;
            }
        }
        let configured = (|| {
            let mut netlink = Netlink::open()?;
            if scope == Scope::Link {
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
                let has_route = if address.is_ipv4() { self.forwarding.v4 } else { self.forwarding.v6 };
                // On a closed link, packets to other addresses fail at once and do not enter it.
                if scope == Scope::Link && self.plan.far_end == FarEnd::Outside && has_route {
                    netlink.add_default_route(index, address)?;
                }
            }
            Ok(())
        })();
        configured.map_err(LinkError::host("an interface cannot be configured"))
    }
}

/// Keeps the kernel from sending IPv6 packets of its own through an interface: no link-local
/// address, no router solicitations. Returns whether the interface has IPv6.
pub(crate) fn silence_ipv6(name: &str) -> bool {
    let quiet = [("addr_gen_mode", "1"), ("accept_ra", "0"), ("router_solicitations", "0"), ("accept_dad", "0")];
    quiet.iter().all(|(key, value)| namespace::set(&format!("net.ipv6.conf.{name}.{key}"), value).is_ok())
}

/// The number at the end of an interface's name.
fn number_of(name: &str) -> Result<u8, LinkError> {
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().map_err(|_| {
        LinkError::Host("too many links to the outside run on this host", std::io::ErrorKind::AddrInUse.into())
    })
}

/// The environment of the programs of a link with these addresses.
pub fn environment(addresses: Addresses, plan: &Plan<'_>) -> supervisor::Environment {
    let mut hosts: Vec<(IpAddr, String)> = Vec::new();
    let mut variables = Vec::new();
    let mut name = |address: IpAddr, name: &str| {
        hosts.push((address, name.to_owned()));
        variables.push((format!("AIRPATH_{}", name.to_uppercase()), address.to_string()));
    };
    // Each name has one address, so that clients do not try two in turn, which costs round trips.
    name(addresses.mobile_v4().into(), "mobile");
    name(addresses.server_v4().into(), "server");
    if plan.carries_ipv6() {
        name(addresses.mobile_v6().into(), "mobile6");
        name(addresses.server_v6().into(), "server6");
    }
    if plan.second {
        let second = addresses.second();
        name(second.v4.into(), "second");
        if plan.carries_ipv6() {
            name(second.v6.into(), "second6");
        }
    }
    let further = plan.hosts.iter().enumerate().map(|(number, host)| (addresses.host_v4(number), host));
    let further: Vec<(Ipv4Addr, &String)> = further.collect();
    let pairs: Vec<String> = further.iter().map(|(address, host)| format!("{host}={address}")).collect();
    hosts.extend(further.into_iter().map(|(address, host)| (address.into(), host.clone())));
    if !pairs.is_empty() {
        variables.push(("AIRPATH_HOSTS".to_owned(), pairs.join(" ")));
    }
    let resolver = match plan.far_end {
        FarEnd::Server => Some(NO_RESOLVER.to_owned()),
        FarEnd::Outside => reachable_resolver(),
    };
    supervisor::Environment { hosts, resolver, variables }
}

/// Configuration of the resolver on a closed link. Queries fail at once, unless the command runs a
/// name server of its own.
const NO_RESOLVER: &str = "# This link leads to one server only; its names are in /etc/hosts.\nnameserver 127.0.0.1\n";

/// Configuration of the upstream resolver, if the host's resolver listens on loopback, which the
/// mobile cannot reach.
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
    fs::read_to_string("/run/systemd/resolve/resolv.conf").ok().filter(|upstream| !local(upstream))
}
