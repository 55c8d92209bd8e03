//! Queues in front of a transmitter, and their management.

pub mod cake;
mod cobalt;
pub mod codel;
pub mod drop_tail;
pub mod dual_pi2;
mod fifo;
mod flow_queues;
pub mod fq_codel;
mod managed;
pub mod pie;
mod round_robin;

use airpath_core::{Bytes, Ecn, Instant, Packet, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use managed::Managed;
pub use round_robin::DeficitRoundRobin;

/// The queue in front of a transmitter. Written as a table:
///
/// ```toml
/// queue = { packets = 100 }
/// queue = { bytes = "64 kB" }
/// queue = { discipline = "codel", target = "5 ms", interval = "100 ms", ecn = true, packets = 1000 }
/// queue = { discipline = "fq-codel", flows = 1024, quantum = "1514 B" }
/// queue = { discipline = "pie", target = "15 ms", update = "15 ms", burst = "150 ms" }
/// queue = { discipline = "dualpi2", target = "15 ms", step = "1 ms", coupling = 2.0 }
/// queue = { discipline = "cake", isolation = "mobiles", packets = 1000 }
/// ```
///
/// Limits apply to waiting packets. The packet in transmission has left the queue, as in Linux,
/// ns-2 and mahimahi, so that `packets` + 1 can be inside. A packet that arrives at an idle
/// transmitter does not wait, whatever its size. A packet that exceeds a limit is dropped on entry;
/// with `fq-codel` and `cake`, the longest queue is shortened instead, unless the packet alone
/// exceeds a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Discipline {
    /// `drop-tail`: none, the default.
    #[default]
    DropTail,
    /// `codel` (RFC 8289), with its keys beside it.
    CoDel(codel::Settings),
    /// `fq-codel` (RFC 8290).
    FqCoDel(fq_codel::Settings),
    /// `pie` (RFC 8033).
    Pie(pie::Settings),
    /// `dualpi2` (RFC 9332).
    DualPi2(dual_pi2::Settings),
    /// `cake` (Høiland-Jørgensen, Täht and Morton 2018).
    Cake(cake::Settings),
}

impl Discipline {
    /// The names of the disciplines that treat flows differently.
    pub const BY_FLOW: [&'static str; 2] = ["fq-codel", "cake"];

    /// Whether packets leave in the order of their arrival.
    pub const fn keeps_order(&self) -> bool {
        matches!(self, Self::DropTail | Self::CoDel(_) | Self::Pie(_))
    }
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
    /// A value out of range.
    #[error("the `{key}` of {discipline} must be {allowed}")]
    Range {
        /// The discipline.
        discipline: &'static str,
        /// The key.
        key: &'static str,
        /// The values allowed.
        allowed: &'static str,
    },
    /// A key of another discipline.
    #[error("a queue with the discipline {discipline} has no `{key}`: remove it, or set `discipline` to {others}")]
    Foreign {
        /// The discipline.
        discipline: &'static str,
        /// The key.
        key: &'static str,
        /// Disciplines that have the key.
        others: &'static str,
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
        let discipline = self.discipline.name();
        let range = |is_allowed: bool, key, allowed| {
            if is_allowed { Ok(()) } else { Err(QueueError::Range { discipline, key, allowed }) }
        };
        let is_span = |span: Span| !span.is_zero();
        let is_period = |span: Span| span >= Span::from_millis(1) && span <= Span::from_secs(1);
        let codel = |settings: &codel::Settings| {
            range(settings.target.is_none_or(is_span), "target", "above zero: RFC 8289 recommends 5 ms")?;
            range(is_span(settings.interval), "interval", "above zero: RFC 8289 recommends 100 ms")
        };
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::CoDel(settings) => codel(settings),
            Discipline::FqCoDel(settings) => {
                codel(&settings.codel)?;
                range((1..=65_536).contains(&settings.flows), "flows", "1 to 65,536")?;
                range((256..=1 << 20).contains(&settings.quantum), "quantum", "256 B to 1,048,576 B")
            }
            Discipline::Pie(settings) => {
                range(settings.target.is_none_or(is_span), "target", "above zero: RFC 8033 recommends 15 ms")?;
                range(is_period(settings.update), "update", "1 ms to 1 s: RFC 8033 recommends 15 ms")
            }
            Discipline::DualPi2(settings) => {
                range(settings.target.is_none_or(is_span), "target", "above zero: RFC 9332 recommends 15 ms")?;
                range(is_period(settings.update), "update", "1 ms to 1 s: RFC 9332 recommends 16 ms")?;
                range(settings.step.is_none_or(is_span), "step", "above zero: RFC 9332 recommends about 1 ms")?;
                let is_coupling = settings.coupling > 0.0 && settings.coupling <= 255.0;
                range(is_coupling, "coupling", "above 0 and at most 255: RFC 9332 recommends 2")?;
                range((0.0..1.0).contains(&settings.classic_share), "classic_share", "at least 0 and below 1")
            }
            Discipline::Cake(settings) => {
                range(settings.target.is_none_or(is_span), "target", "above zero: Linux has 5 ms")?;
                range(settings.interval.is_none_or(is_span), "interval", "above zero: Linux has 100 ms")
            }
        }
    }
}

