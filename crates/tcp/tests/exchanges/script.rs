//! Scripted exchanges of segments with one connection (in the style of packetdrill).
//!
//! ```text
//! +0.1 < SA 0:0(0) ack 1 win 5000 <mss 1000,sack,ts 5:0,ws 7>  this arrives after 0.1 s
//! > A 1:1001(1000) ack 1 win 5000                              this is sent, now
//! +0.2 > R..                                                   this is sent, after 0.2 s
//! +0.2 > -                                                     nothing is sent until then
//! ! write 3000                                                 the application acts
//! ? state Established                                          a check of the connection
//! ```
//!
//! Sequence numbers count from each side's SYN. Flags: S F R P . (none but perhaps ACK), E (ECE), W
//! (CWR), A (AE); `ack` sets ACK. Fields that a line omits are not compared, except sequence
//! numbers, flags (but PSH), SACK blocks and AccECN options (`e1b 1:0:1`: bytes of ECT(1), CE and
//! ECT(0); `e0b` in the other order).

#![allow(dead_code, reason = "not every test uses all of it")]

use airpath_core::{ComponentId, Context, Direction, Ecn, FlowId, Instant, SegmentInfo, Span};
use airpath_tcp::{Config, Connection, Identity, Segment};
use airpath_wire::tcp::{EcnCounters, Flags, Options, TcpHeader, Timestamps};

/// Start of the two sides' sequence numbers: near the wrap.
const OURS: u32 = u32::MAX - 500;
const THEIRS: u32 = u32::MAX - 700;

pub struct Script {
    pub connection: Connection,
    pub now: Instant,
}

/// Flags, numbers and options of a line.
struct Line<'a> {
    flags: Flags,
    start: u32,
    length: u32,
    ack: Option<u32>,
    window: Option<u16>,
    options: Vec<&'a str>,
    ecn: Option<Ecn>,
    loss_notification: bool,
    accurate_ecn: bool,
}

impl Script {
    /// A connection that connects.
    pub fn connect(config: &Config) -> Self {
        Self { connection: Connection::connect(config, identity(), Instant::ZERO), now: Instant::ZERO }
    }

    /// A connection that listens.
    pub fn listen(config: &Config) -> Self {
        Self { connection: Connection::listen(config, identity()), now: Instant::ZERO }
    }

