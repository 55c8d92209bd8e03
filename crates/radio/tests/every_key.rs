//! Each key of LTE, LTE-M, NR, NB-IoT, HSPA, Wi-Fi and their radio conditions changes a run: none
//! is accepted and ignored. Keys that a model shares with another, and has no other value of, are
//! rejected.

use crate::common;
use std::collections::{BTreeMap, BTreeSet};

use crate::common::overlay;
use airpath_core::{
    ComponentId, Context, Direction, Dropped, Instant, Memory, Packet, Seed, SegmentInfo, SegmentLookup, Slot, Span,
    UserId,
};
use airpath_link::command::Change;
use airpath_link::{Bearer, BearerCommand, Departure};
use airpath_radio::Models;
use airpath_radio::model::Entry;
use serde_json::Value;

/// A key, other keys that give it a meaning, and another value.
type Case = (&'static str, &'static str, &'static str);

/// Errors of every kind and a radio that varies.
const ROUGH: &str = "drx.short_count = 2\nharq.dtx_missed = 0.1\nharq.nack_to_ack = 0.05\n\
                     conditions.ci = \"15 dB\"\nconditions.rayleigh = \"10 km/h\"\n";
/// The SINR of the best transport formats.
const GOOD: &str = "conditions.ci = \"40 dB\"";
/// Each block is sent once, and half of them fail.
const LOSSY: &str = "harq.max_transmissions = 1\ndownlink.bler = 0.5\nuplink.bler = 0.5";
const UNACKNOWLEDGED_LTE: &str = "rlc = { mode = \"unacknowledged\", t_reordering = \"50 ms\" }\n\
                                  harq.max_transmissions = 1";
const UNACKNOWLEDGED_NR: &str = "rlc = { mode = \"unacknowledged\", sequence_bits = 12, t_reassembly = \"50 ms\" }\n\
                                 harq.max_transmissions = 1";
/// The other mode, with the keys that it needs.
const ACKNOWLEDGED: &str = "\"acknowledged\"\nrlc.t_poll_retransmit = \"120 ms\"\nrlc.max_retx = 16\n\
                            rlc.t_status_prohibit = \"50 ms\"";
const SLEEPY: &str = "rrc.power_saving = { edrx = { cycle = \"20.48 s\", window = \"5.12 s\" }, \
                      psm = { active = \"16 s\", update = \"300 s\" } }";
/// It never leaves eDRX.
const EXTENDED: &str = "rrc.power_saving = { edrx = { cycle = \"20.48 s\", window = \"5.12 s\" } }";
const PRESCHEDULED: &str = "uplink.prescheduling = { interval = \"5 ms\", bytes = \"100 B\" }";

/// Two mobiles must compete within milliseconds for these: `schedulers.rs` has their tests.
const ELSEWHERE: [&str; 2] = ["cell.flow_timeout", "cell.short_flow"];

/// What LTE and NR have in common.
const OFDMA: &[Case] = &[
    ("cell.averaging_time", "", "\"200 ms\""),
    ("cell.background.downlink", BACKGROUND, "0.9"),
    ("cell.background.off", BACKGROUND, "\"90 ms\""),
    ("cell.background.on", BACKGROUND, "\"90 ms\""),
    ("cell.background.uplink", BACKGROUND, "0.9"),
    ("cell.carriers", "", "2"),
    ("cell.delay", "", "\"9 ms\""),
    ("cell.max_correction", "", "\"0.1 dB\""),
    ("cell.processing", "", "\"1 ms\""),
    ("cell.pucch_blocks", "", "12"),
    ("cell.scheduler", "", "\"round-robin\""),
    ("cell.step", "", "\"0.3 dB\""),
    ("cell.target_bler", "", "0.4"),
    ("downlink.bler", "", "0.4"),
    ("drx.inactivity", "", "\"60 ms\""),
    ("drx.long", "", "\"160 ms\""),
    ("drx.on", "", "\"40 ms\""),
    ("drx.short", "", "\"20 ms\""),
    ("drx.short_count", "", "7"),
    ("harq.combining", "", "\"none\""),
    ("harq.dtx_missed", "", "0.3"),
    ("harq.gap", "", "\"4 dB\""),
    ("harq.max_transmissions", "", "1"),
    ("harq.nack_to_ack", "", "0.3"),
    ("mobile.cqi_delay", "", "\"20 ms\""),
    ("mobile.cqi_period", "", "\"80 ms\""),
    ("mobile.duplex", "", "\"half\""),
    ("mobile.layers", GOOD, "1"),
    ("mobile.processing", "", "\"1 ms\""),
    ("pdcp.discard", "", "\"750 ms\""),
    ("rlc.max_retx", LOSSY, "1"),
    ("rlc.poll_byte", "", "\"5 kB\""),
    ("rlc.poll_pdu", "", "4"),
    ("rlc.t_poll_retransmit", LOSSY, "\"90 ms\""),
    ("rlc.t_status_prohibit", LOSSY, "\"85 ms\""),
    ("rrc.inactivity", "", "\"5 s\""),
    ("rrc.paging", "", "\"640 ms\""),
    ("rrc.promotion", "", "\"155 ms\""),
    ("rrc.re_establishment", "rlc.max_retx = 1\nharq.max_transmissions = 1\ndownlink.bler = 0.5", "\"655 ms\""),
    ("rrc.t310", LEAVES, "\"2 s\""),
    ("rrc.t311", LEAVES, "\"1 s\""),
    ("uplink.below_downlink", "", "\"3 dB\""),
    ("uplink.bler", "", "0.4"),
    ("uplink.first_grant", "", "\"300 B\""),
    ("uplink.periodic_bsr", "", "\"5 ms\""),
    ("uplink.prescheduling.bytes", PRESCHEDULED, "\"300 B\""),
    ("uplink.prescheduling.interval", PRESCHEDULED, "\"8 ms\""),
    ("uplink.random_access.message", UNHEARD, "\"17 ms\""),
    ("uplink.random_access.period", UNHEARD, "\"20 ms\""),
    ("uplink.retx_bsr", LOSSY, "\"640 ms\""),
    ("uplink.sr_max_transmissions", UNHEARD, "8"),
    ("uplink.sr_period", "", "\"40 ms\""),
];
/// The route leaves the only cell and comes back.
const LEAVES: &str = "conditions = { \
    cells = { count = 1, spacing = \"800 m\", setback = \"100 m\", antenna = \"30 m\" }, \
    shadowing = { deviation = \"0 dB\", correlation_distance = \"20 m\" }, \
    movement = { speed = \"360 km/h\", start = \"0 m\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }, \
    network = { frequency = \"1.8 GHz\", reuse = 1, load = 0.5, power_over_noise = \"130 dB\", lowest = \"-7 dB\", \
    period = \"200 ms\", hysteresis = \"3 dB\", time_to_trigger = \"480 ms\", change = \"hard-handover\", gap = \"40 ms\" } }";
const BACKGROUND: &str = "cell.background = { downlink = 0.5, uplink = 0.5, on = \"30 ms\", off = \"30 ms\" }";
/// Grants are missed so often that requests stay without an answer.
const UNHEARD: &str = "harq.dtx_missed = 0.5\nuplink.sr_max_transmissions = 4\nuplink.sr_period = \"10 ms\"";

/// Grants of NR, which LTE and LTE-M reject.
const NO_CONFIGURED: &[Case] = &[
    (
        "uplink.configured_grant.bytes",
        "",
        "\"100 B\"\nuplink.configured_grant.period = \"10 ms\"\nuplink.configured_grant.mcs = 4",
    ),
    (
        "uplink.configured_grant.mcs",
        "",
        "4\nuplink.configured_grant.period = \"10 ms\"\nuplink.configured_grant.bytes = \"100 B\"",
    ),
    (
        "uplink.configured_grant.offset",
        "",
        "\"1 ms\"\nuplink.configured_grant.period = \"10 ms\"\nuplink.configured_grant.mcs = 4\n\
         uplink.configured_grant.bytes = \"100 B\"",
    ),
    (
        "uplink.configured_grant.period",
        "",
        "\"10 ms\"\nuplink.configured_grant.mcs = 4\nuplink.configured_grant.bytes = \"100 B\"",
    ),
];

const LTE: &[Case] = &[
    ("cell.bandwidth", "", "\"10 MHz\""),
    ("cell.control_symbols", "", "3"),
    ("cell.tdd.configuration", TDD, "1"),
    ("cell.tdd.special", TDD, "5"),
    ("cell.users_per_tti", "", "1"),
    ("harq.processes", "", "3"),
    ("mobile.modulation", GOOD, "\"256qam\""),
    ("rlc.mode", UNACKNOWLEDGED_LTE, ACKNOWLEDGED),
    ("rlc.t_reordering", UNACKNOWLEDGED_LTE, "\"95 ms\""),
    ("rrc.power_saving.edrx.cycle", SLEEPY, "\"40.96 s\""),
    ("rrc.power_saving.edrx.window", SLEEPY, "\"10.24 s\""),
    ("rrc.power_saving.psm.active", SLEEPY, "\"60 s\""),
    ("rrc.power_saving.psm.update", SLEEPY, "\"240 s\""),
    ("uplink.modulation", "conditions.ci = \"40 dB\"", "\"64qam\""),
    ("voice.discard", VOICE, "\"100 ms\""),
    ("voice.dscp", VOICE, "[10]"),
    ("voice.ports", VOICE, "[[6000, 6001]]"),
    ("voice.t_reordering", VOICE, "\"10 ms\""),
];
/// Each fourth packet belongs to a call, half of them by the DSCP and half by the port.
const VOICE: &str = "drx.long = \"80 ms\"\nvoice = { dscp = [46], ports = [[5004, 5005]], discard = \"500 ms\", t_reordering = \"50 ms\" }";
const TDD: &str = "cell.tdd = { configuration = 2, special = 7 }\nharq.processes = 7";

/// U slots of DDDDDDDSUU.
const CONFIGURED: &str =
    "uplink.configured_grant = { period = \"10 ms\", offset = \"4.5 ms\", mcs = 4, bytes = \"100 B\" }";

const NR: &[Case] = &[
    ("cell.bandwidth", "", "\"60 MHz\""),
    ("cell.k1", "", "7"),
    ("cell.k2", "", "7"),
    (
        "cell.spacing",
        "cell.bandwidth = \"50 MHz\"\ncell.processing = \"1 ms\"\ncell.tdd.pattern = \"DDDSU\"",
        "\"15 kHz\"",
    ),
    ("cell.tdd.pattern", "", "\"DDDSUUUUUU\""),
    ("cell.tdd.special_downlink", "", "10"),
    ("cell.users_per_slot", "", "1"),
    ("harq.processes", "", "4"),
    ("mobile.modulation", GOOD, "\"64qam\""),
    ("pdcp.sequence_bits", "rlc.sequence_bits = 12", "12"),
    ("pdcp.t_reordering", LOSSY, "\"20 ms\""),
    ("rlc.mode", UNACKNOWLEDGED_NR, ACKNOWLEDGED),
    ("rlc.sequence_bits", "", "12"),
    ("rlc.t_reassembly", LOSSY, "\"95 ms\""),
    ("uplink.configured_grant.bytes", CONFIGURED, "\"300 B\""),
    ("uplink.configured_grant.mcs", CONFIGURED, "9"),
    ("uplink.configured_grant.offset", CONFIGURED, "\"4 ms\""),
    ("uplink.configured_grant.period", CONFIGURED, "\"20 ms\""),
    ("rrc.inactive.release", "", "\"12 s\""),
    ("rrc.inactive.resume", "", "\"75 ms\""),
    ("uplink.modulation", "conditions.ci = \"50 dB\"", "\"256qam\""),
];

/// A carrier in the second coverage level, with cells.
const COVERAGE: &str = "conditions.ci = \"18 dB\"\n";
/// Formats and errors depend on each decibel.
const WEAK: &str = "conditions.ci = \"-14 dB\"";
const NB_IOT: &[Case] = &[
    ("carrier.delay", "", "\"90 ms\""),
    ("carrier.operation", "", "\"stand-alone\""),
    ("carrier.processing", "", "\"9 ms\""),
    ("carrier.target_bler", WEAK, "0.4"),
    ("coverage.control_repetitions", "", "[1, 32, 256]"),
    ("coverage.downlink_repetitions", "", "[1, 4, 128]"),
    ("coverage.lowest", "", "[\"36 dB\", \"20 dB\", \"-4 dB\"]"),
    ("coverage.preamble_repetitions", "", "[2, 16, 32]"),
    ("coverage.random_access_period", "", "[\"160 ms\", \"640 ms\", \"640 ms\"]"),
    ("coverage.tones", "", "[\"twelve\", \"six\", \"one\"]"),
    ("coverage.uplink_repetitions", "", "[1, 4, 64]"),
    ("downlink.bler", "", "0.5"),
    ("harq.gap", WEAK, "\"6 dB\""),
    ("harq.max_transmissions", "downlink.bler = 0.5\nuplink.bler = 0.5", "1"),
    ("harq.repetition_loss", WEAK, "\"4 dB\""),
    ("mobile.category", "", "\"nb2\""),
    ("mobile.processing", "", "\"9 ms\""),
    ("rlc.max_retx", LOSSY, "1"),
    ("rlc.t_poll_retransmit", LOSSY, "\"4 s\""),
    ("rrc.inactivity", "", "\"5 s\""),
    ("rrc.paging", "", "\"1.28 s\""),
    ("rrc.power_saving.edrx.cycle", SLEEPY, "\"40.96 s\""),
    ("rrc.power_saving.edrx.window", SLEEPY, "\"10.24 s\""),
    ("rrc.power_saving.psm.active", SLEEPY, "\"60 s\""),
    ("rrc.power_saving.psm.update", SLEEPY, "\"240 s\""),
    ("rrc.release", "rrc.release_assistance = \"after-uplink\"", "\"3 s\""),
    ("rrc.release_assistance", "", "\"after-uplink\""),
    ("rrc.setup", "", "[\"90 B\", \"60 B\"]"),
    ("uplink.below_downlink", WEAK, "\"9 dB\""),
    ("uplink.bler", "", "0.5"),
];

/// Both coverage modes, errors, and a mobile that does not sleep between packets.
const NARROW: &str = "harq.dtx_missed = 0.1\nharq.nack_to_ack = 0.05\ndrx.short = \"40 ms\"\ndrx.short_count = 2\n\
                      conditions.ci = \"4 dB\"\nconditions.rayleigh = \"10 km/h\"\n";
const UNHEARD_LTE_M: &str = "harq.dtx_missed = 0.5\nuplink.sr_max_transmissions = 4\nuplink.sr_period = \"40 ms\"\n\
                             uplink.random_access.period = \"10 ms\"";
/// A mobile in mode B.
const MODE_B: &str = "conditions = { ci = \"-8 dB\" }";
const FADING_MODE_B: &str = "conditions.ci = \"-8 dB\"";
const LTE_M: &[Case] = &[
    ("cell.control_blocks", "", "4"),
    ("cell.control_symbols", "", "3"),
    ("coverage.a.control", GOOD, "4"),
    ("coverage.a.downlink", GOOD, "4"),
    ("coverage.a.feedback", GOOD, "4"),
    ("coverage.a.uplink", GOOD, "4"),
    ("coverage.b.below", "", "\"-1 dB\""),
    ("coverage.b.control", MODE_B, "64"),
    ("coverage.b.downlink", MODE_B, "64"),
    ("coverage.b.feedback", MODE_B, "32"),
    ("coverage.b.promotion", MODE_B, "\"3 s\""),
    ("coverage.b.uplink", MODE_B, "64"),
    ("coverage.repetition_loss", MODE_B, "\"4 dB\""),
    ("harq.processes", GOOD, "2"),
    ("mobile.duplex", "", "\"full\""),
    ("rlc.mode", UNACKNOWLEDGED_LTE, ACKNOWLEDGED),
    ("rlc.t_reordering", UNACKNOWLEDGED_LTE, "\"95 ms\""),
    ("rrc.power_saving.edrx.cycle", SLEEPY, "\"40.96 s\""),
    ("rrc.power_saving.edrx.window", EXTENDED, "\"10.24 s\""),
    ("rrc.power_saving.psm.active", SLEEPY, "\"60 s\""),
    ("rrc.power_saving.psm.update", SLEEPY, "\"240 s\""),
];
/// What LTE has and LTE-M has not.
const NOT_LTE_M: &[Case] = &[
    ("uplink.modulation", "", "\"64qam\""),
    ("uplink.prescheduling.bytes", "", "\"300 B\"\nuplink.prescheduling.interval = \"5 ms\""),
    ("uplink.prescheduling.interval", "", "\"5 ms\"\nuplink.prescheduling.bytes = \"300 B\""),
];

/// A car among cells, which may lose them all.
const CELLS: &str = "conditions = { \
    cells = { count = 3, spacing = \"800 m\", setback = \"100 m\", antenna = \"30 m\", penetration = \"20 dB\" }, \
    movement = { speed = \"100 km/h\", from = \"0 m\", to = \"900 m\" }, \
    shadowing = { deviation = \"10 dB\", correlation_distance = \"20 m\" }, \
    network = { frequency = \"1.8 GHz\", reuse = 1, load = 0.5, power_over_noise = \"130 dB\", lowest = \"-7 dB\", \
    period = \"200 ms\", hysteresis = \"3 dB\", time_to_trigger = \"480 ms\", change = \"hard-handover\", gap = \"40 ms\" } }";
const SOFT: &str = "conditions = { \
    cells = { count = 3, spacing = \"800 m\", setback = \"100 m\", antenna = \"30 m\", penetration = \"20 dB\" }, \
    movement = { speed = \"100 km/h\", from = \"0 m\", to = \"900 m\" }, \
    shadowing = { deviation = \"10 dB\", correlation_distance = \"20 m\" }, \
    network = { frequency = \"1.8 GHz\", reuse = 1, load = 0.5, power_over_noise = \"130 dB\", lowest = \"-7 dB\", \
    period = \"200 ms\", hysteresis = \"3 dB\", time_to_trigger = \"480 ms\", change = \"soft-handover\", \
    window = \"6 dB\" } }";
const SHADOWS: &str = "conditions = { ci = \"15 dB\", shadowing = { deviation = \"8 dB\", \
                       correlation_distance = \"20 m\" }, movement = { speed = \"10 km/h\", from = \"0 m\", \
                       to = \"30 m\", path = \"to-and-fro\", start = \"10 m\" } }";
const CONDITIONS: &[Case] = &[
    ("conditions.cells.antenna", CELLS, "\"60 m\""),
    ("conditions.cells.count", CELLS, "1"),
    ("conditions.cells.interferers", CELLS, "\"row\""),
    ("conditions.cells.penetration", CELLS, "\"10 dB\""),
    ("conditions.cells.setback", CELLS, "\"300 m\""),
    ("conditions.cells.spacing", CELLS, "\"500 m\""),
    ("conditions.ci", "", "\"9 dB\""),
    ("conditions.level", "conditions = { level = \"20 dB\" }", "\"9 dB\""),
    ("conditions.movement.from", CELLS, "\"300 m\""),
    ("conditions.movement.path", CELLS, "\"once\""),
    ("conditions.movement.speed", CELLS, "\"30 km/h\""),
    ("conditions.movement.start", CELLS, "\"700 m\""),
    ("conditions.movement.to", CELLS, "\"300 m\""),
    ("conditions.movement.from", SHADOWS, "\"2 m\""),
    ("conditions.movement.path", SHADOWS, "\"once\""),
    ("conditions.movement.speed", SHADOWS, "\"30 km/h\""),
    ("conditions.movement.start", SHADOWS, "\"20 m\""),
    ("conditions.movement.to", SHADOWS, "\"20 m\""),
    ("conditions.network.frequency", CELLS, "\"900 MHz\""),
    ("conditions.network.gap", CELLS, "\"400 ms\""),
    ("conditions.network.hysteresis", CELLS, "\"1 dB\""),
    ("conditions.network.load", CELLS, "0.1"),
    ("conditions.network.lowest", CELLS, "\"9 dB\""),
    ("conditions.network.period", CELLS, "\"100 ms\""),
    ("conditions.network.power_over_noise", CELLS, "\"110 dB\""),
    ("conditions.network.reuse", CELLS, "3"),
    ("conditions.network.time_to_trigger", CELLS, "\"0 s\""),
    ("conditions.rayleigh", CELLS, "\"70 km/h\""),
    ("conditions.blockage.attenuation", BLOCKED, "\"4 dB\""),
    ("conditions.blockage.every", BLOCKED, "\"700 ms\""),
    ("conditions.blockage.lasting", BLOCKED, "\"15 ms\""),
    ("conditions.shadowing.correlation_distance", CELLS, "\"60 m\""),
    (
        "conditions.shadowing.correlation_time",
        "conditions = { ci = \"15 dB\", shadowing = { deviation = \"8 dB\", correlation_time = \"5 s\" } }",
        "\"20 s\"",
    ),
    ("conditions.shadowing.deviation", CELLS, "\"4 dB\""),
    ("conditions.shadowing.site_correlation", CELLS, "0.9"),
    ("conditions.table.hold", TABLE, "\"2 s\""),
    ("conditions.table.values", TABLE, "[\"9 dB\", \"30 dB\"]"),
    ("conditions.table.weights", TABLE, "[1, 5]"),
];
/// Of technologies with soft handover.
const SOFT_HANDOVER: &[Case] = &[
    ("conditions.network.change", CELLS, "\"soft-handover\"\nconditions.network.window = \"3 dB\""),
    ("conditions.network.window", SOFT, "\"1 dB\""),
];
/// Of the others.
const HARD_HANDOVER: &[Case] = &[
    ("conditions.network.change", CELLS, "\"soft-handover\"\nconditions.network.window = \"3 dB\""),
    ("conditions.network.window", CELLS, "\"1 dB\""),
];
/// Only with frequency division duplex.
const HALF_DUPLEX: &[Case] = &[("mobile.duplex", "", "\"half\"")];
/// A file that is not there, beside another source of the C/I.
const NO_FILE: &[Case] = &[("conditions.recorded", "", "\"nowhere.csv\"")];
/// Fading of the tables of GSM and UMTS.
const NO_FADING: &[Case] = &[("conditions.fading", "", "\"tu50\"")];
const BLOCKED: &str = "conditions = { ci = \"15 dB\", \
                       blockage = { attenuation = \"12 dB\", every = \"500 ms\", lasting = \"50 ms\" } }";
const TABLE: &str = "conditions = { table = { hold = \"1 s\", values = [\"7 dB\", \"30 dB\"], weights = [1, 1] } }";

/// Fast fading, and losses that the RLC repairs.
const HSPA_ROUGH: &str = "conditions.ci = \"18 dB\"\nconditions.rayleigh = \"10 km/h\"";
const LOSSY_DOWN: &str = "downlink.harq.max_transmissions = 1\ndownlink.bler = 0.5";
const UNPOLLED_DOWN: &str = "downlink.harq.max_transmissions = 1\ndownlink.bler = 0.5\n\
                             downlink.rlc.poll_packets = 1000";
const LOSSY_UP: &str = "e_dch.max_transmissions = 1\ne_dch.bler = 0.5";
const BROKEN_DOWN: &str = "downlink.harq.max_transmissions = 1\ndownlink.bler = 0.8\ndownlink.rlc.max_dat = 3";
const BROKEN_UP: &str = "e_dch.max_transmissions = 1\ne_dch.bler = 0.8\ne_dch.rlc.max_dat = 3\n\
                         downlink.harq.max_transmissions = 1\ndownlink.bler = 0.8";
const PERIODIC_DOWN: &str = "downlink.harq.max_transmissions = 1\ndownlink.bler = 0.5\n\
                             downlink.rlc.timer_poll_periodic = \"900 ms\"";
const PERIODIC_UP: &str = "e_dch.max_transmissions = 1\ne_dch.bler = 0.5\ne_dch.rlc.timer_poll_periodic = \"900 ms\"";
const DISCARD_DOWN: &str = "downlink.harq.max_transmissions = 1\ndownlink.bler = 0.8\ndownlink.rlc.max_dat = 3\n\
                            downlink.rlc.discard = { timer_mrw = \"150 ms\", max_mrw = 4, timer_discard = \"2 s\" }";
const DISCARD_UP: &str = "e_dch.max_transmissions = 1\ne_dch.bler = 0.8\ne_dch.rlc.max_dat = 3\n\
                          e_dch.rlc.discard = { timer_mrw = \"150 ms\", max_mrw = 4, timer_discard = \"2 s\" }";
/// A mobile that needs no MAC-ehs.
const OLD_MOBILE: &str = "mobile.category = 10\ncell.carriers = 1\ndownlink.pdu = \"80 B\"";
const MAC_HS: &str = "mobile.category = 10\ncell.carriers = 1\ndownlink.pdu = \"80 B\"\ndownlink.mac = \"mac-hs\"";
const RUN2C: &str = "cell.scheduler = \"run2c\"\ncell.short_flow = \"1 kB\"";
const HSPA: &[Case] = &[
    ("cell.averaging_time", "", "\"20 ms\""),
    ("cell.carriers", "", "1"),
    ("cell.codes", "", "6"),
    ("cell.flow_timeout", "cell.scheduler = \"least-attained-service\"", "\"5 ms\""),
    ("cell.scheduler", "", "\"round-robin\""),
    ("cell.short_flow", RUN2C, "\"200 kB\""),
    ("cell.users_per_tti", "downlink.cqi = 5", "1"),
    ("mobile.category", "conditions.ci = \"28 dB\"", "23"),
    ("mobile.cqi_cycle", "", "\"40 ms\""),
    ("mobile.cqi_delay", "", "\"30 ms\""),
    ("mobile.reordering_timer", LOSSY_DOWN, "\"10 ms\""),
    ("mobile.reordering_window", LOSSY_DOWN, "4"),
    ("conditions.fading", "conditions = { ci = \"-4 dB\" }", "\"tu50\""),
    ("downlink.bler", "", "0.3"),
    ("downlink.cqi", "", "12"),
    ("downlink.delay", "", "\"9 ms\""),
    ("downlink.harq.combining", "", "\"none\""),
    ("downlink.harq.max_transmissions", "", "1"),
    ("downlink.harq.processes", "", "2"),
    ("downlink.harq.round_trip", "", "9"),
    ("downlink.iub.buffer", "", "\"8 kB\""),
    ("downlink.iub.delay", "", "\"4 ms\""),
    ("downlink.iub.interval", "", "\"70 ms\""),
    ("downlink.mac", OLD_MOBILE, "\"mac-hs\""),
    ("downlink.pdcp_header", "", "\"3 B\""),
    ("downlink.pdu", "", "\"600 B\""),
    ("downlink.radio_delay", "", "\"9 ms\""),
    ("e_dch.below_cell", CELLS, "\"50 dB\""),
    ("e_dch.bler", "", "0.4"),
    ("e_dch.category", "conditions.ci = \"28 dB\"", "2"),
    ("e_dch.combining", "e_dch.bler = 0.5", "\"none\""),
    ("e_dch.delay", "", "\"9 ms\""),
    ("e_dch.eb_n0", "", "\"-3 dB\""),
    ("e_dch.fading", "conditions = { ci = \"-4 dB\", fading = \"tu50\" }", "{ tu50 = \"9 dB\" }"),
    ("e_dch.grants.delay", "", "\"33 ms\""),
    ("e_dch.grants.first", "", "\"1 Mbit/s\""),
    ("e_dch.grants.happy_delay", "", "\"900 ms\""),
    ("e_dch.grants.inactivity", "", "\"5 s\""),
    ("e_dch.grants.noise_rise", "", "\"2 dB\""),
    ("e_dch.grants.step", "", "\"3 dB\""),
    ("e_dch.max_transmissions", "e_dch.bler = 0.5", "1"),
    ("e_dch.pdcp_header", "", "\"3 B\""),
    ("e_dch.pdu", "", "\"40 B\""),
    ("e_dch.radio_delay", "", "\"9 ms\""),
    ("e_dch.reordering_timer", LOSSY_UP, "\"10 ms\""),
    ("e_dch.tti", "", "\"10 ms\""),
    ("downlink.rlc.concatenation", MAC_HS, "true"),
    ("downlink.rlc.discard.max_mrw", DISCARD_DOWN, "1"),
    ("downlink.rlc.discard.timer_discard", DISCARD_DOWN, "\"300 ms\""),
    ("downlink.rlc.discard.timer_mrw", DISCARD_DOWN, "\"40 ms\""),
    ("downlink.rlc.max_dat", BROKEN_DOWN, "2"),
    ("downlink.rlc.max_rst", BROKEN_DOWN, "2"),
    (
        "downlink.rlc.poll_last",
        "downlink.rlc.poll_packets = 1000\ndownlink.rlc.timer_poll_periodic = \"900 ms\"",
        "false",
    ),
    ("downlink.rlc.poll_last_repeat", PERIODIC_DOWN, "false"),
    ("downlink.rlc.poll_packets", "", "9"),
    ("downlink.rlc.poll_pdus", "downlink.rlc.poll_packets = 1000", "2"),
    ("downlink.rlc.poll_window", "downlink.rlc.window = 40\ndownlink.rlc.poll_packets = 1000", "30"),
    ("downlink.rlc.status_missing", UNPOLLED_DOWN, "false"),
    ("downlink.rlc.timer_poll", LOSSY_DOWN, "\"90 ms\""),
    ("downlink.rlc.timer_poll_periodic", "", "\"50 ms\""),
    ("downlink.rlc.timer_poll_prohibit", "", "\"80 ms\""),
    ("downlink.rlc.timer_rst", BROKEN_DOWN, "\"300 ms\""),
    ("downlink.rlc.timer_status_prohibit", LOSSY_DOWN, "\"250 ms\""),
    ("downlink.rlc.window", "", "8"),
    ("e_dch.rlc.concatenation", "", "false"),
    ("e_dch.rlc.discard.max_mrw", DISCARD_UP, "1"),
    ("e_dch.rlc.discard.timer_discard", DISCARD_UP, "\"300 ms\""),
    ("e_dch.rlc.discard.timer_mrw", DISCARD_UP, "\"40 ms\""),
    ("e_dch.rlc.max_dat", BROKEN_UP, "2"),
    ("e_dch.rlc.max_rst", BROKEN_UP, "2"),
    ("e_dch.rlc.poll_last", "e_dch.rlc.poll_packets = 1000\ne_dch.rlc.timer_poll_periodic = \"900 ms\"", "false"),
    ("e_dch.rlc.poll_last_repeat", PERIODIC_UP, "false"),
    ("e_dch.rlc.poll_packets", "", "9"),
    ("e_dch.rlc.poll_pdus", "e_dch.rlc.poll_packets = 1000", "2"),
    ("e_dch.rlc.poll_window", "e_dch.rlc.window = 40\ne_dch.rlc.poll_packets = 1000", "30"),
    ("e_dch.rlc.status_missing", LOSSY_UP, "false"),
    ("e_dch.rlc.timer_poll", LOSSY_UP, "\"90 ms\""),
    ("e_dch.rlc.timer_poll_periodic", "", "\"50 ms\""),
    ("e_dch.rlc.timer_poll_prohibit", "", "\"80 ms\""),
    ("e_dch.rlc.timer_rst", BROKEN_UP, "\"300 ms\""),
    ("e_dch.rlc.timer_status_prohibit", LOSSY_UP, "\"250 ms\""),
    ("e_dch.rlc.window", "", "8"),
];

const OTHERS: &str = "others = { stations = 2, airtime = \"2 ms\" }";
const WIFI: &[Case] = &[
    ("aggregation.frames", "", "4"),
    ("aggregation.time", "", "\"1 ms\""),
    ("association", "", "\"4 s\""),
    ("channel.bandwidth", "", "\"40 MHz\""),
    ("channel.guard_interval", "", "\"400 ns\""),
    ("channel.max_transmissions", "downlink.bler = 0.5", "2"),
    ("channel.mcs", "", "3"),
    ("channel.standard", "", "\"802.11ac\""),
    ("channel.streams", "", "1"),
    ("delay", "", "\"9 ms\""),
    ("downlink.bler", "", "0.2"),
    ("others.airtime", OTHERS, "\"5 ms\""),
    ("others.stations", OTHERS, "7"),
    ("uplink.bler", "", "0.2"),
];

/// A model with a preset of it, what all runs have, and how much and how slow traffic is.
struct Subject {
    entry: Entry,
    base: toml::Table,
    rough: &'static str,
    load: f64,
    pace: u64,
}

/// All that a run gives.
#[derive(PartialEq)]
struct Run {
    out: Vec<(Direction, Departure)>,
    dropped: Vec<Dropped>,
    log: Memory,
}

impl Subject {
    fn new(preset: &str, rough: &'static str, load: f64, pace: u64) -> Self {
        let file = format!("{}/../../presets/{preset}.toml", env!("CARGO_MANIFEST_DIR"));
        let preset: toml::Table = std::fs::read_to_string(file).expect("a preset").parse().expect("a table");
        let mut base = preset["bearer"].as_table().expect("a table").clone();
        let model = base.remove("model").expect("a model");
        let entry = *Models::shipped().get(model.as_str().expect("a name")).expect("a model");
        Self { entry, base, rough, load, pace }
    }

    /// All that a run with these keys gives, or why there is none.
    fn run(&self, context: &str, change: Option<(&str, &str)>) -> Result<Run, String> {
        let mut table = self.base.clone();
        lay_over(&mut table, self.rough);
        lay_over(&mut table, context);
        if let Some((key, value)) = change {
            lay_over(&mut table, &format!("{key} = {value}"));
        }
        let model = self.entry.read(table.into()).map_err(|error| error.to_string())?;
        let bearer = model.build(&[None, None, None], Seed::new(3), "cell");
        bearer
            .map(|bearer| all_events(bearer, self.load, self.pace))
            .map_err(|error| format!("{}: {error}", error.field()))
    }

    /// Each key of `cases` changes a run, those of `without` are rejected, and the model has no
    /// other.
    fn check(&self, cases: &[&[Case]], without: &[&[Case]]) {
        let name = self.entry.name;
        self.changes(cases);
        for (key, context, value) in without.iter().copied().flatten() {
            let error = self.run(context, Some((key, value))).err().unwrap_or_default();
            assert!(
                error.contains(last(key)),
                "{name} accepts {key} = {value}, or its error does not name it: {error}"
            );
        }
        let given: BTreeSet<&str> = cases.iter().chain(without).copied().flatten().map(|(key, ..)| *key).collect();
        let mut keys = BTreeSet::new();
        leaves(self.entry.schema().as_value(), "", &mut keys);
        // `uplink` is another channel in place of `e_dch`.
        let other = |key: &str| self.base.contains_key("e_dch") && key.starts_with("uplink");
        let is_given = |key: &str| given.contains(key) || ELSEWHERE.contains(&key) || other(key);
        let missing: Vec<&String> = keys.iter().filter(|key| !is_given(key)).collect();
        assert!(missing.is_empty(), "{name} has keys without a case: {missing:?}");
    }

    /// Changes each key of `cases` by itself: each changes the run.
    fn changes(&self, cases: &[&[Case]]) {
        let name = self.entry.name;
        let (mut ignored, mut rejected) = (Vec::new(), Vec::new());
        // By the keys of the context.
        let mut runs = BTreeMap::new();
        for (key, context, value) in cases.iter().copied().flatten() {
            let before = runs.entry(*context).or_insert_with(|| match self.run(context, None) {
                Ok(before) => before,
                Err(error) => panic!("{name}: the context of `{key}` is rejected: {error}"),
            });
            match self.run(context, Some((key, value))) {
                Ok(after) if after == *before => ignored.push(format!("{key} = {value}")),
                Ok(_) => {}
                Err(error) => rejected.push(format!("{key} = {value}: {error}")),
            }
        }
        // A rejected value does not show what an accepted one does.
        assert!(rejected.is_empty(), "{name} rejects the values of these cases {rejected:#?}");
        assert!(ignored.is_empty(), "{name} accepts and ignores {ignored:#?}");
    }
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().expect("a key has a name")
}

/// Lays `text` over a table. Tables of the source of C/I, and of the RLC, replace
/// those that were there.
fn lay_over(table: &mut toml::Table, text: &str) {
    let more: toml::Table = text.parse().expect("TOML");
    // A soft handover has no gap.
    if text.starts_with("conditions.network.change = \"soft-handover\"") {
        let network = table["conditions"].get_mut("network").and_then(|network| network.as_table_mut());
        network.expect("the context has a network").remove("gap");
    }
    for (replaced, whole) in [("conditions", "conditions = {"), ("rlc", "rlc = {")] {
        if text.contains(whole) {
            table.remove(replaced);
        }
    }
    overlay(table, &more);
}

/// The keys of a schema. Queues and header compression have tests of their own.
fn leaves(schema: &Value, at: &str, keys: &mut BTreeSet<String>) {
    if ["queue", "header_compression"].contains(&last(at)) {
        return;
    }
    let forms = ["anyOf", "oneOf"].iter().flat_map(|form| schema[*form].as_array()).flatten();
    let tables: Vec<&Value> = forms.chain([schema]).filter(|form| form["properties"].is_object()).collect();
    for (name, value) in tables.iter().flat_map(|table| table["properties"].as_object()).flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        leaves(value, &path, keys);
    }
    if tables.is_empty() {
        keys.insert(at.to_owned());
    }
}

