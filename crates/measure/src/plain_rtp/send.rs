//! Sends a video file to a player of another program.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use airpath_app::streaming::h264::clip::Clip;
use airpath_app::streaming::{
    Channel, Description, FirstNumbers, LowerTransport, Sent, Server, Session, Settings, round_trip,
};
use airpath_core::{AppStep, FlowId, Instant, Span};
use airpath_result::{Folder, Summary};
use airpath_wire::rtcp::{self, Packet, ReportBlock};
use serde_json::json;

use super::connection::{self, Connection, ConnectionError};
use super::{PORT, Sending, of_file, setting};
use crate::clock::now;
use crate::control::resolve;
use crate::error::MeasureError;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::rtp::{self, Datagram, Port};
use crate::work::{LONGEST, MOST_VIDEO_PACKETS};
use crate::{Hooks, Request, local_address};

/// Payload type of the video in its description.
const PAYLOAD_TYPE: u8 = 96;
/// Largest video file.
const MOST_BYTES: u64 = 1 << 30;
/// From the last packet to BYE over UDP: a player may read its port of RTCP first, and would lose
/// packets that wait on the other one.
const BEFORE_BYE: Span = Span::from_millis(500);
/// Time after BYE in which the player's last report can arrive.
const LAST_REPORT: Span = Span::from_secs(2);
/// Longest time from the description to the first packet.
const LONGEST_LEAD: Span = Span::from_secs(600);

/// What was sent, and what the player reported.
pub struct Streamed {
    /// When the first packet was due.
    pub start: Instant,
    /// When the last one was sent.
    pub end: Instant,
    /// The stream.
    pub session: Arc<Session>,
    /// What was sent.
    pub sent: Sent,
    /// The last report of the player on the stream.
    pub report: Option<ReportBlock>,
    /// RTCP datagrams of the player.
    pub reports: u64,
    /// Whether everything was sent.
    pub is_complete: bool,
    /// Why not, if the player left before or the connection was lost.
    pub cause: Option<String>,
}

/// Sends the video of `work` to the player at the host of `request`.
///
/// # Errors
/// The file is no H.264 that can be sent, a file cannot be written, or a socket fails.
pub fn send(
    request: &Request,
    work: &Sending,
    out: Option<PathBuf>,
    hooks: &Hooks<'_>,
) -> Result<Summary, MeasureError> {
    let Prepared { clip, frame_rate, session, payloads } = prepare(work).map_err(MeasureError::InvalidRequest)?;
    let peer = resolve(&request.host, PORT, request.family)?;
    if peer.port() == u16::MAX && work.transport == LowerTransport::Udp {
        return Err(MeasureError::InvalidRequest(format!("{peer}: RTCP needs the port after that of RTP")));
    }
    let local = local_address(peer).map_err(MeasureError::socket(format!("cannot make a socket for RTP to {peer}")))?;
    let mut outcome = Outcome::new(request, &peer);
    let [width, height] = clip.sequence().size;
    outcome.begin_rtp(&json!({
        "role": "sender", "payload_type": PAYLOAD_TYPE, "encoding": "H264", "width": width, "height": height,
        "frame_rate": frame_rate, "transport": work.transport,
    }));
    let folder = out.map(|out| Folder::create(&out, &request.to_toml(), &[])).transpose()?;
    outcome.save_so_far(folder.as_ref())?;
    let description = Description {
        address: Some(peer.ip()),
        port: peer.port(),
        transport: work.transport,
        payload_type: PAYLOAD_TYPE,
        parameter_sets: clip.parameter_sets().map(<[u8]>::to_vec).to_vec(),
        frame_rate: Some(frame_rate),
    };
    if let Some(path) = &work.description {
        let text = description.text(local.ip());
        fs::write(path, text)
            .map_err(|error| MeasureError::InvalidRequest(of_file(path, format!("cannot be written: {error}"))))?;
        let next = match work.transport {
            LowerTransport::Udp => "the first packet is sent in",
            LowerTransport::Tcp => "it has to listen within",
        };
        (hooks.ready)(&format!("the player can start with {}; {next} {}", path.display(), work.lead));
    }
    let origin = now();
    let due = origin + work.lead;
    let Some(carrier) = Carrier::open(work.transport, peer, due, hooks)? else {
        return outcome.interrupted(folder.as_ref());
    };
    let is_udp = matches!(carrier, Carrier::Udp(_));
    let start = if is_udp { due } else { now() };
    outcome.begin_rtp(&json!({ "port": carrier.port() }));
    let mut record = Record::new(FlowId(0), origin + request.limit, hooks.stop, hooks.progress);
    record.note(start, AppStep::Started, 0);
    let mut sender = Sender {
        server: Server::new(Arc::clone(&session), start, work.random("server")),
        payloads,
        report: None,
        reports: 0,
        player_left: false,
        waits: if is_udp { [BEFORE_BYE, LAST_REPORT] } else { [Span::ZERO; 2] },
        sent_all: None,
        record: &mut record,
    };
    let stop = sender.record.stop_check();
    let delivered = carrier.run(peer, &mut sender, start, &stop)?;
    let Sender { server, report, reports, player_left, .. } = sender;
    let sent = server.sent();
    let end = sent.last_media.unwrap_or_else(now);
    let is_complete = matches!(delivered, Ok(true)) && sent.packets == u64::from(session.packets());
    let cause = match delivered {
        _ if is_complete => None,
        _ if player_left => Some("the player left the session".to_owned()),
        Err(error) => Some(error.to_string()),
        Ok(_) => None,
    };
    if is_complete {
        record.note(end, AppStep::Finished, sent.bytes);
    }
    let round_trip = report.as_ref().and_then(|(time, block)| round_trip(*time, block));
    outcome.begin_rtp(&json!({
        "reports_received": reports, "round_trip_s": round_trip.map(Span::as_secs_f64),
    }));
    let report = report.map(|(_, block)| block);
    let streamed = Streamed { start, end, session, sent, report, reports, is_complete, cause };
    outcome.rtp_sent(origin, streamed, record);
    if hooks.is_stopped() {
        outcome.stopped();
    }
    outcome.finish(origin, now(), folder.as_ref())
}

