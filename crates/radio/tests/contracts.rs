//! The contracts of a bearer (`airpath_link::testing`) on every kind of configuration.

use airpath_core::{Direction, Instant, Probability, Seed, Span};
use airpath_link::Bearer;
use airpath_link::queue::Queue;
use airpath_link::testing::{Arrival, Commands, Script, Traffic, contracts, idle_sleeps, order_kept};
use airpath_radio::common::link_adaptation::Combining;
use airpath_radio::common::shared_channel::scheduler::SchedulerName;
use airpath_radio::gsm::csd::{self, GsmCsd};
use airpath_radio::study::dch_simple::{self, DchSimple};
use airpath_radio::study::dedicated_channel::{Dch, ErrorUnit};
use airpath_radio::study::hs_dsch_simple::{self, HsDschSimple};
use airpath_radio::study::uplink::Uplink;
use proptest::prelude::*;

const HORIZON: Instant = Instant::from_nanos(600_000_000_000);

fn dch_config() -> impl Strategy<Value = Dch> {
    (
        (prop::sample::select(vec!["2 ms", "10 ms", "20 ms"]), 10u32..200, 1u32..14, any::<bool>()),
        (prop::sample::select(vec![0.0, 0.01, 0.3, 0.7]), 0u64..100_000, prop::option::of(1u32..4)),
        (any::<bool>(), 0u64..50_000, queue()),
    )
        .prop_map(
            |((tti, pdu, channels, together), (bler, retransmission, max_attempts), (in_sequence, delay, queue))| Dch {
                tti: tti.parse().expect("a time"),
                pdu: format!("{pdu} B").parse().expect("a size"),
                channels,
                error_unit: if together { ErrorUnit::Tti } else { ErrorUnit::Pdu },
                bler: Probability::new(bler).expect("within range"),
                retransmission_delay: Span::from_micros(retransmission),
                max_attempts,
                in_sequence,
                delay: Span::from_micros(delay),
                queue,
            },
        )
}

