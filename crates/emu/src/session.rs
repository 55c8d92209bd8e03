//! A link while its command runs: packets, signals, news of the programs, and wishes from outside.

mod signals;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use airpath_core::{Direction, Instant, Span};
use airpath_scenario::Scenario;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;

use crate::LinkError;
use crate::control::Control;
use crate::household::{Exit, Household, News};
use crate::pump::Pump;
use crate::status::Status;
use crate::sys;
use signals::Signals;

/// How to wait until a packet is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// By sleeping: the kernel's timers are about 0.1 ms late.
    Sleeping,
    /// By watching the clock as long as packets are on their way, at the cost of a core.
    Precise,
}

impl Waiting {
    /// How links wait unless told otherwise: [`Self::Precise`] where the programs at both ends still have a core each.
    pub fn of_host() -> Self {
        if cores() >= 3 { Self::Precise } else { Self::Sleeping }
    }
}

/// The cores that this process may use: fewer than the host has, if affinity or a control group say so.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// With packets expected at any moment, the clock is watched for so long after the last one.
const LINGER: Span = Span::from_millis(10);

/// While it watches the clock, the loop looks so often for anything but packets.
const LOOK: Span = Span::from_millis(1);

/// A running link.
pub struct Session<'a> {
    /// What carries the packets.
    pub pump: Pump<'a>,
    scenario: &'a Scenario,
    household: Household,
    control: Control,
    signals: Signals,
    /// What is not a packet: news, signals, wishes.
    others: Epoll,
    waiting: Waiting,
    /// Whether the host lets this thread go first.
    pub realtime_priority: bool,
    status: Option<Status>,
    exit: Option<Exit>,
}

/// What can be ready beside packets, as a number for the kernel to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    News,
    Signals,
    Control,
}

impl<'a> Session<'a> {
    /// A link whose command waits to begin.
    ///
    /// # Errors
    /// Where the host cannot tell of signals or wishes.
    pub fn new(
        pump: Pump<'a>,
        scenario: &'a Scenario,
        household: Household,
        control: Control,
        waiting: Waiting,
        status: Option<Status>,
    ) -> Result<Self, LinkError> {
        let prepare = || -> nix::Result<(Signals, Epoll)> {
            let signals = Signals::take()?;
            let others = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            let event = |other| EpollEvent::new(EpollFlags::EPOLLIN, other as u64);
            others.add(household.descriptor(), event(Other::News))?;
            others.add(signals.as_fd(), event(Other::Signals))?;
            others.add(control.as_fd(), event(Other::Control))?;
            Ok((signals, others))
        };
        let (signals, others) =
            prepare().map_err(|error| LinkError::Host("nothing can be waited for", error.into()))?;
        // The kernel would else put off what this thread waits for, by 50 µs, to save power.
        let _ = nix::sys::prctl::set_timerslack(1);
        let realtime_priority = match waiting {
            Waiting::Sleeping => sys::real_time(),
            Waiting::Precise => sys::largest_share(),
        };
        Ok(Self { pump, scenario, household, control, signals, others, waiting, realtime_priority, status, exit: None })
    }

    /// Lets the command begin, and carries packets until all programs have ended.
    ///
    /// # Errors
    /// Where the link cannot be kept.
    pub fn run(&mut self) -> Result<Exit, LinkError> {
        self.household.go()?;
        let ended = self.carry().map_err(LinkError::host("the link cannot be kept"));
        // The terminal is whole again before anything else is said.
        drop(self.status.take());
        ended?;
        self.exit.ok_or(LinkError::ParentGone)
    }

    fn carry(&mut self) -> io::Result<()> {
        let (mut last_packet, mut last_look) = (Instant::ZERO, Instant::ZERO);
        let mut ready = [true; 2];
        loop {
            let mut any = false;
            for (direction, ready) in Direction::BOTH.into_iter().zip(ready) {
                any |= ready && self.pump.take_in(direction)?;
            }
            let [down, up] = self.pump.hand_over()?;
            any |= down || up;
            let now = self.pump.clock.now();
            if any {
                last_packet = now;
            }
            let wakeup = self.pump.next_wakeup();
            let watches = self.waiting == Waiting::Precise && (wakeup.is_some() || now < last_packet + LINGER);
            // The kernel often answers a packet before it returns from taking it: to read is cheaper than to ask first.
            ready = if watches { [true; 2] } else { [up, down] };
            if ready.contains(&true) && now < last_look + LOOK {
                continue;
            }
            let patience = match wakeup {
                _ if watches => Some(Span::ZERO),
                Some(wakeup) => Some(wakeup.since(now.min(wakeup))),
                None => None,
            };
            last_look = now;
            let Some(found) = self.look(patience)? else { return Ok(()) };
            ready = found;
        }
    }

    /// Waits until something is ready, at most for `patience`, and sees to all but packets. At which ends packets wait,
    /// the server's first; `None` when all is over.
    fn look(&mut self, patience: Option<Span>) -> io::Result<Option<[bool; 2]>> {
        let mut patience = patience;
        if let Some(status) = &mut self.status {
            let until = status.show(self.pump.clock.now(), &self.pump);
            patience = Some(patience.map_or(until, |patience| patience.min(until)));
        }
        let (server, mobile) = self.pump.ports();
        let mut descriptors =
            [server.as_fd(), mobile.as_fd(), self.others.0.as_fd()].map(|each| PollFd::new(each, PollFlags::POLLIN));
        let timeout = patience.map(|patience| TimeSpec::from_duration(Duration::from_nanos(patience.as_nanos())));
        match ppoll(&mut descriptors, timeout, None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Some([true; 2])),
            Err(error) => return Err(error.into()),
        }
        let [down, up, others] = descriptors.map(|each| each.any().unwrap_or(true));
        if others && !self.see_to_others()? {
            return Ok(None);
        }
        Ok(Some([down, up]))
    }

    /// Sees to all that is no packet. Whether the link goes on.
    fn see_to_others(&mut self) -> io::Result<bool> {
        let mut events = [EpollEvent::empty(); 4];
        let count = self.others.wait(&mut events, EpollTimeout::ZERO)?;
        for event in &events[..count] {
            match event.data() {
                data if data == Other::News as u64 => match self.household.news() {
                    Some(News::Command(exit)) => self.exit = Some(exit),
                    Some(News::Server(exit)) => {
                        if self.exit.is_none() {
                            eprintln!("airpath: the server {exit}");
                        }
                    }
                    None => return Ok(false),
                },
                data if data == Other::Signals as u64 => {
                    while let Some(signal) = self.signals.next_for_command() {
                        self.household.signal(signal);
                    }
                }
                _ => self.control.serve(&mut self.pump, self.scenario),
            }
        }
        Ok(true)
    }
}
