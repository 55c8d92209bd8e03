//! Two ends over a small virtual link: a rate, a delay and a drop-tail queue in each direction.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{
    Classes, ComponentId, Context, Direction, Ecn, Event, FlowId, Instant, QuicEvent, RandomStream, Seed, Sink, Span,
};
use airpath_quic::{Config, Connection, Identity, Outcome};

/// Bytes of IPv4 and UDP headers.
pub const HEADERS: u64 = 28;

/// One direction.
pub struct Link {
    bits_per_second: u64,
    delay: Span,
    queue: u64,
    /// When the last bit of the last packet has left.
    free: Instant,
    inside: VecDeque<(Instant, Vec<u8>)>,
    pub dropped: u64,
    pub carried: u64,
}

impl Link {
    pub fn new(bits_per_second: u64, delay: Span, queue: u64) -> Self {
        let (free, inside) = (Instant::ZERO, VecDeque::new());
        Self { bits_per_second, delay, queue, free, inside, dropped: 0, carried: 0 }
    }

    fn push(&mut self, now: Instant, datagram: &[u8]) {
        let time = |bytes: u64| Span::from_nanos(bytes * 8 * 1_000_000_000 / self.bits_per_second);
        let size = datagram.len() as u64 + HEADERS;
        let start = self.free.max(now);
        if start.since(now) + time(size) > time(self.queue) {
            self.dropped += 1;
            return;
        }
        self.free = start + time(size);
        self.carried += 1;
        self.inside.push_back((self.free + self.delay, datagram.to_vec()));
    }

    fn next(&self) -> Option<Instant> {
        self.inside.front().map(|(at, _)| *at)
    }
}

/// What a run is.
#[derive(Clone)]
pub struct Run {
    pub config: Config,
    pub bytes: u64,
    pub rate: u64,
    pub delay: Span,
    pub queue: u64,
    pub seed: u64,
    /// Extra calls of `handle_timeout` and `poll_transmit` between the wake-ups.
    pub early_polls: bool,
    /// Whether the packets of QUIC are logged.
    pub logs_packets: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            config: Config { datagram_size: 1452, mtu_discovery: false, ..Config::default() },
            bytes: 16 << 20,
            rate: 50_000_000,
            delay: Span::from_millis(20),
            queue: 250_000,
            seed: 1,
            early_polls: false,
            logs_packets: false,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub finished: Option<Instant>,
    /// When the run ended.
    pub ended: Instant,
    pub received: u64,
    pub outcome: Option<Outcome>,
    pub dropped: u64,
    pub packets: u64,
    pub lost_packets: u64,
    /// Of the packets of the client.
    pub lost_by_client: u64,
    /// The packets of QUIC, if they are logged, and the sizes of their datagrams.
    pub log: Vec<QuicEvent>,
    pub datagrams: Vec<usize>,
    /// FNV-1a of times and bytes of all datagrams.
    pub digest: u64,
}

pub fn random(seed: u64, name: &str) -> impl FnMut(&str) -> RandomStream {
    move |part| Seed::new(seed).stream(&format!("{name}/{part}"))
}

/// The client and the server of a run.
pub fn identities(run: &Run) -> [Identity; 2] {
    [(Direction::Up, "client"), (Direction::Down, "server")].map(|(direction, name)| {
        let mut identity = Identity::new(FlowId(0), direction, random(run.seed, name));
        identity.logs_packets = run.logs_packets;
        identity
    })
}

/// Collects the packets of QUIC.
#[derive(Default)]
struct Log(Vec<QuicEvent>);

impl Sink for Log {
    fn wants(&self) -> Classes {
        Classes::QUIC
    }

    fn record(&mut self, _: Instant, _: ComponentId, event: &Event) {
        let Event::Quic(event) = event else { panic!("{event:?} is not wanted") };
        self.0.push(event.clone());
    }
}

/// A download of `run.bytes` with null crypto.
pub fn download(run: &Run) -> Done {
    let config = Arc::new(run.config.clone());
    let [client, server] = identities(run);
    let client = Connection::connect(Arc::clone(&config), client, Instant::ZERO);
    drive(run, client, Connection::listen(config, server))
}

/// A download of `run.bytes` by `client` from `server`, after a request of 100 bytes.
pub fn drive(run: &Run, mut client: Connection, mut server: Connection) -> Done {
    let link = || Link::new(run.rate, run.delay, run.queue);
    let (mut up, mut down) = (link(), link());
    let mut now = Instant::ZERO;
    let (mut requested, mut answered, mut finished) = (false, false, None);
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut datagram = Vec::new();
    let mut received = 0;
    let (mut log, mut dropped, mut datagrams) = (Log::default(), Vec::new(), Vec::new());
    loop {
        for _ in 0..2 {
            if client.is_established() && !requested {
                requested = true;
                let stream = client.open_stream().expect("streams are allowed");
                client.stream(stream).write(100);
                client.stream(stream).close();
            }
            if !answered && server.stream_count() > 0 && server.stream(0).received() == 100 {
                answered = true;
                server.stream(0).write(run.bytes);
                server.stream(0).close();
            }
            for (end, link) in [(&mut client, &mut up), (&mut server, &mut down)] {
                while end.poll_transmit(now, &mut datagram).is_some() {
                    let bytes = now.as_nanos().to_le_bytes();
                    for byte in bytes.iter().chain(&datagram) {
                        digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
                    }
                    link.push(now, &datagram);
                    if run.logs_packets {
                        let mut cx = Context::new(Some(&mut log), &mut dropped, ComponentId(0));
                        end.report_sent(now, datagrams.len() as u64, &datagram, &mut cx);
                        datagrams.push(datagram.len());
                    }
                }
            }
        }
        if client.stream_count() > 0 {
            received = client.stream(0).received();
        }
        if finished.is_none() && received == run.bytes {
            finished = Some(now);
        }
        let lost = [&client, &server].into_iter().find_map(|end| end.outcome().cloned());
        if lost.is_some() || server.streams_done() || now > Instant::ZERO + Span::from_secs(600) {
            return Done {
                finished,
                ended: now,
                received,
                outcome: lost,
                dropped: up.dropped + down.dropped,
                packets: up.carried + down.carried,
                lost_packets: server.statistics().lost_packets,
                lost_by_client: client.statistics().lost_packets,
                log: log.0,
                datagrams,
                digest,
            };
        }
        let wakeups = [up.next(), down.next(), client.next_wakeup(), server.next_wakeup()];
        let next = wakeups.into_iter().flatten().min().expect("there is a timer").max(now);
        if run.early_polls {
            let middle = now + next.since(now) / 2;
            client.handle_timeout(middle);
            server.handle_timeout(middle);
            assert_eq!(client.poll_transmit(middle, &mut datagram), None);
            assert_eq!(server.poll_transmit(middle, &mut datagram), None);
        }
        now = next;
        for (link, end) in [(&mut up, &mut server), (&mut down, &mut client)] {
            while link.next().is_some_and(|at| at <= now) {
                let (_, datagram) = link.inside.pop_front().expect("it was looked at");
                end.handle_datagram(now, Ecn::NotEct, &datagram);
            }
            if end.next_wakeup().is_some_and(|at| at <= now) {
                end.handle_timeout(now);
            }
            if run.logs_packets {
                end.report(now, &mut Context::new(Some(&mut log), &mut dropped, ComponentId(0)));
            }
        }
    }
}
