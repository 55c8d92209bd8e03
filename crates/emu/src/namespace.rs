//! Kernel namespaces, which separate an emulated link from the host's own network.
//!
//! A network namespace exists while a process is in it or a descriptor of it is open. None has a
//! name in the file system, so nothing can be left behind. The programs in it end with the emulator
//! ([`crate::supervisor`]).

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};

use crate::LinkError;

/// The kernel parameter for forwarding of IPv4 packets between interfaces.
pub const FORWARDING: &str = "net.ipv4.ip_forward";

/// The kernel parameter for the groups that may open sockets for echo requests (icmp(7)), and all
/// of them.
const ECHO_GROUPS: &str = "net.ipv4.ping_group_range";
const ALL_GROUPS: &str = "0 2147483647";

/// A network namespace.
#[derive(Debug)]
pub struct NetworkNamespace(OwnedFd);

/// Which sockets of a network namespace listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listeners {
    /// None.
    None,
    /// Only sockets at loopback addresses, which packets of the link do not reach.
    Loopback,
    /// At least one that packets of the link can reach.
    Reachable,
}

impl NetworkNamespace {
    /// The network namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Ok(Self(File::open("/proc/thread-self/ns/net")?.into()))
    }

    /// Creates a network namespace and moves the calling thread into it. It forwards packets as a
    /// router does, and permits every program in it to listen at any port. Programs may send echo
    /// requests: of all groups, or in a user namespace that does not map them of the own group.
    pub fn create() -> Result<Self, LinkError> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| LinkError::Namespace("network", error.into()))?;
        let namespace = Self::current().map_err(|error| LinkError::Namespace("network", error))?;
        // Kernels without IPv6 lack some of these, and in containers they are often read-only.
        // Programs that need them then report their own errors.
        for (key, value) in
            [(FORWARDING, "1"), ("net.ipv6.conf.all.forwarding", "1"), ("net.ipv4.ip_unprivileged_port_start", "0")]
        {
            let _ = set(key, value);
        }
        // The groups must be mapped in the user namespace; the own one always is. An error is
        // ignored: ping(8) may have the capability for raw sockets.
        let group = nix::unistd::getegid();
        let _ = set(ECHO_GROUPS, ALL_GROUPS).or_else(|_| set(ECHO_GROUPS, &format!("{group} {group}")));
        Ok(namespace)
    }

    /// Which sockets in it listen for connections or datagrams. The calling thread is in it
    /// afterwards.
    pub fn listeners(&self) -> Listeners {
        if self.enter().is_err() {
            return Listeners::None;
        }
        let sockets = |table: &str| {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
            listening(&text, table.starts_with("tcp"))
        };
        ["tcp", "tcp6", "udp", "udp6"].into_iter().map(sockets).max().unwrap_or(Listeners::None)
    }

    /// Number of packets that the interface `name` in it dropped instead of sending. The calling
    /// thread is in it afterwards.
    pub fn dropped_before_sending(&self, name: &str) -> Option<u64> {
        /// The column of that number in proc_net_dev(5), counted from the name.
        const COLUMN: usize = 11;
        self.enter().ok()?;
        let table = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
        let row = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
        row.split_whitespace().nth(COLUMN)?.parse().ok()
    }

    /// Moves the calling thread into it.
    pub fn enter(&self) -> Result<(), LinkError> {
        setns(&self.0, CloneFlags::CLONE_NEWNET).map_err(|error| LinkError::Namespace("network", error.into()))
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Moves this process into a user namespace of its own, in which it may create the other kinds.
/// User and group stay the same.
///
/// # Errors
/// If the host does not permit it, or the process has more than one thread.
pub fn enter_user_namespace() -> Result<(), LinkError> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let failed = |error: io::Error| LinkError::Namespace("user", error);
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| failed(error.into()))?;
    fs::write("/proc/self/setgroups", "deny").map_err(failed)?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(failed)?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(failed)
}

/// Whether `user` may stand for several users: a user namespace shows all users that it does not
/// map as the overflow user (user_namespaces(7)).
pub fn is_ambiguous_user(user: u32) -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let overflow = read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(OVERFLOW_USER);
    user == overflow && !maps_all_users(&read("/proc/self/uid_map"))
}

/// The default of `kernel.overflowuid`.
const OVERFLOW_USER: u32 = 65_534;

/// Whether a table of user IDs maps all of them, as in the initial user namespace. The ID -1 is not
/// valid.
fn maps_all_users(map: &str) -> bool {
    let lengths = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    lengths.sum::<u64>() >= u64::from(u32::MAX)
}

/// Numbers of capabilities (capabilities(7)).
pub mod capability {
    /// Binding to ports below 1,024.
    pub const NET_BIND_SERVICE: u8 = 10;
    /// Configuring networks.
    pub const NET_ADMIN: u8 = 12;
    /// Raw and packet sockets.
    pub const NET_RAW: u8 = 13;
    /// Making namespaces and mounting.
    pub const SYS_ADMIN: u8 = 21;
}

