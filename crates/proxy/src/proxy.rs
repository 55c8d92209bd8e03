//! The proxy as a middlebox: its connections, their timers, and the packets that leave.

mod opening;
mod saved;

use std::collections::{BTreeMap, BTreeSet};

use airpath_core::{Classes, Direction, FlowId, Instant, Packet, RandomStream, Span, UserId};
use airpath_link::Departure;
use airpath_path::{Departures, Middlebox, MiddleboxContext, Side};
use airpath_wire::icmp::IcmpErrorKind;
use airpath_wire::tcp::Flags;

use crate::config::{Config, Ends};
use crate::flows::Flows;
use crate::http::{Application, HttpRelay, Opening, Statistics};
use crate::mobile::{Admission, Mobile};
use crate::relayed::Relayed;
use crate::statistics::{MobileState, PassCause, Totals};
use opening::opens;

/// A proxy at the border of fixed network and radio.
#[derive(Debug)]
pub struct Proxy {
    config: Config,
    /// The settings of TCP ends without ECN and with it.
    ends: [Ends; 2],
    initial_sequences: RandomStream,
    /// The connections, by number. Numbers are reused.
    relays: Vec<Option<Box<Entry>>>,
    free: Vec<u32>,
    flows: Flows,
    mobiles: BTreeMap<UserId, Mobile>,
    timers: BTreeSet<(Instant, Timer)>,
    left: Departures,
    /// Packets that were created and have not left nor entered a queue.
    created: Departures,
    application: Application,
    totals: Totals,
    /// Mean round trips of connections that have ended, if they are recorded.
    round_trips: Option<BTreeMap<FlowId, [Option<f64>; 2]>>,
}

/// A connection, and its state in the tables of the proxy.
#[derive(Debug)]
struct Entry {
    relay: Relayed,
    /// Its time in `timers`.
    wakeup: Option<Instant>,
    /// Its part of [`Mobile::unacknowledged`].
    unacknowledged: u64,
    /// Its part of [`Mobile::queued`].
    queued: u64,
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
    /// The next packet of a mobile's queue may leave.
    Queue(UserId),
    /// A connection is aborted.
    Abort(u32),
}

impl Proxy {
    /// A proxy without connections. `initial_sequences` gives it the sequence numbers with which
    /// it answers a SYN.
    pub fn new(config: Config, initial_sequences: RandomStream) -> Self {
        Self {
            ends: [config.ends(false), config.ends(true)],
            initial_sequences,
            relays: Vec::new(),
            free: Vec::new(),
            flows: Flows::default(),
            mobiles: BTreeMap::new(),
            timers: BTreeSet::new(),
            left: Departures::new(),
            created: Departures::new(),
            application: Application::new(&config),
            totals: Totals::default(),
            round_trips: None,
            config,
        }
    }

    /// Records the round trips of each connection from now on, also after its end: for runs with a
    /// limited number of flows.
    pub fn record_round_trips(&mut self) {
        self.round_trips.get_or_insert_default();
    }

    /// Mean round trip between the proxy and the end of a flow at `side`, in seconds, as the proxy
    /// measured it; `None` if it did not.
    pub fn round_trip_s(&self, flow: FlowId, side: Side) -> Option<f64> {
        let open = self.flows.connection_of(flow).and_then(|number| self.relays[number as usize].as_ref());
        let round_trips = match open {
            Some(entry) => entry.relay.round_trips(),
            None => *self.round_trips.as_ref()?.get(&flow)?,
        };
        round_trips[side as usize]
    }

    /// Number of connections that are relayed.
    pub fn connections(&self) -> usize {
        self.relays.len() - self.free.len()
    }

    /// What the application level has done, and which bytes it could not help.
    pub fn http_statistics(&self) -> Statistics {
        let mut sum = *self.application.statistics();
        self.http_relays().for_each(|relay| sum.add(relay.statistics()));
        sum
    }

