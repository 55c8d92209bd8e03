//! Calls into the kernel for which no safe library has a function: the only unsafe code of airpath.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::unistd::Pid;

/// Length of the header that carries offload information in front of each packet
/// (`virtio_net_hdr`).
pub const VIRTIO_HEADER: usize = 10;

// <linux/if_tun.h>
nix::ioctl_write_ptr_bad!(tun_set_interface, 0x4004_54ca, InterfaceRequest);
nix::ioctl_write_int_bad!(tun_set_offload, 0x4004_54d0);

const IFF_TUN: c_short = 0x0001;
const IFF_NO_PI: c_short = 0x1000;
const IFF_VNET_HDR: c_short = 0x4000;
const TUN_F_CSUM: c_int = 0x01;
const TUN_F_TSO4: c_int = 0x02;
const TUN_F_TSO6: c_int = 0x04;
const TUN_F_TSO_ECN: c_int = 0x08;

// <linux/sockios.h>, <linux/ethtool.h>
nix::ioctl_write_ptr_bad!(set_ethtool, 0x8946, libc::ifreq);

const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `struct ifreq` as `TUNSETIFF` uses it.
#[repr(C)]
struct InterfaceRequest {
    name: [c_char; libc::IFNAMSIZ],
    flags: c_short,
    unused: [u8; 22],
}

/// Creates a TUN interface in the network namespace of the calling thread. A `%d` in `name` becomes
/// the first free number. Each packet follows a `virtio_net_hdr`; with `offload`, TCP comes in
/// segments of up to 64 KiB and with checksums left to be completed.
///
/// The interface exists as long as the descriptor, which does not block. Returns the name as well.
pub fn tun(name: &str, offload: bool) -> io::Result<(OwnedFd, String)> {
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut request =
        InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR, unused: [0; 22] };
    copy_name(&mut request.name, name);
    // SAFETY: the descriptor is open, and the request is a whole `ifreq`, which the kernel reads
    // and writes.
    unsafe { tun_set_interface(device.as_raw_fd(), &raw const request) }?;
    let features = if offload { TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN } else { 0 };
    // SAFETY: the descriptor is open; the argument is a number.
    unsafe { tun_set_offload(device.as_raw_fd(), features) }?;
    // SAFETY: the kernel leaves a terminated name, since the array had room for a zero and it never
    // writes more.
    let name = unsafe { CStr::from_ptr(request.name.as_ptr()) }.to_string_lossy().into_owned();
    let device = OwnedFd::from(device);
    set_nonblocking(&device)?;
    Ok((device, name))
}

/// Whether this process may open the device of TUN interfaces, and it is one.
pub fn has_tun() -> bool {
    nix::ioctl_read_bad!(tun_features, 0x8004_54cf, c_int);
    let Ok(device) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") else { return false };
    let mut features = 0;
    // SAFETY: the descriptor is open; the kernel writes a number.
    unsafe { tun_features(device.as_raw_fd(), &raw mut features) }.is_ok()
}

/// A socket that sends and receives whole Ethernet frames of the interface `index`, each behind a
/// `virtio_net_hdr`. It does not block, and stays in the network namespace of the calling thread.
pub fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Without a protocol it receives nothing before it is bound.
    // SAFETY: no pointers; the result is checked.
    let socket = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the descriptor was just opened and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    // This socket sends everything that leaves through the interface, and does not need a copy.
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    // Buffer for a burst of super-segments. Without the capability the kernel limits its size.
    for (forced, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        set_option(&socket, libc::SOL_SOCKET, forced, 16 << 20)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, plain, 16 << 20))?;
    }
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol,
        sll_ifindex: index as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for the length that is given.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Packets that a packet socket has dropped since the last call because its receive buffer was full
/// (packet(7), `PACKET_STATISTICS`: reading resets the counter).
pub fn take_packet_drops(socket: &OwnedFd) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    let value = (&raw mut statistics).cast();
    // SAFETY: the value is valid for the length that is given, and the kernel writes no more.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &raw mut length)
    })?;
    Ok(statistics.tp_drops)
}

