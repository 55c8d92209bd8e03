//! Checks of the contracts of [`Link`] and [`Bearer`], for the tests of every crate that implements
//! them (feature `testing`).
//!
//! A check takes a closure that creates the bearer, and its traffic. It panics with a description
//! of the fault, so it serves in a plain test and inside a property test:
//!
//! ```
//! use airpath_core::{Direction, Instant, Seed, Span};
//! use airpath_link::testing::{Traffic, contracts};
//! use airpath_link::{Config, duplex};
//!
//! let config = Config { delay: Span::from_millis(20).into(), ..Config::default() };
//! let traffic = Traffic { packets: 50, directions: &Direction::BOTH, ..Traffic::default() }.arrivals(7);
//! let horizon = Instant::ZERO + Span::from_secs(60);
//! contracts(|| duplex(&config, &config, Seed::new(1), "fixed").unwrap(), &traffic, horizon);
//! ```
//!
//! Commands can be added: [`Script`] has arrivals and [`Commanded`] changes of conditions, and
//! [`Commands`] draws them. Where a check takes a script, arrivals alone suffice.
//!
//! [`contracts`] runs all checks that hold for every bearer; [`order_kept`] and [`idle_sleeps`] are
//! for bearers that guarantee them. [`OneWay`] makes a bearer of a link.

mod polling;

use airpath_core::{
    Bitrate, ComponentId, Context, Count, Decibel, Direction, DropCause, Dropped, Ecn, Event, FlowId, Instant, Memory,
    Packet, PacketCounters, PacketEvent, PacketStep, Probability, RandomStream, Seed, SegmentInfo, SegmentLookup, Sink,
    Slot, Span, UserId,
};

use crate::command::{BearerCommand, Buffer, Change, CommandError};
use crate::delay::{Delay, Distribution};
use crate::loss::{GilbertElliott, Loss};
use crate::{Admission, Bearer, Departure, Link};

pub use polling::{PollClock, Polling, Polls};

/// A packet to push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the push.
    pub at: Instant,
    /// Direction.
    pub direction: Direction,
    /// The packet; its id is its index among the arrivals.
    pub packet: Packet,
}

/// Random traffic: bursts at one instant, packets back to back, and pauses.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Number of packets.
    pub packets: usize,
    /// The mean time between bursts; pauses are ten times as long.
    pub gap: Span,
    /// Packet sizes in bytes, smallest and largest; half of all packets have one of these two.
    pub sizes: (u32, u32),
    /// Number of users.
    pub users: u16,
    /// Directions of the packets.
    pub directions: &'static [Direction],
}

impl Default for Traffic {
    /// 200 packets of 40 to 1500 bytes down to one user, 2 ms between bursts.
    fn default() -> Self {
        Self { packets: 200, gap: Span::from_millis(2), sizes: (40, 1500), users: 1, directions: &[Direction::Down] }
    }
}

impl Traffic {
    /// The arrivals of this traffic, in the order of their times; the same for the same `seed`.
    ///
    /// # Panics
    /// If there are no users or no directions, or if the sizes are the wrong way round.
    pub fn arrivals(&self, seed: u64) -> Vec<Arrival> {
        let mut stream = Seed::new(seed).stream("testing/traffic");
        let mut at = Instant::ZERO;
        (0..self.packets).map(|index| self.arrival(index, &mut at, &mut stream)).collect()
    }

    fn arrival(&self, index: usize, at: &mut Instant, stream: &mut RandomStream) -> Arrival {
        let (smallest, largest) = self.sizes;
        let gap = self.gap.as_nanos();
        *at += Span::from_nanos(match stream.below(20) {
            0..10 => 0,
            10..19 => stream.below(2 * gap + 1),
            _ => stream.below(20 * gap + 1),
        });
        let size = match stream.below(4) {
            0 => smallest,
            1 => largest,
            _ => smallest + stream.below(u64::from(largest - smallest) + 1) as u32,
        };
        let user = UserId::new(stream.below(u64::from(self.users)) as u32);
        let direction = self.directions[stream.below(self.directions.len() as u64) as usize];
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][stream.below(3) as usize];
        let packet =
            Packet { id: index as u64, size, flow: FlowId(user.number()), user, ecn, slot: Slot(index as u32) };
        Arrival { at: *at, direction, packet }
    }
}

/// TCP headers of arrivals, by slot: each flow sends consecutive data segments and repeats every
/// third one.
#[derive(Clone, Debug, Default)]
pub struct Segments(Vec<Option<SegmentInfo>>);

