//! Packet observers of a link: captures at both ends, the recorder of deliveries, the flow
//! observer.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use airpath_capture::headers::HeaderRecorder;
use airpath_capture::write::{CapturedPacket, Interface, InterfaceId, Writer};
use airpath_core::{AppEvent, Direction, Instant, Packet, Span};
use airpath_path::Side;

use crate::observe::{Observer, Passage, Sighting};
use crate::offload::{Frame, MAX_HEADER, complete_checksum};
use crate::packet_buffer::push_headers;
use crate::record::Recorder;

/// The packet observers of a link; each is optional.
#[derive(Debug, Default)]
pub struct Taps {
    /// Flows, identified from packets.
    pub observer: Option<Observer>,
    /// Captures at both ends.
    pub captures: Option<Captures>,
    /// Headers of the packets that enter, for a replay.
    pub headers: Option<HeaderRecorder>,
    /// Delivered packets as a recorded link.
    pub recorder: Option<Recorder>,
}

/// A packet as an observer sees it: a segment of a super-segment.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The structure of the super-segment.
    pub frame: &'a Frame,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Number of the segment.
    pub segment: u32,
}

impl Taps {
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        let Self { observer, captures, headers, recorder } = self;
        observer.is_none() && captures.is_none() && headers.is_none() && recorder.is_none()
    }

    /// A packet enters the link. Sets its flow, if flows are observed.
    #[inline]
    pub fn enters(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &mut Packet,
        view: View<'_>,
    ) -> Option<Sighting> {
        if let Some(captures) = &mut self.captures {
            captures.add(Side::at_start_of(direction), now, packet, view);
        }
        let View { frame, bytes, segment } = view;
        if let Some(headers) = &mut self.headers {
            headers.add(now, packet.size, |out| push_headers(frame, bytes, segment..=segment, packet.ecn, out));
        }
        let sighting = self.observer.as_mut()?.enters(now, direction, frame, bytes, segment);
        packet.flow = sighting.flow;
        Some(sighting)
    }

    /// A packet leaves the link. Returns progress of its application, if flows are observed.
    #[inline]
    pub fn leaves(
        &mut self,
        passage: Passage,
        direction: Direction,
        packet: &Packet,
        view: View<'_>,
    ) -> Option<AppEvent> {
        let Passage { due, now, .. } = passage;
        if let Some(recorder) = &mut self.recorder {
            recorder.delivered(due, direction, packet.size);
        }
        if let Some(captures) = &mut self.captures {
            captures.add(Side::at_end_of(direction), now, packet, view);
        }
        let View { frame, bytes, segment } = view;
        let observer = self.observer.as_mut()?;
        observer.leaves(passage, direction, (packet.flow, packet.ecn), frame, bytes, segment)
    }

    /// A packet was dropped on the link.
    #[inline]
    pub fn lost(&mut self, direction: Direction, packet: &Packet) {
        if let Some(observer) = &mut self.observer {
            observer.is_lost(direction, packet.flow, packet.size);
        }
    }
}

/// Captures at both ends. Each packet is captured as it is on the wire there: of the link's size,
/// with its checksum and its ECN marks.
#[derive(Debug)]
pub struct Captures {
    server: (Writer<BufWriter<File>>, InterfaceId),
    mobile: (Writer<BufWriter<File>>, InterfaceId),
    /// The time of the clock's origin, since 1 January 1970, UTC.
    origin: Span,
    scratch: Vec<u8>,
    failure: Option<io::Error>,
}

impl Captures {
    /// Creates `0000-server.pcapng` and `0000-mobile.pcapng` in `folder`. The link's clock began at
    /// `origin`, counted from 1 January 1970, UTC.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn create(folder: &Path, origin: Span) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let begin = |name: &str, description: &str| {
            let file = BufWriter::new(File::create(folder.join(format!("0000-{name}.pcapng")))?);
            let mut writer = Writer::new(file, "packets of real programs on an emulated link")?;
            let interface = writer.add_interface(Interface { name, description })?;
            Ok::<_, io::Error>((writer, interface))
        };
        Ok(Self {
            server: begin("server", "at the server, behind the fixed network")?,
            mobile: begin("mobile", "at the mobile, above the radio")?,
            origin,
            scratch: Vec::new(),
            failure: None,
        })
    }

    fn add(&mut self, side: Side, now: Instant, packet: &Packet, view: View<'_>) {
        let View { frame, bytes, segment } = view;
        if self.failure.is_some() {
            return;
        }
        let mut buffer = [0; MAX_HEADER];
        let written = frame.write_segments(bytes, segment..=segment, packet.ecn, &mut buffer);
        self.scratch.clear();
        self.scratch.extend_from_slice(written.bytes);
        self.scratch.extend_from_slice(&bytes[written.payload]);
        complete_checksum(&written.header, &mut self.scratch);
        let (writer, interface) = match side {
            Side::Server => &mut self.server,
            Side::Mobile => &mut self.mobile,
        };
        let timestamp = (now + self.origin).as_nanos();
        let original_length = self.scratch.len() as u32;
        let captured = CapturedPacket { timestamp, bytes: &self.scratch, original_length, comment: "" };
        self.failure = writer.packet(*interface, captured).err();
    }

    /// Whether writing has failed, for instance because the disk is full.
    pub const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends both files.
    ///
    /// # Errors
    /// The first error of writing; what was written before is kept.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)?;
        self.server.0.finish()?;
        self.mobile.0.finish()
    }
}
