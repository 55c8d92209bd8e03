//! What is wrong with a scenario: what, where, and what to do next.

use std::fmt;

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// What is wrong.
    pub message: String,
    /// What to do next, where that is known.
    pub help: Option<String>,
    /// Where the offending value was written.
    pub origin: Origin,
    /// Dotted path of the offending key, such as `bearer.bler`.
    pub field: Option<String>,
    /// Of an unknown key: the choice that the help offers.
    pub(crate) unknown_key: Option<Box<UnknownKey>>,
}

/// What the help for an unknown key offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownKey {
    /// The key that may be meant.
    pub meant: Option<String>,
    /// The keys of the table.
    pub known: Vec<String>,
}

/// Where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// In a file or a preset, at this line, counted from 1.
    Line {
        /// Name of the file, as the user gave it.
        file: String,
        /// The line.
        line: usize,
    },
    /// In an argument: `override key=value`, or a change of a running link as JSON.
    Argument(String),
    /// Somewhere in this file, such as a key that is missing.
    File(String),
    /// Nowhere: it is a default.
    #[default]
    Default,
}

impl ScenarioError {
    /// An error about the value at `field`.
    pub fn new(message: impl Into<String>, origin: Origin, field: impl Into<String>) -> Self {
        let field = field.into();
        let field = (!field.is_empty()).then_some(field);
        Self { message: message.into(), help: None, origin, field, unknown_key: None }
    }

    /// An error about the unknown `key` of the table at the path `at`, which has the keys `known`.
    pub fn unknown_key(at: &str, key: &str, known: &[&str], origin: Origin) -> Self {
        let meant = usual_name(at, key, known).or_else(|| nearest(key, known.iter().copied()).map(str::to_owned));
        let known = known.iter().map(|key| (*key).to_owned()).collect();
        Self::new("unknown key", origin, join(at, key)).with_unknown_key(UnknownKey { meant, known })
    }

    /// The same, with what its help offers.
    #[must_use]
    pub(crate) fn with_unknown_key(mut self, unknown: UnknownKey) -> Self {
        let known: Vec<&str> = unknown.known.iter().map(String::as_str).collect();
        self.help = Some(suggestion(unknown.meant.as_deref(), &known));
        self.unknown_key = Some(Box::new(unknown));
        self
    }

    /// The same, with what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The file that it is about, if it is about one.
    pub fn file(&self) -> Option<&str> {
        match &self.origin {
            Origin::Line { file, .. } | Origin::File(file) => Some(file),
            Origin::Argument(_) | Origin::Default => None,
        }
    }

