//! The event log of a run: columns from Python as the packets of a log.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airpath_core::{Direction, Ecn, Instant, SegmentInfo};
use airpath_trace::event_log::{Agreed, Event, EventLog, Logged, LoggedFlow};
use airpath_wire::segment::Endpoint;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::failure;

/// The log's name, its flows, and its columns by name: 64-bit integers in native byte order, with
/// [`MISSING`] for missing values.
pub type Columns<'py> = (String, Vec<Flow>, BTreeMap<String, Bound<'py, PyBytes>>);

/// Mobile and server of a flow; and the negotiated options, if known: SACK, and the window scales
/// of segments that go down and up.
type Flow = (String, String, Option<(bool, u8, u8)>);

/// Stands for a missing value.
const MISSING: i64 = i64::MIN;

/// Builds the log from its columns.
pub fn read((name, flows, columns): &Columns<'_>) -> PyResult<EventLog> {
    let flows = flows.iter().map(|(mobile, server, agreed)| {
        let agreed = agreed.map(|(selective, down, up)| Agreed { selective, shifts: [down, up] });
        Ok(LoggedFlow { mobile: end(mobile)?, server: end(server)?, agreed })
    });
    let flows: Vec<_> = flows.collect::<PyResult<_>>()?;
    let column = |name: &str| {
        let bytes = columns.get(name).ok_or_else(|| failure(&format!("event log: no column `{name}`"), None))?;
        Ok::<_, PyErr>(bytes.as_bytes().as_chunks::<8>().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)))
    };
    let mut rows = column("packet")?
        .zip(column("flow")?)
        .zip(column("up")?)
        .zip(column("size")?)
        .zip(column("offset")?.zip(column("length")?).zip(column("ack")?).zip(column("window")?))
        .zip(column("flags")?.zip(column("retransmission")?))
        .zip(column("sent")?.zip(column("sent_row")?).zip(column("sent_ecn")?))
        .zip(column("received")?.zip(column("received_row")?).zip(column("received_ecn")?));
    let segments = rows.try_fold(Vec::new(), |mut segments, row| {
        let (((((((packet, flow), up), size), header), flags), sent), received) = row;
        let (((offset, length), ack), window) = header;
        let header = SegmentInfo {
            offset,
            length: whole(length)?,
            ack: Some(ack).filter(|ack| *ack != MISSING).into(),
            window: whole(window)?,
            flags: whole(flags.0)?,
            retransmission: flags.1 != 0,
        };
        let flow: u32 = whole(flow)?;
        if flow as usize >= flows.len() {
            return Err(failure(&format!("event log: there is no flow {flow}"), None));
        }
        segments.push(Logged {
            packet: whole(packet)?,
            flow,
            direction: if up == 0 { Direction::Down } else { Direction::Up },
            size: whole(size)?,
            header,
            sent: event(sent)?,
            received: if received.0.0 == MISSING { None } else { Some(event(received)?) },
        });
        Ok(segments)
    })?;
    Ok(EventLog::new(name.clone(), &flows, segments))
}

fn end(text: &str) -> PyResult<Endpoint> {
    let address: SocketAddr =
        text.parse().map_err(|_| failure(&format!("event log: `{text}` is no address with a port"), None))?;
    Ok(Endpoint { address: address.ip(), port: address.port() })
}

fn event(((time, row), ecn): ((i64, i64), i64)) -> PyResult<Event> {
    Ok(Event { time: Instant::from_nanos(whole(time)?), row: whole(row)?, ecn: Ecn::from_bits(whole(ecn)?) })
}

fn whole<T: TryFrom<i64>>(value: i64) -> PyResult<T> {
    T::try_from(value).map_err(|_| failure(&format!("event log: {value} is out of range: the log is damaged"), None))
}
