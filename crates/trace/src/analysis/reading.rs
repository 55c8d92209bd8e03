//! Captures and event logs as packets, one after the other.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use airpath_core::{Instant, Span};

use super::TraceError;
use crate::event_log::{CapturePoint, EventLog};
use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::{Ending, LinkType, OpenError, Reader};
use airpath_capture::skipped::{Cause, Counts};

/// The name of standard input as a file.
pub const STANDARD_INPUT: &str = "-";

/// How captures were read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The files.
    pub files: Vec<FileReading>,
    /// Frames that were skipped in all files.
    pub skipped: Counts,
    /// TCP segments.
    pub segments: u64,
    /// UDP datagrams.
    pub datagrams: u64,
}

impl Reading {
    /// A message for captures without TCP: what they contain.
    pub(super) fn without_tcp(&self) -> WithoutTcp {
        let frames: u64 = self.files.iter().map(|file| file.frames).sum();
        let names: Vec<_> = self.files.iter().map(|file| file.name.as_str()).collect();
        let links: BTreeSet<_> = self.files.iter().flat_map(|file| &file.unsupported).collect();
        let other_links = !links.is_empty();
        let links = links.iter().map(|link| named(**link)).collect::<Vec<_>>().join(", ");
        let words = |cause: Cause| match cause {
            Cause::UnknownLinkType => format!("of unsupported link type {links}"),
            cause => cause.words().to_owned(),
        };
        let mut others: Vec<_> =
            self.skipped.iter().map(|(cause, count)| format!("{count} {}", words(cause))).collect();
        if self.datagrams > 0 {
            others.insert(0, format!("{} with UDP", self.datagrams));
        }
        let what = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        if frames == 0
            && let Some(file) = self.files.iter().find(|file| file.ending.is_some()).or(self.files.first())
        {
            return match &file.ending {
                Some(ending) => WithoutTcp {
                    message: format!("{}: {ending}, so no packet is complete", file.name),
                    next_step: "copy it again",
                },
                None => WithoutTcp {
                    message: format!("{}: the capture has no packets", names.join(", ")),
                    next_step: "check the interface and the filter of the program that captured",
                },
            };
        }
        let next_step = if self.files.iter().all(|file| file.times.is_none()) {
            "no frame could be read: copy the file again, or capture again"
        } else if other_links {
            "capture at an interface with Ethernet or IP frames; docs/trace.md has the supported link types"
        } else {
            "name a capture with TCP connections"
        };
        WithoutTcp { message: format!("{}: no TCP in its {frames} frames{what}", names.join(", ")), next_step }
    }
}

/// That captures have no TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutTcp {
    message: String,
    /// What to do about it.
    pub(super) next_step: &'static str,
}

impl fmt::Display for WithoutTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A link type that is not supported, with the name that tcpdump.org has for it.
fn named(link: LinkType) -> String {
    let name = match link.0 {
        105 => "IEEE 802.11",
        119 => "IEEE 802.11 with a Prism header",
        127 => "IEEE 802.11 with a radiotap header",
        163 => "IEEE 802.11 with an AVS header",
        147..=162 => "for private use",
        187 | 201 => "Bluetooth HCI",
        189 | 220 | 249 => "USB",
        192 => "PPI, often IEEE 802.11",
        195 | 230 => "IEEE 802.15.4",
        251 | 256 => "Bluetooth Low Energy",
        252 => "exported PDUs of Wireshark",
        253 => "netlink",
        _ => return link.0.to_string(),
    };
    format!("{} ({name})", link.0)
}

/// How a capture was read.
#[derive(Clone, Debug)]
pub struct FileReading {
    /// Its name, as it was given.
    pub name: String,
    /// Its frames, decoded or not.
    pub frames: u64,
    /// The link type of its first frame.
    pub link_type: Option<LinkType>,
    /// The link types of its frames that are not supported.
    pub unsupported: BTreeSet<LinkType>,
    /// The earliest and the latest time of its packets.
    pub times: Option<(Instant, Instant)>,
    /// The longest step forward from the time of one packet to that of the next.
    pub ahead: Step,
    /// The longest step backward, where packets are not sorted by time.
    pub back: Step,
    /// Packets that the capturing host dropped: pcapng and snoop record them, pcap does not.
    pub dropped: u64,
    /// A message about an incomplete end of the file.
    pub ending: Option<String>,
}

impl FileReading {
    fn new(name: String) -> Self {
        Self {
            name,
            frames: 0,
            link_type: None,
            unsupported: BTreeSet::new(),
            times: None,
            ahead: Step::default(),
            back: Step::default(),
            dropped: 0,
            ending: None,
        }
    }

