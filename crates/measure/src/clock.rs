//! The clock of measurements: CLOCK_MONOTONIC, which all processes of a host share across network
//! namespaces.
//!
//! Instants count from the clock's own origin, not from the start of the measurement, so that those
//! of two processes on one host are directly comparable.

use std::fs;
use std::os::fd::BorrowedFd;

use airpath_core::{Instant, Span};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Longest wait without a check of the stop flag.
pub const STOP_CHECK: Span = Span::from_millis(50);

/// The present time.
pub fn now() -> Instant {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Instant::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Identity of the clock: two processes with the same identity read the same clock. It is the same
/// for one boot of one kernel, unless a time namespace shifts it (time_namespaces(7)). `None` where
/// the kernel does not report it.
pub fn identity() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // Kernels without time namespaces have a single clock.
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// Waits for one of `events` on `socket`, until `until` at the latest, and never longer than
/// [`STOP_CHECK`]. It may return early, so the caller checks clock and socket.
pub fn wait(socket: BorrowedFd<'_>, events: PollFlags, until: Option<Instant>) {
    wait_for_any(&mut [PollFd::new(socket, events)], until);
}

/// The same for several sockets, each with its events.
pub fn wait_for_any(sockets: &mut [PollFd<'_>], until: Option<Instant>) {
    let span = until.map_or(STOP_CHECK, |until| until.since(now())).min(STOP_CHECK);
    let timeout = TimeSpec::new(0, i64::try_from(span.as_nanos()).expect("the longest wait is far below a second"));
    // An error here is an interruption by a signal; the caller then checks as after any return.
    let _ = ppoll(sockets, Some(timeout), None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn waits_are_bounded_and_the_clock_goes_on() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let start = now();
        wait(socket.as_fd(), PollFlags::POLLIN, None);
        wait(socket.as_fd(), PollFlags::POLLIN, Some(start));
        assert!(now() > start);
    }

    #[test]
    fn the_clock_has_one_name() {
        assert_eq!(identity(), identity());
    }
}
