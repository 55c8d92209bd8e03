//! Signals to this process are forwarded to the command.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that a user sends to control a program.
const FOR_THE_COMMAND: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];

/// Blocks these signals for this process until it is dropped.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals and collects them from now on.
    pub fn take() -> nix::Result<Self> {
        let taken: SigSet = FOR_THE_COMMAND.into_iter().collect();
        let before = SigSet::thread_get_mask()?;
        taken.thread_block()?;
        let descriptor = SignalFd::with_flags(&taken, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { descriptor, before })
    }

    /// The next signal to forward. A terminal sends its signals to the command as well, so those
    /// are skipped.
    pub fn next_for_command(&mut self) -> Option<Signal> {
        while let Ok(Some(signal)) = self.descriptor.read_signal() {
            // signal(7): a code above zero is the kernel's, at or below zero that of a process.
            if signal.ssi_code <= 0 {
                return Signal::try_from(signal.ssi_signo as i32).ok();
            }
        }
        None
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came too late for the command does not end this process afterwards.
        while let Ok(Some(_)) = self.descriptor.read_signal() {}
        let _ = self.before.thread_set_mask();
    }
}
