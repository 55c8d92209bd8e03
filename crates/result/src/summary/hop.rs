//! The rows of hops: packets, the radio of each user, counters of middleboxes.

use std::collections::BTreeMap;

use airpath_core::{ConnectionTotals, Count, Direction, DropCause, PacketCounters, RadioTotals, UserId};
use serde::Serialize;

/// One direction of a hop.
#[derive(Clone, Debug, Serialize)]
pub struct LinkRow {
    /// The repetition.
    pub repetition: u64,
    /// The hop.
    pub component: String,
    /// The direction.
    pub direction: &'static str,
    /// Packets offered.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets inside at the end.
    pub queued_packets: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets dropped, by cause; causes without packets are omitted.
    pub dropped: BTreeMap<&'static str, CountRow>,
    /// Packets that a middlebox created; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<CountRow>,
    /// Packets that a middlebox absorbed; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absorbed: Option<CountRow>,
}

/// A number of packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CountRow {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One user's radio in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct RadioRow {
    /// The repetition.
    pub repetition: u64,
    /// The bearer.
    pub component: String,
    /// The direction.
    pub direction: &'static str,
    /// Number of the user.
    pub user: u32,
    /// TTIs with a transmission from or to the user.
    pub ttis: u64,
    /// PDUs in them.
    pub pdus: u64,
    /// PDUs sent for the second or a later time.
    pub repeated_pdus: u64,
    /// PDUs that the receiver could not decode.
    pub errored_pdus: u64,
    /// RLC bytes, including padding.
    pub bytes: u64,
}

/// What happened to the radio connection of a mobile.
#[derive(Clone, Debug, Serialize)]
pub struct MobileRow {
    /// The repetition.
    pub repetition: u64,
    /// The bearer.
    pub component: String,
    /// Number of the user.
    pub user: u32,
    /// Name of the mobile.
    pub mobile: String,
    /// Changes of the serving cell: handovers, and reselections.
    pub handovers: u32,
    /// Connections that were set up: of RRC, or calls of GSM.
    pub connection_setups: u32,
    /// Radio links that failed, and calls that were lost.
    pub link_failures: u32,
}

/// A counter of a middlebox beside those of packets.
#[derive(Clone, Debug, Serialize)]
pub struct MiddleboxRow {
    /// Number of the repetition.
    pub repetition: u64,
    /// Name of the hop.
    pub component: String,
    /// Name of the counter.
    pub counter: &'static str,
    /// Its value at the end.
    pub value: u64,
}

impl LinkRow {
    /// The row of one direction of the hop `name` from `counters`.
    pub fn of(name: &str, direction: Direction, repetition: u64, counters: &PacketCounters) -> Self {
        let Count { packets: offered_packets, bytes: offered_bytes } = counters.offered;
        let Count { packets: delivered_packets, bytes: delivered_bytes } = counters.delivered;
        let Count { packets: queued_packets, bytes: queued_bytes } = counters.queued;
        let dropped = DropCause::ALL.iter().zip(&counters.dropped).filter(|(_, count)| count.packets > 0);
        let row = |count: Count| CountRow { packets: count.packets, bytes: count.bytes };
        let some = |count: Count| (count != Count::default()).then(|| row(count));
        Self {
            repetition,
            component: name.to_owned(),
            direction: direction.name(),
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            queued_packets,
            queued_bytes,
            dropped: dropped.map(|(cause, count)| (cause.name(), row(*count))).collect(),
            created: some(counters.created),
            absorbed: some(counters.absorbed),
        }
    }
}

impl MobileRow {
    /// The row of the user with the name `mobile` of the bearer `name` from `totals`.
    pub fn of(name: &str, user: UserId, mobile: &str, repetition: u64, totals: &ConnectionTotals) -> Self {
        Self {
            repetition,
            component: name.to_owned(),
            user: user.number(),
            mobile: mobile.to_owned(),
            handovers: totals.handovers,
            connection_setups: totals.set_ups,
            link_failures: totals.link_failures,
        }
    }
}

impl RadioRow {
    /// The row of one direction of a user of the bearer `name` from `totals`.
    pub fn of(name: &str, direction: Direction, user: UserId, repetition: u64, totals: &RadioTotals) -> Self {
        Self {
            repetition,
            component: name.to_owned(),
            direction: direction.name(),
            user: user.number(),
            ttis: totals.ttis,
            pdus: totals.pdus,
            repeated_pdus: totals.repeated,
            errored_pdus: totals.errored,
            bytes: totals.bytes,
        }
    }
}
