//! Settings: serialisation, and invalid values.

use airpath_core::{Bytes, Span};
use airpath_tcp::{
    Algorithm, Config, Counting, HyStartVariant, InitialWindow, Limit, PartialAcks, Profile, WindowClamp,
};

fn read(change: impl FnOnce(&mut toml::Table)) -> Result<Config, String> {
    let mut table = toml::Table::try_from(Profile::Linux6.config()).expect("settings are a table");
    change(&mut table);
    table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

#[test]
fn every_profile_goes_through_text() {
    for profile in Profile::ALL {
        let config = profile.config();
        assert_eq!(config.check(), Ok(()), "{profile}");
        let text = toml::to_string(&config).expect("settings have a text");
        assert_eq!(toml::from_str::<Config>(&text).as_ref(), Ok(&config), "{text}");
        assert_eq!(profile.name().parse(), Ok(profile));
    }
    assert_eq!(
        "linux-7".parse::<Profile>().expect_err("no such profile").to_string(),
        "unknown TCP profile `linux-7`: use ns2-newreno, windows-nt4, windows-xp, linux-2.0, linux-2.4 or linux-6"
    );
}

#[test]
fn each_stack_repairs_losses_in_its_own_way() {
    // The sources are in `src/profile`.
    for (profile, expected) in [
        (Profile::Ns2NewReno, "limited_transmit timeouts_add_up"),
        (Profile::WindowsNt4, ""),
        (Profile::WindowsXp, ""),
        (Profile::Linux20, ""),
        (Profile::Linux24, "adaptive_threshold fack limited_transmit prr eifel dsack"),
        (Profile::Linux6, "adaptive_threshold limited_transmit rack tlp prr frto eifel dsack"),
    ] {
        let recovery = profile.config().recovery;
        let mechanisms = [
            (recovery.adaptive_threshold, "adaptive_threshold"),
            (recovery.forward_acknowledgement, "fack"),
            (recovery.limited_transmit, "limited_transmit"),
            (recovery.timeouts_add_up, "timeouts_add_up"),
            (recovery.zero_window_freezes, "zero_window_freezes"),
            (recovery.loss_notification, "loss_notification"),
            (recovery.rack, "rack"),
            (recovery.tail_loss_probe, "tlp"),
            (recovery.proportional_reduction, "prr"),
            (recovery.forward_rto, "frto"),
            (recovery.eifel, "eifel"),
            (recovery.duplicate_undo, "dsack"),
        ];
        let found: Vec<&str> = mechanisms.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        assert_eq!(found.join(" "), expected, "{profile}");
        assert_eq!(recovery.burst == Limit::at_most(2), profile == Profile::Ns2NewReno);
        let windows = [Profile::WindowsNt4, Profile::WindowsXp].contains(&profile);
        assert_eq!(recovery.duplicate_threshold, if windows { 2 } else { 3 }, "{profile}");
        assert_eq!(
            recovery.partial_acks == PartialAcks::Impatient,
            [Profile::Ns2NewReno, Profile::Linux20].contains(&profile)
        );
    }
}

#[test]
fn each_stack_grows_and_halves_its_window_in_its_own_way() {
    for (profile, counting, whole, least) in [
        (Profile::Ns2NewReno, Counting::Acknowledgements, true, 1),
        (Profile::WindowsNt4, Counting::Acknowledgements, false, 2),
        (Profile::WindowsXp, Counting::Acknowledgements, false, 2),
        (Profile::Linux20, Counting::Acknowledgements, true, 2),
        (Profile::Linux24, Counting::Acknowledgements, false, 2),
        (Profile::Linux6, Counting::Bytes, true, 2),
    ] {
        let congestion = profile.config().congestion;
        let found = (congestion.counting, congestion.halve_to_whole_segments, congestion.least_window);
        assert_eq!(found, (counting, whole, least), "{profile}");
    }
    let cubic = Profile::Linux6.config().congestion;
    assert_eq!((cubic.algorithm, cubic.hystart), (Algorithm::Cubic, HyStartVariant::Linux));
    // One segment for twenty that are acknowledged, and a new rate each 31.25 ms.
    assert_eq!((cubic.growth_before_loss, cubic.update_interval), (Limit::at_most(20), Span::from_micros(31_250)));
    assert!(cubic.fast_convergence && cubic.reno_friendly && !cubic.reno_catch_up);
}

#[test]
fn windows_are_numbers_or_keywords() {
    let config = read(|table| {
        table.insert("window_limit".into(), 42.into());
        table.insert("initial_window".into(), "rfc3390".into());
    });
    let config = config.expect("both are known");
    assert_eq!((config.window_limit, config.initial_window), (Limit::at_most(42), InitialWindow::Rfc3390));
    let error = read(|table| {
        table.insert("window_limit".into(), 0.into());
    });
    let wanted = "invalid value: integer `0`, expected a number of segments above zero or \"unlimited\"";
    assert_eq!(error.expect_err("none is no window"), wanted);
    let error = read(|table| {
        table.insert("initial_window".into(), "large".into());
    });
    assert!(error.expect_err("that is no number").contains("or \"rfc3390\" or \"rfc6928\""));
}

#[test]
fn unknown_keys_are_refused() {
    let error = read(|table| {
        table.insert("windw".into(), 1.into());
    });
    assert!(error.expect_err("no such key").starts_with("unknown field `windw`, expected one of"));
}

#[test]
fn contradictory_settings_are_reported() {
    let broken = |change: fn(&mut Config)| {
        let mut config = Profile::Linux6.config();
        change(&mut config);
        config.check().expect_err("it makes no sense").field
    };
    assert_eq!(broken(|config| config.maximum_segment_size = 10), "maximum_segment_size");
    assert_eq!(broken(|config| config.receive_buffer.maximum = Bytes::new(1)), "receive_buffer.maximum");
    assert_eq!(broken(|config| config.receive_buffer.clamp = WindowClamp::at(Bytes::new(100))), "receive_buffer.clamp");
    assert_eq!(broken(|config| config.delayed_ack.every = 0), "delayed_ack.every");
    assert_eq!(broken(|config| config.delayed_ack.minimum = Span::from_secs(1)), "delayed_ack.minimum");
    assert_eq!(
        broken(|config| config.retransmission_timeout.maximum = Span::from_millis(1)),
        "retransmission_timeout.maximum"
    );
    let mut config = Profile::Linux6.config();
    config.timestamp_tick = Span::ZERO;
    assert_eq!(
        config.check().expect_err("a clock ticks").to_string(),
        "tcp settings: `timestamp_tick` is zero: a clock needs a tick, such as \"1 ms\""
    );
}
