//! The operator of a live proxy: metrics, signals, requests, and changes of its configuration.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use airpath_path::Hop;
use airpath_proxy::Proxy;
use airpath_scenario::LiveConfig;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::keeper::Keeper;
use super::metrics::MetricsServer;
use super::rules::RulePlan;
use super::state::State;
use crate::control::{self, Request};
use crate::forwarder::Forwarder;
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
}

/// The keys that can be changed while the proxy runs.
const CHANGEABLE: &str = "`mobiles`, `interfaces` and `[proxy]`";

impl RouterOperator {
    /// Reads the configuration again and takes it over. After an error the old one is in use.
    fn reload(&mut self, forwarder: &mut Forwarder<'_>) -> Result<(), String> {
        let name = self.file.display();
        let text = fs::read_to_string(&self.file).map_err(|error| format!("{name}: {error}"))?;
        let new = LiveConfig::read(&text, &name.to_string()).map_err(|error| error.to_string())?;
        let mut kept = self.config.clone();
        (kept.mobiles, kept.interfaces, kept.proxy) = (new.mobiles.clone(), new.interfaces.clone(), new.proxy.clone());
        if kept != new {
            return Err(format!("{name}: only {CHANGEABLE} can change while the proxy runs; start it again"));
        }
        if new.proxy.splits_only() != self.config.proxy.splits_only() {
            return Err(format!("{name}: `proxy.budget` cannot change from or to `none`; start it again"));
        }
        self.keeper.install(&RulePlan::of(&new))?;
        forwarder.router_mut().into_iter().for_each(|router| router.reconfigure(&new));
        let now = forwarder.clock.now();
        if let Some(Hop::Middlebox(hop)) = forwarder.hop_mut(now, 0)
            && let Some(running) = hop.downcast_mut::<Proxy>()
        {
            running.reconfigure(new.proxy.clone());
        }
        self.config = new;
        Ok(())
    }
}

impl Operator for RouterOperator {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.metrics.as_fd()
    }

    fn handle_event(&mut self, forwarder: &mut Forwarder<'_>) -> bool {
        self.metrics.serve(|| State::of(forwarder).expect("the path of a router is a proxy"));
        true
    }

    fn handle_signal(&mut self, signal: Signal, forwarder: &mut Forwarder<'_>) -> bool {
        match signal {
            Signal::SIGHUP => match self.reload(forwarder) {
                Ok(()) => eprintln!("airpath: the configuration was read again"),
                Err(error) => eprintln!("airpath: {error}; the old configuration stays in use"),
            },
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGQUIT => return false,
            _ => {}
        }
        true
    }

    fn takes_terminal_signals(&self) -> bool {
        true
    }

    fn handle_request(&mut self, request: Request, forwarder: &mut Forwarder<'_>) -> Result<Value, String> {
        match request {
            Request::Status => {
                let mut status = control::status(forwarder);
                status["proxy"] = State::of(forwarder).map_or(Value::Null, |state| state.to_json());
                Ok(status)
            }
            Request::Change(_) => {
                Err("a live proxy has no conditions to change; edit its configuration and send `reload`".to_owned())
            }
            Request::Reload => {
                self.reload(forwarder).map_err(|error| format!("{error}; the old configuration stays in use"))?;
                Ok(json!({ "time_s": forwarder.clock.now().as_secs_f64() }))
            }
        }
    }
}
