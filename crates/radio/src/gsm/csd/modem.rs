//! The fixed link: two modems on a telephone line, at the gateway and at the interworking function
//! (or, without a radio link, at the subscriber).
//!
//! With V.42 they send frames synchronously, under LAPM: each of up to N401 octets of user data,
//! with six more of flag, address, control and FCS, and the zeros that HDLC inserts after five
//! ones. A supervisory frame has these six octets alone. A frame that is not full is sent when no
//! octet has come for the time of `assembly`. Without error control they send each octet between a
//! start and a stop bit, and what the line spoils is spoilt.

use std::collections::VecDeque;

use airpath_core::{Direction, Instant, Probability, Seed, Span, earliest};

use super::config::{ErrorControl, Modem};
use super::hdlc_abm::{Frame, Phase, Reaction, Station};
use super::octets::Run;
use super::stream::{Outcome, Stream};

/// Octets that go together where there are no frames.
const ASYNCHRONOUS_BLOCK: u32 = 8;

/// The fixed link of one mobile.
#[derive(Debug)]
pub struct ModemLine {
    modem: Modem,
    payload: u32,
    /// By the direction in which they send user data; none without error control.
    stations: Option<[Station; 2]>,
    streams: [Stream; 2],
    /// When octets came in last.
    offered: [Instant; 2],
    /// When it was last seen to whether there is a frame to send.
    tried: [Instant; 2],
    /// When what is being sent is sent.
    sending: [Option<Instant>; 2],
    line: [VecDeque<(Instant, Arrival)>; 2],
    errors: [airpath_core::RandomStream; 2],
}

/// What comes out of the line.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    Frame(Frame),
    /// Octets without a frame, and whether they are spoilt.
    Octets {
        count: u32,
        spoilt: bool,
    },
}

impl ModemLine {
    /// An idle line, whose modems are connected. Generator streams are `path/down/errors` and
    /// `path/up/errors`.
    pub fn new(modem: &Modem, seed: Seed, path: &str) -> Self {
        Self {
            payload: modem.payload(),
            stations: modem.station().map(|settings| [Station::new(settings.clone()), Station::new(settings)]),
            streams: [Stream::new(modem.compression), Stream::new(modem.compression)],
            offered: [Instant::ZERO; 2],
            tried: [Instant::ZERO; 2],
            sending: [None; 2],
            line: Default::default(),
            errors: Direction::BOTH.map(|direction| seed.stream(&format!("{path}/{}/errors", direction.name()))),
            modem: modem.clone(),
        }
    }

    /// Octets that wait one way.
    pub const fn waiting(&self, direction: Direction) -> u64 {
        self.streams[direction as usize].waiting()
    }

    /// Octets that it takes at once.
    pub const fn takes_at_once(&self) -> u32 {
        self.payload
    }

    /// Octets that still come, and that pass until the next come, when the link is held and let go.
    pub fn in_flight(&self) -> u64 {
        let Modem { rate, delay, compression, .. } = &self.modem;
        let on_line = rate.as_bps() as f64 / 8.0 * delay.as_secs_f64();
        ((f64::from(self.payload) * 2.0 + on_line) * compression.unwrap_or(1.0)).ceil() as u64
    }

    /// Stops sending octets that wait one way, or sends them again. Returns whether they are sent
    /// again from now on.
    pub fn hold(&mut self, now: Instant, direction: Direction, is_held: bool) -> bool {
        let is_let_go = self.streams[direction as usize].hold(is_held);
        if is_let_go {
            self.transmit(now, direction);
        }
        is_let_go
    }

    /// Whether the link has given up.
    pub fn is_disconnected(&self) -> bool {
        self.stations.iter().flatten().any(|station| station.phase() == Phase::Disconnected)
    }

