//! Receives a stream of another program.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;

use airpath_app::streaming::live::{Ended, Receiver, Watched};
use airpath_app::streaming::{Channel, Description, LowerTransport, Settings};
use airpath_core::{AppStep, FlowId, Instant, Seed};
use airpath_result::{Folder, Summary};
use serde_json::json;

use super::{PORT, Receiving, connection, of_file, setting};
use crate::clock::now;
use crate::control::{Family, resolve, split};
use crate::error::MeasureError;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::rtp::{self, Datagram, Port};
use crate::work::LONGEST;
use crate::{Hooks, Request};

/// What was received.
pub struct Received {
    /// The stream as the player had it.
    pub watched: Watched,
    /// When it ended, or was stopped.
    pub end: Instant,
    /// RTCP datagrams of both ends.
    pub reports: u64,
    /// Why the connection that carried it was lost.
    pub cause: Option<String>,
}

/// Receives the stream of `work`.
///
/// # Errors
/// The description cannot be used, the port is not free, or no stream arrives.
pub fn receive(
    request: &Request,
    work: &Receiving,
    out: Option<PathBuf>,
    hooks: &Hooks<'_>,
) -> Result<Summary, MeasureError> {
    check(work).map_err(MeasureError::InvalidRequest)?;
    let description = description(work).map_err(MeasureError::InvalidRequest)?;
    let described = description.as_ref().map(|description| description.transport);
    let transport = work.transport.or(described).unwrap_or_default();
    let address = address(work, description.as_ref(), transport, request.family)?;
    let sockets = Sockets::bind(address, transport);
    let (sockets, address) = sockets.map_err(|source| MeasureError::Listen { address, source })?;
    let mut outcome = Outcome::new(request, &address);
    let folder = out.map(|out| Folder::create(&out, &request.to_toml(), &[])).transpose()?;
    outcome.save_so_far(folder.as_ref())?;
    (hooks.ready)(&match transport {
        LowerTransport::Udp => format!("waits for RTP on {address}, and for RTCP on the next port"),
        LowerTransport::Tcp => format!("waits for RTP over TCP on {address}"),
    });
    let origin = now();
    let payload_type = description.as_ref().map(|description| description.payload_type);
    let interval = Settings::default().report_interval;
    let random = Seed::new(work.seed).stream("receiver");
    let mut record = Record::new(FlowId(0), origin + request.limit, hooks.stop, hooks.progress);
    let receiver = Receiver::new(payload_type, work.timeout, interval, origin, random);
    let receiver = if transport == LowerTransport::Tcp { receiver.replying() } else { receiver };
    let mut player = Player { receiver, record: &mut record };
    let stop = player.record.stop_check();
    let (over, cause) = sockets.run(&mut player, origin, origin + work.timeout, &stop)?;
    let end = now();
    let Player { receiver, .. } = player;
    if !receiver.has_begun() {
        if hooks.is_stopped() {
            return outcome.interrupted(folder.as_ref());
        }
        let why = cause.unwrap_or_else(|| nothing_arrived(work, &receiver));
        return Err(MeasureError::NoStream { address, why, example: example(address, transport) });
    }
    let counts = *receiver.counts();
    let described = description.is_some_and(|description| !description.parameter_sets.is_empty());
    let parameter_sets = match counts.parameters {
        [true, true] => "stream",
        _ if described => "description",
        _ => "none",
    };
    outcome.begin_rtp(&json!({
        "role": "receiver", "encoding": "H264", "parameter_sets": parameter_sets,
        "width": counts.sequence.map(|sequence| sequence.size[0]),
        "height": counts.sequence.map(|sequence| sequence.size[1]),
        "frame_rate": counts.sequence.and_then(|sequence| sequence.frame_rate()),
        "ended": receiver.ended().map(|ended| match ended {
            Ended::Bye => "bye",
            Ended::Silence => "silence",
            Ended::Limit => "limit",
            Ended::Closed => "closed",
        }),
        "transport": transport,
        "foreign": counts.foreign,
        "reports_received": counts.reports_received,
    }));
    let stopped = (!over).then_some(end);
    let watched = receiver.watch(work.buffer, stopped).map_err(|error| MeasureError::NoStream {
        address,
        why: format!("{}: {}", cause.as_deref().unwrap_or("the stream ended too early"), error.message),
        example: example(address, transport),
    })?;
    record.note(watched.start, AppStep::Started, 0);
    for arrival in &watched.arrivals {
        let step = AppStep::Arrived { sequence: arrival.number, delay: arrival.delay };
        record.note(arrival.time, step, arrival.delivered);
    }
    if let Some(left) = watched.client.left() {
        record.note(left, AppStep::Finished, watched.client.received().bytes);
    }
    let reports = counts.reports_received + counts.reports_sent;
    outcome.rtp_received(origin, Received { watched, end, reports, cause }, record);
    if hooks.is_stopped() {
        outcome.stopped();
    }
    outcome.finish(origin, end, folder.as_ref())
}