/// IPv4 and UDP headers: each fourth packet belongs to a call.
struct Calls;

impl SegmentLookup for Calls {
    fn segment(&self, _: Slot) -> Option<SegmentInfo> {
        None
    }

    fn headers(&self, _: Direction, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let (dscp, port) = match packet.id % 8 {
            0 => (46, 5001u16),
            4 => (0, 5004),
            _ => (0, 5001),
        };
        let mut bytes = [0; 28];
        (bytes[0], bytes[1], bytes[9]) = (0x45, dscp << 2, 17);
        bytes[20..22].copy_from_slice(&port.to_be_bytes());
        out.extend_from_slice(&bytes);
        true
    }
}

/// Three mobiles with much to send and to get at first, one of them out of reach for a while;
/// later with packets after pauses of many lengths, from a few milliseconds to minutes.
fn all_events(mut bearer: Box<dyn Bearer>, load: f64, pace: u64) -> Run {
    let mut packets = Vec::new();
    // Packets from the mobiles connect all of them at once.
    for (user, down, up) in [(0, 800.0, 120.0), (1, 600.0, 5.0), (2, 700.0, 5.0)] {
        packets.extend((0..(up * load) as u64 + 1).map(|_| (0, Direction::Up, user, 1400)));
        packets.extend((0..(down * load) as u64).map(|_| (0, Direction::Down, user, 1400)));
    }
    packets.push((250 * pace, Direction::Down, 2, 100));
    let mut pauses = Seed::new(7).stream("pauses");
    let mut at = 3_000 * pace;
    for number in 0..80 {
        let longest = [300, 3_000, 30_000, 90_000][number % 4];
        at += pauses.below(longest * pace.min(4));
        let direction = if pauses.below(3) == 0 { Direction::Up } else { Direction::Down };
        packets.push((at, direction, pauses.below(3) as u16, 40 + pauses.below(1200) as u32));
    }
    // One comes while the connection of NR is suspended.
    for pause in [60_000, 12_000, 11_000] {
        at += pause;
        packets.push((at, Direction::Up, 2, 200));
    }
    let (mut log, mut dropped, mut out) = (Memory::default(), Vec::new(), Vec::new());
    let mut cx = Context::new(Some(&mut log), &mut dropped, ComponentId(0));
    cx.with_segments(&Calls);
    let outage = Change::Outage(Span::from_millis(800 * pace));
    let mut outage = Some(BearerCommand { user: Some(UserId::new(1)), ..BearerCommand::from(outage) });
    for (id, (at, direction, user, size)) in (0..).zip(packets) {
        let now = Instant::ZERO + Span::from_millis(at);
        out.extend(std::iter::from_fn(|| bearer.pop(now, &mut cx)));
        bearer.push(now, direction, common::packet(id, user, size), &mut cx);
        if let Some(outage) = outage.take_if(|_| at > 0) {
            bearer.command(now, &outage, &mut cx).expect("every bearer has outages");
        }
    }
    out.extend(std::iter::from_fn(|| bearer.pop(Instant::ZERO + Span::from_millis(at + 600_000), &mut cx)));
    Run { out, dropped, log }
}

