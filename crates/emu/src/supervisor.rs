//! The programs of a link, in a PID namespace of their own, so that every process they start ends
//! with the link.
//!
//! The *init* process, the first of the namespace, starts the server and the command, forwards
//! signals, reports how they ended, and exits. Then the kernel kills every process in the
//! namespace, daemons included. The kernel kills init itself when the emulator ends, for whatever
//! reason.

mod environment;
mod init;

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, close, pipe2};

use crate::namespace::NetworkNamespace;
use crate::{LinkError, sys};

pub use environment::Environment;

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<CString>);

const SHELL: (&str, &str) = ("/bin/sh", "-c");

impl Program {
    /// The program `words[0]`, searched in `PATH`, with the other words as its arguments.
    ///
    /// # Errors
    /// If there is no program, or a word contains a zero byte.
    pub fn new<T: AsRef<std::ffi::OsStr>>(words: &[T]) -> io::Result<Self> {
        let words = words.iter().map(|word| CString::new(word.as_ref().as_bytes()));
        let words = words.collect::<Result<Vec<_>, _>>().map_err(io::Error::from)?;
        if words.first().is_none_or(|first| first.is_empty()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no command"));
        }
        Ok(Self(words))
    }

    /// A command line for the shell.
    pub fn of_shell(line: &str) -> io::Result<Self> {
        Self::new(&[SHELL.0, SHELL.1, line])
    }

    /// Its name and its arguments.
    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// The command line, if the program is the shell.
    pub fn shell_line(&self) -> Option<String> {
        match self.words().as_slice() {
            [shell, option, line] if (shell.as_str(), option.as_str()) == SHELL => Some(line.clone()),
            _ => None,
        }
    }
}

/// What to run, and where.
#[derive(Debug)]
pub struct Programs<'a> {
    /// The command, at the mobile.
    pub command: &'a Program,
    /// The server at the other end, with its network; none on a link to the host's network.
    pub server: Option<(&'a Program, &'a NetworkNamespace)>,
    /// File for the server's output; without it, standard error.
    pub server_log: Option<PathBuf>,
    /// The mobile's network.
    pub mobile: &'a NetworkNamespace,
    /// Files and variables for the programs.
    pub environment: Environment,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It could not be executed: the number of the system error.
    NotExecuted(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "was ended by {signal}"),
                Err(_) => write!(f, "was ended by signal {number}"),
            },
            Self::NotExecuted(error) => write!(f, "cannot be executed: {}", io::Error::from_raw_os_error(error)),
        }
    }
}

/// An event that init reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// The server has ended.
    Server(Exit),
    /// The command has ended; init exits soon.
    Command(Exit),
}

/// The running programs.
#[derive(Debug)]
pub struct Supervisor {
    init: Pid,
    /// A byte here starts the command.
    go: File,
    events: File,
}

impl Supervisor {
    /// Starts init and the server, if there is one. The command starts at [`Self::go`].
    ///
    /// # Errors
    /// If the host does not permit it.
    pub fn start(programs: &Programs<'_>) -> Result<Self, LinkError> {
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(|error| LinkError::Host("a pipe cannot be made", error.into()));
        let ((begin, go), (events, report)) = (pipe()?, pipe()?);
        let ours = [go.as_raw_fd(), events.as_raw_fd()];
        let init = sys::fork(true, || {
            // Open in init, they would keep the pipes open after the emulator has ended.
            for end in ours {
                let _ = close(end);
            }
            init::run(programs, begin.as_fd(), report.as_fd())
        });
        let init = init.map_err(|error| LinkError::Namespace("PID", error))?;
        Ok(Self { init, go: go.into(), events: events.into() })
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If init has ended.
    pub fn go(&mut self) -> Result<(), LinkError> {
        self.go.write_all(&[1]).map_err(|_| LinkError::InitGone)
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        // This fails only if init has ended, and then there is no process to signal.
        let _ = kill(self.init, signal);
    }

    /// The first process in the PID namespace of the programs.
    pub fn init(&self) -> Pid {
        self.init
    }

    /// Whether a program runs in the namespace, besides init. Without `/proc` it may be.
    pub fn has_programs(&self) -> bool {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.init));
        children.map_or(true, |children| !children.trim().is_empty())
    }

    /// Becomes readable when there is an event.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Waits for the next event; `None` when init has ended.
    pub fn next_event(&mut self) -> Option<ChildEvent> {
        let mut record = [0; ChildEvent::LENGTH];
        self.events.read_exact(&mut record).ok()?;
        ChildEvent::from_bytes(record)
    }
}

impl Drop for Supervisor {
    /// Kills every program that still runs, and waits for init.
    fn drop(&mut self) {
        let _ = kill(self.init, Signal::SIGKILL);
        let _ = waitpid(self.init, None);
    }
}

impl ChildEvent {
    const LENGTH: usize = 6;

    fn to_bytes(self) -> [u8; Self::LENGTH] {
        let (who, exit) = match self {
            Self::Server(exit) => (0, exit),
            Self::Command(exit) => (1, exit),
        };
        let (how, number) = match exit {
            Exit::Code(code) => (0, code),
            Exit::Signal(signal) => (1, signal),
            Exit::NotExecuted(error) => (2, error),
        };
        let [a, b, c, d] = number.to_ne_bytes();
        [who, how, a, b, c, d]
    }

    fn from_bytes([who, how, a, b, c, d]: [u8; Self::LENGTH]) -> Option<Self> {
        let number = i32::from_ne_bytes([a, b, c, d]);
        let exit = match how {
            0 => Exit::Code(number),
            1 => Exit::Signal(number),
            2 => Exit::NotExecuted(number),
            _ => return None,
        };
        match who {
            0 => Some(Self::Server(exit)),
            1 => Some(Self::Command(exit)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_pipe() {
        for exit in [Exit::Code(0), Exit::Code(255), Exit::Signal(9), Exit::NotExecuted(2)] {
            for event in [ChildEvent::Server(exit), ChildEvent::Command(exit)] {
                assert_eq!(ChildEvent::from_bytes(event.to_bytes()), Some(event));
            }
        }
    }

    #[test]
    fn a_program_is_its_words() {
        assert!(Program::new::<&str>(&[]).is_err());
        assert!(Program::new(&["", "x"]).is_err());
        assert!(Program::new(&["a\0b"]).is_err());
        let curl = Program::new(&["curl", "-v"]).unwrap();
        assert_eq!((curl.words(), curl.shell_line()), (vec!["curl".to_owned(), "-v".to_owned()], None));
        assert_eq!(Program::of_shell("a b").unwrap().shell_line().as_deref(), Some("a b"));
    }
}
