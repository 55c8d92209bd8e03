//! The `[proxy]` table: its place in the path, its defaults, and its errors.

use crate::support::{assert_errors, component_names, read, resolved};
use airpath_core::Bytes;
use airpath_proxy::BudgetSource;
use airpath_scenario::{ProxyConfig, Scenario, Users};

const GOOD: &str = r#"format = 1

[proxy]
budget = "10 kB"
upload_budget = "5 kB"
accept = "early"
scheduler = "fifo"
buffer = "64 kB"
profile = "linux-2.4"
open_timeout = "10 s"
idle_timeout = "1 s"

[proxy.queue]
rate = "100 kbit/s"
target = "20 ms"
interval = "500 ms"
ecn = false
bytes = "100 kB"

[proxy.http]
ports = [80, 8080]
pipelining = 8

[middlebox]
kind = "ack-filter"
hold = "50 ms"

[bearer]
preset = "umts-dch-384"

[[flow]]
kind = "ping"
"#;

#[test]
fn the_proxy_is_between_fixed_network_and_middlebox() {
    let scenario = read(GOOD).expect("a valid scenario");
    assert_eq!(component_names(&scenario, Users::All)[..3], ["fixed", "proxy", "middlebox"]);
    assert_eq!(resolved(&scenario).proxy, scenario.proxy);
}

#[test]
fn every_key_has_a_default() {
    let text = |table| format!("format = 1\n{table}\n[bearer]\npreset = \"umts-dch-384\"\n");
    let proxy = |table| read(&text(table)).expect("a valid scenario").proxy.expect("there is one");
    let fixed = ProxyConfig::new(Bytes::new(10_000));
    assert_eq!(proxy("[proxy]\nbudget = \"10 kB\""), fixed);
    assert_eq!(proxy("[proxy]"), ProxyConfig { budget: BudgetSource::Adaptive, ..fixed.clone() });
    assert_eq!(proxy("[proxy]\nbudget = \"adaptive\""), proxy("[proxy]"));
    let none = proxy("[proxy]\nbudget = \"none\"");
    assert_eq!(none, ProxyConfig { budget: BudgetSource::None, ..fixed });
    assert_eq!(resolved(&read(&text("[proxy]")).expect("valid")).proxy, Some(proxy("[proxy]")));
}

