//! One download, from the first SYN to the last acknowledgement.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;

use airpath_core::{ComponentId, Context, Direction, FlowId, Instant, Probability, RandomStream, Seed, Span};
use airpath_tcp::{Config, Connection, Identity, Segment, State};

use crate::file::File;

/// Bytes of a client's request.
const REQUEST: u64 = 200;

/// Transmission time of a packet at the bottleneck of the downlink: 24 Mbit/s, so that data does
/// not arrive in bursts.
const BOTTLENECK: Span = Span::from_micros(500);

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Two ends and the path between them.
pub struct Flow {
    ends: [End; 2],
    /// Time at which the client connects; `None` afterwards.
    begins: Option<Instant>,
    size: u64,
    is_answered: bool,
    loss: Probability,
    chance: RandomStream,
    /// One-way delay: half the round trip.
    delay: Span,
    /// Time at which the downlink bottleneck is idle.
    link_free: Instant,
}

struct End {
    connection: Connection,
    address: Ipv4Addr,
    /// Number of packets sent.
    sent: u16,
    /// Packets in flight to it, with their arrival times.
    arrivals: VecDeque<(Instant, Segment)>,
}

impl Flow {
    /// The download number `number`, of `size` bytes, which begins at `at`.
    pub fn begin(number: u32, size: u64, config: &Arc<Config>, loss: Probability, seed: Seed, at: Instant) -> Self {
        let mut chance = seed.stream(&format!("flow-{number}"));
        let [delay, client_sequence, server_sequence] = [50, 1 << 32, 1 << 32].map(|bound| chance.below(bound));
        let port = 32_768 + (number % 28_000) as u16;
        let identity = |direction, local_port, remote_port, initial_sequence: u64| Identity {
            flow: FlowId(number),
            direction,
            local_port,
            remote_port,
            initial_sequence: initial_sequence as u32,
        };
        let mut client = Connection::connect(config.clone(), identity(Direction::Up, port, 443, client_sequence), at);
        client.write(REQUEST);
        let server = Connection::listen(config.clone(), identity(Direction::Down, 443, port, server_sequence));
        // Each client has an address: 10.0.0.0/8 has sixteen million.
        let client_address = Ipv4Addr::from_bits(0x0A00_0000 | number & 0x00FF_FFFF);
        let server_address = Ipv4Addr::new(192, 0, 2, 1 + (number % 16) as u8);
        let end = |connection, address| End { connection, address, sent: 0, arrivals: VecDeque::new() };
        let ends = [end(client, client_address), end(server, server_address)];
        Self {
            ends,
            begins: Some(at),
            size,
            is_answered: false,
            loss,
            chance,
            delay: Span::from_millis(10 + delay),
            link_free: at,
        }
    }

    /// Time of the next event; `None` once the flow has ended.
    pub fn next_time(&self) -> Option<Instant> {
        let arrivals = self.ends.iter().filter_map(|end| Some(end.arrivals.front()?.0));
        // TIME-WAIT is not simulated.
        let waiting = self.ends.iter().filter(|end| end.connection.state() != State::TimeWait);
        let timers = waiting.filter_map(|end| end.connection.next_wakeup());
        self.begins.into_iter().chain(arrivals).chain(timers).min()
    }

    /// Processes due events, and captures packets that pass the server.
    pub fn advance<W: Write>(&mut self, now: Instant, file: &mut File<W>) -> io::Result<()> {
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        self.begins = None;
        for number in [CLIENT, SERVER] {
            while let Some(segment) = self.ends[number].arrived(now) {
                if number == SERVER {
                    self.capture(now, CLIENT, &segment, file)?;
                }
                self.ends[number].connection.handle_segment(now, &segment, &mut cx);
            }
            let connection = &mut self.ends[number].connection;
            if connection.next_wakeup().is_some_and(|time| time <= now) {
                connection.handle_timeout(now, &mut cx);
            }
        }
        self.serve();
        for number in [CLIENT, SERVER] {
            while let Some(segment) = self.ends[number].connection.poll_transmit(now, &mut cx) {
                // The uplink loses nothing; the downlink loses packets after the capture point.
                if number == CLIENT {
                    self.ends[SERVER].arrivals.push_back((now + self.delay, segment));
                    continue;
                }
                self.capture(now, SERVER, &segment, file)?;
                self.link_free = self.link_free.max(now) + BOTTLENECK;
                if !self.chance.chance(self.loss) {
                    self.ends[CLIENT].arrivals.push_back((self.link_free + self.delay, segment));
                }
            }
        }
        Ok(())
    }

    /// The two applications: the server answers, and both close when they are done.
    fn serve(&mut self) {
        let [client, server] = &mut self.ends;
        if !self.is_answered && server.connection.readable() >= REQUEST {
            self.is_answered = true;
            server.connection.read(REQUEST);
            server.connection.write(self.size);
            server.connection.close();
        }
        let readable = client.connection.readable();
        if readable > 0 {
            client.connection.read(readable);
        }
        if client.connection.peer_closed() && client.connection.state() == State::CloseWait {
            client.connection.close();
        }
    }

    /// Captures the packets that `sender` has sent.
    fn capture<W: Write>(
        &mut self,
        now: Instant,
        sender: usize,
        segment: &Segment,
        file: &mut File<W>,
    ) -> io::Result<()> {
        let destination = self.ends[1 - sender].address;
        let end = &mut self.ends[sender];
        end.sent = end.sent.wrapping_add(1);
        file.packet(now, [end.address, destination], end.sent, segment)
    }
}

impl End {
    /// The next segment that has arrived by now.
    fn arrived(&mut self, now: Instant) -> Option<Segment> {
        let (time, _) = self.arrivals.front()?;
        if *time > now {
            return None;
        }
        self.arrivals.pop_front().map(|(_, segment)| segment)
    }
}
