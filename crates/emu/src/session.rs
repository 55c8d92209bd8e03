//! The event loop of a link while its command runs, or of a live proxy: packets, signals, the
//! control socket, and the events of its [`Operator`].
//!
//! It waits in `ppoll` until the next wake-up of the path ([`Forwarder::next_wakeup`]). That is the
//! departure time that a link computed when a packet entered.

mod command;
mod signals;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use airpath_core::{Direction, Instant, Span};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;

use crate::LinkError;
use crate::control::{ControlSocket, Request};
use crate::forwarder::Forwarder;
use crate::status::Status;
use crate::sys;
pub use command::Command;
use serde_json::Value;
pub use signals::Signals;

/// How to wait until a packet is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// By sleeping: the kernel's timers are about 0.1 ms late.
    Sleeping,
    /// By polling the clock while packets are in the network, and shortly before other events of
    /// the path, at the cost of a core.
    Precise,
}

impl Waiting {
    /// The default: [`Self::Precise`] where the programs at both ends still have a core each.
    pub fn of_host() -> Self {
        if cores() >= 3 { Self::Precise } else { Self::Sleeping }
    }

    /// Whether the loop polls the clock at `now`. Without packets in the network the next wake-up
    /// of the path may be far: a planned change, or a timer.
    fn polls(self, now: Instant, last_packet: Instant, wakeup: Option<Instant>, has_packets: bool) -> bool {
        let is_due_soon = wakeup.is_some_and(|wakeup| has_packets || wakeup <= now + POLL_BEFORE);
        self == Self::Precise && (is_due_soon || now < last_packet + LINGER)
    }

    /// Raises the priority of this thread accordingly. Returns whether the host permits it.
    pub fn raise_priority(self) -> bool {
        match self {
            Self::Sleeping => sys::raise_to_realtime(),
            Self::Precise => sys::raise_nice_priority(),
        }
    }

    /// How long the loop may sleep at `now` if it does not poll.
    fn sleep_time(self, now: Instant, wakeup: Instant) -> Span {
        let until = wakeup.since(now.min(wakeup));
        match self {
            Self::Sleeping => until,
            Self::Precise => until.saturating_sub(POLL_BEFORE),
        }
    }
}

/// The cores that this process may use: fewer than the host has, if affinity or a control group
/// limits them.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// While this exists, the process gets memory in small pages only. The kernel clears a huge page
/// before a process may use it, which has taken 10 ms on a virtual machine: packets wait meanwhile.
struct SmallPages {
    disabled_before: bool,
}

impl SmallPages {
    fn choose() -> Self {
        // Where the host forbids it, packets may be late, which the result counts.
        let disabled_before = prctl::get_thp_disable().unwrap_or(false);
        let _ = prctl::set_thp_disable(true);
        Self { disabled_before }
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        let _ = prctl::set_thp_disable(self.disabled_before);
    }
}

/// In precise mode the clock is polled for this long after the last packet.
const LINGER: Span = Span::from_millis(10);

/// In precise mode the clock is polled from this long before a wake-up on. The kernel's timers are
/// late by less.
const POLL_BEFORE: Span = Span::from_millis(2);

/// While the loop polls the clock, it checks this often for events other than packets.
const CHECK_PERIOD: Span = Span::from_millis(1);

/// What happens beside the forwarding of packets.
pub trait Operator {
    /// Becomes readable when there is an event.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Handles an event. Returns whether the session continues.
    fn handle_event(&mut self, forwarder: &mut Forwarder<'_>) -> bool;

    /// Handles a signal. Returns whether the session continues.
    fn handle_signal(&mut self, signal: Signal, forwarder: &mut Forwarder<'_>) -> bool;

    /// Is called before each wait.
    fn check(&mut self, forwarder: &mut Forwarder<'_>) {
        let _ = forwarder;
    }

    /// Whether it handles the signals of a terminal, too.
    fn takes_terminal_signals(&self) -> bool;

    /// Carries out a request at the control socket, of the client at the other end of `stream`.
    /// Returns the response; `None` if it has responded by itself.
    ///
    /// # Errors
    /// If it is not valid; then nothing has changed.
    fn handle_request(
        &mut self,
        request: Request,
        stream: &UnixStream,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Option<Value>, String>;

    /// Whether another process has taken over: the session ends.
    fn is_taken_over(&self) -> bool {
        false
    }
}

/// A running link or live proxy.
pub struct Session<'a, O> {
    /// Forwards the packets.
    pub forwarder: Forwarder<'a>,
    /// Handles all other events.
    pub operator: O,
    control: ControlSocket,
    signals: Signals,
    /// Events other than packets: ends of programs, signals, the control socket.
    others: Epoll,
    waiting: Waiting,
    status: Option<Status>,
}

/// Sources of events other than packets; the kernel stores the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Operator,
    Signals,
    Control,
}

impl<'a, O: Operator> Session<'a, O> {
    /// A session that forwards nothing yet.
    ///
    /// # Errors
    /// If the host cannot report signals or requests at the control socket.
    pub fn new(
        forwarder: Forwarder<'a>,
        operator: O,
        control: ControlSocket,
        signals: Signals,
        waiting: Waiting,
        status: Option<Status>,
    ) -> Result<Self, LinkError> {
        let prepare = || -> nix::Result<Epoll> {
            let others = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            let event = |other| EpollEvent::new(EpollFlags::EPOLLIN, other as u64);
            others.add(operator.descriptor(), event(Other::Operator))?;
            others.add(signals.as_fd(), event(Other::Signals))?;
            others.add(control.as_fd(), event(Other::Control))?;
            Ok(others)
        };
        let others = prepare().map_err(|error| LinkError::Host("the event loop cannot be set up", error.into()))?;
        // By default the kernel delays timers by up to 50 µs to save power.
        let _ = prctl::set_timerslack(1);
        Ok(Self { forwarder, operator, control, signals, others, waiting, status })
    }

