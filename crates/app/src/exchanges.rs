//! Exchanges: a script of requests and responses over one TCP connection.
//!
//! A remote terminal is such a script, and so are the protocols of mail. Exchanges have
//! kinds, and their latency is counted by kind: the time from the action at the client to the last
//! byte of the response there. Contents are counted, not carried.
//!
//! | module | contents |
//! | --- | --- |
//! | [`terminal`] | sessions of a remote terminal that are generated |
//! | [`mail`] | IMAP, POP3 and SMTP |
//!
//! The client of a script that is open adds exchanges while it runs: [`crate::adaptive`] does.

pub mod mail;
pub mod terminal;

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{Instant, RandomStream, Span};

use crate::samples::Samples;
use crate::transport::Transport;

/// One exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Index of its kind in [`Script::kinds`].
    pub kind: usize,
    /// Whether the client awaits all responses before it sends the request.
    pub waits: bool,
    /// From then, or else from the request before, to this request.
    pub pause: Span,
    /// Bytes of the request; zero for a greeting of the server.
    pub request: u32,
    /// Bytes of the response, at least one.
    pub response: u32,
    /// Time of the server from the request to its response.
    pub processing: Span,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Names of the kinds of exchanges.
    pub kinds: Vec<String>,
    /// The exchanges, in order.
    pub exchanges: Vec<Exchange>,
    /// Whether the client may add exchanges: it has not decided on all of them.
    pub is_open: bool,
}

/// What a script is made of.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A generated session of a terminal.
    Terminal(terminal::Generated),
    /// A recorded session of a terminal.
    Recorded(Arc<Script>),
    /// A session of mail.
    Mail(mail::Mail),
}

impl Plan {
    /// The script; a generated session draws from `random`.
    pub fn script(&self, random: &mut RandomStream) -> Arc<Script> {
        match self {
            Self::Terminal(generated) => Arc::new(generated.script(random)),
            Self::Recorded(script) => Arc::clone(script),
            Self::Mail(mail) => Arc::new(mail.script()),
        }
    }
}

impl Script {
    /// Adds an exchange of the kind `name`.
    pub fn add(&mut self, name: &str, exchange: Exchange) {
        let known = self.kinds.iter().position(|kind| kind == name);
        let kind = known.unwrap_or_else(|| {
            self.kinds.push(name.to_owned());
            self.kinds.len() - 1
        });
        self.exchanges.push(Exchange { kind, ..exchange });
    }
}

/// The client's end of a flow of exchanges.
pub trait Application {
    /// Acts as [`Client::step`] does.
    fn step(&mut self, now: Instant, transport: &mut impl Transport) -> ClientStep;
    /// When to call [`Self::step`] next, if nothing changes before.
    fn next_wakeup(&self) -> Option<Instant>;
    /// Whether its work is over.
    fn is_complete(&self) -> bool;
    /// Its exchanges.
    fn exchanges(&self) -> &Client;
}

/// The client.
#[derive(Clone, Debug)]
pub struct Client {
    script: Arc<Script>,
    started: Instant,
    connected: Option<Instant>,
    /// Requests sent.
    sent: usize,
    /// When the last request was sent.
    last_request: Instant,
    /// When the last response was complete; before the first one, when the connection was open.
    last_response: Instant,
    /// Times of the requests without a response.
    awaited: VecDeque<Instant>,
    /// Bytes of the responses that are complete.
    complete: u64,
    /// Latencies by kind.
    latencies: Vec<Samples>,
    /// When the first and the last response of each kind was complete.
    completed: Vec<Option<(Instant, Instant)>>,
    closed: bool,
}

/// Result of a step of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// Nothing visible to the application.
    Nothing,
    /// The connection opened.
    Connected,
    /// A request was sent.
    Request,
    /// The response of the exchange with this number is complete, with this latency.
    Response(u32, Span),
}

