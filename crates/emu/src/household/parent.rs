//! The first process of the programs' PID namespace: starts them, passes signals on, tells how they end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, pipe2, read, setpgid, write};

use super::{Exit, News, Program, Programs};
use crate::namespace::{NetworkNamespace, capability};
use crate::sys;

/// Programs have this many rounds of 20 ms to end by themselves once the command has ended.
const PATIENCE_ROUNDS: u32 = 50;
const PATIENCE_ROUND: u16 = 20;

/// What a program in a user namespace of ours needs to put a link of its own into this one.
const KEPT: [u8; 4] = [capability::NET_BIND_SERVICE, capability::NET_ADMIN, capability::NET_RAW, capability::SYS_ADMIN];

/// Runs the programs until the command has ended. `begin` gives a byte when the command may start, and its end when the
/// emulator is gone; news goes to `tell`.
pub fn run(programs: &Programs<'_>, begin: BorrowedFd<'_>, tell: BorrowedFd<'_>) -> i32 {
    let own = SigSet::all();
    if nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_err() || own.thread_block().is_err() {
        return 1;
    }
    let Ok(signals) = SignalFd::with_flags(&own, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC) else { return 1 };
    programs.surroundings.enter();
    let mut family = Family { tell, server: None, command: None };
    if let Some((program, network)) = programs.server {
        match start(program, network, programs, Role::Server) {
            Ok(child) => family.server = Some(child),
            Err(error) => family.tell(News::Server(Exit::NotExecuted(error as i32))),
        }
    }
    let mut waits_to_begin = true;
    loop {
        let mut ready = [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(begin, PollFlags::POLLIN)];
        // Once the command runs, only signals are of interest.
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
                Ok(child) => family.command = Some(child),
                Err(error) => {
                    family.tell(News::Command(Exit::NotExecuted(error as i32)));
                    return 0;
                }
            }
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            match Signal::try_from(signal.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) => {}
                // What comes from a terminal has gone to the command, too.
                Ok(signal_for_command) if signal.ssi_code <= 0 => {
                    family.command.map(|command| kill(command, signal_for_command));
                }
                _ => {}
            }
        }
        if family.reap() {
            end_all();
            return 0;
        }
    }
}

struct Family<'a> {
    tell: BorrowedFd<'a>,
    server: Option<Pid>,
    command: Option<Pid>,
}

impl Family<'_> {
    /// Takes note of all who have ended; whether the command is among them.
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
                self.tell(News::Server(exit));
            }
            if self.command == Some(child) {
                self.command = None;
                self.tell(News::Command(exit));
                over = true;
            }
        }
    }

    fn tell(&self, news: News) {
        // If nobody listens any more, the end is near.
        let _ = write(self.tell, &news.to_bytes());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Server,
    Command,
}

/// Starts `program` in `network`. It returns when the program is being executed, or cannot be.
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
    // The pipe closes without a word when the program takes over.
    match File::from(failure).read_exact(&mut error) {
        Ok(()) => {
            let _ = waitpid(child, None);
            Err(Errno::from_raw(i32::from_ne_bytes(error)))
        }
        Err(_) => Ok(child),
    }
}

/// In the new process: becomes `program`, or returns why not.
fn become_program(program: &Program, network: &NetworkNamespace, programs: &Programs<'_>, role: Role) -> i32 {
    let raw = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    if let Err(crate::LinkError::Namespace(_, error)) = network.enter() {
        return raw(error);
    }
    if role == Role::Server
        && let Err(error) = stand_apart(programs)
    {
        return raw(error);
    }
    sys::reset_signals();
    // Root has all that it needs; where the kernel does not let others keep it, a link cannot be put into this one.
    if !nix::unistd::geteuid().is_root() {
        let _ = sys::keep_capabilities(&KEPT);
    }
    raw(sys::execute(&program.0, &programs.surroundings.environment()))
}

/// A server has nothing to do with the terminal, and standard output belongs to the command.
fn stand_apart(programs: &Programs<'_>) -> std::io::Result<()> {
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

/// Ends all processes of the namespace but this one: first they are asked to.
fn end_all() {
    let everyone = Pid::from_raw(-1);
    let _ = kill(everyone, Signal::SIGTERM);
    for _ in 0..PATIENCE_ROUNDS {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(_) => return,
            Ok(WaitStatus::StillAlive) => drop(poll(&mut [], PATIENCE_ROUND)),
            Ok(_) => {}
        }
    }
}
