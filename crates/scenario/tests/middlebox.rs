//! The `[middlebox]` table: its place in the path, and its errors.

use crate::support::{assert_errors, component_names, read, resolved};
use airpath_core::Seed;
use airpath_scenario::Users;

const GOOD: &str = r#"format = 1

[access]
delay = "1 ms"

[middlebox]
kind = "ack-filter"
hold = "50 ms"

[bearer]
preset = "umts-dch-384"

[[mobile]]
count = 2

[[flow]]
kind = "ping"
"#;

#[test]
fn the_middlebox_is_between_fixed_network_and_cells() {
    let scenario = read(GOOD).expect("a valid scenario");
    let all = component_names(&scenario, Users::All);
    assert_eq!(all[..2], ["fixed", "middlebox"]);
    assert_eq!(all[all.len() - 5..], ["access-ping-0", "access-ping-1", "server", "mobile-0", "mobile-1"]);
    let without_access = read(&GOOD.replace("[access]\ndelay = \"1 ms\"\n", "")).expect("a valid scenario");
    let first = component_names(&without_access, Users::First);
    assert_eq!(
        (first.len(), &first[..2], &first[3..]),
        (5, &all[..2], &["server".to_owned(), "mobile-0".to_owned()][..])
    );
    assert_eq!(resolved(&scenario).middlebox, scenario.middlebox);
}

#[test]
fn the_path_of_one_mobile_has_no_access_link() {
    let path = read(GOOD).expect("a valid scenario").build_path(Seed::new(1), Users::First);
    let error = path.err().expect("`access` is refused").to_string();
    assert!(error.contains("a link has one path, but `access` gives each flow its own"), "{error}");
}

#[test]
fn errors_name_the_line_and_the_key() {
    let cases = [
        ("\"ack-filter\"", "\"ack-filtre\"", "s.toml:7: middlebox.kind:", "ack-filter"),
        ("kind = \"ack-filter\"\n", "", "middlebox", "kind"),
        ("hold = \"50 ms\"\n", "", "middlebox.hold:", "needs a time"),
        ("kind = \"ack-filter\"\nhold = \"50 ms\"", "kind = \"m-tcp\"", "middlebox.freeze_after:", "needs a time"),
        (
            "hold = \"50 ms\"",
            "hold = \"50 ms\"\nfreeze_after = \"1 s\"",
            "s.toml:9: middlebox.freeze_after:",
            "stops no",
        ),
        ("\"ack-filter\"", "\"snoop\"", "s.toml:8: middlebox.hold:", "holds no acknowledgements"),
        ("hold = \"50 ms\"", "hold = \"50 ms\"\ncache = \"9 kB\"", "s.toml:9: middlebox.cache:", "stores no packets"),
        (
            "kind = \"ack-filter\"\nhold = \"50 ms\"",
            "kind = \"snoop\"\ncache = \"1 kB\"",
            "s.toml:8: middlebox.cache:",
            "at least 1500 B",
        ),
        (
            "kind = \"ack-filter\"\nhold = \"50 ms\"",
            "kind = \"w-tcp\"\ncache = \"1 kB\"",
            "s.toml:8: middlebox.cache:",
            "at least 1500 B",
        ),
        ("\"50 ms\"", "\"50 m\"", "s.toml:8: middlebox.hold:", "unit"),
        ("\"50 ms\"", "\"0 s\"", "s.toml:8: middlebox.hold:", "longer than 0 s"),
        ("\"50 ms\"", "\"2 s\"", "s.toml:8: middlebox.hold:", "at most 1 s"),
        ("hold", "holt", "s.toml:8: middlebox.holt:", "unknown key"),
    ];
    assert_errors(GOOD, &cases);
}
