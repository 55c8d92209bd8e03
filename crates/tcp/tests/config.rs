//! Settings: serialisation, and invalid values.

use airpath_core::{Bytes, Span};
use airpath_tcp::{Config, InitialWindow, Limit, Profile};

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
        "unknown TCP profile `linux-7`: use ns2-newreno, windows-xp, linux-2.4 or linux-6"
    );
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