#[test]
fn each_key_of_lte_changes_a_run_or_is_rejected() {
    Subject::new("lte-20mhz", ROUGH, 1.0, 1)
        .check(&[OFDMA, LTE, CONDITIONS], &[NO_CONFIGURED, NO_FILE, NO_FADING, HARD_HANDOVER]);
}

#[test]
fn each_key_of_lte_m_changes_a_run_or_is_rejected() {
    // The mobile has one layer, the narrowband no PUCCH, and requests are longer.
    let has = |(key, ..): &&Case| {
        !["cell.carriers", "cell.pucch_blocks", "mobile.layers", "mobile.duplex"].contains(key)
            && !key.contains("prescheduling")
            && !key.contains("background")
    };
    let context = |key, context| match key {
        // One at a time has room.
        "cell.averaging_time" | "cell.scheduler" => FADING_MODE_B,
        _ if context == UNHEARD => UNHEARD_LTE_M,
        _ => context,
    };
    let common = OFDMA.iter().filter(has).map(|(key, before, value)| (*key, context(*key, *before), *value));
    let common: Vec<Case> = common.collect();
    Subject::new("lte-cat-m1", NARROW, 0.05, 4)
        .check(&[&common, LTE_M, CONDITIONS], &[NO_CONFIGURED, NOT_LTE_M, NO_FILE, NO_FADING, HARD_HANDOVER]);
}