    /// The connections of the application level.
    fn http_relays(&self) -> impl Iterator<Item = &HttpRelay> {
        self.relays.iter().flatten().filter_map(|entry| entry.relay.http())
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
            queued: mobile.queue.bytes() + mobile.queued,
        };
        self.mobiles.iter().map(state).collect()
    }

    /// Removes a mobile that has no connections, kept server connections, or packets that wait, so
    /// that its number can be that of another one. Returns whether it had none.
    pub fn forget(&mut self, user: UserId) -> bool {
        let is_unused = |mobile: &Mobile| mobile.connections == 0 && mobile.queue.bytes() == 0;
        let is_idle = self.mobiles.get(&user).is_none_or(is_unused) && !self.application.keeps_for(user);
        if is_idle {
            self.mobiles.remove(&user);
        }
        is_idle
    }

    /// Lets all packets that wait in queues leave at `now`.
    pub fn release_queues(&mut self, now: Instant) {
        for mobile in self.mobiles.values_mut() {
            while let Some(packet) = mobile.queue.release() {
                self.left.push(now, Direction::Down, packet);
            }
        }
    }

    /// Ends all connections with resets, from `now` on.
    pub fn abort_connections(&mut self, now: Instant) {
        let used = self.relays.iter().zip(0..).filter(|(entry, _)| entry.is_some());
        self.timers.extend(used.map(|(_, number)| (now, Timer::Abort(number))));
        self.application.abort_kept(now);
    }

    /// Changes the settings. Buffers, scheduler and the acceptance of connections change for new
    /// connections and mobiles only, the others at once.
    pub fn reconfigure(&mut self, config: Config) {
        self.ends = [config.ends(false), config.ends(true)];
        self.mobiles.values_mut().for_each(|mobile| mobile.reconfigure(&config));
        self.application.reconfigure(&config);
        self.config = config;
    }

    /// The time of day when the clock was zero, since 1 January 1970, UTC, for ages of responses.
    pub fn set_time_of_day(&mut self, start: Span) {
        self.application.set_time_of_day(start);
    }

    /// Carries out everything that is due up to `now`, at its own time.
    fn advance(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) {
        while let Some(time) = self.next_timer().filter(|time| *time <= now) {
            match self.timers.first().copied().filter(|(first, _)| *first == time) {
                Some(entry) => {
                    self.timers.remove(&entry);
                    self.expire(time, entry.1, cx);
                }
                None => {
                    let kept = self.application.next_wakeup();
                    kept.into_iter().for_each(|(_, flow)| self.proceed_kept(time, flow, cx));
                }
            }
        }
    }

    fn expire(&mut self, time: Instant, timer: Timer, cx: &mut MiddleboxContext<'_>) {
        match timer {
            Timer::Connection(number) => {
                if let Some(entry) = &mut self.relays[number as usize] {
                    entry.wakeup = None;
                    entry.relay.handle_timeout(time, &self.config, cx);
                    self.proceed(time, number, cx);
                }
            }
            Timer::Burst(user) => self.serve(time, user, cx),
            Timer::Queue(user) => self.send_queued(time, user, cx),
            Timer::Abort(number) => {
                if let Some(entry) = &mut self.relays[number as usize] {
                    entry.relay.abort(time, cx);
                    self.proceed(time, number, cx);
                }
            }
        }
    }

    /// When the next timer expires.
    fn next_timer(&self) -> Option<Instant> {
        let kept = self.application.next_wakeup().map(|(time, _)| time);
        self.timers.first().map(|(time, _)| *time).into_iter().chain(kept).min()
    }

    /// Handles an ICMP error about a segment of the proxy. Returns whether it absorbed the packet:
    /// a path MTU concerns the proxy alone, but that an end is unreachable the client learns, too,
    /// unless it is about a server connection with a port of the proxy, which the client does not
    /// have.
    fn handle_icmp_error(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        cx: &mut MiddleboxContext<'_>,
    ) -> bool {
        let Some((flow, error)) = cx.icmp_error(packet.slot) else { return false };
        let side = Side::at_start_of(direction);
        let number = self.flows.connection_of(flow);
        let (end, is_own) = match number.and_then(|number| self.relays[number as usize].as_mut()) {
            Some(entry) => {
                let is_own = entry.relay.identity().0 != flow;
                (entry.relay.end_mut(flow, side), is_own)
            }
            None => (self.application.kept_mut(flow).filter(|_| side == Side::Server), true),
        };
        let Some(end) = end else { return false };
        let (counter, is_valid) = match error.kind {
            IcmpErrorKind::TooBig { mtu } => {
                let most = mtu.saturating_sub(error.ip_header);
                (&mut self.totals.path_mtus, end.handle_packet_too_big(now, error.sequence, most))
            }
            IcmpErrorKind::Unreachable => {
                (&mut self.totals.unreachable, end.handle_unreachable(now, error.sequence, cx.context()))
            }
        };
        *counter += u64::from(is_valid);
        let is_absorbed = is_own || is_valid && matches!(error.kind, IcmpErrorKind::TooBig { .. });
        if is_absorbed {
            cx.absorb(now, direction, packet);
        }
        if is_valid {
            match number {
                Some(number) => self.proceed(now, number, cx),
                None => self.proceed_kept(now, flow, cx),
            }
            self.flows.report_ended(cx);
        }
        is_absorbed
    }

    /// Continues a connection after a segment or a timer: passes on, sends, and updates the tables.
    fn proceed(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        let Some(entry) = &mut self.relays[number as usize] else { return };
        let user = entry.relay.user();
        entry.relay.exchange(now, cx);
        self.open_servers(now, number, cx);
        self.share_upload_budget(number);
        self.transmit(now, number, cx);
        self.update(now, number, cx);
        self.serve(now, user, cx);
    }

    /// Opens the server connections that the application level wants.
    fn open_servers(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        let entry = self.relays[number as usize].as_mut();
        let Some(relay) = entry.and_then(|entry| entry.relay.http_mut()) else { return };
        let mut opening = Opening {
            end: &self.ends[0].server,
            initial_sequences: &mut self.initial_sequences,
            flows: &mut self.flows,
            left: &mut self.left,
        };
        self.application.open_servers(now, (number, relay), &mut opening, cx);
    }

    /// Continues a server connection that no client connection uses.
    fn proceed_kept(&mut self, now: Instant, flow: FlowId, cx: &mut MiddleboxContext<'_>) {
        self.application.proceed_kept(now, flow, &mut self.flows, &mut self.left, cx);
    }

    /// Counts a connection that has become an upload or has ceased to be one, and gives it its
    /// share of the upload budget of its mobile. Others may have changed that since its last
    /// segment.
    fn share_upload_budget(&mut self, number: u32) {
        let Some(budget) = self.config.upload_budget else { return };
        let Some(entry) = &mut self.relays[number as usize] else { return };
        let is_upload = entry.relay.is_upload();
        let Some(mobile) = self.mobiles.get_mut(&entry.relay.user()) else { return };
        mobile.uploads = mobile.uploads + u64::from(is_upload) - u64::from(entry.is_upload);
        entry.is_upload = is_upload;
        entry.relay.bound_upload(mobile.upload_window(budget.get()));
    }

    /// Sends the segments that are due at both ends of a connection.
    fn transmit(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        let Some(entry) = &mut self.relays[number as usize] else { return };
        if self.config.queue.is_none() {
            entry.relay.transmit(now, &mut self.left, cx);
            return;
        }
        entry.relay.transmit(now, &mut self.created, cx);
        let is_unmanaged = !self.config.splits_only();
        while let Some((direction, created)) = self.created.pop() {
            self.send(now, direction, created.packet, is_unmanaged, cx);
        }
    }

    /// A packet leaves at once, or waits for its turn if it goes to a mobile with a queue.
    fn send(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
        is_unmanaged: bool,
        cx: &mut MiddleboxContext<'_>,
    ) {
        let Some(queue) = self.config.queue.as_ref().filter(|_| direction == Direction::Down) else {
            self.left.push(now, direction, packet);
            return;
        };
        let config = &self.config;
        let mobile = self.mobiles.entry(packet.user).or_insert_with(|| Mobile::new(config));
        mobile.queue.enter(now, packet, is_unmanaged, queue, cx);
        self.send_queued(now, packet.user, cx);
    }

    /// Sends what a mobile's queue may send.
    fn send_queued(&mut self, now: Instant, user: UserId, cx: &mut MiddleboxContext<'_>) {
        let Some(mobile) = self.mobiles.get_mut(&user) else { return };
        let rate = self.config.queue.as_ref().map(|queue| queue.rate);
        if let Some(next) = mobile.queue.send(now, rate, &mut self.left, cx) {
            self.timers.insert((next, Timer::Queue(user)));
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
            let end = entry.relay.mobile();
            let length = match cx.most_payload() {
                Some(most) => mobile.super_segment(length, end, entry.relay.backlog(), most),
                None => length,
            };
            match mobile.admit(now, length, end.smoothed_round_trip()) {
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
                self.application.count_other_port(length.into());
            }
            self.open_servers(now, number, cx);
            self.transmit(now, number, cx);
            let Some(entry) = &mut self.relays[number as usize] else { return };
            let Some(mobile) = self.mobiles.get_mut(&user) else { return };
            mobile.scheduler.sent(number, length, entry.relay.next_segment().is_some());
            self.update(now, number, cx);
        }
    }

    /// Updates the tables after a change of a connection.
    fn update(&mut self, now: Instant, number: u32, cx: &mut MiddleboxContext<'_>) {
        let Some(entry) = &mut self.relays[number as usize] else { return };
        let relay = &entry.relay;
        let Some(mobile) = self.mobiles.get_mut(&relay.user()) else { return };
        let unacknowledged = if relay.mobile().outcome().is_none() { relay.mobile().unacknowledged() } else { 0 };
        mobile.unacknowledged = mobile.unacknowledged + unacknowledged - entry.unacknowledged;
        entry.unacknowledged = unacknowledged;
        let queued = relay.backlog();
        mobile.queued = mobile.queued + queued - entry.queued;
        entry.queued = queued;
        let delivered = relay.mobile().statistics().unique_bytes.saturating_sub(unacknowledged);
        if delivered > entry.delivered {
            mobile.on_delivered(now, delivered - std::mem::replace(&mut entry.delivered, delivered));
        }
        if relay.next_segment().is_some() {
            mobile.scheduler.add(number, relay.backlog());
        }
        if cx.context().wants(Classes::STATE) {
            mobile.report(now, relay.user(), cx.context());
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
            let flow = relay.identity().0;
            self.remove(number);
            self.flows.end(flow);
        }
    }

    /// Takes a connection out of the tables.
    fn remove(&mut self, number: u32) {
        let Some(entry) = self.relays[number as usize].take() else { return };
        let (flow, user) = entry.relay.identity();
        if let Some(recorded) = &mut self.round_trips {
            recorded.insert(flow, entry.relay.round_trips());
        }
        if let Some(mobile) = self.mobiles.get_mut(&user) {
            mobile.connections -= 1;
            mobile.half_open -= u32::from(entry.is_half_open);
            mobile.uploads -= u64::from(entry.is_upload);
            mobile.unacknowledged -= entry.unacknowledged;
            mobile.queued -= entry.queued;
            mobile.scheduler.remove(number);
        }
        if let Some(wakeup) = entry.wakeup {
            self.timers.remove(&(wakeup, Timer::Connection(number)));
        }
        self.flows.release(flow);
        if let Some(relay) = entry.relay.http() {
            self.application.remove(relay, &mut self.flows);
        }
        self.free.push(number);
    }
}

