//! The operator of a link: the programs at its ends.

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use airpath_scenario::Scenario;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::Operator;
use crate::control::{self, Request};
use crate::forwarder::Forwarder;
use crate::supervisor::{ChildEvent, Exit, Supervisor};

/// The programs of a link.
#[derive(Debug)]
pub struct Command<'a> {
    /// The link.
    pub scenario: &'a Scenario,
    /// Runs the programs.
    pub supervisor: Supervisor,
    /// How the command ended.
    pub exit: Option<Exit>,
}

impl Operator for Command<'_> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.supervisor.descriptor()
    }

    fn handle_event(&mut self, _: &mut Forwarder<'_>) -> bool {
        match self.supervisor.next_event() {
            Some(ChildEvent::Command(exit)) => self.exit = Some(exit),
            Some(ChildEvent::Server(exit)) => {
                if self.exit.is_none() {
                    eprintln!("airpath: the server {exit}");
                }
            }
            None => return false,
        }
        true
    }

    fn handle_signal(&mut self, signal: Signal, _: &mut Forwarder<'_>) -> bool {
        self.supervisor.signal(signal);
        true
    }

    /// A terminal sends its signals to the command as well.
    fn takes_terminal_signals(&self) -> bool {
        false
    }

    fn handle_request(
        &mut self,
        request: Request,
        _: &UnixStream,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Option<Value>, String> {
        match request {
            Request::Status => Ok(Some(control::status(forwarder))),
            Request::Change(change) => control::change(forwarder, self.scenario, &change).map(Some),
            Request::Reload => Err("a link has no configuration to reload; change it by `change`".to_owned()),
            Request::TakeOver(_) => Err("only a live proxy can be taken over".to_owned()),
        }
    }
}
