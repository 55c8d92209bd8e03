//! Configuration of a link, and the errors for invalid ones.

use airpath_core::{Bitrate, Bytes, Probability, Seed, Span};
use airpath_link::delay::{Delay, Distribution};
use airpath_link::loss::{GilbertElliott, Loss};
use airpath_link::policer::Policer;
use airpath_link::queue::{Discipline, Queue, codel};
use airpath_link::{Config, ConfigError, Pipe};

fn read(text: &str) -> Config {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    toml::from_str::<Config>(text).expect_err(text).message().to_owned()
}

fn fault(text: &str) -> ConfigError {
    Pipe::new(&read(text), Seed::new(1), "link").expect_err(text)
}

#[test]
fn a_rate_without_a_queue_has_that_of_an_interface_in_linux() {
    let queue = |text| read(text).prepare().expect("valid").config().queue.clone();
    assert_eq!(queue("rate = \"1 Mbit/s\""), Some(Queue::of_packets(1_000)));
    assert_eq!(queue("rate = \"1 Mbit/s\"\nqueue = {}"), Some(Queue::default()));
    assert_eq!(queue("delay = \"1 ms\""), None);
}

#[test]
fn every_key_is_read() {
    assert_eq!(read(""), Config::default());
    assert_eq!(
        read("rate = \"10 Mbit/s\"\ndelay = \"110 ms\"\nloss = 0.01\nqueue = { packets = 100 }"),
        Config {
            rate: Some(Bitrate::from_bps(10_000_000)),
            delay: Span::from_millis(110).into(),
            loss: Loss::Bernoulli(Probability::new(0.01).expect("1 %")),
            queue: Some(Queue::of_packets(100)),
            recorded: None,
            policer: None,
        }
    );
    let policer = Policer { rate: Bitrate::from_bps(2_000_000), burst: Bytes::new(100_000) };
    assert_eq!(read("policer = { rate = \"2 Mbit/s\", burst = \"100 kB\" }").policer, Some(policer));
    assert_eq!(read("loss = \"1 %\"").loss, read("loss = 0.01").loss);
    assert_eq!(read("loss = 0").loss, Loss::default());
    assert_eq!(read("queue = { bytes = \"64 kB\" }").queue, Some(Queue::of_bytes(Bytes::new(64_000))));
    let settings = codel::Settings { target: Some(Span::from_millis(5)), interval: Span::from_millis(100), ecn: true };
    assert_eq!(
        read("queue = { discipline = \"codel\", target = \"5 ms\", interval = \"100 ms\", packets = 9, ecn = true }")
            .queue,
        Some(Queue { packets: Some(9), bytes: None, discipline: Discipline::CoDel(settings) })
    );
    assert_eq!(read("queue.discipline = \"drop-tail\"").queue, Some(Queue::default()));
    let loss = read("loss = { good_to_bad = 0.002, bad_to_good = \"20 %\" }").loss;
    let Loss::GilbertElliott(GilbertElliott { loss_in_bad, loss_in_good, .. }) = loss else { panic!("{loss:?}") };
    assert_eq!((loss_in_bad, loss_in_good), (Probability::ALWAYS, Probability::NEVER));
    let ms = Span::from_millis;
    for (text, distribution) in [
        ("distribution = \"uniform\"\nmaximum = \"9 ms\"", Distribution::Uniform { minimum: ms(0), maximum: ms(9) }),
        (
            "distribution = \"normal\"\nmean = \"50 ms\"\ndeviation = \"5 ms\"",
            Distribution::Normal { mean: ms(50), deviation: ms(5), minimum: ms(0) },
        ),
        (
            "distribution = \"exponential\"\nmean = \"50 ms\"\nminimum = \"40 ms\"",
            Distribution::Exponential { mean: ms(50), minimum: ms(40) },
        ),
        (
            "distribution = \"pareto\"\nmean = \"50 ms\"\nminimum = \"40 ms\"",
            Distribution::Pareto { mean: ms(50), minimum: ms(40) },
        ),
    ] {
        assert_eq!(read(&format!("[delay]\n{text}")).delay, Delay { distribution, reorder: false });
        assert_eq!(read(&format!("[delay]\nreorder = true\n{text}")).delay, Delay { distribution, reorder: true });
    }
}