/// Bytes of IPv4 and TCP headers without options (RFC 791 §3.1, RFC 9293 §3.1).
const HEADERS: u32 = 40;

/// Bytes of an IPv6 header (RFC 8200 §3).
const IPV6_HEADER: u32 = 40;

impl Segments {
    /// Headers for `arrivals`; those too small for them have none.
    pub fn of(arrivals: &[Arrival]) -> Self {
        let mut segments = Vec::new();
        let mut next = std::collections::BTreeMap::new();
        for (index, Arrival { direction, packet, .. }) in arrivals.iter().enumerate() {
            let Some(length) = packet.size.checked_sub(HEADERS) else { continue };
            let (last, offset) = next.entry((packet.flow, *direction)).or_insert((0, 0));
            let at = if index % 3 == 0 { *last } else { *offset };
            (*last, *offset) = (at, at + i64::from(length));
            let slot = packet.slot.0 as usize;
            segments.resize(segments.len().max(slot + 1), None);
            segments[slot] =
                Some(SegmentInfo { offset: at, length, ack: 0.into(), flags: 0x10, ..SegmentInfo::default() });
        }
        Self(segments)
    }
}

impl SegmentLookup for Segments {
    fn segment(&self, slot: Slot) -> Option<SegmentInfo> {
        *self.0.get(slot.0 as usize)?
    }

    /// IPv6 and UDP headers of the packet's flow.
    fn headers(&self, direction: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let Some(payload) = packet.size.checked_sub(IPV6_HEADER) else { return false };
        let length = (payload as u16).to_be_bytes();
        out.extend_from_slice(&[0x60, 0, 0, packet.flow.0 as u8, length[0], length[1], 17, 64]);
        out.extend_from_slice(&[direction as u8; 32]);
        let checksum = (packet.slot.0 as u16).to_be_bytes();
        let udp = [0x30, 0x39, 0x14, 0xe9, length[0], length[1], checksum[0], checksum[1]];
        out.extend_from_slice(&udp[..udp.len().min(payload as usize)]);
        true
    }
}

/// A change of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Commanded {
    /// Time; before the packets that arrive at the same time.
    pub at: Instant,
    /// The command. The bearer may refuse it; then nothing must change.
    pub command: BearerCommand,
}

/// Random commands: of every kind, for one direction or both, for one user or all.
#[derive(Clone, Debug, PartialEq)]
pub struct Commands {
    /// Number of commands.
    pub commands: usize,
    /// End of their interval, which starts at the origin; times are uniform.
    pub until: Instant,
    /// Number of users.
    pub users: u16,
    /// Names of classes of C/I levels.
    pub classes: &'static [&'static str],
    /// Whether a command may allow reordering.
    pub reorder: bool,
}

impl Commands {
    /// The commands, in the order of their times; the same for the same `seed`.
    pub fn draw(&self, seed: u64) -> Vec<Commanded> {
        let mut stream = Seed::new(seed).stream("testing/commands");
        let until = self.until.as_nanos();
        let mut times: Vec<u64> = (0..self.commands).map(|_| stream.below(until + 1)).collect();
        times.sort_unstable();
        let commanded = |at| Commanded { at: Instant::from_nanos(at), command: self.command(&mut stream) };
        times.into_iter().map(commanded).collect()
    }

