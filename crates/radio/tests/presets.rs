//! The presets as they are shipped: each is complete, has a source for each number, and carries the
//! rate of its title.

use std::collections::BTreeSet;
use std::path::PathBuf;

use airpath_core::{Bitrate, Direction, Instant, Probability, Seed, Span};
use airpath_link::Bearer;
use airpath_link::testing::{Arrival, Polling, Traffic, drive};
use airpath_radio::conditions::Profile;
use airpath_radio::endc;
use airpath_radio::gsm::{csd, gprs};
use airpath_radio::lte;
use airpath_radio::ltem;
use airpath_radio::nbiot;
use airpath_radio::nr;
use airpath_radio::study::{dch_simple, hs_dsch_simple};
use airpath_radio::umts::{hsdpa, r99};
use airpath_radio::wifi;
use toml::{Table, Value};

fn presets() -> Vec<(String, Table)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../presets");
    let mut presets: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of presets")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a text");
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            let table = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, table)
        })
        .collect();
    presets.sort_by(|a, b| a.0.cmp(&b.0));
    presets
}

/// The dotted paths of all leaves.
fn leaves(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                leaves(value, &path, found);
            }
        }
        _ => {
            found.insert(at.to_owned());
        }
    }
}

#[test]
fn thresholds_of_egprs_are_where_the_goodputs_of_neighbours_cross() {
    let (_, mut preset) = presets().into_iter().find(|(name, _)| name == "egprs-4+1").expect("the preset");
    for direction in ["downlink", "uplink"] {
        let table = preset["bearer"][direction].as_table_mut().expect("a table").remove("adaptation");
        let adaptation: gprs::Adaptation = table.expect("an adaptation").try_into().expect("sound");
        let thresholds = adaptation.ci.expect("by C/I").thresholds;
        for (pair, threshold) in adaptation.schemes.windows(2).zip(thresholds) {
            let crossing = gprs::crossing(pair[0], pair[1], Profile::Tu50);
            assert!((threshold.get() - crossing).abs() <= 0.25, "{direction}: {} at {crossing} dB", pair[1]);
        }
    }
}