/// A video that can be sent.
struct Prepared {
    clip: Clip,
    frame_rate: f64,
    session: Arc<Session>,
    /// The payloads of the packets.
    payloads: Vec<Vec<u8>>,
}

/// Reads the file and makes the packets. The error is a message.
fn prepare(work: &Sending) -> Result<Prepared, String> {
    let path = &work.video;
    let length = fs::metadata(path).map_err(|error| of_file(path, error))?.len();
    if length > MOST_BYTES {
        return Err(of_file(path, format!("it has {length} bytes; at most {MOST_BYTES} can be sent")));
    }
    if work.lead > LONGEST_LEAD {
        return Err(format!("lead: it is too long; at most {LONGEST_LEAD}"));
    }
    let bytes = fs::read(path).map_err(|error| of_file(path, error))?;
    let clip = Clip::parse(bytes).map_err(|error| of_file(path, error))?;
    let frame_rate = work.frame_rate.or(clip.sequence().frame_rate());
    let frame_rate =
        frame_rate.ok_or_else(|| of_file(path, "the file has no frame rate; give it as `--frame-rate N`"))?;
    let settings = work.settings();
    let most = settings.packet.get().min(Settings::MOST_IN_PACKET) as usize;
    let packets = clip.packets(frame_rate, most).map_err(|error| setting(&error))?;
    settings.check(&packets.video).map_err(|error| setting(&error))?;
    if packets.video.duration() > LONGEST {
        return Err(of_file(path, format!("the video lasts {}; at most {LONGEST}", packets.video.duration())));
    }
    let count = packets.payloads.iter().map(|frame| frame.len() as u64).sum::<u64>();
    if count > MOST_VIDEO_PACKETS {
        return Err(format!(
            "packet: the video has {count} packets; at most {MOST_VIDEO_PACKETS}: give them more bytes"
        ));
    }
    let sizes: Vec<Vec<u32>> =
        packets.payloads.iter().map(|frame| frame.iter().map(|payload| payload.len() as u32).collect()).collect();
    let numbers = FirstNumbers::random(&mut work.random("session"));
    let session = Session::of_packets(settings, Arc::new(packets.video), sizes, numbers);
    let payloads = packets.payloads.into_iter().flatten().collect();
    Ok(Prepared { clip, frame_rate, session: Arc::new(session), payloads })
}

/// What carries the session.
enum Carrier {
    Udp([UdpSocket; 2]),
    Tcp(Connection),
}