    fn command(&self, stream: &mut RandomStream) -> BearerCommand {
        let span = |stream: &mut RandomStream| Span::from_micros(stream.below(300_000));
        let probability =
            |stream: &mut RandomStream| Probability::new(stream.uniform()).expect("a draw lies within the range");
        let change = match stream.below(14) {
            0 | 1 => Change::Outage(span(stream)),
            2 => Change::Handover { gap: span(stream), buffer: Buffer::Keep },
            3 => Change::Handover { gap: span(stream), buffer: Buffer::Discard },
            4 => Change::Rate(Bitrate::from_bps(50_000 + stream.below(5_000_000))),
            5 => Change::Loss(Loss::Bernoulli(probability(stream))),
            6 => Change::Loss(Loss::GilbertElliott(GilbertElliott {
                good_to_bad: probability(stream),
                bad_to_good: Probability::ALWAYS,
                loss_in_bad: probability(stream),
                loss_in_good: probability(stream),
            })),
            7 => Change::Delay(span(stream).into()),
            8 => {
                let minimum = span(stream);
                let distribution = Distribution::Uniform { minimum, maximum: minimum + span(stream) };
                Change::Delay(Delay { distribution, reorder: self.reorder && stream.below(2) == 0 })
            }
            9 => Change::Bler(probability(stream)),
            10 => Change::Channels(1 + stream.below(20) as u32),
            11 => Change::CarrierToInterference(Decibel::new(stream.uniform() * 40.0 - 10.0).expect("a finite number")),
            12 => Change::Environment(["indoor", "outdoor", "walking", "driving"][stream.below(4) as usize].to_owned()),
            _ if !self.classes.is_empty() && stream.below(2) == 0 => {
                Change::Class(self.classes[stream.below(self.classes.len() as u64) as usize].to_owned())
            }
            _ => Change::Level(1 + stream.below(5) as u8),
        };
        BearerCommand {
            change,
            direction: [None, None, Some(Direction::Down), Some(Direction::Up)][stream.below(4) as usize],
            user: (stream.below(2) == 0).then(|| UserId::new(stream.below(u64::from(self.users)) as u32)),
        }
    }
}

/// Input of a bearer.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// The packets, in the order of their times.
    pub arrivals: &'a [Arrival],
    /// The commands, in the order of theirs.
    pub commands: &'a [Commanded],
}

impl<'a> From<&'a [Arrival]> for Script<'a> {
    fn from(arrivals: &'a [Arrival]) -> Self {
        Self { arrivals, commands: &[] }
    }
}

impl<'a> From<&'a Vec<Arrival>> for Script<'a> {
    fn from(arrivals: &'a Vec<Arrival>) -> Self {
        arrivals.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [Arrival; N]> for Script<'a> {
    fn from(arrivals: &'a [Arrival; N]) -> Self {
        arrivals.as_slice().into()
    }
}

/// Output of a bearer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Departures, in their order.
    pub departures: Vec<(Direction, Departure)>,
    /// Losses, in the order of their times (and of ids among those of one instant).
    pub drops: Vec<Dropped>,
    /// The counters at the end, down and up.
    pub counters: [PacketCounters; 2],
    /// Results of the commands.
    pub answers: Vec<Result<(), CommandError>>,
}

/// Makes a bearer of a link, for the checks; downlink only.
#[derive(Clone, Debug)]
pub struct OneWay<L>(pub L);

impl<L: Link> Bearer for OneWay<L> {
    fn push(&mut self, now: Instant, direction: Direction, packet: Packet, cx: &mut Context<'_>) -> Admission {
        assert_eq!(direction, Direction::Down, "a one-way link goes down");
        self.0.push(now, packet, cx)
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<(Direction, Departure)> {
        self.0.pop(now, cx).map(|departure| (Direction::Down, departure))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.0.next_wakeup()
    }

    fn counters(&self, direction: Direction) -> PacketCounters {
        match direction {
            Direction::Down => self.0.counters(),
            Direction::Up => PacketCounters::default(),
        }
    }

    fn check(&self, command: &BearerCommand) -> Result<(), CommandError> {
        self.0.check(&command.change)
    }

    fn command(&mut self, now: Instant, command: &BearerCommand, cx: &mut Context<'_>) -> Result<(), CommandError> {
        self.0.command(now, &command.change, cx)?;
        command.report(now, cx);
        Ok(())
    }
}

/// Runs every check that holds for every bearer: those of [`drive`], determinism, no difference
/// without a listener, and [`late_poll_invariance`]. The run ends at `horizon`; packets may still
/// be inside.
///
/// # Panics
/// If a contract is broken.
pub fn contracts<'a, B: Bearer>(make: impl Fn() -> B, script: impl Into<Script<'a>>, horizon: Instant) {
    let script = script.into();
    let first = drive(&mut make(), script, Polling::OnTime, horizon);
    assert_eq!(first, drive(&mut make(), script, Polling::OnTime, horizon), "two runs of the same differ");
    let mut bearer = make();
    let mut unheard = Driver::new(&mut bearer, script, Polling::OnTime);
    unheard.listening = false;
    assert_eq!(first, unheard.run(horizon), "it behaves differently without a listener");
    late_poll_invariance(make, script, horizon);
}

