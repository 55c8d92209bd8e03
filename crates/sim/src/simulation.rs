//! One run of a scenario under the virtual clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_app::{Phase, Transfer};
use airpath_capture::headers::HeaderRecorder;
use airpath_core::{Classes, FlowId, Instant, Seed, Sink, Span, UserId};
use airpath_path::{Change, Hop, Path, Route, Side, Topology};
use airpath_result::summary::Ended;
use airpath_scenario::proxy::HttpConfig;
use airpath_scenario::steering::{Addresses, SteeringConfig};
use airpath_scenario::{Kind, Mobile, Origin, PlannedPath, Scenario, ScenarioError, Users, Work, stream_name};

use crate::capture::Captures;
use crate::flow::{
    DatagramsFlow, ExchangesFlow, Flow, FtpFlow, Identity, PageFlow, PingFlow, QuicTransactionsFlow, QuicTransferFlow,
    StreamFlow, TransactionsFlow, TransferFlow, VoiceFlow,
};
use crate::network::{Network, Node};
use crate::packet_buffer::HTTP_PORT;
use crate::steering::Steering;

/// The stop flag is read once in this number of events.
const STOP_CHECK: u64 = 1 << 12;

/// A run of a scenario.
pub struct Simulation<'a> {
    network: Network<'a>,
    flows: Vec<Flow>,
    unfinished: usize,
    /// Changes of conditions that are still to come, the next one last.
    changes: Vec<Change>,
    /// Time of the next change.
    next_change: Instant,
    end: Instant,
    now: Instant,
    events: u64,
}

/// The objects of a scenario before its run.
pub struct Setup {
    topology: Topology,
    flows: Vec<Flow>,
    changes: Vec<Change>,
    steering: Option<Steering>,
    duration: Span,
}

impl Setup {
    /// Builds the path and the flows of `scenario`, which must have flows.
    ///
    /// # Errors
    /// If there are no flows, or the path cannot be built.
    pub fn new(scenario: &Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        check(scenario)?;
        Self::build(scenario, seed)
    }

