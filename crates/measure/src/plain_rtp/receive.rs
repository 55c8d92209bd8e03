//! Receives a stream of another program.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use airpath_app::streaming::live::{Ended, Receiver, Watched};
use airpath_app::streaming::{Channel, Description, Settings};
use airpath_core::{AppStep, FlowId, Instant, Seed};
use airpath_result::{Folder, Summary};
use serde_json::json;

use super::{PORT, Receiving, of_file, setting};
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
    let address = address(work, description.as_ref(), request.family)?;
    let listen = |source| MeasureError::Listen { address, source };
    let sockets = rtp::bind_pair(address).map_err(listen)?;
    let address = sockets[0].local_addr().map_err(listen)?;
    let mut outcome = Outcome::new(request, &address);
    let folder = out.map(|out| Folder::create(&out, &outcome.scenario(), &[])).transpose()?;
    outcome.save_so_far(folder.as_ref())?;
    (hooks.ready)(&format!("waits for RTP on {address}, and for RTCP on the next port"));
    let origin = now();
    let payload_type = description.as_ref().map(|description| description.payload_type);
    let interval = Settings::default().report_interval;
    let random = Seed::new(work.seed).stream("receiver");
    let mut record = Record::new(FlowId(0), origin + request.limit, hooks.stop, hooks.progress);
    let receiver = Receiver::new(payload_type, work.timeout, interval, origin, random);
    let mut player = Player { receiver, record: &mut record };
    let stop = player.record.stop_check();
    let mut ports = sockets.map(Port::listening);
    let over = rtp::run_session(&mut ports, &mut player, origin, &stop)?;
    let end = now();
    let Player { receiver, .. } = player;
    if !receiver.has_begun() {
        if hooks.is_stopped() {
            return outcome.interrupted(folder.as_ref());
        }
        return Err(no_stream(address, work, &receiver));
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
        }),
        "foreign": counts.foreign,
        "reports_received": counts.reports_received,
    }));
    let stopped = (!over).then_some(end);
    let watched = receiver.watch(work.buffer, stopped).map_err(|error| MeasureError::NoStream {
        address,
        why: format!("the stream ended too early: {}", error.message),
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
    outcome.rtp_received(origin, Received { watched, end, reports }, record);
    if hooks.is_stopped() {
        outcome.stopped();
    }
    outcome.finish(origin, end, folder.as_ref())
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
fn address(work: &Receiving, description: Option<&Description>, family: Family) -> Result<SocketAddr, MeasureError> {
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
    match address.port() == u16::MAX {
        true => Err(MeasureError::InvalidRequest(format!("{address}: RTCP needs the port after that of RTP"))),
        false => Ok(address),
    }
}

/// Why no stream was received.
fn no_stream(address: SocketAddr, work: &Receiving, receiver: &Receiver) -> MeasureError {
    let counts = receiver.counts();
    let why = match (counts.foreign_type, counts.foreign) {
        (Some(33), _) => "packets of an MPEG transport stream (payload type 33) arrived, but no H.264".to_owned(),
        (Some(kind), _) => format!("packets of payload type {kind} arrived, but none of the video"),
        (None, 0) => format!("no packet arrived for {}", work.timeout),
        (None, datagrams) => format!("{datagrams} datagrams arrived, but none with H.264 (RFC 6184)"),
    };
    MeasureError::NoStream { address, why }
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

    fn has_peer(&self) -> bool {
        self.receiver.has_begun()
    }
}