#[test]
fn a_preset_is_below_the_keys_of_the_table() {
    let text = |table| format!("format = 1\n[bearer]\npreset = \"umts-dch-384\"\n[proxy]\n{table}\n");
    let proxy = |table| read(&text(table)).expect("a valid scenario").proxy.expect("there is one");
    assert_eq!(proxy("preset = \"adaptive\""), proxy(""));
    assert_eq!(proxy("preset = \"i-tcp\"").budget, BudgetSource::None);
    let changed = proxy("preset = \"gprs-clamp\"\nbudget = \"12 kB\"");
    assert_eq!(changed.budget, BudgetSource::Fixed(Bytes::new(12_000)));
    assert_eq!(changed.profile.name(), "linux-2.4");
    let http = proxy("preset = \"http\"\nhttp.pipelining = 3").http.expect("there is a table");
    assert_eq!((http.pipelining.get(), http.compression), (3, true));

    let folder = std::env::temp_dir().join(format!("airpath-proxy-preset-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let with_file = |content: &str| {
        std::fs::write(folder.join("mine.toml"), content).unwrap();
        Scenario::read(&text("preset = \"./mine.toml\"\nbuffer = \"64 kB\""), "s.toml", &folder, &[])
    };
    // A file with more than the table, such as the configuration of a router.
    let own = with_file("mobiles = [\"10.0.0.0/8\"]\n[proxy]\npreset = \"i-tcp\"\nscheduler = \"fifo\"").unwrap();
    let own = own.proxy.expect("there is one");
    assert_eq!((own.budget, own.buffer), (BudgetSource::None, Bytes::new(64_000)));
    for (content, expected) in [
        ("format = 1", "./mine.toml: proxy: this table is missing; add `[proxy]`"),
        ("[proxy]\npreset = \"b.toml\"", "./mine.toml:2: proxy.preset: `b.toml` is another file"),
        ("[proxy]\nbudjet = 1", "./mine.toml:2: proxy.budjet: unknown key; did you mean `budget`?"),
    ] {
        let error = with_file(content).expect_err("it is wrong").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_name_the_line_and_the_key() {
    let cases = [
        ("budget = \"10 kB\"", "preset = \"i-tpc\"", "s.toml:4: proxy.preset:", "did you mean `i-tcp`?"),
        ("budget = \"10 kB\"", "preset = \"a/b.toml\"", "s.toml:4: proxy.preset:", "cannot be read"),
        ("budget = \"10 kB\"", "preset = 3", "s.toml:4: proxy.preset:", "invalid type"),
        ("\"10 kB\"", "\"adaptiv\"", "s.toml:4: proxy.budget:", "`adaptive`"),
        ("\"10 kB\"", "\"10 KB\"", "s.toml:4: proxy.budget:", "did you mean `kB`?"),
        ("\"10 kB\"", "\"0 B\"", "s.toml:4: proxy.budget:", "no data"),
        ("\"5 kB\"", "\"1 kB\"", "s.toml:5: proxy.upload_budget:", "at least 3 kB"),
        ("\"early\"", "\"erly\"", "s.toml:6: proxy.accept:", "`early`"),
        ("\"fifo\"", "\"lifo\"", "s.toml:7: proxy.scheduler:", "`fifo`"),
        ("\"64 kB\"", "\"1 kB\"", "s.toml:8: proxy.buffer:", "at least 3 kB"),
        ("linux-2.4", "linux-24", "s.toml:9: proxy.profile:", "`linux-2.4`"),
        ("linux-2.4", "ns2-newreno", "s.toml:9: proxy.profile:", "without a handshake"),
        ("\"10 s\"", "\"0 s\"", "s.toml:10: proxy.open_timeout:", "zero time"),
        ("\"1 s\"", "\"0 s\"", "s.toml:11: proxy.idle_timeout:", "aborted"),
        ("\"100 kbit/s\"", "\"0 bit/s\"", "s.toml:14: proxy.queue.rate:", "above zero"),
        ("\"100 kbit/s\"", "\"bear\"", "s.toml:14: proxy.queue.rate:", "bear"),
        ("\"500 ms\"", "\"0 s\"", "s.toml:16: proxy.queue.interval:", "RFC 8289"),
        ("\"100 kB\"", "\"60 kB\"", "s.toml:18: proxy.queue.bytes:", "largest packet"),
        ("[80, 8080]", "[]", "s.toml:21: proxy.http.ports:", "such as [80]"),
        ("8080", "80800", "s.toml:21: proxy.http.ports", "from 0 to 65535"),
        ("= 8\n", "= 0\n", "s.toml:22: proxy.http.pipelining:", "nonzero"),
        ("pipelining = 8", "image_quality = 101", "s.toml:22: proxy.http.image_quality:", "1 to 100"),
        ("pipelining = 8", "cache = \"9 kB\"", "s.toml:22: proxy.http.cache:", "remove it"),
        ("pipelining = 8", "prefetch = 3", "s.toml:22: proxy.http.prefetch:", "add `cache`"),
        ("pipelining = 8", "dictionaries = \"9 kB\"", "s.toml:22: proxy.http.dictionaries:", "remove it"),
        ("pipelining = 8", "address = \"127.0.0.1:80\"", "s.toml:22: proxy.http.address:", "no host has"),
        ("pipelining = 8", "address = \"10.99.0.1:0\"", "s.toml:22: proxy.http.address:", "no host has"),
        ("pipelining = 8", "resolver = \"10.0.0.1:53\"", "s.toml:22: proxy.http.resolver:", "add `address`"),
        (
            "pipelining = 8",
            "address = \"10.99.0.1:80\"\nresolver = \"[2001:db8::1]:53\"",
            "s.toml:23: proxy.http.resolver:",
            "same IP version",
        ),
        ("pipelining = 8", "connect_ports = [22]", "s.toml:22: proxy.http.connect_ports:", "add `address`"),
        (
            "pipelining = 8",
            "address = \"10.99.0.1:80\"\nconnect_ports = [443, 0]",
            "s.toml:23: proxy.http.connect_ports:",
            "the default is [443]",
        ),
        ("pipelining", "pipeline", "s.toml:22: proxy.http.pipeline:", "did you mean `pipelining`?"),
        ("scheduler", "sheduler", "s.toml:7: proxy.sheduler:", "did you mean `scheduler`?"),
    ];
    assert_errors(GOOD, &cases);
}

#[test]
fn the_budget_of_a_bearer_does_not_depend_on_its_queue_discipline() {
    let budget = |queue: &str| {
        let text = format!(
            "format = 1\n[proxy]\nbudget = \"bearer\"\n[bearer]\npreset = \"wired\"\nuplink = {{ rate = \"10 Mbit/s\", \
             delay = \"20 ms\", queue = {{ {queue} }} }}\ndownlink = {{ rate = \"2 Mbit/s\", delay = \"20 ms\", queue = {{ \
             {queue} }} }}\n"
        );
        let proxy = read(&text).expect("sound").proxy.expect("a proxy");
        let BudgetSource::Fixed(bytes) = proxy.budget else { panic!("it was measured: {:?}", proxy.budget) };
        bytes
    };
    let expected = budget("packets = 100");
    for discipline in ["codel", "fq-codel", "pie", "dualpi2", "cake"] {
        let limit = if discipline == "cake" { "bytes = \"150 kB\"" } else { "packets = 100" };
        assert_eq!(budget(&format!("discipline = \"{discipline}\", {limit}")), expected, "{discipline}");
    }
}
