//! Settings of a run: the options of a script, and the `sysctl` commands of its first command.

use std::ops::RangeInclusive;
use std::path::Path;

use airpath_core::{Bytes, Span};
use airpath_tcp::{Algorithm, Config, EcnOption, IdleRestart, Limit, Profile};

use crate::position::{Position, SyntaxError};
use crate::script::Script;
use crate::{Finding, Outcome};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    /// `tcp_ecn`: from 3 on, accurate ECN is accepted; 3 also offers it, 4 offers ECN of RFC 3168.
    ecn: u8,
    tolerance: Tolerance,
    /// Length of a tick of timestamps, if they are checked.
    pub timestamp_tick: Option<Span>,
}

/// Permitted difference of times: the larger of both, as in packetdrill (`verify_time`).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tolerance {
    least: Span,
    /// Of the time since the last event.
    share: f64,
}

impl Settings {
    /// Permitted difference of a time from one that a script expects `after` the last event.
    pub fn tolerance(&self, after: Span) -> Span {
        self.tolerance.least.max(Span::from_secs_f64(after.as_secs_f64() * self.tolerance.share))
    }

    /// Applies a command that changes a setting of connections that are opened later.
    pub fn command(&mut self, command: &str) {
        changes(command, &mut self.config);
    }

    /// Applies the largest IP packet. Headers without options have 40 bytes, and 60 with IPv6.
    fn set_mtu(&mut self, mtu: u16, headers: u16) {
        self.config.maximum_segment_size = mtu - headers;
        let initial = self.config.receive_buffer.initial.get();
        self.config.receive_buffer.first_offer = first_offer(initial, self.config.maximum_segment_size);
    }

    /// The settings of an end that opens connections.
    pub fn connecting(&self) -> Config {
        self.with_ecn(matches!(self.ecn, 1 | 3 | 4), self.ecn == 3)
    }

    /// The settings of an end that listens.
    pub fn listening(&self) -> Config {
        self.with_ecn(self.ecn != 0, self.ecn >= 3)
    }

    /// The kernel's settings of the AccECN option may be there without effect.
    fn with_ecn(&self, ecn: bool, accurate_ecn: bool) -> Config {
        let mut config = Config { ecn, accurate_ecn, ..self.config.clone() };
        let kernel = Profile::Linux6.config();
        if !accurate_ecn {
            config.ecn_option = kernel.ecn_option;
        }
        if config.ecn_option != EcnOption::Minimum {
            config.ecn_option_beacon = kernel.ecn_option_beacon;
        }
        config
    }
}

/// Options of packetdrill that do not change what an end point does here.
const OPTIONS: [&str; 24] = [
    // Length of the parts of a long segment that arrives: it is merged here, too.
    "mss",
    "bind_port",
    "connect_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "remote_ip",
    "local_ip",
    "gateway_ip",
    "netmask_ip",
    "init_scripts",
    "speed",
    "non_fatal",
    "verbose",
    "debug",
    "dry_run",
    "wire_client",
    "wire_server",
    "wire_server_ip",
    "wire_server_port",
    "wire_client_dev",
    "wire_server_dev",
    "send_omit_free",
    "initial_sequence_number",
];

/// Options of packetdrill that are not applicable here.
const UNSUPPORTED_OPTIONS: [&str; 8] = [
    "define",
    "is_anyip",
    "psp_udp_port",
    "so_filename",
    "so_flags",
    "strict_segments",
    "tcp_ts_ecr_scaled",
    "wire_server_at",
];

/// The largest tolerance and the longest tick of timestamps, in microseconds.
const LONGEST_MICROS: u64 = 1_000_000_000;
/// Values of --mtu: with IPv6 the least leaves an MSS of 88, `TCP_MIN_MSS` of Linux.
const MTUS: RangeInclusive<u16> = 148..=u16::MAX;
/// Most numbers of the kernel's settings.
const INT_MAX: u64 = i32::MAX as u64;

/// Why a setting is not applied.
enum Refusal {
    /// This end point does not have it.
    Unsupported(String),
    /// The kernel refuses it, too.
    Invalid(String),
}

