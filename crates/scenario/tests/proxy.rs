//! The `[proxy]` table: its place in the path, its defaults, and its errors.

mod support;

use airpath_core::{Bytes, Seed};
use airpath_proxy::BudgetSource;
use airpath_scenario::{ProxyConfig, Users};
use support::{assert_errors, read};

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
    let names = scenario.build_path(Seed::new(1), Users::All).expect("it can be built").topology.component_names();
    assert_eq!(names[..3], ["fixed", "proxy", "middlebox"]);
    let resolved = read(&scenario.to_toml()).expect("the resolved scenario is valid");
    assert_eq!(resolved.proxy, scenario.proxy);
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
    let resolved = read(&read(&text("[proxy]")).expect("valid").to_toml()).expect("the resolved scenario is valid");
    assert_eq!(resolved.proxy, Some(proxy("[proxy]")));
}

#[test]
fn errors_name_the_line_and_the_key() {
    let cases = [
        ("\"10 kB\"", "\"adaptiv\"", "s.toml:4: proxy.budget:", "`adaptive`"),
        ("\"10 kB\"", "\"10 KB\"", "s.toml:4: proxy.budget:", "did you mean `kB`?"),
        ("\"10 kB\"", "\"0 B\"", "s.toml:4: proxy.budget:", "no data"),
        ("\"5 kB\"", "\"1 kB\"", "s.toml:5: proxy.upload_budget:", "at least 3 kB"),
        ("\"early\"", "\"erly\"", "s.toml:6: proxy.accept:", "`early`"),
        ("\"fifo\"", "\"lifo\"", "s.toml:7: proxy.scheduler:", "`fifo`"),
        ("\"64 kB\"", "\"1 kB\"", "s.toml:8: proxy.buffer:", "at least 3 kB"),
        ("linux-2.4", "linux-2.5", "s.toml:9: proxy.profile:", "`linux-2.4`"),
        ("linux-2.4", "ns2-newreno", "s.toml:9: proxy.profile:", "without a handshake"),
        ("\"10 s\"", "\"0 s\"", "s.toml:10: proxy.open_timeout:", "zero time"),
        ("\"1 s\"", "\"0 s\"", "s.toml:11: proxy.idle_timeout:", "aborted"),
        ("[80, 8080]", "[]", "s.toml:14: proxy.http.ports:", "such as [80]"),
        ("8080", "80800", "s.toml:14: proxy.http.ports", "expected u16"),
        ("= 8\n", "= 0\n", "s.toml:15: proxy.http.pipelining:", "nonzero"),
        ("pipelining = 8", "image_quality = 101", "s.toml:15: proxy.http.image_quality:", "1 to 100"),
        ("pipelining = 8", "cache = \"9 kB\"", "s.toml:15: proxy.http.cache:", "remove it"),
        ("pipelining", "pipeline", "s.toml:15: proxy.http.pipeline:", "did you mean `pipelining`?"),
        ("scheduler", "sheduler", "s.toml:7: proxy.sheduler:", "did you mean `scheduler`?"),
    ];
    assert_errors(GOOD, &cases);
}