impl Client {
    /// A client whose connection opens at `start`.
    pub fn new(script: Arc<Script>, start: Instant) -> Self {
        let kinds = script.kinds.len();
        Self {
            complete: 0,
            script,
            started: start,
            connected: None,
            sent: 0,
            last_request: start,
            last_response: start,
            awaited: VecDeque::new(),
            latencies: vec![Samples::default(); kinds],
            completed: vec![None; kinds],
            closed: false,
        }
    }

    /// Acts as the application does now. Call it until it returns [`ClientStep::Nothing`], whenever
    /// the connection has changed or the time of [`Self::next_wakeup`] has come.
    pub fn step(&mut self, now: Instant, transport: &mut impl Transport) -> ClientStep {
        if !transport.is_established() || self.closed {
            return ClientStep::Nothing;
        }
        if self.connected.is_none() {
            self.connected = Some(now);
            self.last_request = now;
            self.last_response = now;
            return ClientStep::Connected;
        }
        let waiting = transport.readable();
        transport.read(waiting);
        if let Some(awaited) = self.awaited_response()
            && transport.received() >= self.complete + awaited
        {
            self.complete += awaited;
            return self.response(now);
        }
        if self.due().is_some_and(|due| due <= now) {
            transport.write(self.script.exchanges[self.sent].request.into());
            self.sent += 1;
            self.last_request = now;
            self.awaited.push_back(now);
            return ClientStep::Request;
        }
        if self.is_complete() {
            transport.close();
            self.closed = true;
        }
        ClientStep::Nothing
    }

    /// Bytes of the next response, if a request awaits one.
    fn awaited_response(&self) -> Option<u64> {
        let number = self.sent - self.awaited.len();
        (!self.awaited.is_empty()).then(|| self.script.exchanges[number].response.into())
    }

    fn response(&mut self, now: Instant) -> ClientStep {
        let number = self.sent - self.awaited.len();
        let kind = self.script.exchanges[number].kind;
        let sent = self.awaited.pop_front().expect("a response is awaited");
        self.last_response = now;
        self.latencies[kind].add(now.since(sent));
        self.completed[kind] = Some((self.completed[kind].map_or(now, |(first, _)| first), now));
        ClientStep::Response(number as u32, now.since(sent))
    }

    /// When the next request is to be sent; `None` if it waits for a response, or was the last.
    fn due(&self) -> Option<Instant> {
        let next = self.script.exchanges.get(self.sent)?;
        if !next.waits {
            return Some(self.last_request + next.pause);
        }
        self.awaited.is_empty().then(|| self.last_response.max(self.last_request) + next.pause)
    }

    /// When to call [`Self::step`] next, if nothing changes before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.connected.and_then(|_| self.due())
    }

    /// Adds an exchange of the kind `name` to a script that is open.
    pub fn add(&mut self, name: &str, exchange: Exchange) {
        let script = Arc::make_mut(&mut self.script);
        script.add(name, exchange);
        self.latencies.resize(script.kinds.len(), Samples::default());
        self.completed.resize(script.kinds.len(), None);
    }

    /// No exchange will be added: the connection closes after the last response.
    pub fn end_script(&mut self) {
        Arc::make_mut(&mut self.script).is_open = false;
    }

    /// The script as far as it is decided.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Whether all responses are complete.
    pub fn is_complete(&self) -> bool {
        !self.script.is_open && self.sent == self.script.exchanges.len() && self.awaited.is_empty()
    }

    /// Requests sent.
    pub const fn requests(&self) -> u64 {
        self.sent as u64
    }

    /// Latencies by kind, in the order of [`Script::kinds`].
    pub fn latencies(&self) -> &[Samples] {
        &self.latencies
    }

    /// Latencies of all exchanges, kind by kind.
    pub fn all_latencies(&self) -> Samples {
        let mut all = Samples::default();
        self.latencies.iter().flat_map(Samples::iter).for_each(|latency| all.add(latency));
        all
    }

    /// From the start until the connection was open.
    pub fn connect(&self) -> Option<Span> {
        self.connected.map(|connected| connected.since(self.started))
    }

    /// From the start to the first and the last response of kind number `kind`.
    pub fn completed(&self, kind: usize) -> Option<[Span; 2]> {
        self.completed[kind].map(|(first, last)| [first, last].map(|time| time.since(self.started)))
    }

    /// From the start to the last response so far.
    pub fn duration(&self) -> Option<Span> {
        self.completed.iter().flatten().map(|(_, last)| last.since(self.started)).max()
    }
}

