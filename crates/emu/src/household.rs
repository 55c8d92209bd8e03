//! The programs of a link, in a PID namespace of their own: whatever they start ends with them.
//!
//! The first process of the namespace is the *parent*: it starts the server and the command, passes signals on, tells how
//! they ended, and ends. With it the kernel ends every process in the namespace, daemons included. It is itself ended by
//! the kernel when the emulator ends, however that happens.

mod parent;
mod surroundings;

use std::ffi::CString;
use std::fs::File;
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

pub use surroundings::Surroundings;

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<CString>);

const SHELL: (&str, &str) = ("/bin/sh", "-c");

impl Program {
    /// The program `words[0]`, found along the path, with the other words as its arguments.
    ///
    /// # Errors
    /// Where there is none, or a zero byte in one.
    pub fn new<T: AsRef<std::ffi::OsStr>>(words: &[T]) -> io::Result<Self> {
        let words = words.iter().map(|word| CString::new(word.as_ref().as_bytes()));
        let words = words.collect::<Result<Vec<_>, _>>().map_err(io::Error::from)?;
        if words.first().is_none_or(|first| first.is_empty()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no command"));
        }
        Ok(Self(words))
    }

    /// A line for the shell.
    pub fn of_shell(line: &str) -> io::Result<Self> {
        Self::new(&[SHELL.0, SHELL.1, line])
    }

    /// Its name and its arguments.
    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// The line for the shell that it is, if it is one.
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
    /// The server at the other end, if it is not the outside.
    pub server: Option<(&'a Program, &'a NetworkNamespace)>,
    /// Where the server's words go; nowhere else than where ours go without it.
    pub server_log: Option<PathBuf>,
    /// The mobile's network.
    pub mobile: &'a NetworkNamespace,
    /// What the programs find around them.
    pub surroundings: Surroundings,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was never run: the error of the system.
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
            Self::NotExecuted(error) => write!(f, "cannot be run: {}", io::Error::from_raw_os_error(error)),
        }
    }
}

/// What the parent tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The server has ended.
    Server(Exit),
    /// The command has ended; the parent ends soon.
    Command(Exit),
}

/// The running programs.
#[derive(Debug)]
pub struct Household {
    parent: Pid,
    /// A byte here lets the command begin.
    go: File,
    news: File,
}

impl Household {
    /// Starts the server, if there is one, and all that is needed for the command, which waits for [`Self::go`].
    ///
    /// # Errors
    /// Where the host does not allow it.
    pub fn start(programs: &Programs<'_>) -> Result<Self, LinkError> {
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(|error| LinkError::Host("a pipe cannot be made", error.into()));
        let ((begin, go), (news, tell)) = (pipe()?, pipe()?);
        let ours = [go.as_raw_fd(), news.as_raw_fd()];
        let parent = sys::fork(true, || {
            // Held here, they would hide from the parent that the emulator has gone.
            for end in ours {
                let _ = close(end);
            }
            parent::run(programs, begin.as_fd(), tell.as_fd())
        });
        let parent = parent.map_err(|error| LinkError::Namespace("PID", error))?;
        Ok(Self { parent, go: go.into(), news: news.into() })
    }

    /// Lets the command begin.
    ///
    /// # Errors
    /// Where the parent is gone.
    pub fn go(&mut self) -> Result<(), LinkError> {
        self.go.write_all(&[1]).map_err(|_| LinkError::ParentGone)
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        // It fails only if all is over, and then there is nobody to tell.
        let _ = kill(self.parent, signal);
    }

    /// The process that is the first in the programs' PID namespace.
    pub fn parent(&self) -> Pid {
        self.parent
    }

    /// What can be waited for: it becomes readable when there is news.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// The next news; waits for it. `None` when the parent has ended.
    pub fn news(&mut self) -> Option<News> {
        let mut record = [0; News::LENGTH];
        self.news.read_exact(&mut record).ok()?;
        News::from_bytes(record)
    }
}

impl Drop for Household {
    /// Ends every program that still runs, and waits for the end.
    fn drop(&mut self) {
        let _ = kill(self.parent, Signal::SIGKILL);
        let _ = waitpid(self.parent, None);
    }
}

impl News {
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
    fn news_survives_the_pipe() {
        for exit in [Exit::Code(0), Exit::Code(255), Exit::Signal(9), Exit::NotExecuted(2)] {
            for news in [News::Server(exit), News::Command(exit)] {
                assert_eq!(News::from_bytes(news.to_bytes()), Some(news));
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
