//! Queues in front of a transmitter, and their management.

pub mod codel;
pub mod drop_tail;

use airpath_core::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue in front of a transmitter. Written as a table:
///
/// ```toml
/// queue = { packets = 100 }
/// queue = { bytes = "64 kB" }
/// queue = { discipline = "codel", target = "5 ms", interval = "100 ms", ecn = true, packets = 1000 }
/// ```
///
/// Limits apply to waiting packets. The packet in transmission has left the queue, as in Linux,
/// ns-2 and mahimahi, so that `packets` + 1 can be inside. A packet that arrives at an idle
/// transmitter does not wait, whatever its size. A packet that exceeds a limit is dropped on entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Table", into = "Table")]
#[schemars(with = "Table")]
pub struct Queue {
    /// `packets`: maximum number of waiting packets, at least one; `None`: unlimited.
    pub packets: Option<u32>,
    /// `bytes`: maximum number of waiting bytes, including IP headers, at least one; `None`:
    /// unlimited.
    pub bytes: Option<Bytes>,
    /// `discipline`: management before the queue is full.
    pub discipline: Discipline,
}

/// The queue discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// `drop-tail`: none, the default.
    #[default]
    DropTail,
    /// `codel`, with its keys beside it.
    CoDel(codel::Settings),
}

/// An invalid queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// A limit of zero.
    #[error("a queue of 0 `{key}` drops everything: use at least 1, or remove `{key}` for no limit")]
    NoRoom {
        /// `packets` or `bytes`.
        key: &'static str,
    },
    /// A CoDel time of zero.
    #[error("the `{key}` of codel must be above zero: RFC 8289 recommends 5 ms for `target`, 100 ms for `interval`")]
    NoTime {
        /// `target` or `interval`.
        key: &'static str,
    },
    /// A key of another discipline.
    #[error("a drop-tail queue has no `{key}`: remove it, or set `discipline = \"codel\"`")]
    Foreign {
        /// The key.
        key: &'static str,
    },
}

impl Queue {
    /// A drop-tail queue for this number of packets.
    pub fn of_packets(packets: u32) -> Self {
        Self { packets: Some(packets), ..Self::default() }
    }

    /// A drop-tail queue for this number of bytes.
    pub fn of_bytes(bytes: Bytes) -> Self {
        Self { bytes: Some(bytes), ..Self::default() }
    }

    /// Checks the parameters together.
    pub fn check(&self) -> Result<(), QueueError> {
        if self.packets == Some(0) {
            return Err(QueueError::NoRoom { key: "packets" });
        }
        if self.bytes == Some(Bytes::ZERO) {
            return Err(QueueError::NoRoom { key: "bytes" });
        }
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::CoDel(settings) if settings.target.is_zero() => Err(QueueError::NoTime { key: "target" }),
            Discipline::CoDel(settings) if settings.interval.is_zero() => Err(QueueError::NoTime { key: "interval" }),
            Discipline::CoDel(_) => Ok(()),
        }
    }
}

/// The written form of a queue.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// What is done before the queue is full. Default: `drop-tail`, nothing.
    #[serde(default)]
    discipline: Name,
    /// Packets that may wait, at least one; without it, any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u32>,
    /// Bytes that may wait, IP headers included; without it, any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Bytes>,
    /// CoDel: the queueing delay that is acceptable for long (RFC 8289 §4). Default: 5 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Span>,
    /// CoDel: how long the delay may exceed the target before packets are dropped (RFC 8289 §4).
    /// Default: 100 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Span>,
    /// CoDel: packets of ECN-capable flows are marked instead of dropped. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<bool>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Name {
    #[default]
    DropTail,
    #[serde(rename = "codel")]
    CoDel,
}

impl TryFrom<Table> for Queue {
    type Error = QueueError;

    fn try_from(table: Table) -> Result<Self, QueueError> {
        let Table { discipline, packets, bytes, target, interval, ecn } = table;
        let discipline = match discipline {
            Name::DropTail => {
                let given = [("target", target.is_some()), ("interval", interval.is_some()), ("ecn", ecn.is_some())];
                if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                    return Err(QueueError::Foreign { key });
                }
                Discipline::DropTail
            }
            Name::CoDel => {
                let default = codel::Settings::default();
                Discipline::CoDel(codel::Settings {
                    target: target.unwrap_or(default.target),
                    interval: interval.unwrap_or(default.interval),
                    ecn: ecn.unwrap_or(default.ecn),
                })
            }
        };
        let queue = Self { packets, bytes, discipline };
        queue.check()?;
        Ok(queue)
    }
}

impl From<Queue> for Table {
    fn from(queue: Queue) -> Self {
        let Queue { packets, bytes, discipline } = queue;
        let (discipline, target, interval, ecn) = match discipline {
            Discipline::DropTail => (Name::DropTail, None, None, None),
            Discipline::CoDel(codel::Settings { target, interval, ecn }) => {
                (Name::CoDel, Some(target), Some(interval), Some(ecn))
            }
        };
        Self { discipline, packets, bytes, target, interval, ecn }
    }
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    packets: u64,
    bytes: u64,
}

impl Limits {
    /// The limits of `queue`.
    pub fn of(queue: &Queue) -> Self {
        Self { packets: queue.packets.map_or(u64::MAX, u64::from), bytes: queue.bytes.map_or(u64::MAX, Bytes::get) }
    }

    /// Whether a packet of `size` bytes fits behind these waiting packets and bytes.
    #[inline]
    pub const fn admit(&self, packets: usize, bytes: u64, size: u32) -> bool {
        (packets as u64) < self.packets && bytes.saturating_add(size as u64) <= self.bytes
    }
}
