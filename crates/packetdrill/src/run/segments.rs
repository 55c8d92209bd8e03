//! Segments of a script and of the connection.

use std::collections::BTreeMap;
use std::fmt::Write;

use airpath_core::{Ecn, SegmentInfo, Span};
use airpath_tcp::Segment;
use airpath_wire::tcp::{EcnCounters, Flags, Options, TcpHeader, Timestamps};

use super::{OURS, THEIRS};
use crate::script::{EcnCheck, Packet, TcpOption};

/// Timestamps of this end: those of the script and those that were sent.
#[derive(Debug, Default)]
pub struct TimestampMap {
    sent: BTreeMap<u32, u32>,
    /// The first of the script, and the first that was sent.
    first: Option<(u32, u32)>,
}

/// A segment that a script expects.
pub struct Expected<'a> {
    pub packet: &'a Packet,
    /// Payload of it in the segments before this one.
    pub passed: u32,
    /// Whether this is the last part.
    pub last: bool,
    /// Length of a tick of timestamps, if they are checked.
    pub tick: Option<Span>,
}

impl TimestampMap {
    /// The segment that arrives.
    pub fn arriving(&self, packet: &Packet) -> Segment {
        let mut options = Options::default();
        for option in packet.options.as_deref().unwrap_or_default() {
            match option {
                TcpOption::MaximumSegmentSize(size) => options.maximum_segment_size = Some(*size),
                TcpOption::WindowScale(shift) => options.window_scale = Some(*shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Timestamps(value, echo) => {
                    options.timestamps = Some(Timestamps { value: *value, echo: self.echo(*echo) });
                }
                TcpOption::Sack(blocks) => {
                    for (start, end) in blocks {
                        options.sack.push(OURS.wrapping_add(*start), OURS.wrapping_add(*end));
                    }
                }
                TcpOption::AccurateEcn(counters) => options.accurate_ecn = Some(*counters),
            }
        }
        let acknowledges = packet.flags.contains(Flags::ACK);
        let mut segment = Segment {
            header: TcpHeader {
                source_port: 2,
                destination_port: 1,
                sequence: THEIRS.wrapping_add(packet.start),
                acknowledgment: if acknowledges { OURS.wrapping_add(packet.acknowledgment) } else { 0 },
                flags: packet.flags,
                loss_notification: false,
                accurate_ecn: packet.accurate,
                window: packet.window.unwrap_or(u16::MAX),
                options,
            },
            length: packet.length,
            ecn: match packet.ecn {
                EcnCheck::Is(ecn) => ecn,
                EcnCheck::Any => Ecn::NotEct,
                EcnCheck::Capable => Ecn::Ect0,
            },
            info: SegmentInfo::default(),
        };
        if let Some(field) = packet.ace {
            set_ace(&mut segment.header, field);
        }
        segment
    }

    /// The timestamp of this end that a script's `echo` stands for.
    fn echo(&self, echo: u32) -> u32 {
        let shifted = self.first.map(|(script, sent)| sent.wrapping_add(echo.wrapping_sub(script)));
        self.sent.get(&echo).copied().or(shifted).unwrap_or(echo)
    }

    /// Compares a segment with what the script expects. An error describes the difference.
    ///
    /// PSH is not compared: it depends on how a kernel cuts data for offload.
    pub fn compare(&mut self, expected: &Expected<'_>, segment: &Segment, tolerance: Span) -> Result<(), String> {
        let packet = expected.packet;
        let header = &segment.header;
        let (ace, accurate) = (ace(header), header.accurate_ecn);
        let differs = |what: &str| format!("{what}: sent {}, expected {}", show(segment), describe(packet));
        let mut flags = packet.flags;
        if !expected.last {
            flags = Flags(flags.0 & !Flags::FIN.0);
        }
        // CWR is in the first segment of new data only.
        let mut ignored = if expected.passed > 0 { Flags::PSH.0 | Flags::CWR.0 } else { Flags::PSH.0 };
        if let Some(wanted) = packet.ace {
            ignored |= Flags::CWR.0 | Flags::ECE.0;
            if ace != wanted {
                return Err(format!("the ACE field differs: sent {ace}, expected {wanted}"));
            }
        } else if accurate != packet.accurate {
            return Err(differs("AE differs"));
        }
        if header.flags.0 & !ignored != flags.0 & !ignored {
            return Err(differs("flags differ"));
        }
        if header.sequence.wrapping_sub(OURS) != packet.start.wrapping_add(expected.passed) {
            return Err(differs("the sequence number differs"));
        }
        if segment.length > packet.length - expected.passed {
            return Err(differs("the length differs"));
        }
        if flags.contains(Flags::ACK) && header.acknowledgment.wrapping_sub(THEIRS) != packet.acknowledgment {
            return Err(differs("the acknowledgment differs"));
        }
        if packet.window.is_some_and(|window| window != header.window) {
            return Err(differs("the window differs"));
        }
        let ecn_fits = match packet.ecn {
            EcnCheck::Any => true,
            EcnCheck::Is(ecn) => segment.ecn == ecn,
            EcnCheck::Capable => matches!(segment.ecn, Ecn::Ect0 | Ecn::Ect1),
        };
        if !ecn_fits {
            return Err(format!("the ECN field differs: sent {:?}, expected {:?}", segment.ecn, packet.ecn));
        }
        let Some(options) = &packet.options else { return Ok(()) };
        if !same_options(options, &header.options) {
            return Err(differs("options differ"));
        }
        let scripted = options.iter().find_map(|option| match option {
            TcpOption::Timestamps(value, echo) => Some((*value, *echo)),
            _ => None,
        });
        if let (Some((value, echo)), Some(sent)) = (scripted, header.options.timestamps) {
            self.compare_timestamps(expected, (value, echo), sent, tolerance)?;
        }
        Ok(())
    }

    fn compare_timestamps(
        &mut self,
        expected: &Expected<'_>,
        (value, echo): (u32, u32),
        sent: Timestamps,
        tolerance: Span,
    ) -> Result<(), String> {
        let (script, live) = *self.first.get_or_insert((value, sent.value));
        self.sent.insert(value, sent.value);
        if echo != sent.echo {
            return Err(format!("the echoed timestamp differs: sent {}, expected {echo}", sent.echo));
        }
        let shown = script.wrapping_add(sent.value.wrapping_sub(live));
        let ticks = u64::from(shown.wrapping_sub(value).cast_signed().unsigned_abs());
        if expected.tick.is_some_and(|tick| tick * ticks > tolerance) {
            return Err(format!("the timestamp differs: sent {shown}, expected {value}"));
        }
        Ok(())
    }
}

/// Whether the options are equal, apart from their order, padding, and the values of timestamps.
fn same_options(wanted: &[TcpOption], sent: &Options) -> bool {
    let mut found = Vec::new();
    found.extend(sent.maximum_segment_size.map(TcpOption::MaximumSegmentSize));
    found.extend(sent.sack_permitted.then_some(TcpOption::SackPermitted));
    found.extend(sent.timestamps.map(|_| TcpOption::Timestamps(0, 0)));
    found.extend(sent.window_scale.map(TcpOption::WindowScale));
    let blocks: Vec<_> = sent.sack.as_slice().iter().map(|(start, end)| relative(*start, *end)).collect();
    found.extend((!blocks.is_empty()).then_some(TcpOption::Sack(blocks)));
    found.extend(sent.accurate_ecn.map(TcpOption::AccurateEcn));
    let plain = |option: &TcpOption| match option {
        TcpOption::Timestamps(..) => TcpOption::Timestamps(0, 0),
        other => other.clone(),
    };
    found.len() == wanted.len() && wanted.iter().all(|option| found.contains(&plain(option)))
}

/// The three bits of accurate ECN feedback (RFC 9768 §3.1.1), AE first.
const fn ace(header: &TcpHeader) -> u8 {
    let classic = (header.flags.contains(Flags::CWR) as u8) << 1 | header.flags.contains(Flags::ECE) as u8;
    (header.accurate_ecn as u8) << 2 | classic
}

fn set_ace(header: &mut TcpHeader, field: u8) {
    header.accurate_ecn = field & 4 != 0;
    header.flags |= Flags(if field & 2 != 0 { Flags::CWR.0 } else { 0 });
    header.flags |= Flags(if field & 1 != 0 { Flags::ECE.0 } else { 0 });
}

const fn relative(start: u32, end: u32) -> (u32, u32) {
    (start.wrapping_sub(THEIRS), end.wrapping_sub(THEIRS))
}

fn letters(flags: Flags) -> String {
    let names = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    names.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| *letter).collect()
}