impl Application for Client {
    fn step(&mut self, now: Instant, transport: &mut impl Transport) -> ClientStep {
        Self::step(self, now, transport)
    }
    fn next_wakeup(&self) -> Option<Instant> {
        Self::next_wakeup(self)
    }
    fn is_complete(&self) -> bool {
        Self::is_complete(self)
    }
    fn exchanges(&self) -> &Client {
        self
    }
}

/// The server.
#[derive(Clone, Debug)]
pub struct Server {
    script: Arc<Script>,
    /// Requests that have arrived.
    arrived: usize,
    /// Bytes of these requests.
    taken: u64,
    /// Responses that were sent.
    answered: usize,
    /// When the responses to the other requests that have arrived are ready.
    ready: VecDeque<Instant>,
    closed: bool,
}

impl Server {
    /// A server that has not answered yet.
    pub fn new(script: Arc<Script>) -> Self {
        Self { taken: 0, script, arrived: 0, answered: 0, ready: VecDeque::new(), closed: false }
    }

    /// Acts as the application does now; call it whenever the connection has changed, or the time
    /// of [`Self::next_wakeup`] has come.
    pub fn step(&mut self, now: Instant, transport: &mut impl Transport) {
        if self.closed || !transport.is_established() {
            return;
        }
        let waiting = transport.readable();
        transport.read(waiting);
        while let Some(next) = self.script.exchanges.get(self.arrived)
            && transport.received() >= self.taken + u64::from(next.request)
        {
            let processing = next.processing;
            self.taken += u64::from(next.request);
            // One after the other.
            let before = self.ready.back().copied().unwrap_or(now);
            self.ready.push_back(before.max(now) + processing);
            self.arrived += 1;
        }
        while self.ready.front().is_some_and(|due| *due <= now) {
            self.ready.pop_front();
            transport.write(self.script.exchanges[self.answered].response.into());
            self.answered += 1;
        }
        if transport.peer_closed() {
            self.closed = true;
            transport.close();
        }
    }

    /// Adds the exchanges that the client has added to its `script`: requests have no contents in
    /// which the server could read them.
    pub fn follow(&mut self, script: &Script) {
        let known = self.script.exchanges.len();
        script.exchanges.iter().skip(known).for_each(|exchange| self.add(*exchange));
    }

    /// Adds an exchange to a script that is open.
    pub fn add(&mut self, exchange: Exchange) {
        Arc::make_mut(&mut self.script).exchanges.push(exchange);
    }

