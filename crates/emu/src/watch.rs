//! Those who look at the packets of a link: captures at both ends, the record of what it delivered, the log's flows.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use airpath_capture::write::{CapturedPacket, Interface, InterfaceId, Writer};
use airpath_core::{AppEvent, Direction, Instant, Packet, SegmentInfo, Span, Succession};

use crate::observe::Observer;
use crate::offload::{Frame, MAX_HEADER, complete_checksum};
use crate::record::Recorder;

/// Who looks; nobody does if nothing was asked for.
#[derive(Debug, Default)]
pub struct Watch {
    /// The flows, as they can be told from packets.
    pub observer: Option<Observer>,
    /// Captures at both ends.
    pub captures: Option<Captures>,
    /// What was delivered.
    pub recorder: Option<Recorder>,
    /// What was last sent of each flow, each way, if the link reads headers; it takes an observer to tell flows apart.
    pub successions: Option<Vec<[Succession; 2]>>,
}

impl Watch {
    /// A packet enters the link: segment `segment` of what was read with it. Says what its headers are, if somebody wants
    /// to know, and to which flow it belongs.
    #[inline]
    pub fn enters(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &mut Packet,
        frame: &Frame,
        bytes: &[u8],
        segment: u32,
    ) -> Option<SegmentInfo> {
        if let Some(captures) = &mut self.captures {
            captures.add(End::where_enters(direction), now, packet, frame, bytes, segment);
        }
        let observer = self.observer.as_mut()?;
        let sighting = observer.enters(now, direction, frame, bytes, segment);
        packet.flow = sighting.flow;
        if let (Some(successions), Some(segment)) = (&mut self.successions, &sighting.segment) {
            let index = packet.flow.0 as usize;
            if successions.len() <= index {
                successions.resize(index + 1, Default::default());
            }
            packet.headers = successions[index][direction as usize].next(packet.size, segment);
        }
        sighting.segment
    }

    /// A packet leaves the link: it was due at `due`, and is handed over now. Says what an application got by it.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "they are what is known of a packet")]
    pub fn leaves(
        &mut self,
        due: Instant,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        frame: &Frame,
        bytes: &[u8],
        segment: u32,
    ) -> Option<AppEvent> {
        if let Some(recorder) = &mut self.recorder {
            recorder.delivered(due, direction, packet.size);
        }
        if let Some(captures) = &mut self.captures {
            captures.add(End::where_leaves(direction), now, packet, frame, bytes, segment);
        }
        let observer = self.observer.as_mut()?;
        observer.leaves(due, now, direction, (packet.flow, packet.ecn), frame, bytes, segment)
    }

    /// A packet was lost on the link.
    #[inline]
    pub fn is_lost(&mut self, direction: Direction, packet: &Packet) {
        if let Some(observer) = &mut self.observer {
            observer.is_lost(direction, packet.flow, packet.size);
        }
    }
}

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Server,
    Mobile,
}

impl End {
    const fn where_enters(direction: Direction) -> Self {
        match direction {
            Direction::Down => Self::Server,
            Direction::Up => Self::Mobile,
        }
    }

    const fn where_leaves(direction: Direction) -> Self {
        match direction {
            Direction::Down => Self::Mobile,
            Direction::Up => Self::Server,
        }
    }
}

/// Captures at both ends, each packet as it is on the wire there: cut to the size of the link's packets, with its checksum
/// and the marks that it got on the way.
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
    /// Begins `0000-server.pcapng` and `0000-mobile.pcapng` in `folder`. The link's clock began at `origin`, counted from
    /// 1 January 1970, UTC.
    ///
    /// # Errors
    /// Where they cannot be written.
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

    fn add(&mut self, end: End, now: Instant, packet: &Packet, frame: &Frame, bytes: &[u8], segment: u32) {
        if self.failure.is_some() {
            return;
        }
        let mut buffer = [0; MAX_HEADER];
        let written = frame.write_segments(bytes, segment..=segment, packet.ecn, &mut buffer);
        self.scratch.clear();
        self.scratch.extend_from_slice(written.bytes);
        self.scratch.extend_from_slice(&bytes[written.payload]);
        complete_checksum(&written.header, &mut self.scratch);
        let (writer, interface) = match end {
            End::Server => &mut self.server,
            End::Mobile => &mut self.mobile,
        };
        let timestamp = (now + self.origin).as_nanos();
        let original_length = self.scratch.len() as u32;
        let captured = CapturedPacket { timestamp, bytes: &self.scratch, original_length, comment: "" };
        self.failure = writer.packet(*interface, captured).err();
    }

    /// Ends both files.
    ///
    /// # Errors
    /// The first that there was; what was written before is kept.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)?;
        self.server.0.finish()?;
        self.mobile.0.finish()
    }
}
