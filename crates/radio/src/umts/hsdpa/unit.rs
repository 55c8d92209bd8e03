//! What travels between the RLC at the network's end and that of the mobile.

use crate::common::arq::acknowledged::Pdu;
use crate::common::arq::rlc_am::{Carried, Control};

/// A PDU of the RLC.
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
}

impl Unit {
    /// The PDUs that were taken; `data` are those with packet data.
    pub fn all(carried: &Carried, data: impl Iterator<Item = Pdu>) -> impl Iterator<Item = Self> {
        let control = carried.control.map(|control| Self { control: Some(control), ..Self::default() });
        let report = carried.report.map(|report| Self { report: Some(report), ..Self::default() });
        let Carried { data: count, polls, .. } = *carried;
        let data = data.zip(1..).map(move |(pdu, place)| Self {
            data: Some(pdu),
            polls: polls && place == count,
            ..Self::default()
        });
        control.into_iter().chain(report).chain(data)
    }
}

/// A block of MAC-hs.
#[derive(Debug)]
pub struct Block {
    /// Its transmission sequence number (TSN), counted from zero; on the air it has 6 bits.
    pub number: u64,
    pub units: Vec<Unit>,
}