fn queue() -> impl Strategy<Value = Option<Queue>> {
    prop::sample::select(vec![
        None,
        Some(Queue::of_packets(5)),
        Some(Queue::of_packets(40)),
        toml::from_str(r#"discipline = "codel""#).ok(),
        toml::from_str(r#"discipline = "pie""#).ok(),
        toml::from_str(r#"bytes = "20 kB""#).ok(),
    ])
}

fn uplink() -> impl Strategy<Value = Uplink> {
    let link = r#"link = { rate = "64 kbit/s", delay = "20 ms", queue = { packets = 20 } }"#;
    let lossy = r#"link = { rate = "1 Mbit/s", delay = "1 ms", loss = 0.2 }"#;
    prop_oneof![
        prop::sample::select(vec![link, lossy]).prop_map(|text| toml::from_str(text).expect("an uplink")),
        dch_config().prop_map(Uplink::Dch),
    ]
}

fn hs_dsch_config() -> impl Strategy<Value = hs_dsch_simple::HsDsch> {
    (dch_config(), any::<bool>(), any::<bool>(), 0usize..5).prop_map(|(dch, chase, levels, scheduler)| {
        let scheduler = [
            SchedulerName::RoundRobin,
            SchedulerName::MaximumCi,
            SchedulerName::ProportionalFair,
            SchedulerName::LeastAttainedService,
            SchedulerName::Run2c,
        ][scheduler];
        hs_dsch_simple::HsDsch {
            tti: dch.tti,
            pdu: dch.pdu,
            pdus_per_tti: (!levels).then_some(dch.channels),
            bler: dch.bler,
            retransmission_delay: dch.retransmission_delay,
            max_attempts: dch.max_attempts,
            combining: if chase { Combining::Chase } else { Combining::None },
            cqi: chase.then_some(3),
            in_sequence: dch.in_sequence,
            delay: dch.delay,
            scheduler,
            averaging_time: None,
            flow_timeout: None,
            short_flow: None,
            queue: dch.queue,
            levels: levels.then(|| {
                let text = r#"
                    rates = ["900 kbit/s", "1800 kbit/s", "4 Mbit/s"]
                    rate_share = "cell"
                    classes = { near = [1, 4, 16], far = [70, 20, 10] }
                "#;
                toml::from_str(text).expect("levels")
            }),
        }
    })
}

fn classes(config: &hs_dsch_simple::Config, users: u16) -> Vec<Option<String>> {
    let class = |user| config.downlink.levels.as_ref().map(|_| ["near", "far"][user as usize % 2].to_owned());
    (0..users).map(class).collect()
}

fn modem() -> impl Strategy<Value = Option<csd::config::Modem>> {
    let v42 = "rate = \"9600 bit/s\"\nerror_control = \"v42\"\ndelay = \"20 ms\"\nzero_insertion = 0.016";
    let impatient = format!("{v42}\nattempts = 2\nwindow = 3\nframe = \"32 B\"\nacknowledgement_timer = \"300 ms\"");
    let plain = "rate = \"14.4 kbit/s\"\nerror_control = \"none\"\ndelay = \"20 ms\"";
    let lossy = |text: &str, frame_errors| format!("{text}\nframe_errors = {frame_errors}");
    let patient = format!("{v42}\nassembly = \"20 ms\"");
    let lines = [(v42, 0.0), (&patient, 0.1), (&impatient, 0.3), (plain, 0.0), (plain, 0.01)];
    let lines = lines.map(|(text, frame_errors)| lossy(text, frame_errors)).to_vec();
    prop::option::of(prop::sample::select(lines).prop_map(|text| toml::from_str(&text).expect("a modem")))
}

fn csd_radio() -> impl Strategy<Value = csd::config::Radio> {
    (
        (any::<bool>(), 1u32..5, 0u64..120, 0u64..50),
        (
            8u32..62,
            1u64..500,
            1u32..8,
            any::<bool>(),
            prop::sample::select(vec![None, Some(0.0), Some(0.01), Some(0.2)]),
        ),
    )
        .prop_map(|((is_slow, slots, interleaving, delay), (window, patience, attempts, selective, errors))| {
            let (interleaving, delay) = (Span::from_millis(interleaving), Span::from_micros(997 * delay));
            csd::config::Radio {
                channel: if is_slow { csd::config::Channel::F14_4 } else { csd::config::Channel::F9_6 },
                slots,
                interleaving,
                delay,
                window,
                acknowledgement_timer: (interleaving + delay) * 2 + Span::from_millis(40 + patience),
                attempts,
                recovery: [csd::config::Recovery::Reject, csd::config::Recovery::Selective][usize::from(selective)],
                frame_errors: errors.map(|errors| Probability::new(errors).expect("within range")),
                compression: (attempts % 2 > 0).then_some(1.5),
            }
        })
}

fn csd_config() -> impl Strategy<Value = csd::Config> {
    (prop::option::of(csd_radio()), modem(), any::<bool>(), (0u64..30_000, 0u32..200), (queue(), queue())).prop_map(
        |(radio, modem, before, (set_up, escaped), (down, up))| {
            let driving = "ci = \"9 dB\"\nmovement = { speed = \"50 km/h\", from = \"0 m\", to = \"2 km\", path = \"to-and-fro\" }\nfading = \"tu50\"\n[shadowing]\ndeviation = \"6 dB\"\ncorrelation_distance = \"20 m\"";
            let needs_conditions = radio.as_ref().is_some_and(|radio| radio.frame_errors.is_none());
            let conditions = needs_conditions.then(|| toml::from_str(driving).expect("conditions"));
            csd::Config {
            ppp: csd::config::Ppp {
                overhead: "8 B".parse().expect("a size"),
                escaped: Probability::new(f64::from(escaped) / 1000.0).expect("within range"),
                escaped_headers: (escaped % 2 > 0).then(|| Probability::new(0.25).expect("within range")),
                compressed_header: (escaped % 3 > 0).then(|| "10 B".parse().expect("a size")),
            },
            radio: radio.or_else(|| {
                let text =
                    "channel = \"tch-f9.6\"\nslots = 1\ninterleaving = \"110 ms\"\ndelay = \"40 ms\"\nwindow = 61
                    acknowledgement_timer = \"480 ms\"\nattempts = 6\nrecovery = \"selective\"\nframe_errors = 0.05";
                modem.is_none().then(|| toml::from_str(text).expect("a radio link"))
            }),
            serial: (set_up % 2 > 0)
                .then(|| csd::config::Serial { rate: "9600 bit/s".parse().expect("a rate") }),
            modem,
            conditions,
            call: csd::config::Call {
                dial: if before { csd::config::Dial::Before } else { csd::config::Dial::FirstPacket },
                set_up: Span::from_millis(set_up),
            },
            downlink: csd::config::Direction { queue: down },
            uplink: csd::config::Direction { queue: up },
        }},
    )
}

fn traffic(users: u16, gap: Span) -> Traffic {
    Traffic { packets: 150, gap, users, directions: &Direction::BOTH, ..Traffic::default() }
}

fn dch(config: &dch_simple::Config, users: u16) -> impl Fn() -> DchSimple {
    move || DchSimple::new(config, usize::from(users), Seed::new(5), "cell").expect("sound parameters")
}

fn cell(config: &hs_dsch_simple::Config, users: u16) -> impl Fn() -> HsDschSimple {
    move || HsDschSimple::new(config, &classes(config, users), Seed::new(5), "cell").expect("sound parameters")
}

fn assert_contracts<B: Bearer>(make: impl Fn() -> B, users: u16, arrivals: &[Arrival], in_order: bool) {
    assert_contracts_until(make, users, arrivals, in_order, HORIZON);
}

fn assert_contracts_until<B: Bearer>(
    make: impl Fn() -> B,
    users: u16,
    arrivals: &[Arrival],
    in_order: bool,
    horizon: Instant,
) {
    let middle = arrivals[arrivals.len() * 2 / 3].at;
    let commands = Commands { commands: 12, until: middle, users, classes: &["near", "far"], reorder: !in_order };
    let commands = commands.draw(middle.as_nanos());
    for script in [Script { arrivals, commands: &[] }, Script { arrivals, commands: &commands }] {
        contracts(&make, script, horizon);
        contracts(&make, script, middle);
        if in_order {
            order_kept(&make, script, horizon);
        }
    }
    idle_sleeps(&make, arrivals, horizon);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    #[test]
    fn dedicated_channels_keep_the_contracts(
        downlink in dch_config(), uplink in uplink(), users in 1u16..4, gap in 1u64..60, seed: u64,
    ) {
        let in_order = downlink.in_sequence && !matches!(&uplink, Uplink::Dch(dch) if !dch.in_sequence);
        let config = dch_simple::Config { downlink, uplink };
        let arrivals = traffic(users, Span::from_millis(gap)).arrivals(seed);
        assert_contracts(dch(&config, users), users, &arrivals, in_order);
    }

    #[test]
    fn cells_keep_the_contracts(
        downlink in hs_dsch_config(), uplink in uplink(), users in 1u16..6, gap in 1u64..60, seed: u64,
    ) {
        let in_order = downlink.in_sequence && !matches!(&uplink, Uplink::Dch(dch) if !dch.in_sequence);
        let config = hs_dsch_simple::Config { downlink, uplink };
        let arrivals = traffic(users, Span::from_millis(gap)).arrivals(seed);
        assert_contracts(cell(&config, users), users, &arrivals, in_order);
    }
    #[test]
    fn calls_keep_the_contracts(config in csd_config(), users in 1u16..4, gap in 1u64..3_000, seed: u64) {
        // Some of these calls need minutes for a packet.
        let (horizon, gap) = (Instant::from_nanos(5_000_000_000_000), Span::from_millis(gap));
        let arrivals = Traffic { packets: 24, sizes: (40, 600), ..traffic(users, gap) }.arrivals(seed);
        let make = || GsmCsd::new(&config, usize::from(users), Seed::new(5), "cell").expect("sound parameters");
        assert_contracts_until(make, users, &arrivals, true, horizon);
    }
}
