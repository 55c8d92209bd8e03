//! Interfaces and address translation of the kernel, in namespaces of the test.
//!
//! Without the test harness: a user namespace is entered by processes with one thread only.

#![expect(clippy::unwrap_used, reason = "a test without a harness, which clippy does not recognise")]

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use airpath_emu::LinkError;
use airpath_emu::namespace::{self, NetworkNamespace};
use airpath_emu::nat::{Forwarding, Masquerade, closed_chains};
use airpath_emu::netlink::Netlink;

const MOBILE: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
const ROUTER_INSIDE: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
const ROUTER_OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 80);
const MOBILE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// Set for the process that owns a table: the table's name.
const OWNS: &str = "AIRPATH_TEST_OWNS";
const TABLE: &str = "airpath-test";

fn main() {
    if let Ok(table) = env::var(OWNS) {
        return own(&table);
    }
    let network = match Networks::make() {
        Ok(network) => network,
        Err(error) => return airpath_testing::skip("network-namespace", &error.to_string()),
    };
    interfaces_carry_packets_as_soon_as_they_have_addresses(&network);
    errors_name_the_operation();
    if let Err(error) = masquerade() {
        return airpath_testing::skip("address-translation", &error.to_string());
    }
    sources_are_translated_while_the_translation_lives(&network);
    a_table_ends_with_its_owner();
    assert_eq!(Forwarding::of_host(), Forwarding { v4: true, v6: true });
    assert_eq!(closed_chains().unwrap(), [""; 0]);
}

/// Three networks in a row, as a mobile, a router and the outside. The thread is in the router's.
struct Networks {
    mobile: NetworkNamespace,
    router: NetworkNamespace,
    outside: NetworkNamespace,
}

impl Networks {
    fn make() -> Result<Self, LinkError> {
        if !namespace::is_privileged() {
            become_root().map_err(LinkError::host("no user namespace can be made"))?;
        }
        let [mobile, outside] = [NetworkNamespace::create()?, NetworkNamespace::create()?];
        let network = Self { mobile, outside, router: NetworkNamespace::create()? };
        let cabled = LinkError::host("the networks cannot be connected");
        network.cable().map_err(cabled)?;
        // The mobile treats all addresses as local; the router answers ARP for those beyond it.
        namespace::set("net.ipv4.conf.inside.proxy_arp", "1")?;
        Ok(network)
    }

    fn cable(&self) -> io::Result<()> {
        let mut router = Netlink::open()?;
        for (network, near, far) in [(&self.mobile, "inside", "air"), (&self.outside, "uplink", "cable")] {
            router.add_veth(near, far)?;
            let far = router.index_of(far)?;
            router.move_to(far, network.as_fd())?;
        }
        give(&mut router, "inside", &[(ROUTER_INSIDE.into(), 30), (ROUTER_V6.into(), 64)])?;
        give(&mut router, "uplink", &[(ROUTER_OUTSIDE.into(), 24)])?;
        self.within(&self.mobile, || {
            let mut mobile = Netlink::open()?;
            let air = give(&mut mobile, "air", &[(MOBILE.into(), 30), (MOBILE_V6.into(), 64)])?;
            mobile.add_default_route(air, MOBILE.into())
        })?;
        self.within(&self.outside, || {
            let mut outside = Netlink::open()?;
            let cable = give(&mut outside, "cable", &[(OUTSIDE.into(), 24)])?;
            // No packet uses this route, but packets from sources without a route may be dropped.
            outside.add_default_route(cable, OUTSIDE.into())
        })
    }

    /// Runs `work` in one of the networks. Sockets that it opens stay there.
    fn within<T>(&self, network: &NetworkNamespace, work: impl FnOnce() -> T) -> T {
        network.enter().unwrap();
        let result = work();
        self.router.enter().unwrap();
        result
    }

    fn socket(&self, network: &NetworkNamespace, address: IpAddr) -> UdpSocket {
        let socket = self.within(network, || UdpSocket::bind((address, 0)).unwrap());
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }
}

/// Moves this process to a user namespace in which it is root, and so are the programs that it
/// executes.
fn become_root() -> io::Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Sets an interface up and adds addresses. Returns its index.
fn give(netlink: &mut Netlink, name: &str, addresses: &[(IpAddr, u8)]) -> io::Result<u32> {
    let index = netlink.index_of(name)?;
    netlink.set_mtu(index, 1400)?;
    netlink.set_up(index)?;
    for (address, prefix_length) in addresses {
        netlink.add_address(index, *address, *prefix_length)?;
    }
    Ok(index)
}