/// Checks that an empty bearer has no wake-up: idle costs nothing.
///
/// # Panics
/// If it has one, or if `horizon` comes before all packets are out.
pub fn idle_sleeps<'a, B: Bearer>(make: impl Fn() -> B, script: impl Into<Script<'a>>, horizon: Instant) {
    let mut bearer = make();
    assert_eq!(bearer.next_wakeup(), None, "it has never had anything to do");
    let outcome = drive(&mut bearer, script, Polling::OnTime, horizon);
    let inside: u64 = outcome.counters.iter().map(|counters| counters.queued.packets).sum();
    assert_eq!(inside, 0, "the horizon comes too early for this check");
    assert_eq!(bearer.next_wakeup(), None, "it has nothing inside");
}

/// Checks that the departures, their order and `due`, and the losses and their times do not depend
/// on how late the bearer is polled.
///
/// # Panics
/// If it does not.
pub fn late_poll_invariance<'a, B: Bearer>(make: impl Fn() -> B, script: impl Into<Script<'a>>, horizon: Instant) {
    let script = script.into();
    let on_time = drive(&mut make(), script, Polling::OnTime, horizon);
    for polling in [Polling::Early(1), Polling::Late(1), Polling::Late(2), Polling::AtEnd] {
        let other = drive(&mut make(), script, polling, horizon);
        let first_difference =
            on_time.departures.iter().zip(&other.departures).position(|(a, b)| a != b).map(|index| {
                format!("departure {index}: {:?} on time, {:?}", on_time.departures[index], other.departures[index])
            });
        assert!(first_difference.is_none(), "polled {polling:?}: {}", first_difference.unwrap_or_default());
        assert_eq!(on_time, other, "polled {polling:?}");
    }
}

/// Checks that the packets of each user leave in the order of their arrival, in each direction.
///
/// # Panics
/// If they do not.
pub fn order_kept<'a, B: Bearer>(make: impl Fn() -> B, script: impl Into<Script<'a>>, horizon: Instant) {
    let script = script.into();
    let outcome = drive(&mut make(), script, Polling::OnTime, horizon);
    for direction in Direction::BOTH {
        let users = script.arrivals.iter().map(|arrival| arrival.packet.user).max().map_or(0, |user| user.number() + 1);
        for user in (0..users).map(UserId::new) {
            let ids = outcome
                .departures
                .iter()
                .filter(|(way, departure)| *way == direction && departure.packet.user == user)
                .map(|(_, departure)| departure.packet.id);
            assert!(ids.is_sorted(), "packets {} to user {} left out of order", direction.name(), user.number());
        }
    }
}

/// Pushes arrivals and commands into a bearer, polls it until `horizon`, and checks with every call
/// that
///
/// - packets are conserved, and the counters match the departures and losses by cause;
/// - each packet leaves or is lost at most once, unchanged except its ECN field, not before its
///   push;
/// - departures are in the order of their `due`, and not after `now`;
/// - once `pop` has returned `None`, the next wake-up is after `now`; and, polled on time, no
///   departure is earlier than its wake-up;
/// - the events match: `Queued` with each admission, `Delivered` at each `due`, `Dropped` with each
///   loss; and, polled on time, they are in the order of their times;
/// - a command is applied and reported if [`Bearer::check`] accepts it, and otherwise refused.
///
/// # Panics
/// If any of this does not hold.
pub fn drive<'a, B: Bearer>(
    bearer: &mut B,
    script: impl Into<Script<'a>>,
    polling: Polling,
    horizon: Instant,
) -> Outcome {
    Driver::new(bearer, script.into(), polling).run(horizon)
}

struct Driver<'a, B> {
    bearer: &'a mut B,
    arrivals: &'a [Arrival],
    segments: Segments,
    commands: &'a [Commanded],
    clock: PollClock,
    /// State of each packet, by id.
    fates: Vec<Fate>,
    /// Time and direction of each packet's `Queued` event, by id.
    queued: Vec<Option<(Instant, Direction)>>,
    /// Reported delivery of each packet, by id.
    delivered: Vec<Option<(Direction, Departure)>>,
    departures: Vec<(Direction, Departure)>,
    dropped: Vec<Dropped>,
    /// Number of `dropped` that are checked.
    drops_seen: usize,
    log: Memory,
    /// Number of log events that are checked.
    events_seen: usize,
    /// Whether events are recorded.
    listening: bool,
    counts: [PacketCounters; 2],
    answers: Vec<Result<(), CommandError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ahead,
    Inside,
    Out,
}

