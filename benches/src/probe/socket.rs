//! A datagram socket whose arrivals are stamped by the kernel.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its length in bytes.
    pub length: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// Arrival at the kernel.
    pub kernel: u64,
    /// Arrival at this program.
    pub read: u64,
}

/// The present time, by the clock of the kernel's stamps.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_REALTIME).expect("this clock is always there");
    nanoseconds(time)
}

/// Sleeps until `due`, or a little less on a signal.
pub fn sleep_until(due: u64) {
    let due = TimeSpec::from_duration(Duration::from_nanos(due));
    let _ = clock_nanosleep(ClockId::CLOCK_REALTIME, ClockNanosleepFlags::TIMER_ABSTIME, &due);
}

fn nanoseconds(time: TimeSpec) -> u64 {
    Duration::from(time).as_nanos() as u64
}

/// A socket at `port`, or at any free one for 0, with a buffer for bursts.
pub fn open(port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::RcvBuf, &(4 << 20))?;
    setsockopt(&socket, sockopt::SndBuf, &(4 << 20))?;
    Ok(socket)
}

/// Waits for the next datagram, at most for the socket's time-out; `None` without one.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    let mut space = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = match recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty()) {
        Ok(message) => message,
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let read = now();
    let kernel = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(nanoseconds(time)),
        _ => None,
    });
    let from = message.address.ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok(Some(Arrival {
        length: message.bytes,
        from: SocketAddrV4::new(from.ip(), from.port()).into(),
        kernel: kernel.ok_or(io::ErrorKind::Unsupported)?,
        read,
    }))
}