impl Carrier {
    /// Opens it. A player that is connected to has to listen at `until`. Returns `None` if it is
    /// stopped.
    fn open(
        transport: LowerTransport,
        peer: SocketAddr,
        until: Instant,
        hooks: &Hooks<'_>,
    ) -> Result<Option<Self>, MeasureError> {
        match transport {
            LowerTransport::Udp => {
                let failed = MeasureError::socket(format!("cannot make a socket for RTP to {peer}"));
                Ok(Some(Self::Udp(sockets(peer).map_err(failed)?)))
            }
            LowerTransport::Tcp => {
                let connection = connection::connect(peer, until, &|| hooks.is_stopped());
                let failed = |source| MeasureError::NoPlayer { peer, source };
                Ok(connection.map_err(failed)?.map(Self::Tcp))
            }
        }
    }

    /// The port from which RTP is sent.
    fn port(&self) -> Option<u16> {
        match self {
            Self::Udp([media, _]) => media.local_addr().ok().map(|address| address.port()),
            Self::Tcp(connection) => connection.port(),
        }
    }

    /// Sends the session. Returns whether it was sent, and over TCP acknowledged, or why the
    /// connection was lost.
    fn run(
        self,
        peer: SocketAddr,
        sender: &mut Sender<'_, '_>,
        start: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<Result<bool, ConnectionError>, MeasureError> {
        match self {
            Self::Udp(sockets) => {
                let mut ports = sockets.map(|socket| Port::connected(socket, peer.ip()));
                rtp::run_session(&mut ports, sender, start, stop)?;
                Ok(Ok(true))
            }
            Self::Tcp(mut connection) => {
                let over = connection.run(sender, stop);
                Ok(over.and_then(|over| Ok(over && connection.finish(sender, LAST_REPORT, stop)?)))
            }
        }
    }
}

/// A socket for RTP to `peer`, and one for RTCP to the next port.
fn sockets(peer: SocketAddr) -> io::Result<[UdpSocket; 2]> {
    let local = local_address(peer)?;
    let [media, reports] = rtp::bind_pair(SocketAddr::new(local.ip(), 0))?;
    media.connect(peer)?;
    reports.connect(SocketAddr::new(peer.ip(), peer.port() + 1))?;
    Ok([media, reports])
}

/// The end of the session that sends.
struct Sender<'a, 'b> {
    server: Server,
    payloads: Vec<Vec<u8>>,
    /// The last report of the player, and when it arrived.
    report: Option<(Instant, ReportBlock)>,
    reports: u64,
    player_left: bool,
    /// Times from the last packet to BYE, and from there to the end of the session.
    waits: [Span; 2],
    /// When everything was sent.
    sent_all: Option<Instant>,
    record: &'a mut Record<'b>,
}

impl Sender<'_, '_> {
    /// When BYE is due, after the last packet.
    fn bye(&self) -> Option<Instant> {
        let sent = self.server.sent();
        let is_all = sent.packets == self.payloads.len() as u64;
        sent.last_media.filter(|_| is_all).map(|last| last + self.waits[0])
    }
}

impl rtp::End for Sender<'_, '_> {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        if self.bye().is_some_and(|bye| now < bye) {
            return None;
        }
        let datagram = self.server.poll(now)?;
        let (channel, head) = (datagram.channel, datagram.head.len());
        buffer[..head].copy_from_slice(datagram.head);
        let mut length = head;
        if channel == Channel::Media {
            let packets = self.server.sent().packets;
            let payload = &self.payloads[packets as usize - 1];
            length += payload.len();
            buffer[head..length].copy_from_slice(payload);
            self.record.progress(packets, self.payloads.len() as u64);
        }
        if self.server.is_over() {
            self.sent_all.get_or_insert(now);
        }
        Some(Datagram { port: channel as usize, length })
    }

    fn receive(&mut self, now: Instant, _: usize, bytes: &[u8]) {
        let mut packets = rtcp::packets(bytes).map_while(Result::ok).peekable();
        self.reports += u64::from(packets.peek().is_some());
        for packet in packets {
            match packet {
                Packet::Block(block) => self.report = Some((now, block)),
                Packet::Bye => self.player_left = true,
                _ => {}
            }
        }
        self.server.receive(now, bytes);
    }

    fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        if let Some(bye) = self.bye().filter(|bye| now < *bye) {
            return Some(bye);
        }
        self.server.next_wakeup().or(self.sent_all.map(|sent| sent + self.waits[1]))
    }

    fn is_over(&self, now: Instant) -> bool {
        self.player_left || self.sent_all.is_some_and(|sent| sent + self.waits[1] <= now)
    }

    fn closed(&mut self, _: Instant) {
        self.player_left = true;
    }
}
