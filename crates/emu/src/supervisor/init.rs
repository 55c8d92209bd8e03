//! The first process of the PID namespace: starts the programs, forwards signals, reports how the
//! programs ended.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use airpath_core::{Instant, Span};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, pipe2, read, setpgid, write};

use super::{ChildEvent, Exit, Program, Programs};
use crate::clock::Clock;
use crate::message::message;
use crate::namespace::{NetworkNamespace, capability};
use crate::sys;

/// After the command has ended, other programs have this time to exit before they are killed.
const GRACE: Span = Span::from_secs(1);

/// Pause between checks whether they have exited.
const CHECK_PAUSE_MS: u16 = 20;

/// Capabilities that a program needs to run a link inside this one.
const KEPT: [u8; 4] = [capability::NET_BIND_SERVICE, capability::NET_ADMIN, capability::NET_RAW, capability::SYS_ADMIN];

/// Runs the programs until the command has ended. A byte from `begin` starts the command; its end
/// of file means that the emulator has ended. Events are written to `report`.
pub fn run(programs: &Programs<'_>, begin: BorrowedFd<'_>, report: BorrowedFd<'_>) -> i32 {
    let own = SigSet::all();
    if nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_err() || own.thread_block().is_err() {
        return 1;
    }
    let Ok(signals) = SignalFd::with_flags(&own, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC) else { return 1 };
    if let Err(error) = programs.environment.enter() {
        message(format_args!("note: programs cannot use the names `server` and `mobile`: {error}"));
        message("  next: use the addresses in AIRPATH_SERVER and AIRPATH_MOBILE; `airpath doctor` explains more");
    }
    let mut children = Children { report, server: None, command: None };
    if let Some((program, network)) = programs.server {
        match start(program, network, programs, Role::Server) {
            Ok(child) => children.server = Some(child),
            Err(error) => children.report(ChildEvent::Server(Exit::NotExecuted(error as i32))),
        }
    }
    let mut waits_to_begin = true;
    loop {
        let mut ready = [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(begin, PollFlags::POLLIN)];
        // When the command runs, only signals are polled.
        let watched = if waits_to_begin { 2 } else { 1 };
        if poll(&mut ready[..watched], PollTimeout::NONE).is_err_and(|error| error != Errno::EINTR) {
            return 1;
        }
        if waits_to_begin && ready[1].any() == Some(true) {
            waits_to_begin = false;
            if read(begin, &mut [0]) != Ok(1) {
                return 1;
            }
            match start(programs.command, programs.mobile, programs, Role::Command) {
                Ok(child) => children.command = Some(child),
                Err(error) => {
                    children.report(ChildEvent::Command(Exit::NotExecuted(error as i32)));
                    return 0;
                }
            }
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            match Signal::try_from(signal.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) => {}
                // A terminal sends its signals to the command as well.
                Ok(signal_for_command) if signal.ssi_code <= 0 => {
                    children.command.map(|command| kill(command, signal_for_command));
                }
                _ => {}
            }
        }
        if children.reap() {
            end_all();
            return 0;
        }
    }
}

struct Children<'a> {
    report: BorrowedFd<'a>,
    server: Option<Pid>,
    command: Option<Pid>,
}

impl Children<'_> {
    /// Reports all children that have ended. Returns whether the command is among them.
    fn reap(&mut self) -> bool {
        let mut over = false;
        loop {
            let (child, exit) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(child, code)) => (child, Exit::Code(code)),
                Ok(WaitStatus::Signaled(child, signal, _)) => (child, Exit::Signal(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(_) => return over,
                Ok(_) => continue,
            };
            if self.server == Some(child) {
                self.server = None;
                self.report(ChildEvent::Server(exit));
            }
            if self.command == Some(child) {
                self.command = None;
                self.report(ChildEvent::Command(exit));
                over = true;
            }
        }
    }

    fn report(&self, event: ChildEvent) {
        // This fails only if the emulator has ended, and then the kernel kills this process.
        let _ = write(self.report, &event.to_bytes());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Server,
    Command,
}

/// Starts `program` in `network`. Returns when it is being executed, or cannot be.
fn start(program: &Program, network: &NetworkNamespace, programs: &Programs<'_>, role: Role) -> Result<Pid, Errno> {
    let (failure, fails) = pipe2(OFlag::O_CLOEXEC)?;
    let child = sys::fork(false, || {
        let error = become_program(program, network, programs, role);
        let _ = write(fails.as_fd(), &error.to_ne_bytes());
        127
    });
    drop(fails);
    let child = child.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
    let mut error = [0; 4];
    // The pipe is closed, and empty, when the program has been executed.
    match File::from(failure).read_exact(&mut error) {
        Ok(()) => {
            let _ = waitpid(child, None);
            Err(Errno::from_raw(i32::from_ne_bytes(error)))
        }
        Err(_) => Ok(child),
    }
}

/// In the new process: executes `program`, or returns the error.
fn become_program(program: &Program, network: &NetworkNamespace, programs: &Programs<'_>, role: Role) -> i32 {
    let raw = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    if let Err(crate::LinkError::Namespace(_, error)) = network.enter() {
        return raw(error);
    }
    super::Environment::show_interfaces();
    if role == Role::Server
        && let Err(error) = detach(programs)
    {
        return raw(error);
    }
    sys::reset_signals();
    // Root has all capabilities. If others cannot keep them, a link inside this one is not
    // possible.
    if !nix::unistd::geteuid().is_root() {
        let _ = sys::keep_capabilities(&KEPT);
    }
    raw(sys::execute(&program.0, &programs.environment.variables()))
}

/// Detaches a server from the terminal; standard output belongs to the command.
fn detach(programs: &Programs<'_>) -> std::io::Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    dup2_stdin(File::open("/dev/null")?)?;
    match &programs.server_log {
        Some(path) => {
            let log = OpenOptions::new().create(true).append(true).open(path)?;
            dup2_stdout(&log)?;
            dup2_stderr(&log)?;
        }
        None => dup2_stdout(std::io::stderr())?,
    }
    std::io::stdout().flush()
}

/// Sends SIGTERM to all other processes of the namespace, and waits for the grace period.
fn end_all() {
    let everyone = Pid::from_raw(-1);
    let _ = kill(everyone, Signal::SIGTERM);
    let clock = Clock::start();
    while clock.now() < Instant::ZERO + GRACE {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(_) => return,
            Ok(WaitStatus::StillAlive) => drop(poll(&mut [], CHECK_PAUSE_MS)),
            Ok(_) => {}
        }
    }
}