    /// Forwards packets until the operator ends the session.
    ///
    /// # Errors
    /// If a port fails.
    pub fn run(&mut self) -> Result<(), LinkError> {
        let _small_pages = SmallPages::choose();
        let ended = self.forward().map_err(|error| match error.raw_os_error() {
            // The end of a TUN interface that was deleted.
            Some(libc::EBADFD) => LinkError::InterfaceRemoved,
            _ => LinkError::Host("packets cannot be forwarded", error),
        });
        // The row of the status line is released before any other output.
        drop(self.status.take());
        ended
    }

    fn forward(&mut self) -> io::Result<()> {
        let (mut last_packet, mut last_check) = (Instant::ZERO, Instant::ZERO);
        let mut ready = [true; 2];
        loop {
            let mut any = false;
            if self.forwarder.router().is_some() {
                // Both ends are one interface.
                ready = [ready.contains(&true), false];
            }
            for (direction, ready) in Direction::BOTH.into_iter().zip(ready) {
                any |= ready && self.forwarder.read(direction)?;
            }
            let [down, up] = self.forwarder.deliver()?;
            any |= down || up;
            let now = self.forwarder.clock.now();
            if any {
                last_packet = now;
            }
            let wakeup = self.forwarder.next_wakeup();
            let has_packets = self.forwarder.packets_on_path() > 0;
            let polls = self.waiting.polls(now, last_packet, wakeup, has_packets);
            // The kernel often has a response before it returns from taking a packet: reading is
            // cheaper than polling.
            ready = if polls { [true; 2] } else { [up, down] };
            if ready.contains(&true) && now < last_check + CHECK_PERIOD {
                continue;
            }
            let patience =
                if polls { Some(Span::ZERO) } else { wakeup.map(|wakeup| self.waiting.sleep_time(now, wakeup)) };
            last_check = now;
            let Some(found) = self.wait(patience)? else { return Ok(()) };
            ready = found;
        }
    }

    /// Waits for at most `patience` and handles all events but packets. Returns the ends at which
    /// packets wait, the server first; `None` when the session has ended.
    fn wait(&mut self, patience: Option<Span>) -> io::Result<Option<[bool; 2]>> {
        let mut patience = patience;
        self.operator.check(&mut self.forwarder);
        if let Some(status) = &mut self.status {
            let until = status.show(self.forwarder.clock.now(), &self.forwarder);
            patience = Some(patience.map_or(until, |patience| patience.min(until)));
        }
        let (server, mobile) = self.forwarder.ports();
        let second = self.forwarder.second().map_or(mobile, |second| &second.port);
        let mut descriptors = [server.as_fd(), mobile.as_fd(), second.as_fd(), self.others.0.as_fd()]
            .map(|each| PollFd::new(each, PollFlags::POLLIN));
        let timeout = patience.map(|patience| TimeSpec::from_duration(Duration::from_nanos(patience.as_nanos())));
        match ppoll(&mut descriptors, timeout, None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Some([true; 2])),
            Err(error) => return Err(error.into()),
        }
        let [down, up, second, others] = descriptors.map(|each| each.any().unwrap_or(true));
        if others && !self.handle_others()? {
            return Ok(None);
        }
        Ok(Some([down, up || second]))
    }

    /// Handles all events but packets. Returns whether the session continues.
    fn handle_others(&mut self) -> io::Result<bool> {
        let mut events = [EpollEvent::empty(); 4];
        let count = self.others.wait(&mut events, EpollTimeout::ZERO)?;
        for event in &events[..count] {
            match event.data() {
                data if data == Other::Operator as u64 => {
                    if !self.operator.handle_event(&mut self.forwarder) {
                        return Ok(false);
                    }
                }
                data if data == Other::Signals as u64 => {
                    while let Some(signal) = self.signals.next(self.operator.takes_terminal_signals()) {
                        if !self.operator.handle_signal(signal, &mut self.forwarder) {
                            return Ok(false);
                        }
                    }
                }
                _ => {
                    let Self { control, operator, forwarder, .. } = self;
                    control.serve(|request, stream| operator.handle_request(request, stream, forwarder));
                    if self.operator.is_taken_over() {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    const LONG_AGO: Instant = Instant::ZERO;

    #[test]
    fn an_idle_precise_link_sleeps_until_shortly_before_a_planned_change() {
        let change = NOW + Span::from_secs(600);
        assert!(!Waiting::Precise.polls(NOW, LONG_AGO, Some(change), false));
        let woken = NOW + Waiting::Precise.sleep_time(NOW, change);
        assert_eq!(woken, change - POLL_BEFORE);
        assert!(Waiting::Precise.polls(woken, LONG_AGO, Some(change), false));
    }

    #[test]
    fn a_precise_link_polls_while_packets_are_due_and_shortly_after() {
        assert!(Waiting::Precise.polls(NOW, LONG_AGO, Some(NOW + Span::from_secs(600)), true));
        assert!(!Waiting::Precise.polls(NOW, LONG_AGO, None, true), "no event moves the packets");
        assert!(Waiting::Precise.polls(NOW, NOW, None, false));
        assert!(!Waiting::Precise.polls(NOW, LONG_AGO, None, false));
    }

    #[test]
    fn a_sleeping_link_never_polls() {
        let due = NOW + Span::from_micros(100);
        assert!(!Waiting::Sleeping.polls(NOW, NOW, Some(due), true));
        assert_eq!(Waiting::Sleeping.sleep_time(NOW, due), Span::from_micros(100));
        assert_eq!(Waiting::Sleeping.sleep_time(due, NOW), Span::ZERO, "the packet is overdue");
    }
}
