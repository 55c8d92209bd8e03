//! The client's side of a control connection: it finds the responder, requests the test, and
//! fetches the report.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_core::{Instant, Span};
use nix::poll::PollFlags;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::clock::{now, wait};
use crate::error::MeasureError;
use crate::lines::{Lines, transfer_time};
use crate::protocol::{
    ARRIVAL, ControlRequest, ControlResponse, GREETING, REPORT_LIMIT, Ready, Report, TestRequest, greeting, version,
};
use crate::tcp_info::TcpInfo;

/// Time limit of the connection to the responder, and of each response.
const RESPONSE_TIMEOUT: Span = Span::from_secs(20);

/// Time limit of the response to a test request, which has the objects of pages: over a slow path
/// that takes a while.
const TEST_TIMEOUT: Span = Span::from_secs(120);

/// Time limit of a response after the measurement. Request and response may wait in a queue that
/// the measurement has filled: 64 kB take a minute at 8 kbit/s.
const REPORT_TIMEOUT: Span = Span::from_secs(600);

/// A peer that acknowledges nothing for this time is lost (`TCP_USER_TIMEOUT`, tcp(7)).
const SILENCE: Duration = Duration::from_secs(120);

/// Interval of the probes of a silent peer while a response is awaited (RFC 9293 §3.8.4). They are
/// not sent at other times, because they would wake the radio of an idle path.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// Address family of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// The first address found.
    #[default]
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The first address of [`resolve_all`].
///
/// # Errors
/// No such address.
pub fn resolve(host: &str, port: u16, family: Family) -> Result<SocketAddr, MeasureError> {
    Ok(resolve_all(host, port, family)?[0])
}

/// The addresses of `host` of this family, at least one, with `port` unless the text has one:
/// `name`, `name:port`, `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]:port`.
///
/// # Errors
/// No such address.
pub fn resolve_all(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, MeasureError> {
    let unknown = |source| MeasureError::Unknown { host: host.to_owned(), source };
    let (name, port) = split(host, port).ok_or_else(|| {
        unknown(io::Error::new(io::ErrorKind::InvalidInput, "this is not of the form HOST or HOST:PORT"))
    })?;
    let wanted = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let found: Vec<SocketAddr> = (name, port).to_socket_addrs().map_err(unknown)?.filter(wanted).collect();
    match found.is_empty() {
        true => Err(unknown(io::Error::new(io::ErrorKind::NotFound, "it has no address of that family"))),
        false => Ok(found),
    }
}

/// Host and port of user input; `None` for an invalid port.
pub(crate) fn split(host: &str, port: u16) -> Option<(&str, u16)> {
    if let Some(bracketed) = host.strip_prefix('[') {
        let (name, rest) = bracketed.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((name, port.parse().ok()?)),
            None => rest.is_empty().then_some((name, port)),
        };
    }
    match host.split_once(':') {
        // An IPv6 address without brackets has more than one colon, and no port.
        Some((name, port)) if !port.contains(':') => Some((name, port.parse().ok()?)),
        _ => Some((host, port)),
    }
}

/// A control connection whose test request was accepted.
pub struct Control<'a> {
    lines: Lines,
    stop: &'a AtomicBool,
    peer: SocketAddr,
    /// Information that the responder sent on itself.
    pub ready: Ready,
    /// Number of the session.
    pub session: u64,
}

/// Connects to the first of `peers` that accepts the connection (RFC 6724 §2), and returns the
/// socket and this address. `Ok(None)` if `stop` was set meanwhile.
///
/// # Errors
/// None of them accepts: the error of the last one.
pub fn connect_to_any(peers: &[SocketAddr], stop: &AtomicBool) -> Result<Option<(Socket, SocketAddr)>, MeasureError> {
    let mut failed = None;
    for peer in peers.iter().copied() {
        match connect(peer, now() + RESPONSE_TIMEOUT, &|| stop.load(Ordering::Relaxed)) {
            Ok(socket) => return Ok(socket.map(|socket| (socket, peer))),
            Err(source) => failed = Some(MeasureError::Unreachable { peer, source }),
        }
    }
    Err(failed.expect("a host has at least one address"))
}