#[test]
fn invalid_values_are_rejected_when_read() {
    for (text, message) in [
        ("rat = 1", "unknown field `rat`, expected one of `rate`, `recorded`, `policer`, `queue`, `loss`, `delay`"),
        ("delay = 5", "invalid type: integer `5`, expected a length of time such as \"110 ms\", or a table"),
        ("delay = \"-5 ms\"", "`-5 ms` is negative"),
        ("delay = { distribution = \"cauchy\" }", "unknown variant `cauchy`, expected one of `uniform`, `normal`"),
        ("delay = { mean = \"5 ms\" }", "missing field `distribution`"),
        (
            "delay = { distribution = \"normal\", mean = \"5 ms\" }",
            "missing field `deviation`: a delay with `distribution = \"normal\"` needs it",
        ),
        (
            "delay = { distribution = \"exponential\", mean = \"5 ms\", deviation = \"1 ms\" }",
            "a delay with `distribution = \"exponential\"` has no `deviation`",
        ),
        ("delay = { distribution = \"uniform\", minimum = \"5 ms\", maximum = \"1 ms\" }", "swap them"),
        ("delay = { distribution = \"normal\", men = \"5 ms\" }", "unknown field `men`"),
        ("loss = 1.5", "`1.5` is not a probability"),
        ("loss = \"much\"", "`much` is not a probability"),
        ("loss = true", "expected a probability such as 0.01 or \"1 %\", or a table"),
        ("loss = { good_to_bad = 0.1 }", "missing field `bad_to_good`"),
        ("loss = { good_to_bad = 0.1, bad_to_good = 0 }", "the bad state never ends"),
        ("loss = { good_to_bad = 0.1, bad_to_good = 0.1, lost = 1 }", "unknown field `lost`"),
        ("policer = { rate = \"1 Mbit/s\" }", "missing field `burst`"),
        ("policer = { rate = \"0 bit/s\", burst = \"9 kB\" }", "zero"),
        ("queue = { packets = 0 }", "a queue of 0 `packets`"),
        ("queue = { bytes = \"0 B\" }", "a queue of 0 `bytes`"),
        ("queue = { target = \"5 ms\" }", "a queue with the discipline drop-tail has no `target`"),
        (
            "queue = { discipline = \"red\" }",
            "unknown variant `red`, expected one of `drop-tail`, `codel`, `fq-codel`, `pie`, `dualpi2`, `cake`",
        ),
        ("queue = { discipline = \"codel\", interval = \"0 s\" }", "the `interval` of codel must be above zero"),
        (
            "queue = { discipline = \"dualpi2\", ecn = true }",
            "a queue with the discipline dualpi2 has no `ecn`: remove it, or set `discipline` to \"codel\", \"fq-codel\", \"pie\" or \"cake\"",
        ),
        ("queue = { discipline = \"codel\", coupling = 2.0 }", "has no `coupling`"),
        ("queue = { discipline = \"fq-codel\", flows = 0 }", "the `flows` of fq-codel must be 1 to 65,536"),
        ("queue = { discipline = \"fq-codel\", quantum = \"255 B\" }", "the `quantum` of fq-codel must be 256 B to"),
        ("queue = { discipline = \"pie\", update = \"2 s\" }", "the `update` of pie must be 1 ms to 1 s"),
        ("queue = { discipline = \"pie\", target = \"0 s\" }", "the `target` of pie must be above zero"),
        ("queue = { discipline = \"dualpi2\", coupling = 0.0 }", "the `coupling` of dualpi2 must be above 0"),
        ("queue = { discipline = \"dualpi2\", classic_share = 1.0 }", "the `classic_share` of dualpi2 must be"),
        ("queue = { discipline = \"dualpi2\", step = \"0 s\" }", "the `step` of dualpi2 must be above zero"),
        ("queue = { discipline = \"cake\", target = \"0 s\" }", "the `target` of cake must be above zero"),
        ("queue = { discipline = \"cake\", interval = \"0 s\" }", "the `interval` of cake must be above zero"),
        (
            "queue = { discipline = \"cake\", flows = 1024 }",
            "a queue with the discipline cake has no `flows`: remove it, or set `discipline` to \"fq-codel\"",
        ),
        (
            "queue = { discipline = \"fq-codel\", isolation = \"flows\" }",
            "a queue with the discipline fq-codel has no `isolation`: remove it, or set `discipline` to \"cake\"",
        ),
        (
            "queue = { discipline = \"cake\", isolation = \"hosts\" }",
            "unknown variant `hosts`, expected `mobiles` or `flows`",
        ),
        ("queue = { size = 5 }", "unknown field `size`"),
    ] {
        let ours = refusal(text);
        assert!(ours.contains(message), "{text}\n  found: {ours}\n  expected: {message}");
    }
}