/// The written form of a queue.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
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
    /// The queueing delay that is acceptable for long. Default: 5 ms with `codel` and `fq-codel`
    /// (RFC 8289 §4) and `cake`, 15 ms with `pie` (RFC 8033 §4) and `dualpi2` (RFC 9332 appendix
    /// A); in a cellular bearer at least two TTIs, and with `cake` at least the time of 1.5 packets
    /// of 1,514 bytes at the rate of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Span>,
    /// `codel`, `fq-codel` and `cake`: how long the delay may exceed the target before packets are
    /// dropped (RFC 8289 §4). Default: 100 ms; with `cake` more where the default target is more
    /// than 5 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Span>,
    /// `codel`, `fq-codel`, `pie` and `cake`: packets of ECN-capable flows are marked instead of
    /// dropped. Default: true with `fq-codel` and `cake`, else false. `dualpi2` always marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<bool>,
    /// `fq-codel`: number of queues, 1 to 65,536 (RFC 8290 §5.2.2). Default: 1,024.
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u32>,
    /// `fq-codel`: bytes of a flow in a turn (RFC 8290 §5.2.1). Default: 1,514 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantum: Option<Bytes>,
    /// `pie` and `dualpi2`: time between updates of the controller, 1 ms to 1 s. Default: 15 ms
    /// with `pie` (RFC 8033 §4.2), 16 ms with `dualpi2` (RFC 9332 appendix A).
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<Span>,
    /// `pie`: for how long a burst is not dropped (RFC 8033 §4.4). Default: 150 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<Span>,
    /// `dualpi2`: the sojourn time above which all packets of the L queue are marked. Default: 1
    /// ms; in a cellular bearer at least two TTIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Span>,
    /// `dualpi2`: ratio of the probability of the L queue to the square root of that of the C queue
    /// (RFC 9332 §2.1). Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    coupling: Option<f64>,
    /// `dualpi2`: share of the rate that the C queue has while both are backlogged. Default: 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    classic_share: Option<f64>,
    /// `cake`: whether the rate is shared between mobiles, and the share of a mobile between its
    /// flows, or between all flows. Default: `mobiles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<cake::Isolation>,
}

impl Table {
    /// The keys of disciplines: whether they are given, and the disciplines that have them.
    fn keys(&self) -> [(&'static str, bool, &'static [Name], &'static str); 11] {
        use Name::{Cake, CoDel, DualPi2, FqCoDel, Pie};
        [
            (
                "target",
                self.target.is_some(),
                &[CoDel, FqCoDel, Pie, DualPi2, Cake],
                "\"codel\", \"fq-codel\", \"pie\", \"dualpi2\" or \"cake\"",
            ),
            ("interval", self.interval.is_some(), &[CoDel, FqCoDel, Cake], "\"codel\", \"fq-codel\" or \"cake\""),
            ("ecn", self.ecn.is_some(), &[CoDel, FqCoDel, Pie, Cake], "\"codel\", \"fq-codel\", \"pie\" or \"cake\""),
            ("flows", self.flows.is_some(), &[FqCoDel], "\"fq-codel\""),
            ("quantum", self.quantum.is_some(), &[FqCoDel], "\"fq-codel\""),
            ("update", self.update.is_some(), &[Pie, DualPi2], "\"pie\" or \"dualpi2\""),
            ("burst", self.burst.is_some(), &[Pie], "\"pie\""),
            ("step", self.step.is_some(), &[DualPi2], "\"dualpi2\""),
            ("coupling", self.coupling.is_some(), &[DualPi2], "\"dualpi2\""),
            ("classic_share", self.classic_share.is_some(), &[DualPi2], "\"dualpi2\""),
            ("isolation", self.isolation.is_some(), &[Cake], "\"cake\""),
        ]
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Name {
    #[default]
    DropTail,
    #[serde(rename = "codel")]
    CoDel,
    #[serde(rename = "fq-codel")]
    FqCoDel,
    Pie,
    #[serde(rename = "dualpi2")]
    DualPi2,
    Cake,
}

impl Discipline {
    /// The name in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::CoDel(_) => "codel",
            Self::FqCoDel(_) => "fq-codel",
            Self::Pie(_) => "pie",
            Self::DualPi2(_) => "dualpi2",
            Self::Cake(_) => "cake",
        }
    }
}

impl TryFrom<Table> for Queue {
    type Error = QueueError;

