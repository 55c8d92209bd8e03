//! Signals to this process.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::LinkError;

/// Signals that a user sends to control a program.
const TAKEN: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];

/// Blocks these signals for this process until it is dropped.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals and collects them from now on. Threads that were started before may still
    /// receive them.
    ///
    /// # Errors
    /// If the host does not permit it.
    pub fn take() -> Result<Self, LinkError> {
        Self::try_take().map_err(|error| LinkError::Host("signals cannot be collected", error.into()))
    }

    fn try_take() -> nix::Result<Self> {
        let taken: SigSet = TAKEN.into_iter().collect();
        let before = SigSet::thread_get_mask()?;
        taken.thread_block()?;
        let descriptor = SignalFd::with_flags(&taken, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { descriptor, before })
    }

    /// The next signal; of those of a terminal only if `from_terminal`.
    pub fn next(&mut self, from_terminal: bool) -> Option<Signal> {
        while let Ok(Some(signal)) = self.descriptor.read_signal() {
            // signal(7): a code above zero is the kernel's, at or below zero that of a process.
            if from_terminal || signal.ssi_code <= 0 {
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
        // What came too late does not end this process afterwards.
        while let Ok(Some(_)) = self.descriptor.read_signal() {}
        let _ = self.before.thread_set_mask();
    }
}