impl<'a, B: Bearer> Driver<'a, B> {
    fn new<'b: 'a>(bearer: &'a mut B, script: Script<'b>, polling: Polling) -> Self {
        let Script { arrivals, commands } = script;
        Self {
            bearer,
            arrivals,
            segments: Segments::of(arrivals),
            commands,
            clock: PollClock::new(polling),
            fates: vec![Fate::Ahead; arrivals.len()],
            queued: vec![None; arrivals.len()],
            delivered: vec![None; arrivals.len()],
            departures: Vec::new(),
            dropped: Vec::new(),
            drops_seen: 0,
            log: Memory::default(),
            events_seen: 0,
            listening: true,
            counts: [PacketCounters::default(); 2],
            answers: Vec::new(),
        }
    }

    fn run(mut self, horizon: Instant) -> Outcome {
        let mut commands = self.commands.iter().take_while(|commanded| commanded.at <= horizon).peekable();
        for arrival in self.arrivals.iter().take_while(|arrival| arrival.at <= horizon) {
            while let Some(commanded) = commands.next_if(|commanded| commanded.at <= arrival.at) {
                self.run_until(commanded.at);
                self.command(commanded);
            }
            self.run_until(arrival.at);
            self.push(arrival);
        }
        for commanded in commands {
            self.run_until(commanded.at);
            self.command(commanded);
        }
        self.run_until(horizon);
        self.poll(horizon);
        self.outcome(horizon)
    }

    fn push(&mut self, arrival: &Arrival) {
        let (packet, direction) = (arrival.packet, arrival.direction);
        let drops = self.dropped.len();
        let sink = self.listening.then_some(&mut self.log as &mut dyn Sink);
        let mut cx = Context::new(sink, &mut self.dropped, ComponentId(0));
        cx.with_segments(&self.segments);
        let admission = self.bearer.push(arrival.at, direction, packet, &mut cx);
        assert_eq!(self.fates[packet.id as usize], Fate::Ahead, "the ids of arrivals are their indices");
        self.fates[packet.id as usize] = Fate::Inside;
        self.counts[direction as usize].offer(&packet);
        self.read_log();
        let queued = self.queued[packet.id as usize];
        match admission {
            Admission::Queued => assert!(
                !self.listening || queued == Some((arrival.at, direction)),
                "{packet:?} was admitted, but not reported as queued at that time"
            ),
            Admission::Dropped(cause) => {
                assert_eq!(queued, None, "{packet:?} was dropped but reported as queued");
                let dropped = Dropped { time: arrival.at, packet, cause };
                assert!(self.dropped[drops..].contains(&dropped), "{dropped:?} did not go to the context");
            }
        }
        self.check();
    }

    fn command(&mut self, commanded: &Commanded) {
        let Commanded { at, command } = commanded;
        let expected = self.bearer.check(command);
        let sink = self.listening.then_some(&mut self.log as &mut dyn Sink);
        let mut cx = Context::new(sink, &mut self.dropped, ComponentId(0));
        cx.with_segments(&self.segments);
        let answer = self.bearer.command(*at, command, &mut cx);
        assert_eq!(answer, expected, "the check of {command:?} gave another result");
        let reports = |(time, _, event): &(Instant, ComponentId, Event)| matches!(event, Event::Change(change) if time == at && change.change == command.to_json());
        let reported = self.log.events[self.events_seen..].iter().filter(|event| reports(event)).count();
        assert_eq!(reported, usize::from(self.listening && answer.is_ok()), "{command:?} was not reported once");
        self.answers.push(answer);
        self.read_log();
        self.check();
    }

    fn depart(&mut self, now: Instant, direction: Direction, departure: Departure) {
        let Departure { due, packet } = departure;
        assert!(due <= now, "polled at {now}, but {departure:?}");
        if let Some((_, last)) = self.departures.last() {
            assert!(last.due <= due, "{departure:?} comes after {last:?}");
        }
        assert!(
            !self.listening || self.delivered[packet.id as usize] == Some((direction, departure)),
            "{departure:?} was not reported as delivered"
        );
        self.take_out(direction, &packet, due);
        self.counts[direction as usize].deliver(&packet);
        self.departures.push((direction, departure));
    }

