//! Settings of a run: the options of a script, and the `sysctl` commands of its first command.

use std::path::Path;

use airpath_core::{Bytes, Span};
use airpath_tcp::{Algorithm, Config, EcnOption, IdleRestart, Limit, Profile};

use crate::Finding;
use crate::position::Position;
use crate::script::Script;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    /// `tcp_ecn`: from 3 on, accurate ECN is accepted; 3 also offers it, 4 offers ECN of RFC 3168.
    ecn: u8,
    /// Permitted difference of times.
    pub tolerance: Span,
    /// Length of a tick of timestamps, if they are checked.
    pub timestamp_tick: Option<Span>,
}

impl Settings {
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
const OPTIONS: [&str; 27] = [
    "ip_version",
    // Length of the parts of a long segment that arrives: it is merged here, too.
    "mss",
    "mtu",
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
    "tolerance_percent",
    "send_omit_free",
    "initial_sequence_number",
];

/// Reads the settings of `script`. Files that its first command names are relative to `folder`.
pub fn read(script: &Script<'_>, folder: Option<&Path>) -> Result<Settings, Finding> {
    // packetdrill's default tolerance is 4 ms.
    let mut settings =
        Settings { config: Profile::Linux6.config(), ecn: 2, tolerance: Span::from_millis(4), timestamp_tick: None };
    for (at, name, value) in &script.options {
        let number = || {
            let number: Option<u64> = value.parse().ok();
            number.ok_or_else(|| Finding::new(at.line, format!("--{name}: `{value}` is not a number of microseconds")))
        };
        match *name {
            "tolerance_usecs" => settings.tolerance = Span::from_micros(number()?),
            "tcp_ts_tick_usecs" => {
                settings.timestamp_tick = Some(Span::from_micros(number()?)).filter(|tick| !tick.is_zero());
            }
            name if OPTIONS.contains(&name) => {}
            name => return Err(Finding::new(at.line, format!("the option --{name}"))),
        }
    }
    if let Some((at, command)) = script.start {
        commands(&mut settings, command, at, folder, true)?;
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
) -> Result<(), Finding> {
    let joined = text.replace("\\\n", " ");
    for line in joined.split(['\n', ';']) {
        let words = words(line);
        let Some(first) = words.first() else { continue };
        let arguments = &words[1..];
        if first.ends_with("set_sysctls.py") || first == "sysctl" {
            for argument in arguments.iter().filter_map(|word| word.split_once('=')) {
                apply(settings, argument.0, argument.1).map_err(|what| Finding::new(at.line, what))?;
            }
        } else if first == "tc" {
            settings.config.pacing |= words.iter().any(|word| word == "fq");
        } else if first.ends_with(".sh") {
            let Some(folder) = folder.filter(|_| strict && !first.starts_with("/tmp/")) else { continue };
            let path = folder.join(first);
            let file = std::fs::read_to_string(&path)
                .map_err(|error| Finding::new(at.line, format!("{}: {error}", path.display())))?;
            commands(settings, &file, at, None, false)?;
        } else if strict && !is_harmless(line) {
            return Err(Finding::new(at.line, format!("the command `{}`", line.trim())));
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
fn numbers(value: &str) -> Result<Vec<u64>, String> {
    let product = |word: &str| {
        let factors = word.trim_start_matches("$((").trim_end_matches("))").split('*');
        factors
            .map(|factor| factor.parse::<u64>().ok())
            .try_fold(1, |product: u64, factor| product.checked_mul(factor?))
    };
    let numbers: Option<Vec<u64>> = value.split_whitespace().map(product).collect();
    numbers.ok_or_else(|| format!("the value `{value}` of a setting is not a number"))
}

/// The largest window without scaling.
const UNSCALED: u64 = 65_535;

/// The first window of a buffer with space for `bytes` (`tcp_select_initial_window`): whole
/// segments, at most what a header without scaling can announce.
pub fn first_offer(bytes: u64, segment_size: u16) -> Limit {
    let segments = bytes / u64::from(segment_size);
    // One more than fits is cut to the header's largest window.
    Limit::at_most(segments.clamp(1, UNSCALED / u64::from(segment_size) + 1) as u32)
}

/// Sets the kernel's setting `name`, also as a path below `/proc/sys`.
fn apply(settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
    let path = name.trim_start_matches("/proc/sys/").replace('/', ".");
    let name = path.strip_prefix("net.ipv4.").unwrap_or(&path);
    let config = &mut settings.config;
    let first =
        || numbers(value).and_then(|numbers| numbers.first().copied().ok_or_else(|| format!("{name} is empty")));
    match name {
        "tcp_rmem" => {
            let &[_, initial, maximum] = numbers(value)?.as_slice() else {
                return Err(format!("{name} has three numbers, not `{value}`"));
            };
            // Half of the buffer is overhead. The shift depends on the whole buffer.
            config.receive_buffer.initial = Bytes::new((initial / 2).min(UNSCALED));
            config.receive_buffer.first_offer = first_offer(initial / 2, config.maximum_segment_size);
            config.receive_buffer.maximum = Bytes::new(maximum);
        }
        "tcp_congestion_control" => {
            config.congestion.algorithm = algorithm(value).ok_or_else(|| format!("the congestion control {value}"))?;
        }
        "tcp_timestamps" => config.timestamps = first()? != 0,
        "tcp_window_scaling" => config.window_scaling = first()? != 0,
        "tcp_sack" => config.selective_acknowledgement = first()? != 0,
        "tcp_dsack" => config.duplicate_reports = first()? != 0,
        "tcp_frto" => config.recovery.forward_rto = first()? != 0,
        "tcp_slow_start_after_idle" => {
            config.idle_restart = if first()? != 0 { IdleRestart::Rfc2861 } else { IdleRestart::Off };
        }
        "tcp_syn_retries" => config.opening_retries = first()? as u32,
        "tcp_syn_linear_timeouts" => config.opening_linear_timeouts = first()? as u32,
        "tcp_retries2" => config.retransmission_timeout.retries = first()? as u32,
        "tcp_reordering" => config.recovery.duplicate_threshold = first()?.max(1) as u32,
        // Bit 0 of tcp_recovery; values from 3 on of tcp_early_retrans.
        "tcp_recovery" => config.recovery.rack = first()? & 1 != 0,
        "tcp_early_retrans" => config.recovery.tail_loss_probe = first()? >= 3,
        "tcp_rto_max_ms" => config.retransmission_timeout.maximum = Span::from_millis(first()?),
        "tcp_rto_min_us" => config.retransmission_timeout.minimum = Span::from_micros(first()?),
        "tcp_ecn_option" | "tcp_ecn_option_beacon" => {
            ecn_option(config, name, value).ok_or_else(|| format!("{name} = {value}"))?;
        }
        "tcp_ecn" => {
            settings.ecn = match first()? {
                known @ 0..=5 => known as u8,
                other => return Err(format!("tcp_ecn = {other}")),
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
        _ => return Err(format!("the setting {name}")),
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
        read(&parse(text).expect("it is valid"), None).map_err(|finding| finding.to_string())
    }

    #[test]
    fn settings_of_the_first_command() {
        let settings = settings(
            "--tolerance_usecs=7000\n`sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"\n\
             ./set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\\n /proc/sys/net/ipv4/tcp_ecn=1 # a remark`",
        );
        let settings = settings.expect("they are valid");
        assert_eq!(settings.tolerance, Span::from_millis(7));
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