    /// Takes the time of a packet and that of the one before.
    #[inline]
    fn stamped(&mut self, time: Instant, last: Option<Instant>, frame: u64) {
        self.times = Some(self.times.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        if let Some(last) = last {
            self.ahead.take(time.since(last), frame);
            self.back.take(last.since(time), frame);
        }
    }
}

/// From the time of one packet to that of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Length; zero without a step.
    pub length: Span,
    /// The frame of the later packet in the file.
    pub frame: u64,
}

impl Step {
    fn take(&mut self, length: Span, frame: u64) {
        if length > self.length {
            *self = Self { length, frame };
        }
    }
}

/// Passes the segments of an event log to `take`, until that returns `false`.
pub fn logged(log: &EventLog, point: CapturePoint, mut take: impl FnMut(&Decoded<'_>) -> bool) -> Reading {
    let mut reading = Reading::default();
    let mut times = None;
    log.segments(point, |segment| {
        reading.segments += 1;
        times = Some((times.map_or(segment.time, |(first, _)| first), segment.time));
        take(&Decoded::Segment(segment))
    });
    let name = log.name().to_owned();
    let frames = reading.segments;
    reading.files.push(FileReading { times, frames, ..FileReading::new(name) });
    reading
}

/// Reads and decodes captures one after the other, until `take` returns `false`. It gets no skipped
/// frames. Frame numbers continue through all files.
///
/// # Errors
/// If a file cannot be opened or is no capture. Later damage is no error, nor are files without a
/// whole header beside others, as a program begins them that captures: [`Reading`] reports both.
pub fn captured(files: &[PathBuf], mut take: impl FnMut(&Decoded<'_>) -> bool) -> Result<Reading, TraceError> {
    let mut reading = Reading::default();
    let mut decoder = Decoder::default();
    let mut base = 0;
    let mut goes_on = true;
    for file in files {
        let name = file.display().to_string();
        let mut of_file = FileReading::new(name);
        let mut reader = match Reader::new(open(file)?) {
            Ok(reader) => reader,
            Err(error) if files.len() > 1 && error.is_beginning() => {
                let is_empty = matches!(error, OpenError::Empty);
                of_file.ending = Some(if is_empty { "it is empty" } else { "it ends within its header" }.into());
                reading.files.push(of_file);
                continue;
            }
            Err(error) => return Err(TraceError::NotACapture { file: of_file.name, error }),
        };
        let mut last = None;
        while goes_on && let Some(record) = reader.next_record() {
            of_file.stamped(record.time, last.replace(record.time), base + record.frame);
            of_file.link_type = of_file.link_type.or(Some(record.link_type));
            let mut packet = decoder.decode(&record);
            match &mut packet {
                Decoded::Segment(segment) => {
                    reading.segments += 1;
                    segment.frame += base;
                }
                Decoded::Datagram(datagram) => {
                    reading.datagrams += 1;
                    datagram.frame += base;
                }
                Decoded::Skipped(cause) => {
                    if *cause == Cause::UnknownLinkType {
                        of_file.unsupported.insert(record.link_type);
                    }
                    continue;
                }
            }
            goes_on = take(&packet);
        }
        of_file.frames = reader.frames();
        of_file.dropped = reader.interfaces().iter().map(|interface| interface.dropped).sum();
        of_file.ending = match reader.ending() {
            Ending::Whole => None,
            Ending::CutShort => Some("it ends within a record".into()),
            Ending::Unreadable(error) => Some(format!("it could not be read to its end: {error}")),
        };
        base += of_file.frames;
        reading.skipped.merge(reader.skipped());
        reading.files.push(of_file);
        if !goes_on {
            break;
        }
    }
    reading.skipped.merge(decoder.skipped());
    Ok(reading)
}

fn open(file: &Path) -> Result<Box<dyn Read + Send>, TraceError> {
    if file.as_os_str() == STANDARD_INPUT {
        return Ok(Box::new(io::stdin()));
    }
    let failed = |error| TraceError::Unreadable { file: file.display().to_string(), error };
    let opened = File::open(file).map_err(failed)?;
    if opened.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    Ok(Box::new(opened))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_link_types_that_are_not_supported_are_named() {
        let folder = std::env::temp_dir().join(format!("airpath-reading-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        // An ARP packet, and a frame of a link layer for private use.
        let files = [(1_u32, [0, 0, 8, 6]), (147, [0; 4])].map(|(link_type, end)| {
            let mut file: Vec<u8> =
                [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65535, link_type, 0, 0, 14, 14].map(u32::to_le_bytes).concat();
            file.extend([0; 10]);
            file.extend(end);
            let path = folder.join(format!("{link_type}.pcap"));
            std::fs::write(&path, file).expect("a file can be written");
            path
        });
        let reading = captured(&files, |_| true).expect("both files are captures");
        std::fs::remove_dir_all(folder).expect("the folder can be removed");
        let without = reading.without_tcp();
        assert!(without.message.contains("1 of unsupported link type 147 (for private use)"), "{without}");
        assert!(without.next_step.ends_with("docs/trace.md has the supported link types"), "{without}");
    }
}
