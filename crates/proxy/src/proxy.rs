//! The proxy as a middlebox: its connections, their timers, and the packets that leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use airpath_core::{Direction, FlowId, Instant, Packet, RandomStream, Span, UserId};
use airpath_link::Departure;
use airpath_path::{Departures, Middlebox, MiddleboxContext, Side};
use airpath_tcp::{Connection, Identity, Segment};
use airpath_wire::tcp::Flags;

use crate::budget::BudgetWindow;
use crate::config::{Accept, Config};
use crate::http::{Bypass, HttpRelay, NewServer, Pool, SharedCache, Statistics};
use crate::mobile::{Admission, Mobile};
use crate::ports::Ports;
use crate::relay::Relay;
use crate::relayed::Relayed;
use crate::statistics::{MobileState, PassCause, Totals};

/// A proxy at the border of fixed network and radio.
#[derive(Debug)]
pub struct Proxy {
    config: Config,
    server_end: Arc<airpath_tcp::Config>,
    mobile_end: Arc<airpath_tcp::Config>,
    initial_sequences: RandomStream,
    /// The connections, by number. Numbers are reused.
    relays: Vec<Option<Entry>>,
    free: Vec<u32>,
    numbers: BTreeMap<FlowId, u32>,
    mobiles: BTreeMap<UserId, Mobile>,
    timers: BTreeSet<(Instant, Timer)>,
    left: Departures,
    ports: Ports,
    cache: SharedCache,
    pool: Pool,
    /// The counters of connections that have ended.
    statistics: Statistics,
    /// Flows that have ended since the last call into the middlebox.
    ended: Vec<FlowId>,
    totals: Totals,
}

/// A connection, and its state in the tables of the proxy.
#[derive(Debug)]
struct Entry {
    relay: Relayed,
    /// Its time in `timers`.
    wakeup: Option<Instant>,
    /// Its part of [`Mobile::unacknowledged`].
    unacknowledged: u64,
    /// Bytes that the mobile has received, as far as it has acknowledged them in any way.
    delivered: u64,
    /// Whether it counts in [`Mobile::uploads`].
    is_upload: bool,
    /// Whether it counts in [`Mobile::half_open`].
    is_half_open: bool,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A timer of a connection expires.
    Connection(u32),
    /// The next segment of a paced burst may leave.
    Burst(UserId),
    /// A timer of an unused server connection expires.
    Idle(FlowId),
}

impl Proxy {
    /// A proxy without connections. `initial_sequences` gives it the sequence numbers with which
    /// it answers a SYN.
    pub fn new(config: Config, initial_sequences: RandomStream) -> Self {
        Self {
            server_end: config.server_end(),
            mobile_end: config.mobile_end(),
            initial_sequences,
            relays: Vec::new(),
            free: Vec::new(),
            numbers: BTreeMap::new(),
            mobiles: BTreeMap::new(),
            timers: BTreeSet::new(),
            left: Departures::new(),
            ports: Ports::default(),
            pool: Pool::default(),
            cache: SharedCache::new(cache_capacity(&config)),
            statistics: Statistics::default(),
            ended: Vec::new(),
            totals: Totals::default(),
            config,
        }
    }

    /// Number of connections that are relayed.
    pub fn connections(&self) -> usize {
        self.relays.len() - self.free.len()
    }

    /// What the application level has done, and which bytes it could not help.
    pub fn http_statistics(&self) -> Statistics {
        let mut sum = self.statistics;
        for entry in self.relays.iter().flatten() {
            entry.relay.statistics().into_iter().for_each(|part| sum.add(part));
        }
        sum
    }