    fn try_from(table: Table) -> Result<Self, QueueError> {
        let codel = |default: codel::Settings| codel::Settings {
            target: table.target,
            interval: table.interval.unwrap_or(default.interval),
            ecn: table.ecn.unwrap_or(default.ecn),
        };
        let discipline = match table.discipline {
            Name::DropTail => Discipline::DropTail,
            Name::CoDel => Discipline::CoDel(codel(codel::Settings::default())),
            Name::FqCoDel => {
                let default = fq_codel::Settings::default();
                let quantum = table.quantum.map_or(default.quantum, |bytes| bytes.get().try_into().unwrap_or(u32::MAX));
                let flows = table.flows.unwrap_or(default.flows);
                Discipline::FqCoDel(fq_codel::Settings { codel: codel(default.codel), flows, quantum })
            }
            Name::Pie => {
                let default = pie::Settings::default();
                Discipline::Pie(pie::Settings {
                    target: table.target,
                    update: table.update.unwrap_or(default.update),
                    burst: table.burst.unwrap_or(default.burst),
                    ecn: table.ecn.unwrap_or(default.ecn),
                })
            }
            Name::DualPi2 => {
                let default = dual_pi2::Settings::default();
                Discipline::DualPi2(dual_pi2::Settings {
                    target: table.target,
                    update: table.update.unwrap_or(default.update),
                    step: table.step,
                    coupling: table.coupling.unwrap_or(default.coupling),
                    classic_share: table.classic_share.unwrap_or(default.classic_share),
                })
            }
            Name::Cake => {
                let default = cake::Settings::default();
                Discipline::Cake(cake::Settings {
                    target: table.target,
                    interval: table.interval,
                    isolation: table.isolation.unwrap_or(default.isolation),
                    ecn: table.ecn.unwrap_or(default.ecn),
                })
            }
        };
        for (key, is_given, having, others) in table.keys() {
            if is_given && !having.contains(&table.discipline) {
                return Err(QueueError::Foreign { discipline: discipline.name(), key, others });
            }
        }
        let queue = Self { packets: table.packets, bytes: table.bytes, discipline };
        queue.check()?;
        Ok(queue)
    }
}

impl From<Queue> for Table {
    fn from(queue: Queue) -> Self {
        let Queue { packets, bytes, discipline } = queue;
        let table = Self { packets, bytes, ..Self::default() };
        let codel = |settings: codel::Settings, table: Self| Self {
            target: settings.target,
            interval: Some(settings.interval),
            ecn: Some(settings.ecn),
            ..table
        };
        match discipline {
            Discipline::DropTail => table,
            Discipline::CoDel(settings) => Self { discipline: Name::CoDel, ..codel(settings, table) },
            Discipline::FqCoDel(fq_codel::Settings { codel: of_flow, flows, quantum }) => Self {
                discipline: Name::FqCoDel,
                flows: Some(flows),
                quantum: Some(Bytes::new(quantum.into())),
                ..codel(of_flow, table)
            },
            Discipline::Pie(pie::Settings { target, update, burst, ecn }) => Self {
                discipline: Name::Pie,
                target,
                update: Some(update),
                burst: Some(burst),
                ecn: Some(ecn),
                ..table
            },
            Discipline::DualPi2(dual_pi2::Settings { target, update, step, coupling, classic_share }) => Self {
                discipline: Name::DualPi2,
                target,
                update: Some(update),
                step,
                coupling: Some(coupling),
                classic_share: Some(classic_share),
                ..table
            },
            Discipline::Cake(cake::Settings { target, interval, isolation, ecn }) => {
                Self { discipline: Name::Cake, target, interval, isolation: Some(isolation), ecn: Some(ecn), ..table }
            }
        }
    }
}

/// Bytes of an Ethernet frame of 1,500 bytes: a packet in the rules of the disciplines.
const MTU: u32 = 1_514;

/// The packet with the codepoint CE (RFC 3168 §5).
const fn marked(packet: Packet) -> Packet {
    Packet { ecn: Ecn::Ce, ..packet }
}

/// The times of a controller's updates: multiples of a period.
#[derive(Clone, Copy, Debug)]
struct Updates {
    period: Span,
    next: Instant,
}

impl Updates {
    fn new(period: Span) -> Self {
        Self { period, next: Instant::ZERO + period }
    }

    const fn period(&self) -> Span {
        self.period
    }

    /// The next update up to `now`.
    #[inline]
    fn next(&mut self, now: Instant) -> Option<Instant> {
        let at = self.next;
        (at <= now).then(|| {
            self.next = at + self.period;
            at
        })
    }

    /// Skips the updates up to `now`, which change nothing.
    fn skip(&mut self, now: Instant) {
        if self.next <= now {
            self.next = (now + Span::from_nanos(1)).round_up_to(self.period);
        }
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

    /// Whether these packets and bytes may wait.
    #[inline]
    pub const fn hold(&self, packets: usize, bytes: u64) -> bool {
        packets as u64 <= self.packets && bytes <= self.bytes
    }

    /// Whether a packet of `size` bytes fits behind these waiting packets and bytes.
    #[inline]
    pub const fn admit(&self, packets: usize, bytes: u64, size: u32) -> bool {
        self.hold(packets.saturating_add(1), bytes.saturating_add(size as u64))
    }
}