/// An AccECN option in the notation of scripts.
fn show_counters(counters: &EcnCounters) -> String {
    let names = if counters.ect1_first() { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
    let values = names.iter().zip(counters.iter()).map(|(name, value)| format!(" {name} {value}"));
    values.fold("ECN".into(), |text, value| text + &value)
}

/// A segment of the connection in the notation of scripts.
pub fn show(segment: &Segment) -> String {
    let header = &segment.header;
    let start = header.sequence.wrapping_sub(OURS);
    let accurate = if header.accurate_ecn { "A" } else { "" };
    let mut text = format!(
        "{accurate}{} {start}:{}({})",
        letters(header.flags),
        start.wrapping_add(segment.length),
        segment.length
    );
    if header.flags.contains(Flags::ACK) {
        let _ = write!(text, " ack {}", header.acknowledgment.wrapping_sub(THEIRS));
    }
    let _ = write!(text, " win {}", header.window);
    let mut options = Vec::new();
    options.extend(header.options.maximum_segment_size.map(|size| format!("mss {size}")));
    options.extend(header.options.sack_permitted.then(|| "sackOK".to_owned()));
    options.extend(header.options.timestamps.map(|stamps| format!("TS val {} ecr {}", stamps.value, stamps.echo)));
    options.extend(header.options.window_scale.map(|shift| format!("wscale {shift}")));
    let blocks = header.options.sack.as_slice().iter().map(|(start, end)| relative(*start, *end));
    let blocks: Vec<_> = blocks.map(|(start, end)| format!("{start}:{end}")).collect();
    options.extend(header.options.accurate_ecn.map(|counters| show_counters(&counters)));
    options.extend((!blocks.is_empty()).then(|| format!("sack {}", blocks.join(" "))));
    if !options.is_empty() {
        let _ = write!(text, " <{}>", options.join(","));
    }
    text
}

/// A segment of a script.
pub fn describe(packet: &Packet) -> String {
    let end = packet.start.wrapping_add(packet.length);
    let mut text = format!("{} {}:{end}({})", letters(packet.flags), packet.start, packet.length);
    if packet.flags.contains(Flags::ACK) {
        let _ = write!(text, " ack {}", packet.acknowledgment);
    }
    if let Some(window) = packet.window {
        let _ = write!(text, " win {window}");
    }
    let options = packet.options.iter().flatten().map(|option| match option {
        TcpOption::MaximumSegmentSize(size) => format!("mss {size}"),
        TcpOption::WindowScale(shift) => format!("wscale {shift}"),
        TcpOption::SackPermitted => "sackOK".into(),
        TcpOption::Timestamps(value, echo) => format!("TS val {value} ecr {echo}"),
        TcpOption::Sack(blocks) => {
            let blocks: Vec<_> = blocks.iter().map(|(start, end)| format!("{start}:{end}")).collect();
            format!("sack {}", blocks.join(" "))
        }
        TcpOption::AccurateEcn(counters) => show_counters(counters),
    });
    let options: Vec<_> = options.collect();
    if !options.is_empty() {
        let _ = write!(text, " <{}>", options.join(","));
    }
    text
}