impl Refusal {
    fn at(self, at: Position) -> Outcome {
        match self {
            Self::Unsupported(what) => not_applicable(at, what),
            Self::Invalid(what) => Outcome::Invalid(SyntaxError::new(at, what)),
        }
    }
}

fn not_applicable(at: Position, what: impl Into<String>) -> Outcome {
    Outcome::NotApplicable(Finding::new(at.line, what))
}

/// Reads the settings of `script`. Files that its first command names are relative to `folder`.
/// Otherwise, returns the result of the script.
pub fn read(script: &Script<'_>, folder: Option<&Path>) -> Result<Settings, Outcome> {
    // packetdrill's default tolerances.
    let tolerance = Tolerance { least: Span::from_millis(4), share: 0.125 };
    let mut settings = Settings { config: Profile::Linux6.config(), ecn: 2, tolerance, timestamp_tick: None };
    let (mut mtu, mut headers) = (1500, 40);
    for (at, name, value) in &script.options {
        let micros = || {
            let number = value.parse().ok().filter(|number| *number <= LONGEST_MICROS);
            let problem = || format!("--{name}: `{value}` is not a number of microseconds from 0 to {LONGEST_MICROS}");
            number.map(Span::from_micros).ok_or_else(|| Outcome::Invalid(SyntaxError::new(*at, problem())))
        };
        match *name {
            "tolerance_usecs" => settings.tolerance.least = micros()?,
            "tolerance_percent" => {
                let percent = value.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
                let problem = || format!("--tolerance_percent: `{value}` is not a number from 0 to 100");
                let invalid = || Outcome::Invalid(SyntaxError::new(*at, problem()));
                settings.tolerance.share = percent.map(|percent: f64| percent / 100.0).ok_or_else(invalid)?;
            }
            "mtu" => {
                let known = value.parse().ok().filter(|mtu| MTUS.contains(mtu));
                let problem = || format!("--mtu: `{value}` is not a number from {} to {}", MTUS.start(), MTUS.end());
                mtu = known.ok_or_else(|| Outcome::Invalid(SyntaxError::new(*at, problem())))?;
            }
            "ip_version" => {
                headers = match value.as_str() {
                    "ipv4" | "ipv4-mapped-ipv6" => 40,
                    "ipv6" => 60,
                    _ => {
                        let problem = "--ip_version is ipv4, ipv4-mapped-ipv6 or ipv6";
                        return Err(Outcome::Invalid(SyntaxError::new(*at, problem)));
                    }
                }
            }
            "tcp_ts_tick_usecs" => settings.timestamp_tick = Some(micros()?).filter(|tick| !tick.is_zero()),
            name if OPTIONS.contains(&name) => {}
            name if UNSUPPORTED_OPTIONS.contains(&name) => {
                return Err(not_applicable(*at, format!("the option --{name}")));
            }
            name => {
                return Err(Outcome::Invalid(SyntaxError::new(*at, format!("packetdrill has no option --{name}"))));
            }
        }
    }
    settings.set_mtu(mtu, headers);
    if let Some((at, command)) = script.start {
        commands(&mut settings, command, at, folder, true)?;
        for config in [settings.connecting(), settings.listening()] {
            config.check().map_err(|error| not_applicable(at, format!("these settings: {error}")))?;
        }
    }
    Ok(settings)
}

/// Applies the commands of `text`. Those that are not settings are an error if `strict`.
fn commands(
    settings: &mut Settings,
    text: &str,
    at: Position,
    folder: Option<&Path>,
    strict: bool,
) -> Result<(), Outcome> {
    let joined = text.replace("\\\n", " ");
    for line in joined.split(['\n', ';']) {
        let words = words(line);
        let Some(first) = words.first() else { continue };
        let arguments = &words[1..];
        if first.ends_with("set_sysctls.py") || first == "sysctl" {
            for argument in arguments.iter().filter_map(|word| word.split_once('=')) {
                apply(settings, argument.0, argument.1).map_err(|refusal| refusal.at(at))?;
            }
        } else if first == "tc" {
            settings.config.pacing |= words.iter().any(|word| word == "fq");
        } else if first.ends_with(".sh") {
            let Some(folder) = folder.filter(|_| strict && !first.starts_with("/tmp/")) else { continue };
            let path = folder.join(first);
            let file = std::fs::read_to_string(&path)
                .map_err(|error| not_applicable(at, format!("{}: {error}", path.display())))?;
            commands(settings, &file, at, None, false)?;
        } else if strict && !is_harmless(line) {
            return Err(not_applicable(at, format!("the command `{}`", line.trim())));
        }
    }
    Ok(())
}