    /// Names of the components of `scenario`, by their number, without building its flows.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn names_for(scenario: &Scenario) -> Result<Vec<String>, ScenarioError> {
        check(scenario)?;
        Ok(build_path(scenario, Seed::new(scenario.seed))?.topology.component_names())
    }

    /// The same for a scenario that may have no flows, for a replay.
    ///
    /// # Errors
    /// If the path cannot be built.
    pub fn network(scenario: &Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        if scenario.proxy.as_ref().is_some_and(|proxy| proxy.http.is_some()) {
            let message = "a recording has headers only, so there is no HTTP to read";
            let help = "run the scenario again, or remove the table";
            return Err(ScenarioError::new(message, Origin::default(), "proxy.http").help(help));
        }
        Self::build(scenario, seed)
    }

    fn build(scenario: &Scenario, seed: Seed) -> Result<Self, ScenarioError> {
        let PlannedPath { topology, changes } = build_path(scenario, seed)?;
        let planned = scenario.flows().into_iter().enumerate();
        let carries_text = scenario.proxy.as_ref().is_some_and(|proxy| proxy.http.is_some());
        let flows = planned.map(|(index, planned)| {
            let streams = stream_name(&planned.name, planned.namesakes);
            let random = |part: &str| seed.stream(&format!("flow-{streams}/{part}"));
            let phase = |fixed| Phase::new(fixed, || random("phase"));
            let identity = Identity {
                id: FlowId(index as u32),
                name: planned.name.clone(),
                namesakes: planned.namesakes,
                user: planned.user,
                start: Instant::ZERO + planned.start,
                migrates: planned.steered
                    && scenario.steering.is_some_and(|steering| steering.addresses == Addresses::Two),
                logs_packets: false,
                random: random("tcp"),
            };
            match &planned.work {
                Work::Transfer { transfer, tcp, freezes } => {
                    Flow::Transfer(Box::new(TransferFlow::new(identity, Transfer::clone(transfer), tcp, freezes)))
                }
                Work::Transactions { transactions, tcp } => {
                    Flow::Transactions(Box::new(TransactionsFlow::new(identity, *transactions, tcp)))
                }
                Work::QuicTransfer { transfer, quic } => {
                    Flow::QuicTransfer(Box::new(QuicTransferFlow::new(identity, *transfer, quic, seed)))
                }
                Work::QuicTransactions { transactions, quic } => {
                    Flow::QuicTransactions(Box::new(QuicTransactionsFlow::new(identity, *transactions, quic, seed)))
                }
                Work::Page { session, transport } => {
                    let session = Arc::clone(session);
                    Flow::Page(Box::new(PageFlow::new(identity, session, transport, carries_text, seed)))
                }
                Work::Stream { settings, video, tcp } => {
                    let video = Arc::clone(video);
                    Flow::Stream(Box::new(StreamFlow::new(identity, *settings, video, tcp.as_deref(), random)))
                }
                Work::Voice(settings) => Flow::Voice(Box::new(VoiceFlow::new(identity, *settings, random))),
                Work::Exchanges { plan, tcp } => {
                    Flow::Exchanges(Box::new(ExchangesFlow::scripted(identity, plan, tcp, random("session"))))
                }
                Work::Ftp { settings, tcp } => Flow::Ftp(Box::new(FtpFlow::new(identity, *settings, tcp))),
                Work::Adaptive { settings, tcp } => {
                    Flow::Adaptive(Box::new(ExchangesFlow::adaptive(identity, settings, tcp)))
                }
                Work::Ping(ping, direction, fixed) => {
                    Flow::Ping(Box::new(PingFlow::new(identity, *ping, *direction, phase(*fixed))))
                }
                Work::Datagrams { datagrams, spacing, phase: fixed } => {
                    let bursts = spacing.map(|spacing| (spacing, random("spacing")));
                    Flow::Datagrams(Box::new(DatagramsFlow::new(identity, *datagrams, bursts, phase(*fixed))))
                }
            }
        });
        let mut flows: Vec<Flow> = flows.collect();
        let steering = scenario.steering.map(|config| {
            let mobiles = scenario.mobiles();
            let planned = scenario.flows();
            let of_flows =
                planned.iter().zip(&flows).map(|(planned, flow)| (planned.user, planned.steered, flow.can_migrate()));
            let probes: Vec<Flow> = probes(&config, &mobiles, flows.len(), scenario.duration, seed).collect();
            let of_probes = probes.iter().map(|probe| (probe.identity().user, false, false));
            let steering = Steering::new(config, mobiles.len(), of_flows.chain(of_probes));
            flows.extend(probes);
            steering
        });
        Ok(Self { flows, topology, changes, steering, duration: scenario.duration })
    }

    /// Names of the components, by their number.
    pub fn names(&self) -> Vec<String> {
        self.topology.component_names()
    }

    /// Whether a bearer reads the headers of packets as bytes.
    pub fn inspects_headers(&self) -> bool {
        self.topology.hops.iter().any(|(_, hop)| hop.inspects_headers())
    }

    /// The network without flows, and the changes of conditions that the scenario plans.
    pub(crate) fn into_network<'a>(self, sink: Option<&'a mut (dyn Sink + 'a)>) -> (Network<'a>, Vec<Change>) {
        (Network::new(Path::new(self.topology, sink), 0), self.changes)
    }

    /// Prepares a run that reports events to `sink` and packets to `captures`.
    pub fn start<'a>(mut self, sink: Option<&'a mut (dyn Sink + 'a)>, captures: Option<Captures>) -> Simulation<'a> {
        if sink.as_ref().is_some_and(|sink| sink.wants().intersects(Classes::QUIC)) {
            self.flows.iter_mut().for_each(Flow::log_packets);
        }
        let mut network = Network::new(Path::new(self.topology, sink), self.flows.len());
        network.captures = captures;
        network.steering = self.steering;
        for flow in &self.flows {
            let identity = flow.identity();
            let first: &[Side] = match flow {
                Flow::Datagrams(flow) => &[flow.source()],
                Flow::Ping(flow) => &[flow.source()],
                Flow::Transfer(_) | Flow::QuicTransfer(_) | Flow::Page(_) => &[Side::Mobile],
                Flow::Exchanges(_) | Flow::Adaptive(_) | Flow::Ftp(_) => &[Side::Mobile],
                Flow::Transactions(_) | Flow::QuicTransactions(_) => &[Side::Mobile],
                Flow::Stream(flow) if flow.tcp.is_some() => &[Side::Mobile],
                Flow::Stream(_) | Flow::Voice(_) => &[Side::Server, Side::Mobile],
            };
            for side in first {
                network.events.wake(network.node_of(identity.id, *side), Some(identity.start));
            }
        }
        let mut changes = self.changes;
        changes.reverse();
        Simulation {
            network,
            unfinished: self.flows.iter().filter(|flow| !flow.is_over()).count(),
            flows: self.flows,
            next_change: time_of_last(&changes),
            changes,
            end: Instant::ZERO + self.duration,
            now: Instant::ZERO,
            events: 0,
        }
    }
}

