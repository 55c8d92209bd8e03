//! Exchanges over one TCP connection: a remote terminal, or mail.

use std::sync::Arc;

use airpath_app::exchanges::{Client, ClientStep, Plan, Script, Server};
use airpath_core::{AppStep, Context, Instant, RandomStream};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Negotiated, Segment};

use super::Identity;
use super::connections::Connections;
use crate::network::Network;

/// Exchanges in progress.
pub struct ExchangesFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The workload.
    pub plan: Plan,
    /// The exchanges.
    pub script: Arc<Script>,
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// The end that sends requests.
    pub client: Client,
    /// Negotiated options of the connection.
    pub negotiated: Option<Negotiated>,
    connections: Connections<Server>,
    /// Bytes of the responses that are complete.
    delivered: u64,
    aborted: Option<String>,
    over: bool,
}

impl ExchangesFlow {
    /// Exchanges that wait for their start; a generated session draws from `random`.
    pub fn new(identity: Identity, plan: &Plan, tcp: &Settings, mut random: RandomStream) -> Self {
        let script = plan.script(&mut random);
        Self {
            client: Client::new(Arc::clone(&script), identity.start),
            identity,
            plan: plan.clone(),
            script,
            tcp: tcp.clone(),
            negotiated: None,
            connections: Connections::new(Arc::clone(&tcp.config), false),
            delivered: 0,
            aborted: None,
            over: false,
        }
    }

    /// Whether all responses have arrived and the connection is closed, or was aborted.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Why it was aborted, if it was.
    pub fn cause(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    pub(super) fn receive(&mut self, now: Instant, side: Side, segment: &Segment, cx: &mut Context<'_>) {
        self.connections.receive(now, side, segment, cx);
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if side == Side::Mobile && self.connections.opened() == 0 && now >= self.identity.start {
            self.identity.report(network, now, side, AppStep::Started, 0);
            self.connections.open(now, &self.identity, Server::new(Arc::clone(&self.script)), network);
        }
        self.connections.handle_timeouts(now, side, &self.identity, network);
        self.proceed(now, side, network)
    }

    /// Runs the application of `side`, then sends segments.
    pub(super) fn proceed(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if self.over {
            return None;
        }
        let application = match side {
            Side::Mobile => {
                self.step_client(now, network);
                self.client.next_wakeup()
            }
            Side::Server => self.connections.last_mut().and_then(|pair| {
                pair.application.step(now, &mut pair.server);
                pair.application.next_wakeup()
            }),
        };
        self.connections.transmit(now, side, &self.identity, network);
        self.aborted = self.connections.settle(side);
        if self.aborted.is_some() {
            self.over = true;
            self.identity.report(network, now, side, AppStep::Aborted, self.delivered);
            return None;
        }
        self.over = self.connections.is_silent() && self.client.is_complete();
        let timers = self.connections.next_wakeup(side);
        timers.into_iter().chain(application.filter(|_| !self.over)).min()
    }

    fn step_client(&mut self, now: Instant, network: &mut Network<'_>) {
        let Some(pair) = self.connections.last_mut() else { return };
        loop {
            let step = match self.client.step(now, &mut pair.mobile) {
                ClientStep::Nothing => return,
                ClientStep::Request => continue,
                ClientStep::Connected => {
                    self.negotiated = Some(pair.mobile.negotiated());
                    AppStep::Connected
                }
                ClientStep::Response(sequence, delay) => {
                    self.delivered += u64::from(self.script.exchanges[sequence as usize].response);
                    AppStep::Arrived { sequence, delay }
                }
            };
            self.identity.report(network, now, Side::Mobile, step, self.delivered);
            if self.client.is_complete() {
                self.identity.report(network, now, Side::Mobile, AppStep::Finished, self.delivered);
            }
        }
    }
}