/// Whether a command changes nothing that this end point has.
pub fn is_harmless(command: &str) -> bool {
    let command = command.trim();
    let starts = [
        "#",
        "ip tcp_metrics flush",
        "nstat",
        "ethtool",
        "/tmp/sysctl_restore",
        // Files for `sendfile`: it sends as many bytes as the script states.
        "/bin/rm -f /tmp/",
        "/bin/dd ",
        // The default: ACK trains and delays.
        "echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect",
    ];
    command.is_empty() || starts.iter().any(|start| command.starts_with(start))
}

/// Applies a command that sets the AccECN option, which a connection may have changed while it is
/// open. Returns whether it is one.
pub fn changes(command: &str, config: &mut Config) -> bool {
    let words = words(command);
    let settings = words.iter().filter_map(|word| word.split_once('=')).collect::<Vec<_>>();
    words.first().is_some_and(|first| first == "sysctl")
        && !settings.is_empty()
        && settings
            .iter()
            .all(|(name, value)| ecn_option(config, name.rsplit('.').next().unwrap_or(name), value).is_some())
}

/// Sets the AccECN option; `None` for other settings, and for values that it does not have.
fn ecn_option(config: &mut Config, name: &str, value: &str) -> Option<()> {
    let value: u32 = value.parse().ok()?;
    match name {
        "tcp_ecn_option" => {
            let policies = [EcnOption::Never, EcnOption::Minimum, EcnOption::Full, EcnOption::Persist];
            config.ecn_option = *policies.get(value as usize)?;
        }
        "tcp_ecn_option_beacon" => config.ecn_option_beacon = value,
        _ => return None,
    }
    Some(())
}

/// The words of a command; quotation marks keep words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.split(" #").next().unwrap_or_default().trim_start_matches('#').chars() {
        match c {
            '"' | '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    if line.trim_start().starts_with('#') { Vec::new() } else { words }
}

/// The numbers of a value, in which a shell's `$((a*b))` is a product.
fn numbers(value: &str) -> Result<Vec<u64>, Refusal> {
    let product = |word: &str| {
        let factors = word.trim_start_matches("$((").trim_end_matches("))").split('*');
        factors
            .map(|factor| factor.parse::<u64>().ok())
            .try_fold(1, |product: u64, factor| product.checked_mul(factor?))
    };
    let numbers: Option<Vec<u64>> = value.split_whitespace().map(product).collect();
    numbers.ok_or_else(|| Refusal::Unsupported(format!("the value `{value}` of a setting is not a number")))
}

/// The first number of a value, in the range that the kernel permits.
fn number(name: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let first = numbers(value)?.first().copied();
    first.filter(|number| range.contains(number)).ok_or_else(|| {
        Refusal::Invalid(format!("{name} is a number from {} to {}, not `{value}`", range.start(), range.end()))
    })
}

/// The largest window without scaling.
const UNSCALED: u64 = 65_535;

/// The first window of a buffer with space for `bytes` (`tcp_select_initial_window`): whole
/// segments, at most what a header without scaling can announce.
pub fn first_offer(bytes: u64, segment_size: u16) -> Limit {
    let size = u64::from(segment_size.max(1));
    let segments = bytes / size;
    // One more than fits is cut to the header's largest window.
    Limit::at_most(segments.clamp(1, UNSCALED / size + 1) as u32)
}

