//! The operator of a live proxy: metrics, signals, requests, and changes of its configuration.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use airpath_core::Span;
use airpath_scenario::LiveConfig;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::keeper::{Finding, Keeper};
use super::metrics::MetricsServer;
use super::rules::RulePlan;
use super::state::State;
use super::takeover;
use crate::LinkError;
use crate::control::{self, Offer, Request};
use crate::forwarder::Forwarder;
use crate::message::message;
use crate::session::Operator;

/// The operator of a live proxy.
#[derive(Debug)]
pub struct RouterOperator {
    /// The file of the configuration.
    pub file: PathBuf,
    /// The present configuration.
    pub config: LiveConfig,
    /// Installs the routing rules.
    pub keeper: Keeper,
    /// Serves metrics.
    pub metrics: MetricsServer,
    /// Events of these two.
    events: Epoll,
    /// Time of day when the clock was zero.
    pub started: Span,
    /// Whether another process has taken over.
    pub is_taken_over: bool,
}

/// The numbers of the sources in `events`.
const METRICS: u64 = 0;
const KEEPER: u64 = 1;

/// The keys that can be changed while the proxy runs.
const CHANGEABLE: &str = "`mobiles`, `interfaces` and `[proxy]`";

impl RouterOperator {
    /// The operator of a proxy with this configuration, which stands in `file`.
    ///
    /// # Errors
    /// If the host cannot report events.
    pub fn new(
        file: PathBuf,
        config: LiveConfig,
        keeper: Keeper,
        metrics: MetricsServer,
        started: Span,
    ) -> Result<Self, LinkError> {
        let prepare = || {
            let events = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            events.add(metrics.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, METRICS))?;
            // The end of the keeper stays readable: it is reported once.
            events.add(keeper.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, KEEPER))?;
            Ok(events)
        };
        let events =
            prepare().map_err(|error: Errno| LinkError::Host("the event loop cannot be set up", error.into()))?;
        Ok(Self { file, config, keeper, metrics, events, started, is_taken_over: false })
    }

    /// Reports what the keeper has found, and its end.
    fn report_keeper(&mut self) {
        let device = &self.config.device;
        while let Some(finding) = self.keeper.finding() {
            let found = match finding {
                Finding::Down => {
                    format!("the interface `{device}` is down: until it is up, packets do not enter the proxy")
                }
                Finding::Up => format!("the interface `{device}` is up: packets enter the proxy"),
                Finding::Restored => {
                    "routing rules of the proxy, or its routes, had been removed; they are installed again".to_owned()
                }
            };
            message(format_args!("airpath: {found}"));
        }
        if self.keeper.has_ended() {
            message(format_args!("airpath: {}", LinkError::KeeperEnded));
        }
    }

    /// Checks whether the configuration can change to `new` while the proxy runs.
    fn check_change(&self, new: &LiveConfig) -> Result<(), String> {
        let mut kept = self.config.clone();
        (kept.mobiles, kept.interfaces, kept.proxy) = (new.mobiles.clone(), new.interfaces.clone(), new.proxy.clone());
        if kept != *new {
            return Err(format!("only {CHANGEABLE} can change while the proxy runs"));
        }
        if new.proxy.splits_only() != self.config.proxy.splits_only() {
            return Err("`proxy.budget` cannot change from or to `none`".to_owned());
        }
        Ok(())
    }

    /// Hands over to the process at the other end of `stream`.
    fn hand_over(&mut self, offer: &Offer, stream: &UnixStream, forwarder: &mut Forwarder<'_>) -> Result<(), String> {
        self.check_change(&takeover::accept(offer)?)?;
        let process = takeover::hand_over(stream, forwarder, self.started, (&self.keeper, self.metrics.listener()))?;
        message(format_args!("airpath: process {process} has taken over"));
        self.is_taken_over = true;
        Ok(())
    }

    /// Reads the configuration again and takes it over. After an error the old one is in use.
    fn reload(&mut self, forwarder: &mut Forwarder<'_>) -> Result<(), String> {
        let name = self.file.display();
        let text = fs::read_to_string(&self.file).map_err(|error| format!("{name}: {error}"))?;
        let new = LiveConfig::read(&text, &name.to_string()).map_err(|error| error.to_string())?;
        self.check_change(&new).map_err(|error| format!("{name}: {error}; start it again"))?;
        self.keeper.install(&RulePlan::of(&new))?;
        self.report_keeper();
        forwarder.router_mut().into_iter().for_each(|router| router.reconfigure(&new));
        let now = forwarder.clock.now();
        if let Some(running) = forwarder.proxy_mut(now) {
            running.reconfigure(new.proxy.clone());
        }
        self.config = new;
        Ok(())
    }
}

impl Operator for RouterOperator {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.events.0.as_fd()
    }

    fn check(&mut self, forwarder: &mut Forwarder<'_>) {
        if let Some(output) = forwarder.check_outputs() {
            message(format_args!("airpath: the {output} cannot be written any more; the proxy continues"));
        }
    }

    fn handle_event(&mut self, forwarder: &mut Forwarder<'_>) -> bool {
        let mut events = [EpollEvent::empty(); 2];
        let count = self.events.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            match event.data() {
                KEEPER => self.report_keeper(),
                _ => self.metrics.serve(|| State::of(forwarder).expect("the path of a router is a proxy")),
            }
        }
        true
    }

    fn handle_signal(&mut self, signal: Signal, forwarder: &mut Forwarder<'_>) -> bool {
        match signal {
            Signal::SIGHUP => match self.reload(forwarder) {
                Ok(()) => message("airpath: the configuration was read again"),
                Err(error) => message(format_args!("airpath: {error}; the old configuration stays in use")),
            },
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGQUIT => return false,
            _ => {}
        }
        true
    }

    fn takes_terminal_signals(&self) -> bool {
        true
    }

    fn is_taken_over(&self) -> bool {
        self.is_taken_over
    }

    fn handle_request(
        &mut self,
        request: Request,
        stream: &UnixStream,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Option<Value>, String> {
        match request {
            Request::Status => {
                let mut status = control::status(forwarder);
                status["proxy"] = State::of(forwarder).map_or(Value::Null, |state| state.to_json());
                status["proxy"]["device"] = self.config.device.as_str().into();
                Ok(Some(status))
            }
            Request::Change(_) => {
                Err("a live proxy has no conditions to change; edit its configuration and send `reload`".to_owned())
            }
            Request::Reload => {
                self.reload(forwarder).map_err(|error| format!("{error}; the old configuration stays in use"))?;
                Ok(Some(json!({ "time_s": forwarder.clock.now().as_secs_f64() })))
            }
            Request::TakeOver(offer) => self.hand_over(&offer, stream, forwarder).map(|()| None),
        }
    }
}
