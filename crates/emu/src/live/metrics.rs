//! Metrics in the text format of Prometheus, version 0.0.4, over HTTP at a loopback address.
//!
//! Clients are served without blocking: a slow one does not delay packets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use airpath_core::Direction;
use airpath_proxy::PassCause;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::router::{BypassCause, RefusalCause};
use super::state::State;

/// A request is shorter.
const LONGEST_REQUEST: usize = 4096;
/// Clients at a time; further ones wait in the kernel's queue.
const MOST_CLIENTS: usize = 16;
/// The number of the listening socket in `epoll`.
const LISTENER: u64 = 0;

/// Serves metrics.
#[derive(Debug)]
pub struct MetricsServer {
    epoll: Epoll,
    listener: Option<TcpListener>,
    clients: BTreeMap<u64, Client>,
    next: u64,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    /// The rest of the response, once the request is complete.
    response: Option<Vec<u8>>,
}

impl MetricsServer {
    /// Listens at `address`; without one there are no clients.
    ///
    /// # Errors
    /// If the address is in use, or not of this host.
    pub fn open(address: Option<SocketAddr>) -> io::Result<Self> {
        Self::of(address.map(TcpListener::bind).transpose()?)
    }

    /// Accepts clients at `listener`.
    ///
    /// # Errors
    /// If the host cannot report clients.
    pub fn of(listener: Option<TcpListener>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
            epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        }
        Ok(Self { epoll, listener, clients: BTreeMap::new(), next: LISTENER + 1 })
    }

    /// The socket at which clients are accepted.
    pub const fn listener(&self) -> Option<&TcpListener> {
        self.listener.as_ref()
    }

    /// Handles what clients have sent. `state` returns the figures.
    pub fn serve(&mut self, mut state: impl FnMut() -> State) {
        let mut events = [EpollEvent::empty(); MOST_CLIENTS + 1];
        let Ok(count) = self.epoll.wait(&mut events, EpollTimeout::ZERO) else { return };
        for event in &events[..count] {
            match event.data() {
                LISTENER => self.accept(),
                number => {
                    let continues = match self.clients.get_mut(&number) {
                        Some(client) => client.proceed(&mut state).unwrap_or(false),
                        None => false,
                    };
                    self.update(number, continues);
                }
            }
        }
    }

    fn accept(&mut self) {
        let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) else { return };
        if self.clients.len() >= MOST_CLIENTS || stream.set_nonblocking(true).is_err() {
            return;
        }
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.next);
        if self.epoll.add(&stream, event).is_ok() {
            self.clients.insert(self.next, Client { stream, request: Vec::new(), response: None });
            self.next += 1;
        }
    }

    /// Waits for what the client needs next, or closes it.
    fn update(&mut self, number: u64, continues: bool) {
        if !continues {
            if let Some(client) = self.clients.remove(&number) {
                let _ = self.epoll.delete(&client.stream);
            }
        } else if let Some(client) = self.clients.get(&number) {
            let flags = if client.response.is_some() { EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
            let _ = self.epoll.modify(&client.stream, &mut EpollEvent::new(flags, number));
        }
    }
}

impl AsFd for MetricsServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