/// Disables TSO, GSO and checksum offload for what the interface `name` in the network namespace of
/// the calling thread sends.
pub fn disable_transmit_offload(name: &str) -> io::Result<()> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    // Any socket selects the namespace.
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM] {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: all fields of the record may be zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        copy_name(&mut request.ifr_name, name);
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the descriptor is open, and request and value are whole records during the call.
        unsafe { set_ethtool(socket.as_raw_fd(), &raw const request) }?;
    }
    Ok(())
}

/// Writes an interface's name into a record of the kernel that is zero.
fn copy_name(field: &mut [c_char; libc::IFNAMSIZ], name: &str) {
    assert!(name.len() < libc::IFNAMSIZ, "interface names are short");
    for (to, from) in field.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
}

/// Receives a message of at most 4 KiB with the descriptors that come with it.
pub fn receive_descriptors(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; 4096];
    let mut space = nix::cmsg_space!([RawFd; 4]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = message {
            // SAFETY: the kernel has just opened these descriptors, and they have no other owner.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let length = received.bytes;
    bytes.truncate(length);
    Ok((bytes, descriptors))
}

fn set_option(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the option's value is valid for the length that is given.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) }).map(drop)
}

fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFL)?);
    fcntl(descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Forks. The child runs `child` and exits with the code that it returns.
///
/// With `first` it is the first process of a new PID namespace. Unlike unshare(2), this leaves the
/// calling process able to start threads.
///
/// # Panics
/// If this process has more than one thread: the child would wait for ever for a lock that another
/// thread held.
pub fn fork(first: bool, child: impl FnOnce() -> i32) -> io::Result<Pid> {
    assert!(is_single_threaded(), "a process forks before it starts threads");
    // SAFETY: all fields of the record may be zero.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = libc::CLONE_NEWPID as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: without a stack of its own the child goes on with a copy of this one, as after
    // fork(2); there is no other thread that could hold a lock.
    let process = unsafe {
        // Containers may forbid what can make namespaces, but not fork(2), by which `airpath
        // doctor` finds that out.
        if first {
            libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
        } else {
            libc::c_long::from(libc::fork())
        }
    };
    match process {
        0 => {
            let code = child();
            // SAFETY: it ends the process without running what the parent has registered for its
            // own end.
            unsafe { libc::_exit(code) }
        }
        process if process > 0 => Ok(Pid::from_raw(process as i32)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process has one thread only.
pub fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Replaces this process by `command`, searched in `PATH`, with this environment. Returns only if
/// that fails.
pub fn execute(command: &[CString], environment: &[CString]) -> io::Error {
    match nix::unistd::execvpe(&command[0], command, environment) {
        Ok(never) => match never {},
        Err(error) => error.into(),
    }
}

/// The capabilities of a process, 32 in each of two records (capget(2)).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `struct __user_cap_header_struct` for this process, of version 3: two records.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

const THIS_PROCESS: CapabilityHeader = CapabilityHeader { version: 0x2008_0522, pid: 0 };

fn capabilities_of_process() -> io::Result<[CapabilitySets; 2]> {
    let (mut header, mut sets) = (THIS_PROCESS, [CapabilitySets::default(); 2]);
    // SAFETY: version 3 of the call writes two such records.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) } as c_int)?;
    Ok(sets)
}

fn set_capabilities(sets: &[CapabilitySets; 2]) -> io::Result<()> {
    let mut header = THIS_PROCESS;
    // SAFETY: version 3 of the call reads two such records.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) } as c_int).map(drop)
}

/// Gives up all capabilities but those of `kept`, by number, and the right to regain any by
/// executing a program.
pub fn drop_capabilities(kept: &[u8]) -> io::Result<()> {
    let mut sets = capabilities_of_process()?;
    for (word, set) in sets.iter_mut().enumerate() {
        let bits = kept.iter().filter(|number| usize::from(**number / 32) == word);
        let bits = bits.fold(0, |bits, number| bits | 1u32 << (number % 32)) & set.permitted;
        *set = CapabilitySets { effective: bits, permitted: bits, inheritable: 0 };
    }
    set_capabilities(&sets)?;
    nix::sys::prctl::set_no_new_privs()?;
    Ok(())
}

/// Adds `capabilities`, by number, to the ambient set (capabilities(7)), so that a program executed
/// by a user other than root keeps them in the user namespace.
pub fn keep_capabilities(capabilities: &[u8]) -> io::Result<()> {
    let mut data = capabilities_of_process()?;
    for capability in capabilities {
        let (word, bit) = (usize::from(capability / 32), 1u32 << (capability % 32));
        data[word].inheritable |= data[word].permitted & bit;
    }
    set_capabilities(&data)?;
    for capability in capabilities {
        if data[usize::from(capability / 32)].inheritable & 1 << (capability % 32) != 0 {
            let raise = libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong;
            // SAFETY: no pointers.
            check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, libc::c_ulong::from(*capability), 0, 0) })?;
        }
    }
    Ok(())
}

/// Resets signals for a program: none blocked, and none ignored but those that the caller of
/// airpath ignores, as nohup(1) does.
pub fn reset_signals() {
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    // Python ignores these two. Handlers end by themselves when a program is executed (execve(2)).
    for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: the default action runs no code of this process.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
    }
}