impl<'a> Simulation<'a> {
    /// Runs to the end, or until `stop` is set or the event log or the captures have failed. A
    /// change of conditions comes before all other events at the same time.
    pub fn run(&mut self, stop: &AtomicBool) -> Ended {
        let ended = self.process_events(stop);
        self.network.path.end(self.now);
        ended
    }

    fn process_events(&mut self, stop: &AtomicBool) -> Ended {
        while self.unfinished > 0 {
            let Some((now, node)) = self.network.events.pop() else { return Ended::Duration };
            if now >= self.next_change && self.next_change <= self.end {
                // The change may cause an earlier event than this one.
                self.network.events.wake(node, Some(now));
                self.change();
                continue;
            }
            if now > self.end {
                self.now = self.end;
                return Ended::Duration;
            }
            self.now = now;
            self.events += 1;
            if self.events.is_multiple_of(STOP_CHECK) && (stop.load(Ordering::Relaxed) || self.network.has_failed()) {
                return Ended::Interrupted;
            }
            match self.network.decode_node(node) {
                Node::Hop(hop) => self.serve(now, hop),
                Node::End(flow, side) => {
                    let flow = &mut self.flows[flow.0 as usize];
                    let was_over = flow.is_over();
                    let wakeup = flow.wake(now, side, &mut self.network);
                    self.unfinished -= usize::from(!was_over && flow.is_over());
                    self.network.events.wake(node, wakeup);
                }
            }
        }
        Ended::Finished
    }

    /// Carries out the next change of conditions.
    #[cold]
    fn change(&mut self) {
        let Change { at, hop, command } =
            self.changes.pop().expect("there is a time for the next change only if there is one");
        let done = self.network.command(at, hop, &command);
        done.expect("a scenario whose bearers cannot carry out a change is rejected when it is read");
        self.next_change = time_of_last(&self.changes);
    }

    /// Forwards what has left a hop; flows receive what has arrived.
    #[inline]
    fn serve(&mut self, now: Instant, hop: usize) {
        let Self { network, flows, unfinished, .. } = self;
        network.drain_hop(now, hop, |network, side, packet| {
            let flow = &mut flows[network.flow_index(packet.flow)];
            let was_over = flow.is_over();
            let wakeup = flow.receive(now, side, packet, network);
            *unfinished -= usize::from(!was_over && flow.is_over());
            network.events.wake(network.node_of(packet.flow, side), wakeup);
        });
    }

    /// The time that the run has reached.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Number of events that were processed.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Packets that end points have sent.
    pub const fn packets(&self) -> u64 {
        self.network.packets
    }

    /// Number of packets in the network.
    pub fn packets_inside(&self) -> u64 {
        self.network.packets_inside()
    }

    /// The flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The hops with their names.
    pub fn hops(&self) -> impl Iterator<Item = (&str, &Hop)> {
        self.network.path.hops()
    }

    /// The order in which packets cross the hops.
    pub const fn route(&self) -> &Route {
        self.network.path.route()
    }

    /// Writes the headers of the packets that enter from now on to `headers`.
    pub fn record_headers(&mut self, headers: Option<HeaderRecorder>) {
        self.network.headers = headers;
    }