impl Client {
    /// Reads or writes as far as possible. Returns whether the client stays.
    fn proceed(&mut self, state: &mut impl FnMut() -> State) -> io::Result<bool> {
        if self.response.is_none() {
            let mut part = [0; LONGEST_REQUEST];
            let count = self.stream.read(&mut part)?;
            self.request.extend_from_slice(&part[..count]);
            let is_complete = self.request.windows(4).any(|end| end == b"\r\n\r\n");
            if !is_complete {
                return Ok(count > 0 && self.request.len() < LONGEST_REQUEST);
            }
            self.response = Some(response(&self.request, state));
        }
        let Some(rest) = &mut self.response else { return Ok(true) };
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => drop(rest.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

fn response(request: &[u8], state: &mut impl FnMut() -> State) -> Vec<u8> {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let (status, body) = match line {
        b"GET /metrics HTTP/1.1" | b"GET /metrics HTTP/1.0" => ("200 OK", text(&state())),
        _ => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// A line of a metric: its labels and its value.
type Sample = (String, u64);

/// The metrics as text.
pub fn text(state: &State) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[Sample]| {
        let _ = writeln!(text, "# HELP airpath_{name} {help}\n# TYPE airpath_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "airpath_{name}{labels} {value}");
        }
    };
    let single = |value| vec![(String::new(), value)];
    let by_cause = |names: &[&str], counts: &[u64]| -> Vec<Sample> {
        names.iter().zip(counts).map(|(cause, count)| (format!("{{cause=\"{cause}\"}}"), *count)).collect()
    };
    let by_direction = |counts: [u64; 2]| -> Vec<Sample> {
        let labelled = Direction::BOTH.into_iter().zip(counts);
        labelled.map(|(direction, count)| (format!("{{direction=\"{}\"}}", direction.name()), count)).collect()
    };
    let State { totals, mobiles, .. } = state;
    metric("connections", "gauge", "Connections that are relayed.", &single(state.connections as u64));
    metric("connections_opened_total", "counter", "Connections that were opened.", &single(totals.opened));
    let help = "Payload bytes that arrived on relayed connections, retransmissions included.";
    metric("payload_bytes_total", "counter", help, &by_direction(totals.relayed_bytes));
    metric("packets_total", "counter", "Packets that entered the proxy.", &by_direction(state.offered_packets));
    let help = "Acknowledgements of the proxy that were not sent: a later one left at once with them.";
    metric("merged_acknowledgements_total", "counter", help, &single(state.merged_acknowledgements));
    metric(
        "urgent_segments_total",
        "counter",
        "Segments with urgent data, which passed in-line.",
        &single(totals.urgent),
    );
    metric("path_mtus_total", "counter", "Path MTUs learned from ICMP errors.", &single(totals.path_mtus));
    metric("unreachable_total", "counter", "Connections ended by ICMP errors.", &single(totals.unreachable));
    let passed = by_cause(&PassCause::ALL.map(PassCause::name), &totals.passed).into_iter();
    let bypassed = by_cause(&BypassCause::ALL.map(BypassCause::name), &state.bypassed);
    let passed: Vec<Sample> = passed.chain(bypassed).collect();
    metric("passed_packets_total", "counter", "Packets that passed unchanged.", &passed);
    let refused = by_cause(&RefusalCause::ALL.map(RefusalCause::name), &state.refused).into_iter();
    let (causes, counts): (Vec<&str>, Vec<u64>) = state.dropped.iter().map(|(cause, count)| (*cause, *count)).unzip();
    let dropped: Vec<Sample> = refused.chain(by_cause(&causes, &counts)).collect();
    metric("dropped_packets_total", "counter", "Packets that were dropped.", &dropped);
    let help = "Packets that are missing in an output of the run that could not be written any more.";
    let unwritten = state.unwritten.iter().map(|(output, count)| (format!("{{output=\"{output}\"}}"), *count));
    metric("unwritten_packets_total", "counter", help, &unwritten.collect::<Vec<_>>());
    let help = "What the application level counts: messages, and bytes towards the mobiles.";
    let http: Vec<Sample> = state.http.iter().map(|(name, value)| (format!("{{what=\"{name}\"}}"), *value)).collect();
    metric("http_total", "counter", help, &http);
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&airpath_proxy::MobileState) -> u64| {
        let label = |(address, mobile)| (format!("{{mobile=\"{address}\"}}"), value(mobile));
        let samples: Vec<Sample> = mobiles.iter().map(|(address, mobile)| label((address, mobile))).collect();
        metric(name, "gauge", help, &samples);
    };
    gauge("mobile_connections", "Connections of the mobile.", &|mobile| mobile.connections.into());
    gauge("mobile_half_open_connections", "Connections that are open on one side only.", &|mobile| {
        mobile.half_open.into()
    });
    gauge("mobile_budget_bytes", "Bytes that may be unacknowledged.", &|mobile| mobile.budget);
    gauge("mobile_outstanding_bytes", "Bytes that are unacknowledged.", &|mobile| mobile.unacknowledged);
    gauge("mobile_queued_bytes", "Bytes that wait in the proxy.", &|mobile| mobile.queued);
    text
}

#[cfg(test)]
mod tests {
    use airpath_core::UserId;
    use airpath_proxy::{MobileState, Totals};

    use super::*;

    fn state() -> State {
        let mobile =
            MobileState { user: UserId::new(0), connections: 2, half_open: 1, budget: 3, unacknowledged: 4, queued: 5 };
        State {
            connections: 2,
            totals: Totals { opened: 7, relayed_bytes: [8, 9], passed: [1, 0, 0, 0], ..Totals::default() },
            mobiles: vec![("10.1.0.1/32".parse().unwrap(), mobile)],
            http: vec![("requests", 13)],
            offered_packets: [10, 11],
            bypassed: [0; 2],
            refused: [6, 0, 0],
            merged_acknowledgements: 0,
            unwritten: [("captures", 13)].into(),
            dropped: [("martian", 12)].into(),
        }
    }

    #[test]
    fn each_line_is_a_comment_or_a_sample() {
        let text = text(&state());
        for expected in [
            "airpath_connections 2",
            "airpath_payload_bytes_total{direction=\"up\"} 9",
            "airpath_passed_packets_total{cause=\"not-tcp\"} 1",
            "airpath_dropped_packets_total{cause=\"not-listed\"} 6",
            "airpath_dropped_packets_total{cause=\"martian\"} 12",
            "airpath_unwritten_packets_total{output=\"captures\"} 13",
            "airpath_http_total{what=\"requests\"} 13",
            "airpath_mobile_queued_bytes{mobile=\"10.1.0.1/32\"} 5",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
        assert!(text.lines().all(|line| line.starts_with("# ") || line.split(' ').count() == 2));
    }

    #[test]
    fn a_client_is_served_and_a_silent_one_does_not_block() {
        let mut server = MetricsServer::open(Some("127.0.0.1:0".parse().unwrap())).unwrap();
        let address = server.listener.as_ref().unwrap().local_addr().unwrap();
        let _silent = TcpStream::connect(address).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        for _ in 0..8 {
            server.serve(state);
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("airpath_connections 2\n"), "{answer}");
        assert_eq!(server.clients.len(), 1, "the silent client waits");
    }
}