/// Whether this process may administer the network namespace of the calling thread, leave it for
/// others and return. In a user namespace that was made around the host's network, as by unshare(1)
/// or in containers, it may not: there the capabilities hold for what is made in it only.
pub fn is_privileged() -> bool {
    [capability::NET_ADMIN, capability::SYS_ADMIN].into_iter().all(has_capability)
        && NetworkNamespace::current().is_ok_and(|home| home.enter().is_ok())
}

/// Whether this process has a capability in its user namespace.
pub fn has_capability(number: u8) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    set & 1 << number != 0
}

/// Sets a kernel parameter of the network namespace of the calling thread, by its name in
/// sysctl(8).
pub fn set(key: &str, value: &str) -> Result<(), LinkError> {
    let written = match path_of(key) {
        Some(path) => fs::write(path, value),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    written.map_err(|source| LinkError::Parameter { key: key.to_owned(), value: value.to_owned(), source })
}

/// Reads a kernel parameter of the network namespace of the calling thread.
pub fn parameter(key: &str) -> io::Result<String> {
    let path = path_of(key).ok_or(io::ErrorKind::NotFound)?;
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

/// Which sockets listen in a table of proc(5): TCP sockets in state 0A, and UDP sockets without a
/// peer, in state 07.
fn listening(table: &str, is_tcp: bool) -> Listeners {
    let of_line = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (Some(address), Some(state)) = (columns.get(1), columns.get(3)) else { return Listeners::None };
        if *state != if is_tcp { "0A" } else { "07" } {
            Listeners::None
        } else if is_loopback(address) {
            Listeners::Loopback
        } else {
            Listeners::Reachable
        }
    };
    table.lines().skip(1).map(of_line).max().unwrap_or(Listeners::None)
}

/// Whether an address of proc(5) is a loopback address: 127.0.0.0/8, `::1`, or the former in IPv6.
/// It is printed in words of 32 bits in the byte order of the host.
fn is_loopback(address: &str) -> bool {
    let address = address.split(':').next().unwrap_or_default();
    let word = |index: usize| {
        let digits = address.get(8 * index..8 * index + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let is_127 = |word: Option<[u8; 4]>| word.is_some_and(|bytes| bytes[0] == 127);
    match address.len() {
        8 => is_127(word(0)),
        _ if word(0) == Some([0; 4]) && word(1) == Some([0; 4]) => {
            (word(2) == Some([0; 4]) && word(3) == Some([0, 0, 0, 1]))
                || (word(2) == Some([0, 0, 0xff, 0xff]) && is_127(word(3)))
        }
        _ => false,
    }
}

/// As in sysctl(8), dots separate; a slash in the name stands for a dot within a part. Parameters
/// of a network namespace begin with `net`, and no name leads out of there.
fn path_of(key: &str) -> Option<String> {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let path: String = key.chars().map(swap).collect();
    (path.starts_with("net/") && path.split('/').all(|part| !matches!(part, "" | "." | "..")))
        .then(|| format!("/proc/sys/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn sockets_at_loopback_are_distinguished() {
        let table = |rows: &[(&str, &str)]| {
            let row = |(address, state): &(&str, &str)| format!("\n   0: {address} 00000000:0000 {state} 0 0");
            "  sl  local_address rem_address   st".to_owned() + &rows.iter().map(row).collect::<String>()
        };
        let (loopback, any) = (("0100007F:1F40", "0A"), ("00000000:1F40", "0A"));
        assert_eq!(listening(&table(&[]), true), Listeners::None);
        assert_eq!(listening(&table(&[("00000000:1F40", "01")]), true), Listeners::None);
        assert_eq!(listening(&table(&[loopback]), true), Listeners::Loopback);
        assert_eq!(listening(&table(&[loopback, any]), true), Listeners::Reachable);
        assert_eq!(listening(&table(&[("0100007F:0035", "07")]), false), Listeners::Loopback);
        assert_eq!(listening(&table(&[("00000000:0035", "07")]), false), Listeners::Reachable);
        assert_eq!(listening(&table(&[("00000000:0035", "01")]), false), Listeners::None);
        let ipv6 = |address: &str| listening(&table(&[(address, "0A")]), true);
        assert_eq!(ipv6("00000000000000000000000001000000:1F40"), Listeners::Loopback);
        assert_eq!(ipv6("0000000000000000FFFF00000100007F:1F40"), Listeners::Loopback);
        assert_eq!(ipv6("00000000000000000000000000000000:1F40"), Listeners::Reachable);
    }

    #[test]
    fn only_the_initial_user_namespace_maps_all_users() {
        assert!(maps_all_users("         0          0 4294967295\n"));
        assert!(!maps_all_users("     65534      65534          1\n"));
        assert!(!maps_all_users("         0       1000          1\n         1     100000      65536\n"));
        assert!(!maps_all_users(""));
    }

    #[test]
    fn no_parameter_lies_outside_of_the_network() {
        assert_eq!(path_of("net.ipv4.tcp_sack").as_deref(), Some("/proc/sys/net/ipv4/tcp_sack"));
        assert_eq!(path_of("net.ipv6.conf.eth0/1.mtu").as_deref(), Some("/proc/sys/net/ipv6/conf/eth0.1/mtu"));
        for wrong in ["kernel.hostname", "net.//.kernel.hostname", "net", "net.", "net..x", ""] {
            assert_eq!(path_of(wrong), None, "{wrong}");
        }
    }
}