    /// Ends the captures and the file of headers, and writes buffered packets.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish_captures(&mut self) -> std::io::Result<()> {
        let headers = self.network.headers.take().map_or(Ok(()), HeaderRecorder::finish);
        self.network.captures.take().map_or(Ok(()), Captures::finish).and(headers)
    }
}

/// The probes of the bearers of all mobiles, as flows after the `flows` of the scenario.
fn probes(
    config: &SteeringConfig,
    mobiles: &[Mobile],
    flows: usize,
    duration: Span,
    seed: Seed,
) -> impl Iterator<Item = Flow> {
    let interfaces = ["first", "second"].into_iter().flat_map(move |bearer| mobiles.iter().map(move |it| (it, bearer)));
    interfaces.enumerate().map(move |(user, (mobile, bearer))| {
        let name = format!("steering-{}-{bearer}", mobile.name);
        let identity = Identity {
            id: FlowId((flows + user) as u32),
            random: seed.stream(&format!("flow-{name}/tcp")),
            name,
            namesakes: 0,
            user: UserId::new(user as u32),
            start: Instant::ZERO,
            migrates: false,
            logs_packets: false,
        };
        Flow::Ping(Box::new(PingFlow::probes(identity, config, duration)))
    })
}

fn build_path(scenario: &Scenario, seed: Seed) -> Result<PlannedPath, ScenarioError> {
    if scenario.access.is_some() && scenario.flows().iter().any(|flow| flow.kind == Kind::Page) {
        let message = "an access link belongs to one server, and a page has connections to several";
        let help = "describe the servers' side in [fixed]";
        return Err(ScenarioError::new(message, Origin::default(), "access").help(help));
    }
    scenario.build_path(seed, Users::All)
}

/// Checks that `scenario` has flows, and that they suit its proxy.
fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    scenario.require_flows()?;
    match scenario.proxy.as_ref().and_then(|proxy| proxy.http.as_ref()) {
        Some(http) => check_http(http, scenario),
        None => Ok(()),
    }
}

/// Checks that simulated flows have what the proxy's HTTP level is to work on.
fn check_http(http: &HttpConfig, scenario: &Scenario) -> Result<(), ScenarioError> {
    // All keys are named, so that a new one is decided on here.
    let HttpConfig {
        ports,
        pipelining: _,
        compression: _,
        image_quality,
        server_pool: _,
        cache: _,
        dictionaries,
        address,
        resolver: _,
        connect_ports: _,
        prefetch: _,
    } = http;
    let refuse =
        |key: &str, message: &str, help: &str| Err(ScenarioError::new(message, Origin::default(), key).help(help));
    if image_quality.is_some() {
        let message = "images of simulated pages are made up: none can be recoded";
        return refuse("proxy.http.image_quality", message, "use `airpath link`, or remove the key");
    }
    if dictionaries.is_some() {
        let message = "contents of simulated pages are random: no object resembles another";
        return refuse("proxy.http.dictionaries", message, "use `airpath link`, or remove the key");
    }
    if address.is_some() {
        let message = "a simulated browser has no address of a proxy";
        return refuse("proxy.http.address", message, "set `proxy = true` in the flow of the page instead");
    }
    let is_read = |work: &Work| match work {
        Work::Page { session, transport } => PageFlow::is_read(session, transport),
        _ => false,
    };
    if !scenario.flows().iter().any(|flow| is_read(&flow.work)) {
        let message =
            "only flows of kind \"page\" with HTTP/1.x in clear text and a handshake are read in a simulation";
        return refuse("proxy.http", message, "add such a flow, use `airpath link`, or remove the table");
    }
    if !ports.contains(&HTTP_PORT) {
        let message = "the servers of simulated pages have port 80";
        return refuse("proxy.http.ports", message, "add 80, or remove the table");
    }
    Ok(())
}

/// The time of the last element, which is the next change.
fn time_of_last(changes: &[Change]) -> Instant {
    changes.last().map_or(Instant::FAR_FUTURE, |next| next.at)
}