    /// Gives it octets.
    pub fn offer(&mut self, now: Instant, direction: Direction, run: Run) {
        self.streams[direction as usize].offer(run);
        self.offered[direction as usize] = now;
        self.transmit(now, direction);
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Instant> {
        let next = |direction: Direction| {
            let index = direction as usize;
            let arrival = self.line[index].front().map(|(at, _)| *at);
            let timer = || {
                let station = &self.stations.as_ref()?[index];
                // What is still there after that waits for the window, or for an answer.
                let assembled = self.assembled_at(index).filter(|at| *at > self.tried[index]);
                earliest([station.next_timer(), assembled])
            };
            earliest([arrival, self.sending[index].or_else(timer)])
        };
        Direction::BOTH.into_iter().filter_map(next).min()
    }

    /// Does all that happens at `now`.
    pub fn step(&mut self, now: Instant, outcomes: &mut Vec<Outcome>) {
        for direction in Direction::BOTH {
            while let Some((at, arrival)) = self.line[direction as usize].front().copied()
                && at <= now
            {
                self.line[direction as usize].pop_front();
                self.arrive(now, direction, arrival, outcomes);
            }
        }
        Direction::BOTH.into_iter().for_each(|direction| self.transmit(now, direction));
    }

    /// Loses all octets inside, and is established again.
    pub fn restart(&mut self, outcomes: &mut Vec<Outcome>) {
        for direction in Direction::BOTH {
            self.streams[direction as usize].lose_all(direction, outcomes);
            self.line[direction as usize].clear();
        }
        self.sending = [None; 2];
        self.stations = self.modem.station().map(|settings| [Station::new(settings.clone()), Station::new(settings)]);
    }

    /// When octets that do not fill a frame have waited long enough for others.
    fn assembled_at(&self, index: usize) -> Option<Instant> {
        let waiting = self.streams[index].waiting();
        let is_part = waiting > 0 && waiting < u64::from(self.payload);
        (is_part && !self.modem.assembly.is_zero()).then(|| self.offered[index] + self.modem.assembly)
    }

    /// Sends the next frame, if the line is free.
    fn transmit(&mut self, now: Instant, direction: Direction) {
        let index = direction as usize;
        if self.sending[index].is_some_and(|until| until > now) {
            return;
        }
        self.sending[index] = None;
        self.tried[index] = now;
        let is_assembling = self.assembled_at(index).is_some_and(|at| at > now);
        let stream = &mut self.streams[index];
        let (duration, arrival) = match &mut self.stations {
            Some(stations) => {
                let waiting = if is_assembling { 0 } else { stream.ready() };
                let Some(frame) = stations[index].next_frame(now, waiting, stream.position()) else { return };
                if !frame.is_repeated() {
                    stream.cut(u64::from(frame.octets()));
                }
                let is_errored = self.errors[index].chance(self.modem.frame_errors);
                (self.modem.duration(frame.octets()), (!is_errored).then_some(Arrival::Frame(frame)))
            }
            None => {
                let count = stream.ready().min(u64::from(ASYNCHRONOUS_BLOCK)) as u32;
                if count == 0 {
                    return;
                }
                stream.cut(u64::from(count));
                let spoilt = self.errors[index].chance(self.modem.frame_errors);
                (self.modem.duration(count), Some(Arrival::Octets { count, spoilt }))
            }
        };
        let end = now + duration;
        self.sending[index] = Some(end);
        if let Some(arrival) = arrival {
            self.line[index].push_back((end + self.modem.delay, arrival));
        }
    }

    fn arrive(&mut self, now: Instant, direction: Direction, arrival: Arrival, outcomes: &mut Vec<Outcome>) {
        let (here, back) = (direction as usize, direction.opposite());
        match (arrival, &mut self.stations) {
            (Arrival::Frame(frame), Some(stations)) => {
                let Reaction { delivered, restarted_at } = stations[back as usize].receive(now, frame);
                self.streams[here].deliver(delivered, direction, outcomes);
                if let Some(position) = restarted_at {
                    self.streams[here].lose_before(position, direction, outcomes);
                    self.streams[back as usize].lose_before(u64::MAX, back, outcomes);
                }
            }
            (Arrival::Octets { count, spoilt: false }, _) => {
                self.streams[here].deliver(u64::from(count), direction, outcomes);
            }
            (Arrival::Octets { count, spoilt: true }, _) => {
                self.streams[here].lose(u64::from(count), direction, outcomes);
            }
            (Arrival::Frame(_), None) => unreachable!("without error control there are no frames"),
        }
    }
}

impl Modem {
    /// How long a frame with this number of octets of user data takes on the line; without error
    /// control, the octets alone.
    pub(super) fn duration(&self, octets: u32) -> Span {
        let bits = match self.error_control {
            ErrorControl::V42 => u64::from(octets + super::config::LAPM_OVERHEAD) * 8,
            // A start bit and a stop bit (ITU-T V.14).
            ErrorControl::None => u64::from(octets) * 10,
        };
        let nanos = u128::from(bits) * 1_000_000_000 / u128::from(self.rate.as_bps());
        let inserted = match self.error_control {
            ErrorControl::V42 => self.zero_insertion,
            ErrorControl::None => Probability::NEVER,
        };
        Span::from_nanos(nanos as u64 + (nanos as f64 * inserted.get()) as u64)
    }
}
