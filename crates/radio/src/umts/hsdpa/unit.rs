//! What travels between the RLC at the network's end and that of the mobile.

use crate::common::arq::acknowledged::Pdu;
use crate::common::arq::rlc_am::{Carried, Control};

/// A PDU of the RLC, or a part of one in a block of MAC-ehs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit {
    /// Packet data.
    pub data: Option<Pdu>,
    /// Whether it polls.
    pub polls: bool,
    /// A message of the reset procedure.
    pub control: Option<Control>,
    /// The number of a status report.
    pub report: Option<u64>,
    /// Its octets with the header of the RLC. PDUs of a fixed size are counted instead.
    pub octets: u32,
    /// Whether a part has the beginning of its PDU, and its end.
    pub starts: bool,
    pub ends: bool,
}

/// The header of a PDU of the RLC: 16 bits (TS 25.322 §9.2.1.4). With PDUs of flexible size its
/// extension field marks the end of a packet, without a length indicator (§9.2.2.7).
pub const RLC_HEADER: u32 = 2;

/// A RESET, an MRW, or the answer to one: at most these octets (TS 25.322 §9.2.2.11.8, §9.2.1.7).
const CONTROL_OCTETS: u32 = 6;

impl Unit {
    /// The PDUs that were taken; `data` are those with packet data. A full STATUS PDU has `pdu`
    /// octets.
    pub fn all(carried: &Carried, pdu: u32, data: impl Iterator<Item = Pdu>) -> impl Iterator<Item = Self> {
        let control =
            carried.control.map(|control| Self { control: Some(control), octets: CONTROL_OCTETS, ..Self::default() });
        let Carried { data: count, polls, reports, report_octets, .. } = *carried;
        let reports = reports.numbers().map(move |report| {
            let octets = if report + 1 == reports.numbers().end { report_octets } else { pdu };
            Self { report: Some(report), octets, ..Self::default() }
        });
        let data = data.zip(1..).map(move |(pdu, place)| Self {
            data: Some(pdu),
            polls: polls && place == count,
            octets: RLC_HEADER + pdu.length,
            ..Self::default()
        });
        control.into_iter().chain(reports).chain(data)
    }
}

/// A block of MAC-hs.
#[derive(Debug)]
pub struct Block {
    /// Its transmission sequence number (TSN), counted from zero; on the air it has 6 bits.
    pub number: u64,
    pub units: Vec<Unit>,
}
