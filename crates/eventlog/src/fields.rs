//! The columns of all tables: names, units and meanings.

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The unit of its numbers: `ns`, `B` or `bit/s`. None for counts, numbers that name something,
    /// codes and texts.
    pub unit: Option<&'static str>,
    /// What it contains, with literal values in backticks.
    pub description: &'static str,
}

const fn field(name: &'static str, unit: Option<&'static str>, description: &'static str) -> Field {
    Field { name, unit, description }
}

const NS: Option<&str> = Some("ns");
const BYTES: Option<&str> = Some("B");
const BITS_PER_SECOND: Option<&str> = Some("bit/s");

const TIME: Field = field("time", NS, "virtual time from the start of the run");
const REPETITION: Field = field("repetition", None, "number of the repetition, from 0");
const COMPONENT: Field = field("component", None, "name of the component that reports");
const FLOW: Field = field(
    "flow",
    None,
    "number of the flow; connection k (from 0) of a flow with several has that of the flow plus k times the number of \
     flows",
);
const USER: Field = field("user", None, "number of the mobile");

pub(crate) const PACKETS: &[Field] = &[
    TIME,
    REPETITION,
    COMPONENT,
    field("step", None, "`sent`, `queued`, `delivered`, `dropped`, `received`; of a middlebox: `created`, `absorbed`"),
    field("direction", None, "`down` towards the mobile, `up` from it"),
    field("packet", None, "number of the packet, unique in its repetition: the key for joins"),
    FLOW,
    USER,
    field("size", BYTES, "the IP packet"),
    field("ecn", None, "its ECN field: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168 §5)"),
    field(
        "cause",
        None,
        "of a drop: `queue-full`, `queue-management`, `policer`, `loss`, `attempts-exhausted`, `too-big`, `handover` \
         (in a buffer that a handover discarded), `decompression` (header compression lost synchronisation), `discarded` \
         (the discard timer of PDCP or RLC expired)",
    ),
    field("backlog_packets", None, "on `queued`: packets in the queue of the component, this one included"),
    field("backlog_bytes", BYTES, "on `queued`: the queue of the component, this packet included"),
    field("offset", BYTES, "on `sent`, of TCP: stream offset of the payload; the first byte is 0, the SYN is −1"),
    field("length", BYTES, "on `sent`, of TCP: the payload"),
    field("ack", BYTES, "on `sent`, of TCP with the ACK flag: acknowledged stream offset"),
    field("window", BYTES, "on `sent`, of TCP: receive window after scaling"),
    field("flags", None, "on `sent`: flag byte of the TCP header"),
    field("retransmission", None, "on `sent`, of TCP: whether any of the payload was sent before"),
];

pub(crate) const TCP: &[Field] = &[
    TIME,
    REPETITION,
    field("component", None, "end of the sender: `server`, a mobile or `proxy`"),
    FLOW,
    field("direction", None, "direction of its data: `down` or `up`"),
    field(
        "trigger",
        None,
        "`established`, `ack`, `fast-retransmit`, `recovery-end`, `timeout`, `tail-probe`, `undo`, `window-probe`, \
         `congestion-experienced`, `closed`",
    ),
    field("congestion_window", BYTES, "the congestion window"),
    field("slow_start_threshold", BYTES, "the slow start threshold; null while it is unlimited"),
    field("in_flight", BYTES, "what the sender assumes to be in the network (the pipe of RFC 6675)"),
    field("outstanding", BYTES, "sent and not cumulatively acknowledged"),
    field("peer_window", BYTES, "the receive window of the peer"),
    field("acknowledged", BYTES, "stream offset of the oldest unacknowledged byte"),
    field("round_trip", NS, "the latest sample of the round trip; null before the first"),
    field("smoothed_round_trip", NS, "the smoothed round trip (RFC 6298); null before the first sample"),
    field("retransmission_timeout", NS, "the retransmission timeout"),
    field("pacing_rate", BITS_PER_SECOND, "of a congestion control with a pacing rate (BBR, WTCP)"),
    field("pacing_gain", None, "factor of that rate on the bandwidth of the model, in 256ths (BBR)"),
];

