//! The packets of quinn as quinn reports them in its qlog: the number and type of each that it
//! sends or declares lost.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use airpath_core::QuicPacketType;
use quinn_proto::{QlogConfig, QlogStream};
use serde::Deserialize;

/// A packet that quinn has sent or declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedPacket {
    pub is_lost: bool,
    pub packet_type: QuicPacketType,
    pub number: u64,
    /// Bytes of the packet.
    pub size: u32,
}

/// The packets that quinn has reported, and that were not taken yet.
#[derive(Clone, Debug, Default)]
pub struct PacketLog(Arc<Mutex<Vec<LoggedPacket>>>);

impl PacketLog {
    /// The stream to which a connection of quinn writes its qlog.
    pub fn stream(&self) -> Option<QlogStream> {
        let mut config = QlogConfig::default();
        config.writer(Box::new(Records { log: self.clone(), record: Vec::new() }));
        config.into_stream()
    }

    /// Takes all packets, in the order of their reports.
    pub fn take(&self) -> Vec<LoggedPacket> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads JSON text sequences (RFC 7464): a record begins with RS and ends with a line feed, which
/// JSON strings escape.
struct Records {
    log: PacketLog,
    /// The record that is not complete yet.
    record: Vec<u8>,
}

const RECORD_SEPARATOR: u8 = 0x1e;

impl io::Write for Records {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.record.extend_from_slice(text);
        if let Some(record) = self.record.strip_suffix(b"\n") {
            let packet = logged(record.strip_prefix(&[RECORD_SEPARATOR]).unwrap_or(record))?;
            self.record.clear();
            self.log.0.lock().unwrap_or_else(PoisonError::into_inner).extend(packet);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Deserialize)]
struct Record<'a> {
    /// The first record describes the trace and has none.
    #[serde(default)]
    name: &'a str,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
struct Data {
    header: Option<Header>,
}

#[derive(Deserialize)]
struct Header {
    packet_type: QuicPacketType,
    packet_number: u64,
    #[serde(default)]
    length: u32,
}

/// The packet that a record reports as sent or lost. The trigger of a loss is left out: quinn-proto
/// 0.11.19 subtracts the times in the wrong order, so it always names the packet threshold.
fn logged(record: &[u8]) -> serde_json::Result<Option<LoggedPacket>> {
    let Record { name, data } = serde_json::from_slice(record)?;
    let is_lost = match name {
        "transport:packet_sent" => false,
        "recovery:packet_lost" => true,
        _ => return Ok(None),
    };
    Ok(data.header.map(|Header { packet_type, packet_number: number, length: size }| LoggedPacket {
        is_lost,
        packet_type,
        number,
        size,
    }))
}