#[test]
fn contradictory_settings_are_rejected_by_prepare() {
    for (text, field, message) in [
        ("rate = \"1 Mbit/s\"\nrecorded = \"a.down\"", "recorded", "not both"),
        ("queue = { discipline = \"codel\" }", "queue", "infinitely fast"),
        ("policer = { rate = \"1 Mbit/s\", burst = \"1499 B\" }", "policer", "use at least 1.5 kB"),
        ("recorded = \"no/such/file.down\"", "recorded", "no/such/file.down: "),
    ] {
        let fault = fault(text);
        assert_eq!(fault.field(), field);
        assert!(fault.to_string().contains(message), "{fault}");
    }
    let unsound = Config {
        delay: Distribution::Uniform { minimum: Span::from_millis(2), maximum: Span::from_millis(1) }.into(),
        ..Config::default()
    };
    assert_eq!(unsound.prepare().expect_err("the wrong way round").field(), "delay");
}

#[test]
fn only_a_delay_without_distribution_is_fixed() {
    assert_eq!(read("delay = \"110 ms\"").delay.fixed(), Some(Span::from_millis(110)));
    assert_eq!(Delay::default().fixed(), Some(Span::ZERO));
    let constant = "delay = { distribution = \"uniform\", minimum = \"5 ms\", maximum = \"5 ms\" }";
    assert_eq!(read(constant).delay.fixed(), None);
}

#[test]
fn what_is_printed_reads_back() {
    for text in [
        "",
        "rate = \"10 Mbit/s\"\ndelay = \"110 ms\"\nloss = 0.01\nqueue = { packets = 100 }",
        "rate = \"10 Mbit/s\"\npolicer = { rate = \"2 Mbit/s\", burst = \"64 kB\" }",
        "recorded = \"a.down\"\nqueue = { discipline = \"codel\", bytes = \"1 MB\", ecn = true }",
        "rate = \"1 Mbit/s\"\nqueue = { discipline = \"fq-codel\", quantum = \"300 B\", target = \"20 ms\" }",
        "rate = \"1 Mbit/s\"\nqueue = { discipline = \"pie\", burst = \"0 s\", ecn = true }",
        "rate = \"1 Mbit/s\"\nqueue = { discipline = \"dualpi2\", step = \"2 ms\", classic_share = 0.25 }",
        "rate = \"1 Mbit/s\"\nqueue = { discipline = \"cake\", packets = 50 }",
        "rate = \"1 Mbit/s\"\nqueue = { discipline = \"cake\", isolation = \"flows\", interval = \"50 ms\", ecn = false }",
        "loss = { good_to_bad = 0.1, bad_to_good = 0.3, loss_in_bad = 0.5, loss_in_good = 0.01 }",
        "delay = { distribution = \"normal\", mean = \"50 ms\", deviation = \"5 ms\", reorder = true }",
        "delay = { distribution = \"pareto\", mean = \"50 ms\", minimum = \"5 ms\" }",
        "delay = { distribution = \"uniform\", maximum = \"5 ms\" }",
        "delay = { distribution = \"exponential\", mean = \"5 ms\" }",
    ] {
        let config = read(text);
        let printed = toml::to_string(&config).expect("it prints");
        assert_eq!(read(&printed), config, "{printed}");
    }
    assert_eq!(toml::to_string(&Config::default()).expect("it prints"), "loss = 0.0\ndelay = \"0 s\"\n");
}