/// The sockets of a receiver.
enum Sockets {
    Udp([UdpSocket; 2]),
    Tcp(TcpListener),
}

impl Sockets {
    /// Binds to `address`. Returns the address of RTP, too.
    fn bind(address: SocketAddr, transport: LowerTransport) -> io::Result<(Self, SocketAddr)> {
        match transport {
            LowerTransport::Udp => {
                let pair = rtp::bind_pair(address)?;
                let address = pair[0].local_addr()?;
                Ok((Self::Udp(pair), address))
            }
            LowerTransport::Tcp => {
                let listener = TcpListener::bind(address)?;
                let address = listener.local_addr()?;
                Ok((Self::Tcp(listener), address))
            }
        }
    }

    /// Receives a stream. Over TCP the connection is opened by `until`. Returns whether the stream
    /// is over, and why its connection was lost or is missing.
    fn run(
        self,
        player: &mut Player<'_, '_>,
        start: Instant,
        until: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<(bool, Option<String>), MeasureError> {
        let listener = match self {
            Self::Udp(pair) => {
                return Ok((rtp::run_session(&mut pair.map(Port::listening), player, start, stop)?, None));
            }
            Self::Tcp(listener) => listener,
        };
        let connection = connection::accept(listener, until, stop);
        let Some(mut connection) = connection.map_err(MeasureError::socket("cannot accept a connection"))? else {
            return Ok((false, Some(format!("no connection was opened for {}", until.since(start)))));
        };
        match connection.run(player, stop) {
            Ok(over) => Ok((over, None)),
            Err(error) => {
                player.receiver.close(now());
                Ok((true, Some(error.to_string())))
            }
        }
    }
}

fn check(work: &Receiving) -> Result<(), String> {
    let settings = Settings { buffer: work.buffer, timeout: work.timeout, ..Settings::default() };
    settings.check_times().map_err(|error| setting(&error))?;
    match work.buffer.max(work.timeout) > LONGEST {
        true => Err(format!("this takes too long: `buffer` and `timeout` are at most {LONGEST}")),
        false => Ok(()),
    }
}

/// The description of the session, if there is one. The error is a message.
fn description(work: &Receiving) -> Result<Option<Description>, String> {
    let Some(path) = &work.description else { return Ok(None) };
    let text = fs::read_to_string(path).map_err(|error| of_file(path, error))?;
    let help = "ffmpeg writes it with `-sdp_file FILE`";
    let description = Description::parse(&text).map_err(|error| of_file(path, format!("{error}; {help}")))?;
    if let Some(transport) = work.transport.filter(|transport| *transport != description.transport) {
        let name = |transport| if transport == LowerTransport::Tcp { "tcp" } else { "udp" };
        let (given, described) = (name(transport), name(description.transport));
        return Err(of_file(path, format!("it describes RTP over {described}; leave out `--transport {given}`")));
    }
    let Some(address) = description.address else { return Ok(Some(description)) };
    if address.is_multicast() {
        return Err(of_file(path, format!("{address} is a multicast address; only unicast can be received")));
    }
    if !address.is_loopback() && !address.is_unspecified() && work.listen.is_none() {
        return Err(of_file(
            path,
            format!(
                "packets are sent to {address}, but airpath listens on this host only; \
                 `--listen {address}` receives those of others"
            ),
        ));
    }
    Ok(Some(description))
}

/// The address of RTP.
fn address(
    work: &Receiving,
    description: Option<&Description>,
    transport: LowerTransport,
    family: Family,
) -> Result<SocketAddr, MeasureError> {
    let port = description.map_or(PORT, |description| description.port);
    let Some(text) = &work.listen else {
        let is_v6 = match family {
            Family::V6 => true,
            Family::V4 => false,
            Family::Any => description.and_then(|description| description.address).is_some_and(|each| each.is_ipv6()),
        };
        let local: IpAddr = if is_v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        return Ok(SocketAddr::new(local, port));
    };
    let address = split(text, port).and_then(|(ip, port)| Some(SocketAddr::new(ip.parse().ok()?, port)));
    let address = address.map_or_else(|| resolve(text, port, family), Ok)?;
    match address.port() == u16::MAX && transport == LowerTransport::Udp {
        true => Err(MeasureError::InvalidRequest(format!("{address}: RTCP needs the port after that of RTP"))),
        false => Ok(address),
    }
}

/// A command that sends a stream to `address`.
fn example(address: SocketAddr, transport: LowerTransport) -> String {
    match transport {
        LowerTransport::Udp => format!("ffmpeg -re -i VIDEO -c:v libx264 -an -f rtp rtp://{address}"),
        LowerTransport::Tcp => {
            let (host, port) = (address.ip(), address.port());
            let encoded = "gst-launch-1.0 filesrc location=VIDEO.mp4 ! qtdemux ! rtph264pay config-interval=-1";
            format!("{encoded} ! rtpstreampay ! tcpclientsink host={host} port={port} sync=true")
        }
    }
}

/// Why a receiver has received no stream.
fn nothing_arrived(work: &Receiving, receiver: &Receiver) -> String {
    let counts = receiver.counts();
    match (counts.foreign_type, counts.foreign) {
        (Some(33), _) => "packets of an MPEG transport stream (payload type 33) arrived, but no H.264".to_owned(),
        (Some(kind), _) => format!("packets of payload type {kind} arrived, but none of the video"),
        (None, 0) if receiver.ended() == Some(Ended::Closed) => {
            "the connection was closed before a packet arrived".to_owned()
        }
        (None, 0) => format!("no packet arrived for {}", work.timeout),
        (None, packets) => format!("{packets} packets arrived, but none with H.264 (RFC 6184)"),
    }
}

/// The end of the session that receives.
struct Player<'a, 'b> {
    receiver: Receiver,
    record: &'a mut Record<'b>,
}

impl rtp::End for Player<'_, '_> {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        let report = self.receiver.poll(now)?;
        Some(Datagram::write(Channel::Reports as usize, report, 0, buffer))
    }

    fn receive(&mut self, now: Instant, port: usize, bytes: &[u8]) {
        if port == Channel::Reports as usize {
            self.receiver.receive_report(now, bytes);
        } else if let Some(packets) = self.receiver.receive(now, bytes) {
            // How many will come is not known.
            self.record.progress(packets, packets);
        }
    }

    fn next_wakeup(&self, _: Instant) -> Option<Instant> {
        self.receiver.next_wakeup()
    }

    fn is_over(&self, _: Instant) -> bool {
        self.receiver.is_over()
    }

    fn closed(&mut self, now: Instant) {
        self.receiver.close(now);
    }

    fn has_peer(&self) -> bool {
        self.receiver.has_begun()
    }
}
