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
    /// What the server has sent, with times of this clock; if the responder is lost, the packets up
    /// to the last one that arrived.
    pub sent: Sent,
    /// The offset by which the times of the responder were converted.
    pub offset: Offset,
    /// The error that ended the stream early, if any.
    pub ended: Result<(), MeasureError>,
}

/// Runs the client's end of a stream from the responder at `peer`.
///
/// # Errors
/// The stream cannot start.
pub fn watch(
    work: &VideoStream,
    peer: SocketAddr,
    control: &mut Control<'_>,
    offset: Offset,
    record: &mut Record<'_>,
) -> Result<Watched, MeasureError> {
    let session = Arc::new(work.session().map_err(MeasureError::InvalidRequest)?);
    let (start, mut ports) = rtp::open(control, offset, peer, Channel::ALL.len())?;
    record.note(start, AppStep::Started, 0);
    let client = Client::new(Arc::clone(&session), start, work.random("client"));
    let stop = record.stop_check();
    let mut viewer = Viewer { client, packets: session.packets(), arrivals: Vec::new(), record };
    let ended = rtp::run_client(&mut ports, &mut viewer, start, &stop);
    let end = now();
    let Viewer { client, arrivals, record, .. } = viewer;
    let (mut sent, first, reported) = reported(control, session.packets());
    let ended = ended.and(reported);
    // When each packet was sent first, and the least delay, by the estimated offset.
    let delay = |arrival: &Arrival| Some(Offset::delay(offset.to_ours(first[arrival.number as usize]?), arrival.time));
    let offset = offset.corrected(arrivals.iter().filter_map(delay).min(), None);
    sent.last_media = sent.last_media.map(|last| offset.to_ours(last.as_nanos()));
    // The report may be lost, or have counted fewer than have arrived.
    let last = arrivals.iter().map(|arrival| u64::from(arrival.number) + 1).max().unwrap_or_default();
    sent.packets = sent.packets.max(last).max(client.received().packets);
    for Arrival { number, time, delivered } in arrivals {
        // Without the responder's list a delay is not known.
        let Some(first) = first[number as usize] else { continue };
        let delay = time.since(offset.to_ours(first));
        record.note(time, AppStep::Arrived { sequence: number, delay }, delivered);
    }
    let last = if client.timed_out() { AppStep::Aborted } else { AppStep::Finished };
    if let Some(left) = client.left() {
        record.note(left, last, client.received().bytes);
    }
    Ok(Watched { start, end, session, client, sent, offset, ended })
}

/// What the responder reports: what it has sent, and for each of `packets` when it was sent first,
/// by its clock.
fn reported(control: &mut Control<'_>, packets: u32) -> (Sent, Vec<Option<u64>>, Result<(), MeasureError>) {
    let mut first = vec![None; packets as usize];
    let sent = match control.report() {
        Ok(report) => report.video.unwrap_or_default(),
        Err(lost) => return (Sent::default(), first, Err(lost)),
    };
    match control.arrivals(packets.into()) {
        Ok(arrivals) => arrivals.into_iter().for_each(|(number, time, _)| first[number as usize] = Some(time)),
        Err(lost) => return (sent, first, Err(lost)),
    }
    (sent, first, Ok(()))
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