    /// What has happened so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The state of each mobile, in the order of the users.
    pub fn mobile_states(&self) -> Vec<MobileState> {
        let state = |(user, mobile): (&UserId, &Mobile)| MobileState {
            user: *user,
            connections: mobile.connections,
            half_open: mobile.half_open,
            budget: mobile.budget.get(),
            unacknowledged: mobile.unacknowledged,
            queued: 0,
        };
        let mut states: Vec<MobileState> = self.mobiles.iter().map(state).collect();
        for relay in self.relays.iter().flatten().map(|entry| &entry.relay) {
            if let Ok(index) = states.binary_search_by_key(&relay.user(), |state| state.user) {
                states[index].queued += relay.backlog();
            }
        }
        states
    }

    /// Changes the settings. Buffers, scheduler and the acceptance of connections change for new
    /// connections and mobiles only, the others at once.
    pub fn reconfigure(&mut self, config: Config) {
        self.server_end = config.server_end();
        self.mobile_end = config.mobile_end();
        self.mobiles.values_mut().for_each(|mobile| mobile.reconfigure(&config));
        self.cache.set_capacity(cache_capacity(&config));
        self.config = config;
    }

    /// The time of day when the clock was zero, since 1 January 1970, UTC, for ages of responses.
    pub fn set_time_of_day(&mut self, start: Span) {
        self.cache.set_epoch(start.as_nanos() / 1_000_000_000);
    }

    fn end_flows(&mut self, cx: &mut MiddleboxContext<'_>) {
        self.ended.drain(..).for_each(|flow| cx.end_flow(flow));
    }

    /// Carries out everything that is due up to `now`, at its own time.
    fn advance(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        while let Some(&(time, timer)) = self.timers.first()
            && time <= now
        {
            self.timers.pop_first();
            match timer {
                Timer::Connection(number) => {
                    if let Some(entry) = &mut self.relays[number as usize] {
                        entry.wakeup = None;
                        entry.relay.handle_timeout(time, &self.config, cx);
                        self.proceed(time, number, cx);
                    }
                }
                Timer::Burst(user) => self.serve(time, user, cx),
                Timer::Idle(flow) => self.proceed_idle(time, flow, cx),
            }
        }
    }