/// Sets the kernel's setting `name`, also as a path below `/proc/sys`.
fn apply(settings: &mut Settings, name: &str, value: &str) -> Result<(), Refusal> {
    let path = name.trim_start_matches("/proc/sys/").replace('/', ".");
    let name = path.strip_prefix("net.ipv4.").unwrap_or(&path);
    let config = &mut settings.config;
    let within = |range| number(name, value, range);
    let first = || within(0..=INT_MAX);
    // A range of 32 bits.
    let count = |most| within(0..=most).map(|number| number as u32);
    match name {
        "tcp_rmem" => {
            let &[_, initial, maximum] = numbers(value)?.as_slice() else {
                return Err(Refusal::Invalid(format!("{name} has three numbers, not `{value}`")));
            };
            if [initial, maximum].iter().any(|number| !(1..=INT_MAX).contains(number)) {
                let problem = format!("{name} has numbers from 1 to {INT_MAX}, not `{value}`");
                return Err(Refusal::Invalid(problem));
            }
            let half = (initial / 2).max(1);
            // Half of the buffer is overhead. The shift depends on the whole buffer.
            config.receive_buffer.initial = Bytes::new(half.min(UNSCALED));
            config.receive_buffer.first_offer = first_offer(half, config.maximum_segment_size);
            config.receive_buffer.maximum = Bytes::new(maximum.max(half));
        }
        "tcp_congestion_control" => {
            config.congestion.algorithm =
                algorithm(value).ok_or_else(|| Refusal::Unsupported(format!("the congestion control {value}")))?;
        }
        "tcp_timestamps" => config.timestamps = first()? != 0,
        "tcp_window_scaling" => config.window_scaling = first()? != 0,
        "tcp_sack" => config.selective_acknowledgement = first()? != 0,
        "tcp_dsack" => config.duplicate_reports = first()? != 0,
        "tcp_frto" => config.recovery.forward_rto = first()? != 0,
        "tcp_slow_start_after_idle" => {
            config.idle_restart = if first()? != 0 { IdleRestart::Rfc2861 } else { IdleRestart::Off };
        }
        "tcp_syn_retries" => config.opening_retries = count(127)?,
        "tcp_syn_linear_timeouts" => config.opening_linear_timeouts = count(127)?,
        "tcp_retries2" => config.retransmission_timeout.retries = count(255)?,
        "tcp_reordering" => config.recovery.duplicate_threshold = count(INT_MAX)?.max(1),
        // Bit 0 of tcp_recovery; values from 3 on of tcp_early_retrans.
        "tcp_recovery" => config.recovery.rack = first()? & 1 != 0,
        "tcp_early_retrans" => config.recovery.tail_loss_probe = first()? >= 3,
        "tcp_rto_max_ms" => config.retransmission_timeout.maximum = Span::from_millis(within(1000..=120_000)?),
        "tcp_rto_min_us" => config.retransmission_timeout.minimum = Span::from_micros(within(1..=INT_MAX)?),
        "tcp_ecn_option" | "tcp_ecn_option_beacon" => {
            ecn_option(config, name, value).ok_or_else(|| Refusal::Unsupported(format!("{name} = {value}")))?;
        }
        "tcp_ecn" => {
            settings.ecn = match first()? {
                known @ 0..=5 => known as u8,
                other => return Err(Refusal::Unsupported(format!("tcp_ecn = {other}"))),
            };
        }
        // What they change is not there: memory, offload, cookies and Fast Open. Scripts that need
        // these use other parts of the language.
        "tcp_wmem"
        | "tcp_synack_retries"
        | "tcp_fack"
        | "tcp_tso_win_divisor"
        | "tcp_min_tso_segs"
        | "tcp_pacing_ss_ratio"
        | "tcp_pacing_ca_ratio"
        | "tcp_notsent_lowat"
        | "tcp_fastopen"
        | "tcp_fastopen_key"
        | "tcp_syncookies"
        | "tcp_limit_output_bytes"
        | "tcp_autocorking"
        | "tcp_no_metrics_save"
        | "tcp_tso_rtt_log"
        | "tcp_ecn_fallback"
        | "tcp_moderate_rcvbuf"
        | "tcp_workaround_signed_windows" => {}
        _ => return Err(Refusal::Unsupported(format!("the setting {name}"))),
    }
    Ok(())
}