/// Sends `word` and returns its source address at the receiver.
fn sent(from: &UdpSocket, to: &UdpSocket, word: &[u8]) -> std::net::SocketAddr {
    from.send_to(word, to.local_addr().unwrap()).unwrap();
    let mut received = [0; 16];
    let (length, sender) = to.recv_from(&mut received).expect("what is sent comes out");
    assert_eq!(&received[..length], word);
    sender
}

fn interfaces_carry_packets_as_soon_as_they_have_addresses(network: &Networks) {
    let mut netlink = Netlink::open().unwrap();
    let (inside, uplink) = (netlink.index_of("inside").unwrap(), netlink.index_of("uplink").unwrap());
    assert_ne!(inside, uplink);
    let [near, other] = [inside, uplink].map(|index| netlink.hardware_address(index).unwrap());
    assert_ne!(near, other);
    assert_eq!(near[0] & 0b11, 0b10, "made here, and of one interface only: {near:x?}");
    assert!(netlink.index_of("air").is_err(), "it was moved to the mobile");
    assert_eq!(namespace::parameter("net.ipv6.conf.inside.mtu").unwrap(), "1400");
    for (mobile, router) in [(MOBILE.into(), ROUTER_INSIDE.into()), (MOBILE_V6.into(), ROUTER_V6.into())] {
        let (mobile, router) = (network.socket(&network.mobile, mobile), network.socket(&network.router, router));
        assert_eq!(sent(&mobile, &router, b"up"), mobile.local_addr().unwrap());
        assert_eq!(sent(&router, &mobile, b"down"), router.local_addr().unwrap());
    }
}

fn errors_name_the_operation() {
    let mut netlink = Netlink::open().unwrap();
    let inside = netlink.index_of("inside").unwrap();
    let check = |result: io::Result<()>, words: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    };
    check(netlink.index_of("nowhere").map(drop), "finding the interface `nowhere`: ");
    check(netlink.set_mtu(inside, 70_000), &format!("letting interface {inside} take packets of 70000 bytes: "));
    check(netlink.set_up(9999), "taking up interface 9999: ");
    check(
        netlink.add_address(inside, ROUTER_INSIDE.into(), 30),
        &format!("giving interface {inside} the address {ROUTER_INSIDE}/30: "),
    );
    check(netlink.add_veth("inside", "other"), "making the virtual Ethernet pair of `inside` and `other`: ");
    // The connection is usable after an error.
    assert_eq!(netlink.index_of("inside").unwrap(), inside);
}

fn masquerade() -> Result<Masquerade, LinkError> {
    Masquerade::install(TABLE, MOBILE, MOBILE_V6)
}

fn sources_are_translated_while_the_translation_lives(network: &Networks) {
    let outside = network.socket(&network.outside, OUTSIDE.into());
    let mobile = || network.socket(&network.mobile, MOBILE.into());
    let translation = masquerade().unwrap();
    let talker = mobile();
    let seen = sent(&talker, &outside, b"hello");
    assert_eq!(seen.ip(), ROUTER_OUTSIDE);
    outside.send_to(b"answer", seen).unwrap();
    let mut answer = [0; 16];
    let (length, from) = talker.recv_from(&mut answer).expect("the answer finds its way back");
    assert_eq!((&answer[..length], from), (&b"answer"[..], outside.local_addr().unwrap()));
    drop(translation);
    assert_eq!(sent(&mobile(), &outside, b"bare").ip(), MOBILE);
}

fn a_table_ends_with_its_owner() {
    let mut owner = Command::new(env::current_exe().unwrap())
        .env(OWNS, TABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "installed\n");
    assert!(masquerade().is_err(), "a table has one owner");
    owner.kill().unwrap();
    owner.wait().unwrap();
    masquerade().expect("the kernel has removed the table of the process that was killed");
}

/// Owns a table until it is killed or its standard input is closed.
fn own(table: &str) {
    let _translation = Masquerade::install(table, MOBILE, MOBILE_V6).unwrap();
    println!("installed");
    let _ = io::stdin().read_line(&mut String::new());
}
