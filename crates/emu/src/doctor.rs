//! What this host allows, and what to do about what it does not.
//!
//! Each check that would change the process is made in a child that ends right after it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use airpath_core::Span;
use nix::poll::ppoll;
use nix::sys::time::TimeSpec;
use nix::sys::wait::{WaitStatus, waitpid};
use serde::Serialize;

use crate::clock::Clock;
use crate::laboratory::{Device, FarEnd, Laboratory, Plan};
use crate::namespace::{self, NetworkNamespace, capability};
use crate::nat::Masquerade;
use crate::{LinkError, sys};

/// How it stands with one thing that links need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All is well.
    Ok,
    /// Something works less well, or only a part of it.
    Limited,
    /// It does not work.
    Missing,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The thing.
    pub name: &'static str,
    /// How it stands.
    pub status: Status,
    /// What was found.
    pub finding: String,
    /// What to do about it; nothing if all is well.
    pub next_step: Option<&'static str>,
}

/// What was found about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Whether links with both ends inside work.
    pub laboratory: bool,
    /// Whether links to the outside work.
    pub outside: bool,
    /// One by one.
    pub checks: Vec<Check>,
}

/// Looks at this host. It takes about half a second; the process must have one thread only.
pub fn examine() -> Findings {
    let privileged = is_privileged();
    let network = |work: fn() -> Result<(), LinkError>| {
        attempt(move || {
            if !is_privileged() {
                namespace::enter_user_namespace()?;
            }
            NetworkNamespace::create()?;
            work()
        })
    };
    let tun = attempt(|| laboratory(Device::Tun));
    let veth = attempt(|| laboratory(Device::Ethernet));
    let translation =
        network(|| Masquerade::install("airpath-doctor", Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST).map(drop));
    let forwards = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|text| text.trim() == "1");
    let works = tun.is_ok() || veth.is_ok();
    let outside = privileged && works && translation.is_ok() && forwards;
    let checks = vec![
        Check {
            name: "privileges",
            status: if privileged { Status::Ok } else { Status::Limited },
            finding: if privileged { "may administer the network" } else { "an ordinary user" }.to_owned(),
            next_step: (!privileged)
                .then_some("links with --serve work all the same; for the outside, run airpath as root"),
        },
        plain(
            "user namespaces",
            attempt(namespace::enter_user_namespace),
            if privileged { Status::Limited } else { Status::Missing },
            "allow them (kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0, and \
             kernel.apparmor_restrict_unprivileged_userns=0 where there is AppArmor), or run airpath as root",
        ),
        plain(
            "network namespaces",
            network(|| Ok(())),
            Status::Missing,
            "allow user namespaces, or run airpath as root; in a container, with its capability SYS_ADMIN",
        ),
        plain(
            "PID and mount namespaces",
            attempt(|| {
                if !is_privileged() {
                    namespace::enter_user_namespace()?;
                }
                let child = sys::fork(true, || 0).map_err(|error| LinkError::Namespace("PID", error))?;
                let _ = waitpid(child, None);
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)
                    .map_err(|error| LinkError::Namespace("mount", error.into()))
            }),
            Status::Missing,
            "as for network namespaces",
        ),
        plain(
            "TUN interfaces",
            tun,
            if works { Status::Limited } else { Status::Missing },
            "load the module (modprobe tun) and let /dev/net/tun be opened; until then links use virtual Ethernet pairs",
        ),
        plain(
            "virtual Ethernet pairs",
            veth,
            if works { Status::Limited } else { Status::Missing },
            "load the modules veth and af_packet; links use TUN interfaces where they can",
        ),
        plain(
            "address translation",
            translation,
            Status::Limited,
            "load the modules nft_masq and nft_chain_nat (Linux 5.12 or newer); links to the outside need them",
        ),
        Check {
            name: "forwarding",
            status: if forwards { Status::Ok } else { Status::Limited },
            finding: format!("net.ipv4.ip_forward is {}", u8::from(forwards)),
            next_step: (!forwards).then_some("for links to the outside: sysctl -w net.ipv4.ip_forward=1"),
        },
        congestion_controls(),
        cores(),
        timers(),
    ];
    Findings { laboratory: works, outside, checks }
}

fn is_privileged() -> bool {
    [capability::NET_ADMIN, capability::SYS_ADMIN].into_iter().all(namespace::has_capability)
}

/// Makes both ends of a link, and lets go of them.
fn laboratory(device: Device) -> Result<(), LinkError> {
    Laboratory::make(&Plan { far_end: FarEnd::Server, device, offload: true, mtu: 1500, parameters: &[] }).map(drop)
}

/// Tries something in a child process. The error is that of the system.
fn attempt(work: impl FnOnce() -> Result<(), LinkError>) -> io::Result<()> {
    let child = sys::fork(false, || match work() {
        Ok(()) => 0,
        Err(error) => error.system_error().filter(|code| (1..=255).contains(code)).unwrap_or(libc::EIO),
    })?;
    match waitpid(child, None)? {
        WaitStatus::Exited(_, 0) => Ok(()),
        WaitStatus::Exited(_, code) => Err(io::Error::from_raw_os_error(code)),
        _ => Err(io::ErrorKind::Interrupted.into()),
    }
}

fn plain(name: &'static str, result: io::Result<()>, otherwise: Status, next_step: &'static str) -> Check {
    match result {
        Ok(()) => Check { name, status: Status::Ok, finding: "can be made".to_owned(), next_step: None },
        Err(error) => Check { name, status: otherwise, finding: error.to_string(), next_step: Some(next_step) },
    }
}

fn congestion_controls() -> Check {
    let known = namespace::parameter("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let all = ["reno", "cubic"].into_iter().all(|name| known.split(' ').any(|each| each == name));
    Check {
        name: "congestion controls",
        status: if all { Status::Ok } else { Status::Limited },
        finding: known,
        next_step: (!all).then_some("load the modules of others: modprobe tcp_bbr, tcp_vegas and so on"),
    }
}

fn cores() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Check {
        name: "cores",
        status: if cores >= 3 { Status::Ok } else { Status::Limited },
        finding: cores.to_string(),
        next_step: (cores < 3).then_some("with three or more, links watch the clock (--precise) unless told otherwise"),
    }
}

/// How late this process wakes up from sleep, as the loop of a link would.
fn timers() -> Check {
    const SLEEPS: usize = 200;
    const SLEEP: Span = Span::from_millis(1);
    let _ = nix::sys::prctl::set_timerslack(1);
    let clock = Clock::start();
    let mut late: Vec<u64> = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let due = clock.now() + SLEEP;
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(SLEEP.as_nanos()));
        let _ = ppoll(&mut [], Some(timeout), None);
        let now = clock.now();
        late.push(now.since(due.min(now)).as_nanos());
    }
    late.sort_unstable();
    let (median, most) = (late[SLEEPS / 2], late[SLEEPS * 99 / 100]);
    let good = median < 200_000 && most < 1_000_000;
    Check {
        name: "timers",
        status: if good { Status::Ok } else { Status::Limited },
        finding: format!(
            "a sleep ends {:.2} ms late in the middle, 1 % of them {:.2} ms or more",
            median as f64 / 1e6,
            most as f64 / 1e6
        ),
        next_step: (!good).then_some("the host is busy, or shares its cores; --precise helps if a core can be spared"),
    }
}