    /// Checks the events reported since the last call.
    fn read_log(&mut self) {
        for (time, _, event) in &self.log.events[self.events_seen..] {
            let Event::Packet(PacketEvent { step, direction, packet }) = event.clone() else { continue };
            let id = packet.id as usize;
            let twice = match step {
                PacketStep::Queued { .. } => self.queued[id].replace((*time, direction)).is_some(),
                PacketStep::Delivered => {
                    self.delivered[id].replace((direction, Departure { due: *time, packet })).is_some()
                }
                // Checked at the end against the returned losses; the others are not a bearer's.
                _ => false,
            };
            assert!(!twice, "{} was reported twice of {packet:?}", step.name());
        }
        self.events_seen = self.log.events.len();
    }

    /// Records that a packet left, after checking that it was inside and unchanged.
    fn take_out(&mut self, direction: Direction, packet: &Packet, time: Instant) {
        let arrival = &self.arrivals[packet.id as usize];
        let fate = std::mem::replace(&mut self.fates[packet.id as usize], Fate::Out);
        assert_eq!(fate, Fate::Inside, "{packet:?} leaves, but was not inside");
        assert_eq!(Packet { ecn: arrival.packet.ecn, ..*packet }, arrival.packet, "a packet was changed inside");
        let marked = packet.ecn == Ecn::Ce && arrival.packet.ecn.is_capable();
        assert!(packet.ecn == arrival.packet.ecn || marked, "{packet:?} was given a wrong ECN field");
        assert_eq!(direction, arrival.direction, "{packet:?} changed its direction");
        assert!(time >= arrival.at, "{packet:?} left at {time}, before it came at {}", arrival.at);
    }

    fn check(&mut self) {
        while let Some(lost) = self.dropped.get(self.drops_seen).copied() {
            let direction = self.arrivals[lost.packet.id as usize].direction;
            self.take_out(direction, &lost.packet, lost.time);
            self.counts[direction as usize].lose(&lost.packet, lost.cause);
            self.drops_seen += 1;
        }
        for direction in Direction::BOTH {
            let counters = self.bearer.counters(direction);
            assert!(counters.is_conserved(), "packets are not conserved {}: {counters:?}", direction.name());
            assert_eq!(
                counters,
                self.counts[direction as usize],
                "the counters {} do not match the packets",
                direction.name()
            );
        }
    }

    fn outcome(self, horizon: Instant) -> Outcome {
        if self.clock.is_on_time() {
            let packets = self.log.events.iter().filter(|(_, _, event)| matches!(event, Event::Packet(_)));
            let ordered = packets.is_sorted_by_key(|(time, ..)| *time);
            assert!(ordered, "polled on time, the packets' events are not in the order of their times");
        }
        let lost_in_log = self
            .log
            .events
            .iter()
            .filter_map(|(time, _, event)| match event {
                Event::Packet(event) => match event.step {
                    PacketStep::Dropped(cause) => Some(Dropped { time: *time, packet: event.packet, cause }),
                    _ => None,
                },
                _ => None,
            })
            .collect::<Vec<_>>();
        assert!(!self.listening || lost_in_log == self.dropped, "the losses in the log are not those handed back");
        let mut drops = self.dropped;
        assert!(drops.iter().all(|lost| lost.time <= horizon), "a loss was reported before it happened");
        drops.sort_by_key(|lost| (lost.time, lost.packet.id));
        Outcome { departures: self.departures, drops, counters: self.counts, answers: self.answers }
    }
}

impl<B: Bearer> Polls for Driver<'_, B> {
    fn clock(&mut self) -> &mut PollClock {
        &mut self.clock
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.bearer.next_wakeup()
    }

    fn departures(&self) -> &[(Direction, Departure)] {
        &self.departures
    }

    fn poll(&mut self, now: Instant) {
        loop {
            let sink = self.listening.then_some(&mut self.log as &mut dyn Sink);
            let mut cx = Context::new(sink, &mut self.dropped, ComponentId(0));
            cx.with_segments(&self.segments);
            let popped = self.bearer.pop(now, &mut cx);
            if let Some((direction, departure)) = popped {
                self.read_log();
                self.depart(now, direction, departure);
            }
            self.check();
            if popped.is_none() {
                break;
            }
        }
        let wakeup = self.bearer.next_wakeup();
        assert!(wakeup.is_none_or(|wakeup| wakeup > now), "polled at {now}, has a wake-up at {wakeup:?}");
    }
}

impl Outcome {
    /// Packets and bytes dropped for `cause`, both directions.
    pub fn lost(&self, cause: DropCause) -> Count {
        let [down, up] = self.counters.map(|counters| counters.dropped[cause as usize]);
        Count { packets: down.packets + up.packets, bytes: down.bytes + up.bytes }
    }
}