/// Gives the calling thread a realtime scheduling policy (sched(7)); threads and processes that it
/// starts do not inherit it. Returns whether the host permits it.
///
/// Only for a thread that sleeps: the kernel stops one that runs without pause for 50 ms in each
/// second.
pub fn raise_to_realtime() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the record is valid during the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).is_ok()
}

/// Gives the calling thread the highest non-realtime priority; threads that it starts do not
/// inherit it. Returns whether the host permits it.
pub fn raise_nice_priority() -> bool {
    // SAFETY: no pointers. Zero is the calling thread.
    let kept = check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) }).is_ok();
    let parameters = libc::sched_param { sched_priority: 0 };
    let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the record is valid during the call.
    kept && check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).is_ok()
}

/// How the kernel schedules the calling thread; set again when this is dropped.
pub struct Scheduling {
    policy: c_int,
    parameters: libc::sched_param,
    nice: c_int,
}

impl Scheduling {
    /// That of now.
    pub fn current() -> Self {
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: no pointers but that of the record, which is valid during the call. Zero is the
        // calling thread, for which none of these calls fails.
        unsafe {
            libc::sched_getparam(0, &raw mut parameters);
            Self { policy: libc::sched_getscheduler(0), parameters, nice: libc::getpriority(libc::PRIO_PROCESS, 0) }
        }
    }
}

impl Drop for Scheduling {
    fn drop(&mut self) {
        // SAFETY: as above. A thread may always lower its priority; that its children do not
        // inherit it may remain, where the host does not permit to take that back.
        unsafe {
            if libc::sched_setscheduler(0, self.policy, &raw const self.parameters) != 0 {
                libc::sched_setscheduler(0, self.policy | libc::SCHED_RESET_ON_FORK, &raw const self.parameters);
            }
            libc::setpriority(libc::PRIO_PROCESS, 0, self.nice);
        }
    }
}

/// Columns and rows of the terminal at `descriptor`; `None` if it is not a terminal.
pub fn terminal_size(descriptor: &impl AsRawFd) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call fills in the record, or fails.
    check(unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) }).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// The monotonic clock, in nanoseconds.
#[inline]
pub fn monotonic_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills in the record; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_priority_ends_with_the_scheduling_before() {
        let policy_and_nice = || {
            let Scheduling { policy, nice, .. } = *std::mem::ManuallyDrop::new(Scheduling::current());
            (policy & !libc::SCHED_RESET_ON_FORK, nice)
        };
        // In a thread of its own, which does not change that of other tests.
        std::thread::spawn(move || {
            let before = policy_and_nice();
            let scheduling = Scheduling::current();
            if raise_to_realtime() {
                assert_eq!(policy_and_nice().0, libc::SCHED_FIFO);
            }
            drop(scheduling);
            assert_eq!(policy_and_nice(), before);
        })
        .join()
        .unwrap();
    }
}
