//! Page files and flows of kind `page`: what is read, and what the errors name.

use std::path::Path;

use airpath_scenario::{Origin, ReadPage, Scenario, page};

fn flow(keys: &str) -> Result<Scenario, String> {
    let text = format!("format = 1\n[bearer]\npreset = \"wired\"\n[[flow]]\nkind = \"page\"\n{keys}");
    Scenario::read(&text, "s.toml", Path::new(""), &[]).map_err(|error| error.to_string())
}

fn error(keys: &str) -> String {
    flow(keys).expect_err("it is wrong")
}

fn shipped(name: &str) -> ReadPage {
    ReadPage::load(name, Path::new(""), &Origin::Default).expect("it is shipped")
}

/// The tables of the sources: objects and bytes.
#[test]
fn shipped_pages_have_the_numbers_of_their_sources() {
    let of = |name| {
        let page = shipped(name).page;
        (page.objects.len(), page.bytes(false))
    };
    // gprs-proxy, Table 1 and Fig. 17.
    let site = shipped("static-site").page;
    let images = &site.objects[1..];
    let within = |least: u64, most: u64| images.iter().filter(|image| (least..most).contains(&image.size)).count();
    assert_eq!((site.objects.len(), site.objects[0].size), (46, 40_000));
    assert_eq!(
        [within(200, 2_000), within(2_000, 5_000), within(5_000, 10_000), within(10_000, 99_000)],
        [20, 20, 4, 1]
    );
    assert_eq!(of("front-page").0, 109);
    // umts-live, Table VI, in kB of 1024 B.
    let rounded = |name| {
        let (objects, bytes) = of(name);
        (objects, (bytes as f64 / 102.4).round() / 10.0)
    };
    assert_eq!(rounded("umts-live-yahoo"), (15, 102.4));
    assert_eq!(rounded("umts-live-star-wars"), (70, 430.2));
    assert_eq!(rounded("umts-live-cnn"), (70, 178.1));
    // HTTP Archive, October 2024; rounding of single sizes.
    let median = shipped("median-2024").page;
    assert_eq!((median.objects.len(), median.bytes(true).abs_diff(2_652 * 1_024) < 100), (71, true));
    assert_eq!(page::names().len(), 6);
}

#[test]
fn errors_of_a_page_name_file_line_and_field() {
    let page = |text: &str| {
        let text = format!("format = 1\nname = \"p\"\n{text}");
        ReadPage::parse(&text, "my.page").expect_err("it is wrong").to_string()
    };
    let object =
        |name: &str, more: &str| format!("[[object]]\nname = \"{name}\"\ntype = \"image\"\nsize = \"1 kB\"\n{more}");
    let two = |more: &str| page(&format!("{}{}", object("a", ""), object("b", more)));
    assert_eq!(two("referrer = \"c\"\n"), "my.page:11: object.1.referrer: there is no object `c`; add it");
    assert!(two("referrer = \"b\"\n").starts_with("my.page:11: object.1.referrer: `b` is found only from itself"));
    assert!(two("at = \"1001 B\"\n").starts_with("my.page:11: object.1.at: `a` has only 1 kB"));
    assert!(two("sise = 1\n").starts_with("my.page:11: object.1.sise: unknown key; did you mean `size`?"));
    assert!(two("wait = \"1 kB\"\n").starts_with("my.page:11: object.1.wait: "));
    assert!(page("").contains("object: this key is missing"));
    assert!(page("object = []").contains("a page has at least one object"));
    assert!(ReadPage::parse("name = \"p\"", "my.page").expect_err("no format").to_string().contains("format = 1"));
    let wrong = ReadPage::parse("object = [", "my.page").expect_err("no TOML").to_string();
    assert!(wrong.starts_with("my.page:1"), "{wrong}");
}