/// A congestion control of the kernel.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "reno" => Algorithm::NewReno,
        "cubic" => Algorithm::Cubic,
        "bbr" => Algorithm::Bbr,
        "westwood" => Algorithm::Westwood,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    fn settings(text: &str) -> Result<Settings, String> {
        read(&parse(text).expect("it is valid"), None).map_err(|outcome| match outcome {
            Outcome::NotApplicable(finding) => finding.to_string(),
            Outcome::Invalid(error) => format!("invalid {error}"),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn numbers_out_of_range_are_invalid() {
        for (setting, range) in [
            ("tcp_rto_max_ms=18446744073709551615", "a number from 1000 to 120000"),
            ("tcp_rto_min_us=0", "a number from 1 to 2147483647"),
            ("tcp_syn_retries=128", "a number from 0 to 127"),
            ("tcp_retries2=256", "a number from 0 to 255"),
            ("tcp_reordering=4294967296", "a number from 0 to 2147483647"),
        ] {
            let (name, value) = setting.split_once('=').expect("it has a value");
            let expected = format!("invalid 2:1: {name} is {range}, not `{value}`");
            assert_eq!(settings(&format!("\n`sysctl -q net.ipv4.{setting}`")).unwrap_err(), expected);
        }
        for value in ["0 0 0", "4096 0 6291456", "4096 131072 18446744073709551615"] {
            let error = settings(&format!("`sysctl net.ipv4.tcp_rmem='{value}'`")).unwrap_err();
            assert_eq!(error, format!("invalid 1:1: tcp_rmem has numbers from 1 to 2147483647, not `{value}`"));
        }
        assert!(settings("`sysctl net.ipv4.tcp_rmem='1 1 1'`").is_ok());
        for name in ["tolerance_usecs", "tcp_ts_tick_usecs"] {
            let error = settings(&format!("--{name}=9223372036854775807")).unwrap_err();
            let problem = "`9223372036854775807` is not a number of microseconds from 0 to 1000000000";
            assert_eq!(error, format!("invalid 1:1: --{name}: {problem}"));
        }
        // Each is valid alone.
        let error = settings("`sysctl net.ipv4.tcp_rto_min_us=130000000`").unwrap_err();
        assert!(error.starts_with("line 1: these settings: "), "{error}");
    }

    #[test]
    fn options_that_packetdrill_does_not_have_are_invalid() {
        assert_eq!(settings("--ip_versoin=ipv4").unwrap_err(), "invalid 1:1: packetdrill has no option --ip_versoin");
    }

    #[test]
    fn settings_of_the_first_command() {
        let settings = settings(
            "--tolerance_usecs=7000\n`sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"\n\
             ./set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\\n /proc/sys/net/ipv4/tcp_ecn=1 # a remark`",
        );
        let settings = settings.expect("they are valid");
        assert_eq!(settings.tolerance(Span::from_millis(40)), Span::from_millis(7));
        assert_eq!(settings.tolerance(Span::from_millis(400)), Span::from_millis(50));
        assert_eq!(settings.config.receive_buffer.maximum, Bytes::new(15 << 20));
        assert!(!settings.config.timestamps && settings.connecting().ecn && settings.listening().ecn);
    }

    #[test]
    fn others_are_not_applicable() {
        assert_eq!(
            settings("`sysctl -q net.ipv4.tcp_shrink_window=1`").unwrap_err(),
            "line 1: the setting tcp_shrink_window"
        );
        assert_eq!(settings("\n`ip route add default`").unwrap_err(), "line 2: the command `ip route add default`");
        assert_eq!(settings("--so_filename=a").unwrap_err(), "line 1: the option --so_filename");
        assert_eq!(settings("`sysctl -q net.ipv4.tcp_ecn=6`").unwrap_err(), "line 1: tcp_ecn = 6");
        let error = settings("`sysctl net.ipv4.tcp_congestion_control=dctcp`").unwrap_err();
        assert_eq!(error, "line 1: the congestion control dctcp");
    }
}