    /// When the next response is ready.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.ready.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::StreamEnd;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn exchange(waits: bool, pause: u64, request: u32, response: u32, processing: u64) -> Exchange {
        let (pause, processing) = (Span::from_millis(pause), Span::from_millis(processing));
        Exchange { kind: 0, waits, pause, request, response, processing }
    }

    fn script() -> Arc<Script> {
        let mut script = Script::default();
        script.add("greeting", exchange(true, 0, 0, 20, 1));
        script.add("key", exchange(true, 100, 10, 30, 5));
        script.add("key", exchange(false, 50, 10, 30, 5));
        Arc::new(script)
    }

    #[test]
    fn a_client_waits_or_not_and_counts_by_kind() {
        let mut client = Client::new(script(), at(0));
        let mut near = StreamEnd::default();
        assert_eq!(client.step(at(0), &mut near), ClientStep::Nothing);
        near.establish();
        assert_eq!(client.step(at(5), &mut near), ClientStep::Connected);
        assert_eq!(client.step(at(5), &mut near), ClientStep::Request);
        assert_eq!((near.unsent(), client.next_wakeup()), (0, None), "the server speaks first");
        near.receive(20);
        assert_eq!(client.step(at(15), &mut near), ClientStep::Response(0, Span::from_millis(10)));
        assert_eq!((client.step(at(15), &mut near), client.next_wakeup()), (ClientStep::Nothing, Some(at(115))));
        assert_eq!(client.step(at(115), &mut near), ClientStep::Request);
        assert_eq!(client.next_wakeup(), Some(at(165)), "the next key does not wait");
        assert_eq!(client.step(at(165), &mut near), ClientStep::Request);
        assert_eq!(near.unsent(), 20);
        near.receive(45);
        assert_eq!(client.step(at(200), &mut near), ClientStep::Response(1, Span::from_millis(85)));
        assert_eq!(client.step(at(200), &mut near), ClientStep::Nothing);
        near.receive(15);
        assert_eq!(client.step(at(210), &mut near), ClientStep::Response(2, Span::from_millis(45)));
        assert_eq!(client.step(at(210), &mut near), ClientStep::Nothing);
        assert!(near.is_closed() && client.is_complete());
        assert_eq!(client.latencies().iter().map(Samples::count).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(client.completed(1), Some([Span::from_millis(200), Span::from_millis(210)]));
    }

    #[test]
    fn an_open_script_continues_after_its_last_response() {
        let script = Arc::new(Script { is_open: true, ..Script::default() });
        let mut client = Client::new(Arc::clone(&script), at(0));
        let mut server = Server::new(script);
        let (mut near, mut far) = (StreamEnd::opened(0), StreamEnd::opened(0));
        client.add("first", exchange(true, 0, 10, 30, 0));
        assert_eq!(client.step(at(0), &mut near), ClientStep::Connected);
        assert_eq!(client.step(at(0), &mut near), ClientStep::Request);
        far.receive(10);
        server.step(at(1), &mut far);
        assert_eq!(far.unsent(), 0, "the exchange is not in the script of the server");
        server.follow(client.script());
        server.step(at(1), &mut far);
        assert_eq!(far.unsent(), 30);
        near.receive(30);
        assert_eq!(client.step(at(2), &mut near), ClientStep::Response(0, Span::from_millis(2)));
        assert_eq!(client.step(at(2), &mut near), ClientStep::Nothing);
        assert!(!client.is_complete() && !near.is_closed());
        client.add("second", exchange(true, 5, 20, 40, 0));
        client.end_script();
        assert_eq!(client.next_wakeup(), Some(at(7)));
        assert_eq!(client.step(at(7), &mut near), ClientStep::Request);
        far.receive(20);
        server.follow(client.script());
        server.step(at(8), &mut far);
        assert_eq!(far.unsent(), 70);
        near.receive(40);
        assert_eq!(client.step(at(9), &mut near), ClientStep::Response(1, Span::from_millis(2)));
        assert_eq!(client.step(at(9), &mut near), ClientStep::Nothing);
        assert!(client.is_complete() && near.is_closed());
        assert_eq!(client.latencies().iter().map(Samples::count).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn a_server_answers_in_order_after_its_time() {
        let mut server = Server::new(script());
        let mut far = StreamEnd::opened(0);
        server.step(at(0), &mut far);
        assert_eq!((far.unsent(), server.next_wakeup()), (0, Some(at(1))));
        server.step(at(1), &mut far);
        assert_eq!(far.unsent(), 20);
        far.receive(20);
        server.step(at(100), &mut far);
        assert_eq!(server.next_wakeup(), Some(at(105)));
        server.step(at(105), &mut far);
        assert_eq!((far.unsent(), server.next_wakeup()), (50, Some(at(110))), "one after the other");
        server.step(at(110), &mut far);
        far.end();
        server.step(at(120), &mut far);
        assert!(far.unsent() == 80 && far.is_closed());
    }
}
