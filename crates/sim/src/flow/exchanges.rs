//! Exchanges over one TCP connection: a remote terminal, mail, or a video over HTTP.

use std::sync::Arc;

use airpath_app::exchanges::{Application, Client, ClientStep, Plan, Script, Server};
use airpath_app::{StreamEnd, Transport, adaptive};
use airpath_core::{AppStep, Context, Instant, RandomStream};
use airpath_path::Side;
use airpath_scenario::tcp::Settings;
use airpath_tcp::{Negotiated, Segment};

use super::Identity;
use super::connections::Connections;
use crate::network::Network;

/// Exchanges in progress.
pub struct ExchangesFlow<A> {
    /// Name, mobile, start.
    pub identity: Identity,
    /// TCP settings of both ends.
    pub tcp: Settings,
    /// The end that sends requests.
    pub client: A,
    /// Negotiated options of the connection.
    pub negotiated: Option<Negotiated>,
    /// The script with which both ends begin.
    script: Arc<Script>,
    connections: Connections<Server>,
    /// Bytes of the responses that are complete.
    delivered: u64,
    /// When and why the connection was lost before all responses had arrived.
    aborted: Option<(Instant, String)>,
    finished: bool,
    over: bool,
}

/// A client with a script that is decided before it begins.
pub struct Scripted {
    /// The workload.
    pub plan: Plan,
    /// The client.
    pub client: Client,
}

impl Application for Scripted {
    fn step(&mut self, now: Instant, transport: &mut impl Transport) -> ClientStep {
        self.client.step(now, transport)
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.client.next_wakeup()
    }
    fn is_complete(&self) -> bool {
        self.client.is_complete()
    }
    fn exchanges(&self) -> &Client {
        &self.client
    }
}

impl ExchangesFlow<Scripted> {
    /// Exchanges that wait for their start; a generated session draws from `random`.
    pub fn scripted(identity: Identity, plan: &Plan, tcp: &Settings, mut random: RandomStream) -> Self {
        let script = plan.script(&mut random);
        let client = Client::new(Arc::clone(&script), identity.start);
        Self::new(identity, Scripted { plan: plan.clone(), client }, script, tcp)
    }
}

impl ExchangesFlow<adaptive::Client> {
    /// A video that waits for its start.
    pub fn adaptive(identity: Identity, settings: &Arc<adaptive::Settings>, tcp: &Settings) -> Self {
        let script = Arc::new(settings.script());
        let client = adaptive::Client::new(Arc::clone(settings), Arc::clone(&script), identity.start);
        Self::new(identity, client, script, tcp)
    }
}

impl<A: Application> ExchangesFlow<A> {
    fn new(identity: Identity, client: A, script: Arc<Script>, tcp: &Settings) -> Self {
        Self {
            client,
            identity,
            script,
            tcp: tcp.clone(),
            negotiated: None,
            connections: Connections::new(Arc::clone(&tcp.config), false),
            delivered: 0,
            aborted: None,
            finished: false,
            over: false,
        }
    }

    /// Whether all responses have arrived and the connection is closed, or was aborted.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Why it was aborted, if it was.
    pub fn cause(&self) -> Option<&str> {
        self.aborted.as_ref().map(|(_, cause)| cause.as_str())
    }

    /// When it was aborted, if it was.
    pub fn aborted_at(&self) -> Option<Instant> {
        self.aborted.as_ref().map(|(at, _)| *at)
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
        if let Some(cause) = self.connections.settle(side) {
            if !self.client.exchanges().is_complete() {
                self.aborted = Some((now, cause));
                self.over = true;
                self.identity.report(network, now, side, AppStep::Aborted, self.delivered);
                return None;
            }
            // It was lost only while it closed: nothing is missing.
            self.connections.forget();
        }
        self.over = self.connections.is_silent() && self.client.is_complete();
        let timers = self.connections.next_wakeup(side);
        timers.into_iter().chain(application.filter(|_| !self.over)).min()
    }

    fn step_client(&mut self, now: Instant, network: &mut Network<'_>) {
        // The connection may be closed before the work is over.
        let mut closed = StreamEnd::default();
        loop {
            let step = match self.connections.last_mut() {
                Some(pair) => {
                    let step = self.client.step(now, &mut pair.mobile);
                    pair.application.follow(self.client.exchanges().script());
                    if step == ClientStep::Connected {
                        self.negotiated = Some(pair.mobile.negotiated());
                    }
                    step
                }
                None => self.client.step(now, &mut closed),
            };
            let step = match step {
                ClientStep::Nothing => break,
                ClientStep::Request => continue,
                ClientStep::Connected => AppStep::Connected,
                ClientStep::Response(sequence, delay) => {
                    let exchange = &self.client.exchanges().script().exchanges[sequence as usize];
                    self.delivered += u64::from(exchange.response);
                    AppStep::Arrived { sequence, delay }
                }
            };
            self.identity.report(network, now, Side::Mobile, step, self.delivered);
        }
        if self.client.is_complete() && !self.finished {
            self.finished = true;
            self.identity.report(network, now, Side::Mobile, AppStep::Finished, self.delivered);
        }
    }
}