pub(crate) const QUIC: &[Field] = &[
    TIME,
    REPETITION,
    field("component", None, "end that sent the packet: `server` or a mobile"),
    FLOW,
    field("connection", None, "number of the connection in its flow, from 0"),
    field("direction", None, "`down` towards the mobile, `up` from it"),
    field("step", None, "`sent`, or `lost`: the end declared it lost (RFC 9002 §6)"),
    field("packet", None, "on `sent`: number of its datagram in the table `packets`"),
    field("size", BYTES, "on `sent`: the packet of QUIC"),
    field("packet_type", None, "`initial`, `handshake`, `0RTT` or `1RTT`; the last two share their numbers"),
    field("packet_number", None, "its number: each end counts from 0, by type"),
    field("frames", None, "on `sent`: its frames, separated by `; `; null if they are encrypted"),
];

pub(crate) const RADIO: &[Field] = &[
    field("time", NS, "start of the TTI"),
    REPETITION,
    COMPONENT,
    field("direction", None, "`down` or `up`"),
    USER,
    field("duration", NS, "length of the TTI"),
    field("pdus", None, "PDUs sent in it"),
    field("repeated", None, "the PDUs among them sent for the second or a later time"),
    field("errored", None, "the PDUs among them that the receiver did not decode"),
    field("bytes", BYTES, "RLC bytes, padding included"),
    field(
        "level",
        None,
        "current C/I level, CQI (HSDPA), index of the MCS (LTE, NR, Wi-Fi) or of the TBS (NB-IoT), step of the grant \
         (E-DCH) or number of the coding scheme (GPRS); 0 where the bearer has none",
    ),
    field(
        "control",
        None,
        "GPRS: blocks with control messages in it and since the previous row of the mobile and direction",
    ),
];

pub(crate) const STATES: &[Field] = &[
    TIME,
    REPETITION,
    COMPONENT,
    field("direction", None, "`down` or `up`; null if the aspect belongs to the mobile as a whole"),
    USER,
    field(
        "aspect",
        None,
        "`mode` (activity of the mobile as a whole), `cell` (number of the serving cell), `carrier-to-interference` \
         (dB), `level` (of the serving cell, dB over the noise of the receiver), `scheme` (coding scheme or transport \
         format), `slots` (timeslots, codes, channels or resource blocks assigned), `tbf` (temporary block flow of \
         GPRS), `rrc` (RRC state of UMTS or LTE), `cell-group` (that carries the downlink in EN-DC), `drx` \
         (discontinuous reception of LTE and NR), `wait` (why data waits in LTE, NR, NB-IoT and E-DCH, by direction), \
         `harq` (hybrid ARQ of LTE, NR, NB-IoT and E-DCH, by direction), `link` (acknowledged link of RLP or RLC); of \
         a proxy `budget` (bytes that may be unacknowledged towards the mobile), `outstanding` (bytes that are), \
         `queue` (bytes that wait), each at most every 20 ms",
    ),
    field("name", None, "the value, of aspects with named values"),
    field("number", None, "the value, of aspects that are counted or measured; the aspect has its unit"),
];

pub(crate) const APP: &[Field] = &[
    TIME,
    REPETITION,
    FLOW,
    field(
        "step",
        None,
        "`started`, `connected`, `requested`, `first-byte`, `finished`, `acknowledged`, `arrived`, `playout` (of a \
         call: a talk spurt begins to be played out), `aborted`",
    ),
    field("delivered", BYTES, "what reached the receiving application so far"),
    field("sequence", None, "of `arrived`: number of the ping or datagram; of `playout`: number of the first frame"),
    field("delay", NS, "of `arrived`: its round trip or one-way delay; of `playout`: time from mouth to ear"),
];

pub(crate) const CHANGES: &[Field] = &[
    TIME,
    REPETITION,
    field("component", None, "the bearer that was commanded"),
    field(
        "kind",
        None,
        "`outage`, `handover`, `rate`, `loss`, `delay`, `bler`, `channels`, `level`, `class`, `ci`, `environment`",
    ),
    field("direction", None, "`down` or `up`; null if the command names none"),
    field("user", None, "number of the mobile; null if the command names none"),
    field("duration", NS, "of an outage or handover: for how long nothing is sent"),
    field("change", None, "the full command, a JSON object that can be parsed again, without the user"),
];

/// The columns as JSON: `{"time": {"unit": "ns", "description": "…"}, …}`, for the metadata of a
/// file. Nothing in them needs an escape.
pub(crate) fn to_json(fields: &[Field]) -> String {
    let one = |Field { name, unit, description }: &Field| {
        let unit = unit.map_or_else(|| "null".to_owned(), |unit| format!("\"{unit}\""));
        format!("\"{name}\": {{\"unit\": {unit}, \"description\": \"{description}\"}}")
    };
    format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(", "))
}
