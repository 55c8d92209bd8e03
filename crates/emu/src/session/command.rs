//! The operator of a link: the programs at its ends.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use airpath_core::{Instant, Span};
use airpath_scenario::Scenario;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::Operator;
use crate::control::{self, Request};
use crate::forwarder::Forwarder;
use crate::message::message;
use crate::radio_state::RadioState;
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
    /// When it started.
    pub start: Instant,
    /// When it ended.
    pub end: Option<Instant>,
    /// The state of the radio, if the status contains it.
    pub radio: Option<Rc<Cell<RadioState>>>,
    budget: Span,
}

impl<'a> Command<'a> {
    /// The programs of a link before its command starts. `budget` is that of the lateness.
    pub fn new(scenario: &'a Scenario, supervisor: Supervisor, budget: Span) -> Self {
        Self { scenario, supervisor, exit: None, start: Instant::ZERO, end: None, radio: None, budget }
    }

    fn status(&self, forwarder: &Forwarder<'_>) -> Value {
        let mut status = control::status(forwarder);
        status["budget_s"] = self.budget.as_secs_f64().into();
        if let Some(radio) = &self.radio {
            status["radio"] = radio.get().words().into();
        }
        status
    }
}

impl Operator for Command<'_> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.supervisor.descriptor()
    }

    fn handle_event(&mut self, forwarder: &mut Forwarder<'_>) -> bool {
        match self.supervisor.next_event() {
            Some(ChildEvent::Command(exit)) => {
                self.exit = Some(exit);
                self.end = Some(forwarder.clock.now());
            }
            Some(ChildEvent::Server(exit)) => {
                if self.exit.is_none() {
                    message(format_args!("airpath: the server {exit}"));
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
            Request::Status => Ok(Some(self.status(forwarder))),
            Request::Change(change) => control::change(forwarder, self.scenario, &change).map(Some),
            Request::Reload => Err("a link has no configuration to reload; change it by `change`".to_owned()),
            Request::TakeOver(_) => Err("only a live proxy can be taken over".to_owned()),
        }
    }
}
