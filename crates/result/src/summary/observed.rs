//! The columns of real programs, from their packets.

use serde::Serialize;

/// The columns of real programs in a flow's row, from their observed packets.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedRow {
    /// The mobile's address, with the port if the protocol has ports; `None` for flows that are not
    /// distinguished.
    pub local: Option<String>,
    /// The server's address.
    pub remote: Option<String>,
    /// `down` or `up`: the direction of most bytes, described by the other columns.
    pub direction: &'static str,
    /// When the last packet of the flow entered or left the link.
    pub end_s: f64,
    /// Packets towards the mobile.
    pub down: TrafficRow,
    /// Packets from the mobile.
    pub up: TrafficRow,
}

/// Packets of a flow in one direction; those neither delivered nor lost were in flight at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficRow {
    /// Packets that entered the link.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that left the link.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost by the link.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
}