impl<'a> Control<'a> {
    /// Requests `test` over a connection to `peer`. `Ok(None)` if `stop` was set meanwhile.
    ///
    /// # Errors
    /// No answer, another service, another version, or a refusal by the responder.
    pub fn open(
        socket: Socket,
        peer: SocketAddr,
        test: &TestRequest,
        stop: &'a AtomicBool,
    ) -> Result<Option<Self>, MeasureError> {
        let until = now() + RESPONSE_TIMEOUT;
        let stopped = || stop.load(Ordering::Relaxed);
        let lost = |source| MeasureError::Lost { peer, source };
        let not_ours = || MeasureError::NotAResponder { peer };
        socket.set_tcp_user_timeout(Some(SILENCE)).map_err(lost)?;
        let mut lines = Lines::new(socket, Vec::new()).map_err(lost)?;
        lines.write_bytes(greeting().as_bytes()).map_err(lost)?;
        // Another service closes, sends nothing, or sends something else.
        let theirs = match lines.read(REPORT_LIMIT, until, &stopped) {
            Ok(None) if stopped() => return Ok(None),
            Ok(Some(line)) => line,
            Ok(None) | Err(_) => return Err(not_ours()),
        };
        let theirs = theirs.strip_prefix(GREETING).and_then(version).ok_or_else(not_ours)?;
        if theirs != crate::protocol::VERSION {
            return Err(MeasureError::Version { peer, theirs });
        }
        lines.write(&ControlRequest::Test(Box::new(test.clone()))).map_err(lost)?;
        let until = now() + TEST_TIMEOUT;
        let Some(line) = lines.read(REPORT_LIMIT, until, &stopped).map_err(lost)? else {
            return match stopped() {
                true => Ok(None),
                false => Err(lost(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"))),
            };
        };
        match serde_json::from_slice(&line) {
            Ok(ControlResponse::Ready(ready)) => {
                let session = u64::from_str_radix(&ready.session, 16).map_err(|_| not_ours())?;
                Ok(Some(Self { lines, stop, peer, ready, session }))
            }
            Ok(ControlResponse::Refused(why)) => Err(MeasureError::Refused { peer, why }),
            Ok(ControlResponse::Report(_) | ControlResponse::Arrivals(_) | ControlResponse::Started(_)) | Err(_) => {
                Err(not_ours())
            }
        }
    }

    /// Least round trip of the control connection; zero if the kernel does not report it.
    pub fn round_trip(&self) -> Span {
        let least = TcpInfo::of(self.lines.socket()).and_then(|info| info.rtt_min_s);
        least.map(Span::from_secs_f64).unwrap_or_default()
    }

    /// Whether the responder sees this host's own address and port, so that no address translation
    /// is in between.
    pub fn is_seen_as_it_is(&self) -> bool {
        let own = self.lines.socket().local_addr().ok().and_then(|own| own.as_socket());
        let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
        own.map(canonical) == Some(canonical(self.ready.peer))
    }

    /// The report of the responder's end. The responder waits a short time for flows that are not
    /// over.
    ///
    /// # Errors
    /// The connection to the responder is lost, or the user does not wait longer.
    pub fn report(&mut self) -> Result<Report, MeasureError> {
        match self.request(&ControlRequest::Report, REPORT_TIMEOUT)? {
            ControlResponse::Report(report) => Ok(report),
            _ => Err(MeasureError::NotAResponder { peer: self.peer }),
        }
    }

    /// The datagrams that arrived at the responder, at most `most`, in that order: number, send
    /// time by this clock, arrival time by the responder's.
    ///
    /// # Errors
    /// The connection to the responder is lost, the list is invalid, or the user does not wait
    /// longer.
    pub fn arrivals(&mut self, most: u64) -> Result<Vec<(u32, u64, u64)>, MeasureError> {
        let peer = self.peer;
        let count = match self.request(&ControlRequest::Arrivals, REPORT_TIMEOUT)? {
            ControlResponse::Arrivals(count) if u64::from(count) <= most => count as usize,
            _ => return Err(MeasureError::NotAResponder { peer }),
        };
        let length = count * ARRIVAL;
        let bytes = self.awaiting(|lines, gives_up| {
            lines.read_exact(length, now() + REPORT_TIMEOUT + transfer_time(length), gives_up)
        })?;
        let (records, _) = bytes.as_chunks::<ARRIVAL>();
        Ok(records
            .iter()
            .filter_map(|record| {
                let (number, rest) = record.split_first_chunk::<4>()?;
                let (sent, rest) = rest.split_first_chunk::<8>()?;
                let arrived = rest.first_chunk::<8>()?;
                let number = u32::from_be_bytes(*number);
                (u64::from(number) < most).then(|| (number, u64::from_be_bytes(*sent), u64::from_be_bytes(*arrived)))
            })
            .collect())
    }

    /// Requests the start of a call or a video at a time of the responder's clock. Returns its
    /// `count` ports.
    ///
    /// # Errors
    /// The connection to the responder is lost, or it refuses.
    pub fn start(&mut self, start: u64, count: usize) -> Result<Vec<u16>, MeasureError> {
        let peer = self.peer;
        match self.request(&ControlRequest::Start(start), RESPONSE_TIMEOUT)? {
            ControlResponse::Started(ports) if ports.len() == count => Ok(ports),
            ControlResponse::Refused(why) => Err(MeasureError::Refused { peer, why }),
            _ => Err(MeasureError::NotAResponder { peer }),
        }
    }

    fn request(&mut self, request: &ControlRequest, limit: Span) -> Result<ControlResponse, MeasureError> {
        let line = self.awaiting(|lines, gives_up| {
            lines.write(request)?;
            match lines.read(REPORT_LIMIT, now() + limit, gives_up)? {
                Some(line) => Ok(line),
                None if gives_up() => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
                None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection")),
            }
        })?;
        serde_json::from_slice(&line).map_err(|_| MeasureError::NotAResponder { peer: self.peer })
    }

    /// Runs `exchange` while the kernel probes the peer. Its second argument is whether the user
    /// has stopped the measurement and waited for [`RESPONSE_TIMEOUT`].
    fn awaiting<T>(
        &mut self,
        exchange: impl FnOnce(&mut Lines, &dyn Fn() -> bool) -> io::Result<T>,
    ) -> Result<T, MeasureError> {
        let (stop, begun) = (self.stop, now());
        let gives_up = || stop.load(Ordering::Relaxed) && now() >= begun + RESPONSE_TIMEOUT;
        let probes = TcpKeepalive::new().with_time(PROBE_INTERVAL).with_interval(PROBE_INTERVAL);
        let result = self
            .lines
            .socket()
            .set_tcp_keepalive(&probes)
            .and_then(|()| exchange(&mut self.lines, &gives_up))
            .and_then(|result| self.lines.socket().set_keepalive(false).map(|()| result));
        result.map_err(|source| MeasureError::Lost { peer: self.peer, source })
    }
}

/// Connects to `peer` by `until`; `Ok(None)` if `stop` becomes true before.
///
/// # Errors
/// The peer refuses, or does not respond in time.
pub fn connect(peer: SocketAddr, until: Instant, stop: &dyn Fn() -> bool) -> io::Result<Option<Socket>> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&peer.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    loop {
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        if socket.peer_addr().is_ok() {
            return Ok(Some(socket));
        }
        if stop() {
            return Ok(None);
        }
        if now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        wait(socket.as_fd(), PollFlags::POLLOUT, Some(until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_as_people_write_them() {
        let is = |text, host, port| assert_eq!(split(text, 7), Some((host, port)), "{text}");
        is("server", "server", 7);
        is("server:80", "server", 80);
        is("192.0.2.1:80", "192.0.2.1", 80);
        is("2001:db8::1", "2001:db8::1", 7);
        is("[2001:db8::1]", "2001:db8::1", 7);
        is("[2001:db8::1]:80", "2001:db8::1", 80);
        for wrong in ["server:", "server:port", "[::1", "[::1]80", "[::1]:99999"] {
            assert_eq!(split(wrong, 7), None, "{wrong}");
        }
    }

    #[test]
    fn families_are_kept_apart() {
        assert!(resolve("127.0.0.1", 1, Family::V4).is_ok());
        assert!(resolve("127.0.0.1", 1, Family::V6).is_err());
        assert!(resolve("::1", 1, Family::V6).is_ok());
    }

    #[test]
    fn the_first_address_that_accepts_is_used() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        // Nothing listens there. Without IPv6 there is no route to the second one.
        let others = ["127.0.0.2", "::1"].map(|ip| SocketAddr::new(ip.parse().unwrap(), peer.port()));
        let stop = AtomicBool::new(false);
        let (socket, connected) = connect_to_any(&[others[0], others[1], peer], &stop).unwrap().unwrap();
        assert_eq!((connected, socket.peer_addr().unwrap().as_socket()), (peer, Some(peer)));
        assert!(
            matches!(connect_to_any(&others, &stop), Err(MeasureError::Unreachable { peer, .. }) if peer == others[1])
        );
    }

    #[test]
    fn a_service_with_another_protocol_is_identified() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let test = TestRequest {
            work: crate::work::Work::Ping(Default::default()),
            ports: Vec::new(),
            ip: Default::default(),
        };
        let stop = AtomicBool::new(false);
        let open = || {
            let (socket, peer) = connect_to_any(&[peer], &stop)?.unwrap();
            Control::open(socket, peer, &test, &stop).map(drop)
        };
        let with_next_step = |error: &MeasureError| format!("{error}; {}", error.next_step().unwrap_or_default());
        let answering = |answer: &'static [u8]| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    use std::io::Write;
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.write_all(answer).unwrap();
                });
                with_next_step(&open().unwrap_err())
            })
        };
        assert!(answering(b"SSH-2.0-OpenSSH\r\n").contains("not an airpath responder"));
        assert!(answering(b"airpath-measure 0\n").contains("speaks version 0"));
        assert!(answering(b"airpath-measure 0\n").contains("update airpath there"));
        assert!(answering(b"airpath-measure 99\n").contains("update airpath here"));
        drop(listener);
        let refused = with_next_step(&open().unwrap_err());
        assert!(refused.contains("cannot reach a responder") && refused.contains("airpath measure serve"), "{refused}");
    }
}