    /// The connection of a packet: an old one, or a new one if this is a SYN.
    fn connection_of(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        segment: &Segment,
        cx: &MiddleboxContext<'_>,
    ) -> Result<u32, PassCause> {
        let flags = segment.header.flags;
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) && !flags.contains(Flags::RST);
        if let Some(number) = self.numbers.get(&packet.flow).copied() {
            let entry = self.relays[number as usize].as_ref();
            if !opens || entry.is_some_and(|entry| !entry.relay.is_finished()) {
                return Ok(number);
            }
            // The client uses the port again, and so may an end in TIME-WAIT (RFC 9293 §3.6.1).
            self.remove(number);
        }
        if !opens {
            return Err(PassCause::Unknown);
        }
        if self.numbers.len() >= self.config.connections as usize {
            return Err(PassCause::Connections);
        }
        if self.mobiles.get(&packet.user).is_some_and(|mobile| mobile.half_open >= self.config.half_open) {
            return Err(PassCause::HalfOpen);
        }
        Ok(self.open(now, side, packet, segment, cx))
    }

    /// Begins to relay the connection that a SYN from `client` opens.
    fn open(&mut self, now: Instant, client: Side, packet: &Packet, syn: &Segment, cx: &MiddleboxContext<'_>) -> u32 {
        let Packet { flow, user, .. } = *packet;
        let config = &self.config;
        let mobile = self.mobiles.entry(user).or_insert_with(|| Mobile::new(config));
        mobile.connections += 1;
        mobile.half_open += 1;
        self.totals.opened += 1;
        let (client_port, server_port) = (syn.header.source_port, syn.header.destination_port);
        let towards_client = Identity {
            flow,
            direction: client.sends().opposite(),
            local_port: server_port,
            remote_port: client_port,
            // Truncation to the width of a sequence number.
            initial_sequence: self.initial_sequences.bits() as u32,
        };
        // With the client's sequence numbers, the client accepts ICMP errors about segments of the
        // proxy as errors about its own.
        let towards_server = Identity {
            flow,
            direction: client.sends(),
            local_port: client_port,
            remote_port: server_port,
            initial_sequence: syn.header.sequence,
        };
        let (client_end, server_end) = match client {
            Side::Mobile => (&self.mobile_end, &self.server_end),
            Side::Server => (&self.server_end, &self.mobile_end),
        };
        let mut listening = Connection::listen(Arc::clone(client_end), towards_client);
        let mut connecting = Connection::connect(Arc::clone(server_end), towards_server, now);
        let towards_mobile = if client == Side::Mobile { &mut listening } else { &mut connecting };
        if !config.splits_only() {
            towards_mobile.set_congestion_control(Box::new(BudgetWindow(mobile.budget.clone())));
        }
        let defers = config.accept == Accept::Deferred;
        let relay = Relay::new((flow, user), client, *syn, (listening, connecting), defers, now);
        let http = config.http.as_ref().filter(|http| client == Side::Mobile && http.ports.contains(&server_port));
        let mut relay = match http {
            Some(http) => {
                let server = cx.server_address(flow);
                Relayed::Application(Box::new(HttpRelay::new(relay, server, server_port, (config, http), &self.cache)))
            }
            None => Relayed::Transport(relay),
        };
        if let Some(budget) = config.upload_budget {
            relay.bound_upload(mobile.upload_window(budget.get()));
        }
        let entry =
            Some(Entry { relay, wakeup: None, unacknowledged: 0, delivered: 0, is_upload: false, is_half_open: true });
        let number = match self.free.pop() {
            Some(number) => {
                self.relays[number as usize] = entry;
                number
            }
            None => {
                self.relays.push(entry);
                self.relays.len() as u32 - 1
            }
        };
        self.numbers.insert(flow, number);
        number
    }

    /// Continues a connection after a segment or a timer: passes on, sends, and updates the tables.
    fn proceed(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        let Some(entry) = &mut self.relays[number as usize] else { return };
        let user = entry.relay.user();
        entry.relay.exchange(now, cx);
        self.open_servers(now, number, cx);
        self.share_upload_budget(number);
        self.transmit(now, number, cx);
        self.update(now, number);
        self.serve(now, user, cx);
    }

    /// Opens the server connections that the application level wants, and frees the ports of those
    /// that have ended.
    fn open_servers(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        let Some(relay) = self.relays[number as usize].as_mut().and_then(|entry| entry.relay.application()) else {
            return;
        };
        let (flow, user) = relay.identity();
        for (flow, port) in relay.take_closed() {
            self.numbers.remove(&flow);
            self.ports.free(user, port);
            self.ended.push(flow);
        }
        let mut any = false;
        while let Some(wanted) = relay.wanted_server() {
            any = true;
            let kept = relay.reusable(wanted).and_then(|server| self.pool.take((user, server)));
            if let Some((channel, wakeup)) = kept {
                self.numbers.insert(channel.flow, number);
                if let Some(wakeup) = wakeup {
                    self.timers.remove(&(wakeup, Timer::Idle(channel.flow)));
                }
                relay.reuse_server(wanted, channel);
                continue;
            }
            let new = self.ports.open(user, |port| cx.open_flow(now, flow, port)).map(|(flow, port)| {
                self.numbers.insert(flow, number);
                NewServer { flow, port, initial_sequence: self.initial_sequences.bits() as u32 }
            });
            relay.open_server(now, wanted, new, &self.server_end);
        }
        if any {
            relay.exchange(now, cx);
        }
        let server = relay.server();
        let released = relay.take_released();
        let most = self.config.http.as_ref().map_or(0, |http| http.server_pool.into());
        for (channel, server) in released.into_iter().zip(server.into_iter().cycle()) {
            let flow = channel.flow;
            self.numbers.remove(&flow);
            self.pool.put(now, channel, (user, server), most);
            self.proceed_idle(now, flow, cx);
        }
    }

    /// Continues an unused server connection.
    fn proceed_idle(&mut self, now: Instant, flow: FlowId, cx: &mut MiddleboxContext<'_>) {
        let step = self.pool.proceed(now, flow, &mut self.left, cx);
        let (old, new) = step.wakeups;
        if let Some(old) = old {
            self.timers.remove(&(old, Timer::Idle(flow)));
        }
        self.timers.extend(new.map(|new| (new, Timer::Idle(flow))));
        if let Some((user, port)) = step.ended {
            port.into_iter().for_each(|port| self.ports.free(user, port));
            self.ended.push(flow);
        }
    }

    /// Counts a connection that has become an upload or has ceased to be one, and divides the
    /// upload budget of its mobile again.
    fn share_upload_budget(&mut self, number: u32) {
        let Some(budget) = self.config.upload_budget else { return };
        let Some(entry) = &mut self.relays[number as usize] else { return };
        let is_upload = entry.relay.is_upload();
        if is_upload == entry.is_upload {
            return;
        }
        entry.is_upload = is_upload;
        let user = entry.relay.user();
        let Some(mobile) = self.mobiles.get_mut(&user) else { return };
        mobile.uploads = if is_upload { mobile.uploads + 1 } else { mobile.uploads - 1 };
        let window = mobile.upload_window(budget.get());
        for entry in self.relays.iter_mut().flatten().filter(|entry| entry.relay.user() == user) {
            entry.relay.bound_upload(window);
        }
    }

    /// Sends the segments that are due at both ends of a connection.
    fn transmit(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        if let Some(entry) = &mut self.relays[number as usize] {
            entry.relay.transmit(now, &mut self.left, cx);
        }
    }

    /// Sends data to a mobile as far as its budget permits.
    fn serve(&mut self, now: Instant, user: UserId, cx: &mut MiddleboxContext<'_>) {
        loop {
            let Some(mobile) = self.mobiles.get_mut(&user) else { return };
            let Some(number) = mobile.scheduler.next() else { return };
            let Some(entry) = &mut self.relays[number as usize] else { return };
            let Some(length) = entry.relay.next_segment() else {
                mobile.scheduler.sent(number, 0, false);
                continue;
            };
            match mobile.admit(now, length, entry.relay.mobile().smoothed_round_trip()) {
                Admission::Now => {}
                Admission::At(time) => {
                    self.timers.insert((time, Timer::Burst(user)));
                    return;
                }
                Admission::Later => return,
            }
            mobile.on_sent(now, length);
            entry.relay.grant(now, length, cx);
            if matches!(entry.relay, Relayed::Transport(_)) {
                self.statistics.bypass(Bypass::OtherPort, length.into());
            }
            self.open_servers(now, number, cx);
            let Some(entry) = &mut self.relays[number as usize] else { return };
            let Some(mobile) = self.mobiles.get_mut(&user) else { return };
            entry.relay.transmit(now, &mut self.left, cx);
            mobile.scheduler.sent(number, length, entry.relay.next_segment().is_some());
            self.update(now, number);
        }
    }

    /// Updates the tables after a change of a connection.
    fn update(&mut self, now: Instant, number: u32) {
        let Some(entry) = &mut self.relays[number as usize] else { return };
        let relay = &entry.relay;
        let Some(mobile) = self.mobiles.get_mut(&relay.user()) else { return };
        let unacknowledged = if relay.mobile().outcome().is_none() { relay.mobile().unacknowledged() } else { 0 };
        mobile.unacknowledged = mobile.unacknowledged + unacknowledged - entry.unacknowledged;
        entry.unacknowledged = unacknowledged;
        let delivered = relay.mobile().statistics().unique_bytes.saturating_sub(unacknowledged);
        if delivered > entry.delivered {
            mobile.on_delivered(now, delivered - std::mem::replace(&mut entry.delivered, delivered));
        }
        if relay.next_segment().is_some() {
            mobile.scheduler.add(number, relay.backlog());
        }
        let wakeup = relay.next_wakeup(&self.config);
        if wakeup != entry.wakeup {
            let timer = Timer::Connection(number);
            if let Some(old) = entry.wakeup {
                self.timers.remove(&(old, timer));
            }
            self.timers.extend(wakeup.map(|new| (new, timer)));
            entry.wakeup = wakeup;
        }
        if entry.is_half_open && relay.was_opened() {
            entry.is_half_open = false;
            mobile.half_open -= 1;
        }
        if relay.is_over() {
            self.ended.push(relay.identity().0);
            self.remove(number);
        }
    }

    /// Takes a connection out of the tables.
    fn remove(&mut self, number: u32) {
        let Some(mut entry) = self.relays[number as usize].take() else { return };
        let (flow, user) = entry.relay.identity();
        if let Some(mobile) = self.mobiles.get_mut(&user) {
            mobile.connections -= 1;
            mobile.half_open -= u32::from(entry.is_half_open);
            mobile.uploads -= u64::from(entry.is_upload);
            mobile.unacknowledged -= entry.unacknowledged;
            mobile.scheduler.remove(number);
        }
        if let Some(wakeup) = entry.wakeup {
            self.timers.remove(&(wakeup, Timer::Connection(number)));
        }
        self.numbers.remove(&flow);
        if let Some(application) = entry.relay.application() {
            self.statistics.add(application.statistics());
            for (flow, port) in application.opened_flows() {
                self.numbers.remove(&flow);
                self.ports.free(user, port);
                self.ended.push(flow);
            }
        }
        self.free.push(number);
    }
}