#[test]
fn each_key_of_nr_changes_a_run_or_is_rejected() {
    let of_tdd: Vec<Case> = OFDMA.iter().copied().filter(|(key, ..)| *key != "mobile.duplex").collect();
    Subject::new("nr-n78-100mhz-sa", ROUGH, 4.0, 1)
        .check(&[&of_tdd, NR, CONDITIONS], &[HALF_DUPLEX, NO_FILE, NO_FADING, HARD_HANDOVER]);
    Subject::new("nr-redcap", ROUGH, 1.0, 1).changes(&[HALF_DUPLEX]);
}

#[test]
fn each_key_of_nb_iot_changes_a_run_or_is_rejected() {
    Subject::new("nb-iot", COVERAGE, 0.02, 10).check(&[NB_IOT, CONDITIONS], &[NO_FILE, NO_FADING, HARD_HANDOVER]);
}

#[test]
fn each_key_of_hspa_changes_a_run_or_is_rejected() {
    Subject::new("hspa-plus-42", HSPA_ROUGH, 1.0, 1).check(&[HSPA, CONDITIONS, SOFT_HANDOVER], &[NO_FILE]);
}

#[test]
fn each_key_of_wifi_changes_a_run_or_is_rejected() {
    Subject::new("wifi-n", "", 1.0, 1).check(&[WIFI], &[]);
}