    /// Runs lines; panics at the first that fails.
    #[track_caller]
    pub fn run(&mut self, lines: &str) -> &mut Self {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            self.line(line);
            self.connection.verify();
        }
        self
    }

    #[track_caller]
    fn line(&mut self, whole: &str) {
        let (wait, line) = match whole.strip_prefix('+') {
            None => (Span::ZERO, whole),
            Some(rest) => {
                let (time, line) = rest.split_once(' ').expect("a time, then more");
                (Span::from_secs_f64(time.parse().expect("seconds")), line)
            }
        };
        let until = self.now + wait;
        let (kind, rest) = line.split_at(1);
        let rest = rest.trim();
        match kind {
            "<" => {
                self.expect_nothing_until(until, whole);
                let segment = self.segment(&parse(rest));
                self.with(|connection, now, cx| connection.handle_segment(now, &segment, cx));
            }
            ">" if rest == "-" => self.expect_nothing_until(until, whole),
            ">" => {
                let sent = self.next(until).unwrap_or_else(|| panic!("`{whole}`: nothing is sent"));
                assert_eq!(self.now, until, "`{whole}`: too early: {}", show(&sent));
                compare(whole, &parse(rest), &sent);
            }
            "!" | "?" => {
                if !wait.is_zero() {
                    self.expect_nothing_until(until, whole);
                }
                if kind == "!" { self.act(rest) } else { self.check(rest, whole) }
            }
            _ => panic!("`{whole}`: unknown line"),
        }
    }

    fn act(&mut self, what: &str) {
        let (verb, number) = what.split_once(' ').unwrap_or((what, "0"));
        let number: u64 = number.parse().expect("a number");
        match verb {
            "write" => self.connection.write(number),
            "read" => self.connection.read(number),
            "close" => self.connection.close(),
            "abort" => self.with(|connection, now, cx| connection.abort(now, cx)),
            _ => panic!("`{what}`: unknown action"),
        }
    }

    #[track_caller]
    fn check(&self, what: &str, whole: &str) {
        let (name, wanted) = what.split_once(' ').expect("a name and a value");
        let statistics = self.connection.statistics();
        let found = match name {
            "state" => format!("{:?}", self.connection.state()),
            "outcome" => self.connection.outcome().map_or("none".into(), |outcome| outcome.to_string()),
            "readable" => self.connection.readable().to_string(),
            "received" => self.connection.received().to_string(),
            "acknowledged" => self.connection.acknowledged().to_string(),
            "peer_closed" => self.connection.peer_closed().to_string(),
            "timeouts" => statistics.timeouts.to_string(),
            "fast_retransmits" => statistics.fast_retransmits.to_string(),
            "undos" => statistics.undos.to_string(),
            "duplicate_acks" => statistics.duplicate_acks.to_string(),
            "tail_probes" => statistics.tail_probes.to_string(),
            "ecn_reductions" => statistics.ecn_reductions.to_string(),
            "duplicate_segments" => statistics.duplicate_segments.to_string(),
            "window_probes" => statistics.window_probes.to_string(),
            "pure_acks" => statistics.pure_acks.to_string(),
            "retransmitted" => statistics.retransmitted_segments.to_string(),
            _ => panic!("`{whole}`: unknown check"),
        };
        assert_eq!(found, wanted, "`{whole}`");
    }

    /// The header of the segment that the connection sends now.
    #[track_caller]
    pub fn sent(&mut self) -> TcpHeader {
        self.next(self.now).expect("it sends a segment").header
    }

    /// Takes all segments that the connection sends now. Returns their number.
    pub fn take(&mut self) -> usize {
        std::iter::from_fn(|| self.next(self.now)).count()
    }

    /// A number of the peer relative to its SYN.
    pub const fn relative(&self, number: u32) -> u32 {
        number.wrapping_sub(THEIRS)
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, Instant, &mut Context<'_>) -> T) -> T {
        let mut dropped = Vec::new();
        let mut cx = Context::new(None, &mut dropped, ComponentId(0));
        act(&mut self.connection, self.now, &mut cx)
    }

    /// The next segment sent, if there is one by `until`.
    fn next(&mut self, until: Instant) -> Option<Segment> {
        loop {
            if let Some(segment) = self.with(|connection, now, cx| connection.poll_transmit(now, cx)) {
                return Some(segment);
            }
            match self.connection.next_wakeup() {
                Some(at) if at <= until => self.now = self.now.max(at),
                _ => {
                    self.now = until;
                    return None;
                }
            }
            self.with(|connection, now, cx| connection.handle_timeout(now, cx));
        }
    }

    #[track_caller]
    fn expect_nothing_until(&mut self, until: Instant, whole: &str) {
        if let Some(segment) = self.next(until) {
            panic!("before `{whole}`, at {}: unexpected {}", self.now, show(&segment));
        }
    }

    fn segment(&self, line: &Line<'_>) -> Segment {
        let mut options = Options::default();
        for option in &line.options {
            let (name, value) = option.split_once(' ').unwrap_or((option, ""));
            let pair = || {
                let (a, b) = value.split_once(':').expect("two numbers");
                (a.parse::<u32>().expect("a number"), b.parse::<u32>().expect("a number"))
            };
            match name {
                "mss" => options.maximum_segment_size = Some(value.parse().expect("a size")),
                "ws" => options.window_scale = Some(value.parse().expect("a shift")),
                "sackOK" => options.sack_permitted = true,
                "ts" => {
                    let (value, echo) = pair();
                    options.timestamps = Some(Timestamps { value, echo });
                }
                "sack" => {
                    let (start, end) = pair();
                    options.sack.push(OURS.wrapping_add(start), OURS.wrapping_add(end));
                }
                "e1b" | "e0b" => {
                    let mut counters = EcnCounters::new(name == "e1b");
                    value.split(':').for_each(|value| counters.push(value.parse().expect("a number")));
                    options.accurate_ecn = Some(counters);
                }
                _ => panic!("`{option}`: no such option"),
            }
        }
        Segment {
            header: TcpHeader {
                source_port: 2,
                destination_port: 1,
                sequence: THEIRS.wrapping_add(line.start),
                acknowledgment: line.ack.map_or(0, |ack| OURS.wrapping_add(ack)),
                flags: line.flags,
                loss_notification: line.loss_notification,
                accurate_ecn: line.accurate_ecn,
                window: line.window.unwrap_or(65_535),
                options,
            },
            length: line.length,
            ecn: line.ecn.unwrap_or_default(),
            info: SegmentInfo::default(),
        }
    }
}

fn identity() -> Identity {
    Identity { flow: FlowId(0), direction: Direction::Up, local_port: 1, remote_port: 2, initial_sequence: OURS }
}

