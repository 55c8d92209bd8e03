//! The keeper: a small process with the right to change routing rules. It installs those of the
//! proxy, installs them and its routes again when other programs have removed them, and removes
//! the rules when the proxy has ended, by SIGKILL too.
//!
//! The proxy itself gives up its privileges after set-up, and sends changed plans to the keeper.
//! The keeper answers them, and reports what it has found by itself.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, close, setsid};
use serde::{Deserialize, Serialize};

use super::rules::RulePlan;
use crate::namespace::capability;
use crate::netlink::Netlink;
use crate::{LinkError, sys};

/// The proxy's end of the connection to its keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    /// The keeper, if it is a child of this process.
    process: Option<Pid>,
    /// Whether the rules are removed when this ends.
    is_owned: bool,
    /// Findings that came before an answer.
    findings: VecDeque<Finding>,
}

/// What the keeper has found on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finding {
    /// The TUN interface is down: the kernel has removed the routes to it.
    Down,
    /// It is up again, and the routes were added.
    Up,
    /// Rules or routes were missing, and were installed again.
    Restored,
}

/// What the keeper writes.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    /// The answer to a plan: why it cannot be carried out, if it cannot.
    Answer(Option<String>),
    Finding(Finding),
}

/// Milliseconds between searches for what is missing.
const SEARCH_MS: u16 = 1000;

/// A plan is shorter: 1,000 prefixes of 50 bytes.
const LONGEST_PLAN: u32 = 1 << 20;

impl Keeper {
    /// Starts the keeper. Its rules are those of this network namespace.
    ///
    /// # Errors
    /// If the host does not permit it.
    ///
    /// # Panics
    /// If this process has more than one thread.
    pub fn start() -> Result<Self, LinkError> {
        let failed = LinkError::host;
        let mut netlink = Netlink::open().map_err(failed("routing rules cannot be changed"))?;
        let (ours, theirs) = UnixStream::pair().map_err(failed("no pair of sockets can be made"))?;
        let descriptor = ours.as_raw_fd();
        let process = sys::fork(false, || {
            // Open here, it would keep the connection open after the proxy has ended.
            let _ = close(descriptor);
            run(theirs, &mut netlink)
        })
        .map_err(failed("the keeper of the routing rules cannot be started"))?;
        Ok(Self { stream: ours, process: Some(process), is_owned: true, findings: VecDeque::new() })
    }

    /// The keeper of another process, by its [`AsFd`], to which it belongs until [`Self::adopt`].
    pub fn of_descriptor(descriptor: OwnedFd) -> Self {
        Self { stream: descriptor.into(), process: None, is_owned: false, findings: VecDeque::new() }
    }

    /// From now on it belongs to this process.
    pub const fn adopt(&mut self) {
        self.is_owned = true;
    }

    /// Leaves the rules to another process, which has a copy of the descriptor.
    pub fn release(mut self) {
        self.is_owned = false;
    }

    /// Whether it has ended, so that the rules stay.
    pub fn has_ended(&self) -> bool {
        let mut ends = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        poll(&mut ends, PollTimeout::ZERO).is_ok_and(|number| number > 0)
    }

    /// Lets it remove the rules, and waits for that.
    ///
    /// # Errors
    /// If it has ended before.
    pub fn finish(self) -> Result<(), LinkError> {
        if self.has_ended() { Err(LinkError::KeeperEnded) } else { Ok(()) }
    }

    /// Installs the rules of `plan` in place of earlier ones.
    ///
    /// # Errors
    /// Why they cannot be installed.
    pub fn install(&mut self, plan: &RulePlan) -> Result<(), String> {
        let gone = |_| "the keeper of the routing rules has ended; start the proxy again".to_owned();
        let text = serde_json::to_vec(plan).expect("a plan is made of text and numbers");
        write_message(&mut self.stream, &text).map_err(gone)?;
        loop {
            match read_report(&mut self.stream).map_err(gone)? {
                Report::Answer(error) => return error.map_or(Ok(()), Err),
                Report::Finding(finding) => self.findings.push_back(finding),
            }
        }
    }

    /// The next thing that it has found.
    pub fn finding(&mut self) -> Option<Finding> {
        let mut reports = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        if self.findings.is_empty() && poll(&mut reports, PollTimeout::ZERO).is_ok_and(|number| number > 0) {
            match read_report(&mut self.stream) {
                Ok(Report::Finding(finding)) => self.findings.push_back(finding),
                Ok(Report::Answer(_)) | Err(_) => {}
            }
        }
        self.findings.pop_front()
    }
}

impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Drop for Keeper {
    /// Waits until the keeper has removed the rules.
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        // The keeper closes its end when it has finished.
        let _ = self.stream.read_to_end(&mut Vec::new());
        let _ = self.process.map(|process| waitpid(process, None));
    }
}

fn read_report(stream: &mut UnixStream) -> io::Result<Report> {
    Ok(serde_json::from_slice(&read_message(stream)?)?)
}

fn write_report(stream: &mut UnixStream, report: &Report) -> io::Result<()> {
    let text = serde_json::to_vec(report).expect("a report is made of text");
    write_message(stream, &text)
}

fn write_message(stream: &mut UnixStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(&(text.len() as u32).to_ne_bytes())?;
    stream.write_all(text)
}

fn read_message(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST_PLAN {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text)?;
    Ok(text)
}

/// The keeper: carries out plans until the proxy has ended.
fn run(mut stream: UnixStream, netlink: &mut Netlink) -> i32 {
    // Signals of the terminal, and those to the process group, do not end it.
    let _ = setsid();
    let prepared = SigSet::all().thread_block().map_err(io::Error::from);
    if prepared.and_then(|()| sys::drop_capabilities(&[capability::NET_ADMIN])).is_err() {
        return 1;
    }
    // Another end of an output pipe would keep its reader waiting.
    for standard in 0..3 {
        let _ = close(standard);
    }
    let mut plan: Option<RulePlan> = None;
    let mut is_down = false;
    loop {
        let mut requests = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
        if poll(&mut requests, SEARCH_MS) == Ok(0) {
            let finding = plan.as_ref().and_then(|plan| find(plan, netlink, &mut is_down));
            if finding.is_some_and(|finding| write_report(&mut stream, &Report::Finding(finding)).is_err()) {
                break;
            }
            continue;
        }
        let Ok(text) = read_message(&mut stream) else { break };
        let Ok(next) = serde_json::from_slice::<RulePlan>(&text) else { break };
        let done = next.install(netlink);
        let answer = done.as_ref().err().map(ToString::to_string);
        match (&plan, done) {
            (Some(old), Err(_)) => drop(old.install(netlink)),
            (None, Err(_)) => drop(next.remove(netlink)),
            (_, Ok(())) => plan = Some(next),
        }
        if write_report(&mut stream, &Report::Answer(answer)).is_err() {
            break;
        }
    }
    match plan.map(|plan| plan.remove(netlink)) {
        Some(Err(_)) => 1,
        _ => 0,
    }
}

/// Restores what is missing. Returns what is to be reported.
fn find(plan: &RulePlan, netlink: &mut Netlink, is_down: &mut bool) -> Option<Finding> {
    let (now_down, finding) = match plan.restore(netlink) {
        Ok(true) if *is_down => (false, Some(Finding::Up)),
        Ok(was_missing) => (false, was_missing.then_some(Finding::Restored)),
        Err(error) if error.kind() == io::ErrorKind::NetworkDown => (true, (!*is_down).then_some(Finding::Down)),
        Err(_) => return None,
    };
    *is_down = now_down;
    finding
}