/// Bytes of the cache; 0 without one.
fn cache_capacity(config: &Config) -> u64 {
    config.http.as_ref().and_then(|http| http.cache).map_or(0, airpath_core::Bytes::get)
}

impl Middlebox for Proxy {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.advance(now, cx);
        let side = Side::at_start_of(direction);
        if self.pool.has(packet.flow)
            && side == Side::Server
            && let Some(segment) = cx.tcp_segment(&packet)
        {
            self.totals.relayed_bytes[direction as usize] += u64::from(segment.length);
            self.pool.receive(now, packet.flow, (&segment, packet.slot), cx);
            cx.absorb(now, direction, packet);
            self.proceed_idle(now, packet.flow, cx);
            return self.end_flows(cx);
        }
        let relayed = cx.tcp_segment(&packet).ok_or(PassCause::NotTcp).and_then(|segment| {
            let number = self.connection_of(now, side, &packet, &segment, cx)?;
            Ok((segment, number))
        });
        let (segment, number) = match relayed {
            Ok(relayed) => relayed,
            Err(cause) => {
                self.totals.passed[cause as usize] += 1;
                // A SYN that opens nothing needs no number.
                if !self.numbers.contains_key(&packet.flow) {
                    cx.end_flow(packet.flow);
                }
                self.left.push(now, direction, packet);
                return;
            }
        };
        self.totals.relayed_bytes[direction as usize] += u64::from(segment.length);
        if let Some(entry) = &mut self.relays[number as usize] {
            entry.relay.receive(now, (packet.flow, side), &segment, packet.slot, cx);
            if entry.relay.application().is_some_and(|relay| relay.is_counted()) {
                self.relays[number as usize] = self.relays[number as usize]
                    .take()
                    .map(|entry| Entry { relay: entry.relay.into_transport(), ..entry });
            }
        }
        cx.absorb(now, direction, packet);
        self.proceed(now, number, cx);
        self.end_flows(cx);
    }

    fn pop(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        self.end_flows(cx);
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next().or_else(|| self.timers.first().map(|(time, _)| *time))
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        if self.config.http.is_some() { self.http_statistics().by_name().collect() } else { Vec::new() }
    }
}