#[test]
fn every_parameter_has_a_source_and_every_source_a_parameter() {
    for (name, preset) in presets() {
        assert_eq!(preset["format"].as_integer(), Some(1), "{name}");
        assert_eq!(preset["name"].as_str(), Some(name.as_str()), "{name}");
        assert!(preset["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
        let mut parameters = BTreeSet::new();
        leaves(&preset["bearer"], "", &mut parameters);
        assert!(parameters.remove("model"), "{name}");
        let sources = preset["source"].as_table().expect("a table");
        let named: BTreeSet<String> = sources.keys().cloned().collect();
        assert_eq!(parameters, named, "{name}");
        assert!(sources.values().all(|source| source.as_str().is_some_and(|source| source.len() > 5)), "{name}");
    }
}

fn read<T: serde::de::DeserializeOwned>(parameters: Table) -> T {
    airpath_radio::model::read(parameters.into()).expect("a preset has sound parameters")
}

/// The bearer of a preset for `users`, without errors.
fn error_free(name: &str, bearer: &Table, users: usize) -> Option<Box<dyn Bearer>> {
    let mut parameters = bearer.clone();
    let model = parameters.remove("model").expect("a model");
    match model.as_str() {
        Some("dch-simple") => {
            let mut config: dch_simple::Config = read(parameters);
            config.downlink.bler = Probability::NEVER;
            Some(Box::new(dch_simple::DchSimple::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("gsm-csd") => {
            let mut config: csd::Config = read(parameters);
            if let Some(radio) = &mut config.radio {
                radio.frame_errors = Some(Probability::NEVER);
                config.conditions = None;
            }
            Some(Box::new(csd::GsmCsd::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("umts") => {
            let mut config: r99::Config = read(parameters);
            config.downlink.bler = Probability::NEVER;
            config.uplink.bler = Probability::NEVER;
            Some(Box::new(r99::Umts::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("hs-dsch-simple") => {
            let mut config: hs_dsch_simple::Config = read(parameters);
            config.downlink.bler = Probability::NEVER;
            let classes: Vec<_> = match &config.downlink.levels {
                Some(levels) => levels.classes.keys().cycle().take(users).cloned().map(Some).collect(),
                None => vec![None; users],
            };
            Some(Box::new(hs_dsch_simple::HsDschSimple::new(&config, &classes, Seed::new(1), "cell").expect(name)))
        }
        Some("hsdpa") => {
            let mut config: hsdpa::Config = read(parameters);
            config.downlink.bler = Some(Probability::NEVER);
            config.uplink.iter_mut().for_each(|uplink| uplink.bler = Probability::NEVER);
            config.e_dch.iter_mut().for_each(|e_dch| e_dch.bler = Probability::NEVER);
            Some(Box::new(hsdpa::Hsdpa::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("lte-cell") => {
            let mut config: lte::Config = read(parameters);
            config.downlink.bler = Some(Probability::NEVER);
            config.uplink.bler = Some(Probability::NEVER);
            Some(Box::new(lte::Lte::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("lte-m") => {
            let mut config: ltem::Config = read(parameters);
            config.downlink.bler = Some(Probability::NEVER);
            config.uplink.bler = Some(Probability::NEVER);
            config.pdcp.queue = None;
            Some(Box::new(ltem::LteM::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("nr-cell") => {
            let mut config: nr::Config = read(parameters);
            config.downlink.bler = Some(Probability::NEVER);
            config.uplink.bler = Some(Probability::NEVER);
            Some(Box::new(nr::Nr::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("en-dc") => {
            let mut config: endc::Config = read(parameters);
            config.master.downlink.bler = Some(Probability::NEVER);
            config.master.uplink.bler = Some(Probability::NEVER);
            config.secondary.downlink.bler = Some(Probability::NEVER);
            config.secondary.uplink.bler = Some(Probability::NEVER);
            Some(Box::new(endc::EnDc::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("nb-iot") => {
            let mut config: nbiot::Config = read(parameters);
            config.downlink.bler = Some(Probability::NEVER);
            config.uplink.bler = Some(Probability::NEVER);
            config.queue = None;
            Some(Box::new(nbiot::NbIot::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("wifi") => {
            let mut config: wifi::Config = parameters.try_into().unwrap_or_else(|e| panic!("{name}: {e}"));
            (config.downlink.bler, config.uplink.bler) = (Probability::NEVER, Probability::NEVER);
            Some(Box::new(wifi::Wifi::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        Some("gprs") => {
            let mut config: gprs::Config = read(parameters);
            config.conditions = toml::from_str("ci = \"90 dB\"").expect("conditions");
            Some(Box::new(gprs::Gprs::new(&config, users, Seed::new(1), "cell").expect(name)))
        }
        _ => None,
    }
}

#[test]
fn the_radio_bearers_carry_the_rates_of_their_names() {
    let expected = [
        ("umts-dch-64", 64_000),
        ("umts-dch-128", 128_000),
        ("umts-dch-384", 384_000),
        ("hs-dsch-360", 360_000),
        ("hs-dsch-384", 384_000),
        ("hs-dsch-1152-shared", 1_152_000),
    ];
    let presets = presets();
    for (name, bps) in expected {
        let (_, preset) = presets.iter().find(|(other, _)| other == name).expect(name);
        let bearer = preset["bearer"].as_table().expect("a table");
        let rate = Bitrate::from_bps(bps);
        // One long burst in whole PDUs of either size: 960 B are 30 of 32 B, 32 of 30 B, 24 of 40
        // B.
        let burst = burst(100, 960);
        let mut bearer = error_free(name, bearer, 1).expect("a radio bearer");
        let departures = drive(&mut bearer, &burst, Polling::AtEnd, Instant::from_nanos(100_000_000_000)).departures;
        let (first, last) = (departures[0].1.due, departures[99].1.due);
        let measured = last.since(first).as_secs_f64();
        let nominal = 99.0 * rate.time_for("960 B".parse().expect("a size")).as_secs_f64();
        // The first may end anywhere within a TTI.
        assert!((measured - nominal).abs() <= 0.020, "{name}: {measured} s instead of {nominal} s");
    }
}

fn burst(packets: usize, size: u32) -> Vec<Arrival> {
    let traffic = Traffic { packets, sizes: (size, size), ..Traffic::default() };
    traffic.arrivals(1).into_iter().map(|arrival| Arrival { at: Instant::ZERO, ..arrival }).collect()
}

#[test]
fn every_radio_preset_makes_a_bearer_for_many() {
    for (name, preset) in presets() {
        let Some(mut bearer) = error_free(&name, preset["bearer"].as_table().expect("a table"), 7) else { continue };
        let traffic = Traffic {
            packets: 500,
            users: 7,
            gap: Span::from_millis(20),
            directions: &Direction::BOTH,
            ..Traffic::default()
        };
        // 55 kB for each of seven users, where the slowest carries 1 kB/s.
        let outcome = drive(&mut bearer, &traffic.arrivals(1), Polling::OnTime, Instant::from_nanos(1_000_000_000_000));
        assert_eq!(outcome.departures.len(), 500, "{name}: nothing is lost");
    }
}