fn parse(line: &str) -> Line<'_> {
    let (line, options) = match line.split_once('<') {
        None => (line, Vec::new()),
        Some((line, options)) => (line, options.trim_end_matches('>').split(',').map(str::trim).collect()),
    };
    let mut words = line.split_whitespace();
    let mut flags = Flags::default();
    let mut accurate_ecn = false;
    for letter in words.next().expect("flags").chars() {
        flags |= match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            'A' => {
                accurate_ecn = true;
                Flags::default()
            }
            '.' => Flags::default(),
            _ => panic!("`{letter}`: no such flag"),
        };
    }
    let range = words.next().expect("sequence numbers");
    let (start, rest) = range.split_once(':').expect("start:end(length)");
    let (end, length) = rest.trim_end_matches(')').split_once('(').expect("end(length)");
    let number = |text: &str| text.parse::<u32>().expect("a number");
    assert_eq!(number(start) + number(length), number(end), "`{range}`");
    let mut parsed = Line {
        flags,
        start: number(start),
        length: number(length),
        ack: None,
        window: None,
        options,
        ecn: None,
        loss_notification: false,
        accurate_ecn,
    };
    while let Some(word) = words.next() {
        match word {
            "ack" => {
                // `ack ?`: any number.
                parsed.ack = words.next().filter(|word| *word != "?").map(number);
                parsed.flags |= Flags::ACK;
            }
            "win" => parsed.window = Some(words.next().expect("a window").parse().expect("a window")),
            "ect" => parsed.ecn = Some(Ecn::Ect0),
            "ect1" => parsed.ecn = Some(Ecn::Ect1),
            "ce" => parsed.ecn = Some(Ecn::Ce),
            "eln" => parsed.loss_notification = true,
            "noecn" => parsed.ecn = Some(Ecn::NotEct),
            _ => panic!("`{word}`: unknown field"),
        }
    }
    parsed
}

#[track_caller]
fn compare(whole: &str, wanted: &Line<'_>, sent: &Segment) {
    let header = &sent.header;
    let same = |flags: Flags| flags.0 & !Flags::PSH.0;
    let shown = show(sent);
    assert_eq!(same(header.flags), same(wanted.flags), "flags: `{whole}`, but it is {shown}");
    assert_eq!(header.accurate_ecn, wanted.accurate_ecn, "AE: `{whole}`, but it is {shown}");
    assert_eq!(header.sequence.wrapping_sub(OURS), wanted.start, "sequence: `{whole}`, but it is {shown}");
    assert_eq!(sent.length, wanted.length, "length: `{whole}`, but it is {shown}");
    if let Some(ack) = wanted.ack {
        assert_eq!(header.acknowledgment.wrapping_sub(THEIRS), ack, "ack: `{whole}`, but it is {shown}");
    }
    if let Some(window) = wanted.window {
        assert_eq!(header.window, window, "window: `{whole}`, but it is {shown}");
    }
    if let Some(ecn) = wanted.ecn {
        assert_eq!(sent.ecn, ecn, "ecn: `{whole}`, but it is {shown}");
    }
    let options = show_options(&header.options);
    let sacks = |options: &[String]| -> Vec<String> {
        let kept = |option: &&String| option.starts_with("sack ") || option.starts_with("e1b ");
        options.iter().filter(kept).cloned().collect()
    };
    let listed: Vec<String> = wanted.options.iter().map(ToString::to_string).collect();
    assert_eq!(sacks(&options), sacks(&listed), "`{whole}`, but it is {shown}");
    for option in listed {
        assert!(options.contains(&option), "{option}: `{whole}`, but it is {shown}");
    }
    assert_eq!(sent.info.offset, i64::from(wanted.start) - 1, "the offset of {shown}");
}

fn show_options(options: &Options) -> Vec<String> {
    let mut shown = Vec::new();
    if let Some(size) = options.maximum_segment_size {
        shown.push(format!("mss {size}"));
    }
    if options.sack_permitted {
        shown.push("sackOK".into());
    }
    if let Some(timestamps) = options.timestamps {
        shown.push(format!("ts {}:{}", timestamps.value, timestamps.echo));
    }
    if let Some(counters) = options.accurate_ecn {
        let values: Vec<_> = counters.iter().map(|value| value.to_string()).collect();
        shown.push(format!("{} {}", if counters.ect1_first() { "e1b" } else { "e0b" }, values.join(":")));
    }
    if let Some(shift) = options.window_scale {
        shown.push(format!("ws {shift}"));
    }
    for (start, end) in options.sack.as_slice() {
        shown.push(format!("sack {}:{}", start.wrapping_sub(THEIRS), end.wrapping_sub(THEIRS)));
    }
    shown
}

fn show(segment: &Segment) -> String {
    let header = &segment.header;
    let names = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
    ];
    let flags: String = names.iter().filter(|(flag, _)| header.flags.contains(*flag)).map(|(_, name)| *name).collect();
    let start = header.sequence.wrapping_sub(OURS);
    let flags = if header.accurate_ecn { flags + "A" } else { flags };
    format!(
        "{}. {start}:{}({}) ack {} win {} <{}>",
        flags,
        start.wrapping_add(segment.length),
        segment.length,
        header.acknowledgment.wrapping_sub(THEIRS),
        header.window,
        show_options(&header.options).join(",")
    )
}
