//! A video over RTP over real sockets: the responder is its server.
//!
//! The client has all figures of the player. The responder reports what it has sent, and when it
//! sent each packet first.

use std::net::SocketAddr;
use std::sync::Arc;

use airpath_app::streaming::{Channel, Client, Sent, Server, Session};
use airpath_core::{AppStep, Instant};

use crate::clock::now;
use crate::control::Control;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::record::Record;
use crate::rtp::{self, Datagram};
use crate::serve::Session as Measured;
use crate::work::VideoStream;

/// Result of a stream.
pub struct Watched {
    /// When it started.
    pub start: Instant,
    /// When it ended, or was stopped.
    pub end: Instant,
    /// The stream, as both ends have it.
    pub session: Arc<Session>,
    /// The end that displays the video.
    pub client: Client,
    /// What the server has sent, with times of this clock.
    pub sent: Sent,
}

/// Runs the client's end of a stream from the responder at `peer`.
///
/// # Errors
/// A socket fails, or the responder is lost.
pub fn watch(
    work: &VideoStream,
    peer: SocketAddr,
    control: &mut Control,
    offset: Offset,
    record: &mut Record<'_>,
) -> Result<Watched, MeasureError> {
    let session = Arc::new(work.session().map_err(MeasureError::InvalidRequest)?);
    let (start, mut ports) = rtp::open(control, offset, peer, Channel::ALL.len())?;
    record.note(start, AppStep::Started, 0);
    let client = Client::new(Arc::clone(&session), start, work.random("client"));
    let stop = record.stop_check();
    let mut viewer = Viewer { client, packets: session.packets(), arrivals: Vec::new(), record };
    rtp::run_client(&mut ports, &mut viewer, start, &stop)?;
    let end = now();
    let Viewer { client, arrivals, record, .. } = viewer;
    let mut sent = control.report()?.video.unwrap_or_default();
    sent.last_media = sent.last_media.map(|last| offset.to_ours(last.as_nanos()));
    // It may have counted fewer than have arrived.
    sent.packets = sent.packets.max(client.received().packets);
    let mut first = vec![None; session.packets() as usize];
    for (number, time, _) in control.arrivals(first.len() as u64)? {
        first[number as usize] = Some(offset.to_ours(time));
    }
    for Arrival { number, time, delivered } in arrivals {
        let delay = first[number as usize].map(|first| time.since(first)).unwrap_or_default();
        record.note(time, AppStep::Arrived { sequence: number, delay }, delivered);
    }
    let last = if client.timed_out() { AppStep::Aborted } else { AppStep::Finished };
    if let Some(left) = client.left() {
        record.note(left, last, client.received().bytes);
    }
    Ok(Watched { start, end, session, client, sent })
}

/// A packet that arrived.
struct Arrival {
    number: u32,
    time: Instant,
    /// Bytes of the video by then.
    delivered: u64,
}

/// The client's end.
struct Viewer<'a, 'b> {
    client: Client,
    /// Packets of the video.
    packets: u32,
    arrivals: Vec<Arrival>,
    record: &'a mut Record<'b>,
}

impl rtp::End for Viewer<'_, '_> {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        let report = self.client.poll(now)?;
        Some(Datagram::write(report.channel as usize, report.head, report.media, buffer))
    }

    fn receive(&mut self, now: Instant, port: usize, bytes: &[u8]) {
        let Some(number) = self.client.receive(now, Channel::ALL[port], bytes) else { return };
        let received = self.client.received();
        self.arrivals.push(Arrival { number, time: now, delivered: received.bytes });
        self.record.progress(received.packets, self.packets.into());
    }

    fn next_wakeup(&self, _: Instant) -> Option<Instant> {
        self.client.next_wakeup()
    }

    fn is_over(&self, _: Instant) -> bool {
        self.client.is_over()
    }
}

/// Runs the responder's end of a stream that starts at `start` by this clock, in a thread. Returns
/// its ports.
///
/// # Errors
/// The reason, as a message for the client.
pub fn respond(session: &Arc<Measured>, local: SocketAddr, work: &VideoStream, start: u64) -> Result<Vec<u16>, String> {
    let video = Arc::new(work.session()?);
    let (of_video, random) = (Arc::clone(session), work.random("server"));
    rtp::respond(session, local, Channel::ALL.len(), start, move |start| Sender {
        server: Server::new(video, start, random),
        session: of_video,
    })
}

/// The responder's end.
struct Sender {
    server: Server,
    session: Arc<Measured>,
}

impl rtp::End for Sender {
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Datagram> {
        let datagram = self.server.poll(now)?;
        let channel = datagram.channel;
        let datagram = Datagram::write(channel as usize, datagram.head, datagram.media, buffer);
        let mut record = self.session.video();
        record.sent = self.server.sent();
        if channel == Channel::Media {
            record.first.push(now);
        }
        Some(datagram)
    }

    fn receive(&mut self, now: Instant, _: usize, bytes: &[u8]) {
        self.server.receive(now, bytes);
    }

    fn next_wakeup(&self, _: Instant) -> Option<Instant> {
        self.server.next_wakeup()
    }

    fn is_over(&self, _: Instant) -> bool {
        self.server.is_over()
    }
}