impl Middlebox for Proxy {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut MiddleboxContext<'_>) {
        self.advance(now, cx);
        let side = Side::at_start_of(direction);
        if self.application.keeps(packet.flow)
            && let Some(segment) = cx.tcp_segment(&packet)
        {
            if side == Side::Mobile && opens(&segment) {
                self.application.give_up_port(now, packet.flow, &mut self.left, cx);
            } else {
                // The mobile cannot use a port that the proxy has (as in `HttpRelay::receive`).
                if side == Side::Server {
                    self.totals.relayed_bytes[direction as usize] += u64::from(segment.length);
                    self.application.receive(now, (packet.flow, &segment, packet.slot), cx);
                }
                cx.absorb(now, direction, packet);
                self.proceed_kept(now, packet.flow, cx);
                return self.flows.report_ended(cx);
            }
        }
        let relayed = cx.tcp_segment(&packet).ok_or(PassCause::NotTcp).and_then(|segment| {
            let number = self.connection_of(now, side, &packet, &segment, cx)?;
            Ok((segment, number))
        });
        let (segment, number) = match relayed {
            Ok(relayed) => relayed,
            Err(PassCause::NotTcp) if self.handle_icmp_error(now, direction, packet, cx) => return,
            Err(cause) => {
                self.totals.passed[cause as usize] += u64::from(cx.packets(&packet));
                // A SYN that opens nothing needs no number.
                if self.flows.connection_of(packet.flow).is_none() {
                    cx.end_flow(packet.flow);
                }
                self.send(now, direction, packet, false, cx);
                return;
            }
        };
        self.totals.relayed_bytes[direction as usize] += u64::from(segment.length);
        self.totals.urgent += u64::from(segment.header.flags.contains(Flags::URG));
        if let Some(entry) = &mut self.relays[number as usize] {
            entry.relay.receive(now, (packet.flow, side), &segment, packet.slot, cx);
            if entry.relay.http().is_some_and(HttpRelay::is_counted) {
                self.relays[number as usize] = self.relays[number as usize]
                    .take()
                    .map(|entry| Box::new(Entry { relay: entry.relay.into_transport(), ..*entry }));
            }
        }
        cx.absorb(now, direction, packet);
        self.proceed(now, number, cx);
        self.flows.report_ended(cx);
    }

    fn pop(&mut self, now: Instant, cx: &mut MiddleboxContext<'_>) -> Option<(Direction, Departure)> {
        self.advance(now, cx);
        self.flows.report_ended(cx);
        self.left.pop()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.left.next().or_else(|| self.next_timer())
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        if self.config.http.is_some() { self.http_statistics().by_name().collect() } else { Vec::new() }
    }
}