    /// The line in that file, counted from 1.
    pub fn line(&self) -> Option<usize> {
        match self.origin {
            Origin::Line { line, .. } => Some(line),
            _ => None,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Line { file, line } => write!(f, "{file}:{line}: ")?,
            Origin::File(file) => write!(f, "{file}: ")?,
            Origin::Argument(argument) => write!(f, "{argument}: ")?,
            Origin::Default => {}
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// Names in the kernel, in other tools and in other tables, each with the path of the key in a
/// scenario. The first path of a name is suggested where several would do.
pub const NAMES_ELSEWHERE: &[(&str, &str)] = &[
    ("algorithm", "tcp.congestion"),
    ("cc", "tcp.congestion"),
    ("congestion", "tcp.congestion"),
    ("congestion-control", "tcp.congestion"),
    ("congestion_control", "tcp.congestion"),
    ("tcp_congestion_control", "tcp.congestion"),
    ("profile", "tcp.profile"),
    ("mss", "tcp.maximum_segment_size"),
    ("sack", "tcp.selective_acknowledgement"),
    ("timestamps", "tcp.timestamps"),
    ("ecn", "tcp.ecn"),
    ("nagle", "tcp.nagle"),
    ("pacing", "tcp.pacing"),
    ("handshake", "tcp.handshake"),
    ("initcwnd", "tcp.initial_window"),
    ("iw", "tcp.initial_window"),
    ("initial_window", "tcp.initial_window"),
    ("rwnd", "tcp.receive_buffer.maximum"),
    ("receive_buffer", "tcp.receive_buffer.maximum"),
    ("receive_window", "tcp.receive_buffer.maximum"),
    ("rto", "tcp.retransmission_timeout.initial"),
    ("min_rto", "tcp.retransmission_timeout.minimum"),
    ("rto_min", "tcp.retransmission_timeout.minimum"),
    ("delack", "tcp.delayed_ack.timeout"),
    ("delayed_ack", "tcp.delayed_ack.timeout"),
    ("hystart", "tcp.congestion.hystart"),
    ("rack", "tcp.recovery.rack"),
    ("tlp", "tcp.recovery.tail_loss_probe"),
    ("rate", "fixed.rate"),
    ("bandwidth", "fixed.rate"),
    ("bitrate", "fixed.rate"),
    ("bw", "fixed.rate"),
    ("capacity", "fixed.rate"),
    ("throughput", "fixed.rate"),
    ("loss", "fixed.loss"),
    ("loss", "bearer.bler"),
    ("loss_rate", "fixed.loss"),
    ("packet_loss", "fixed.loss"),
    ("plr", "fixed.loss"),
    ("delay", "fixed.delay"),
    ("latency", "fixed.delay"),
    ("rtt", "fixed.delay"),
    ("queue", "fixed.queue.packets"),
    ("queue_length", "fixed.queue.packets"),
    ("qlen", "fixed.queue.packets"),
    ("limit", "fixed.queue.packets"),
    ("buffer", "fixed.queue.bytes"),
    ("buffer_size", "fixed.queue.bytes"),
    ("aqm", "fixed.queue.discipline"),
    ("discipline", "fixed.queue.discipline"),
    ("qdisc", "fixed.queue.discipline"),
    ("bler", "bearer.bler"),
    ("error_rate", "bearer.bler"),
    ("model", "bearer.model"),
    ("preset", "bearer.preset"),
    ("scheduler", "bearer.scheduler"),
    ("conditions", "bearer.conditions"),
    ("environment", "bearer.conditions.environment"),
    ("speed", "bearer.conditions.movement.speed"),
    ("bytes", "flow.bytes"),
    ("file_size", "flow.bytes"),
    ("size", "flow.bytes"),
    ("kind", "flow.kind"),
    ("type", "flow.kind"),
    ("workload", "flow.kind"),
    ("start", "flow.start"),
    ("transport", "flow.transport"),
    ("flows", "flow.count"),
    ("parallel", "flow.count"),
    ("count", "mobile.count"),
    ("mobiles", "mobile.count"),
    ("ues", "mobile.count"),
    ("users", "mobile.count"),
    ("seed", "seed"),
    ("duration", "duration"),
    ("time", "duration"),
];

/// The tables that only a scenario has, so that a key may belong to another table of it.
const TABLES: [&str; 9] = ["fixed", "access", "middlebox", "bearer", "tcp", "quic", "mobile", "flow", "change"];

/// `a.b`, or `b` at the top.
pub fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

/// The first key of a dotted path.
fn first(path: &str) -> &str {
    path.split('.').next().expect("a path has a key")
}

/// The key that the unknown `key` of the table at the path `at` stands for, by its usual name: a
/// key of the same table, or else the path of one below it or of another table.
fn usual_name(at: &str, key: &str, known: &[&str]) -> Option<String> {
    let paths = || NAMES_ELSEWHERE.iter().filter(|(name, _)| *name == key).map(|(_, path)| *path);
    let here = |path: &str| known.contains(&first(path));
    let within = |path: &str| if at.is_empty() || !path.contains('.') { path.to_owned() } else { join(at, path) };
    paths()
        .find_map(|path| {
            let below = path.split_once('.').map(|(_, rest)| rest);
            [Some(path), below].into_iter().flatten().find(|path| here(path)).map(within)
        })
        .or_else(|| {
            let table = |path: &str| path.rsplit_once('.').map_or(String::new(), |(table, _)| table.to_owned());
            // A flow is one of a list: `flow.0`.
            let own: Vec<&str> = at.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
            let is_elsewhere = |path: &&str| TABLES.contains(&first(at)) && table(path) != own.join(".");
            paths().find(is_elsewhere).map(str::to_owned)
        })
}

/// The name in `known` that is most similar to `wrong`, in capital or small letters. Names that
/// begin with `wrong`, apart from hyphens and the like, come first.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let small = wrong.to_lowercase();
    let letters = |text: &str| text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "");
    let start = letters(wrong);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&small, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= name.len().max(wrong.len()) / 3 + 1)
        .min_by_key(|(distance, name)| (!letters(name).starts_with(&start), *distance, *name))
        .map(|(_, name)| name)
}

/// `did you mean …?` for the unknown name `wrong`, and the known names.
pub fn did_you_mean(wrong: &str, known: &[&str]) -> String {
    suggestion(nearest(wrong, known.iter().copied()), known)
}

/// `did you mean …?` with the key `meant`, if there is one, and the known names.
fn suggestion(meant: Option<&str>, known: &[&str]) -> String {
    let all = known.join(", ");
    match meant {
        Some(name) => format!("did you mean `{name}`? known here: {all}"),
        None => format!("known here: {all}"),
    }
}