#[test]
fn errors_of_a_flow_name_its_key() {
    assert!(error("").contains("flow.0.page: this key is missing; the path of a page file, or one of"));
    assert!(
        error("page = \"frontpage\"")
            .contains("s.toml:6: flow.0.page: there is no page `frontpage`; did you mean `front-page`?")
    );
    assert!(error("page = [\"front-page\", \"nope\"]").contains("flow.0.page.1: there is no page `nope`"));
    assert!(error("page = 5").contains("flow.0.page: this is not a page; write the name of a page, the path"));
    let page = "[flow.page]\nname = \"p\"\n[[flow.page.object]]\nname = \"a\"\ntype = \"image\"\nsize = \"2 GB\"";
    assert!(error(page).contains("s.toml:11: flow.0.page.object.0.size: it is above 1 GiB"));
    for (name, meant) in [("HTTP/2", "h2"), ("http/3", "h3"), ("HTTP/1.1", "http/1.1")] {
        let error = error(&format!("page = \"front-page\"\nprotocol = \"{name}\""));
        assert!(error.contains(&format!("flow.0.protocol: `{name}` is not known; did you mean `{meant}`?")), "{error}");
    }
    assert!(error("page = \"./new.page\"").contains("cannot be read"));
    assert!(error("page = []").contains("flow.0.page: there must be at least one page"));
    for (keys, field) in [
        ("protocol = \"h4\"", "flow.0.protocol"),
        ("protocol = \"h3\"\nconnections = 2", "flow.0.connections"),
        ("protocol = \"h3\"\nspeculative = 1", "flow.0.speculative"),
        ("protocol = \"h3\"\ntls = \"TLSv1.3\"", "flow.0.tls"),
        ("protocol = \"h3\"\nclient_hello = \"1 kB\"", "flow.0.client_hello"),
        ("protocol = \"h3\"\nresumption = \"0-rtt\"", "flow.0.resumption"),
        ("protocol = \"h3\"\nproxy = true", "flow.0.proxy"),
        ("protocol = \"h3\"\nunsent = \"4 kB\"", "flow.0.unsent"),
        ("protocol = \"h3\"\ntransport = \"tcp\"", "flow.0.transport: HTTP/3 does not run over TCP"),
        ("protocol = \"h3\"\ntcp = { nagle = \"off\" }", "flow.0.tcp: a flow with `transport = \"quic-quinn\"`"),
        ("protocol = \"h2\"\ntransport = \"quic-quinn\"", "flow.0.transport: a page over QUIC uses HTTP/3"),
        ("quic = { congestion = \"cubic\" }", "flow.0.quic: the flow does not use QUIC"),
        ("protocol = \"h3\"\nquic = { congestion = \"bbr\" }", "flow.0.quic.congestion"),
        ("connections = 0", "flow.0.connections"),
        ("protocol = \"h2\"\nconnections = 2", "flow.0.connections"),
        ("speculative = 6", "flow.0.speculative"),
        ("pipeline = { depth = 0 }", "flow.0.pipeline"),
        ("protocol = \"h2\"\npipeline = { depth = 4 }", "flow.0.pipeline"),
        ("pipeline = { after = 4 }", "flow.0.pipeline"),
        ("resumption = \"ticket\"", "flow.0.resumption"),
        ("tls = \"TLSv1.2\"\nresumption = \"0-rtt\"", "flow.0.resumption"),
        ("client_hello = \"300 B\"", "flow.0.client_hello"),
        ("certificates = \"4 kB\"", "flow.0.certificates"),
        ("unsent = \"4 kB\"", "flow.0.unsent"),
        ("dns = true\nproxy = true", "flow.0.dns"),
        ("reading = \"4 s\"", "flow.0.reading"),
        ("cache = false", "flow.0.cache"),
        ("protocol = \"http/1.0\"\nkeep_alive = \"4 s\"", "flow.0.keep_alive"),
        ("request = \"0 B\"", "flow.0.request"),
        ("response = \"0 B\"", "flow.0.response"),
        ("request = \"2 GB\"", "flow.0.request"),
        ("tls = \"TLSv1.3\"\nclient_hello = \"0 B\"", "flow.0.client_hello"),
        ("tls = \"TLSv1.3\"\ncertificates = \"2 GB\"", "flow.0.certificates"),
        ("protocol = \"h2\"\nunsent = \"0 B\"", "flow.0.unsent"),
        ("views = 0", "flow.0.views"),
        ("viewz = 2", "flow.0.viewz"),
    ] {
        let error = error(&format!("page = \"front-page\"\n{keys}"));
        assert!(error.contains(field), "{keys}: {error}");
    }
}

#[test]
fn a_resolved_scenario_has_the_page_in_it() {
    let scenario = flow("page = [\"front-page\", \"static-site\"]\ntls = \"TLSv1.3\"").expect("it is valid");
    let text = scenario.to_toml();
    assert!(text.contains("[[flow.page.object]]") && text.contains("views = 2") && text.contains("nagle = \"off\""));
    let again = Scenario::read(&text, "again.toml", Path::new("elsewhere"), &[]).expect("it can be read again");
    assert_eq!(again.to_toml(), text);
    let scenario = flow("page = \"front-page\"\nprotocol = \"h3\"").expect("it is valid");
    let text = scenario.to_toml();
    assert!(text.contains("transport = \"quic-quinn\""), "{text}");
    let again = Scenario::read(&text, "again.toml", Path::new("elsewhere"), &[]).expect("it can be read again");
    assert_eq!(again.to_toml(), text);
}
