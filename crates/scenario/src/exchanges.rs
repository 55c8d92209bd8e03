//! Flows of kind `terminal` and `mail`, and files of recorded sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_app::exchanges::mail::Mail;
use airpath_app::exchanges::terminal::Generated;
use airpath_app::exchanges::{Exchange, Plan, Script};
use airpath_core::Span;

use crate::document::{Node, join};
use crate::error::{Origin, ScenarioError};
use crate::voice::wrong;

/// A flow of exchanges.
pub(crate) struct ExchangesFlow {
    pub plan: Plan,
    /// The file of the session, if it is recorded.
    pub file: Option<PathBuf>,
    /// The other keys, resolved.
    pub table: toml::Table,
}

/// Reads the keys of a flow of kind `terminal`; paths start from `folder`.
pub(crate) fn read_terminal(mut node: Node, folder: &Path, at: &str) -> Result<ExchangesFlow, ScenarioError> {
    let place = join(at, "session");
    let given = node.take("session").unwrap_or_else(|| Node::table(node.origin().clone()));
    let mut table: toml::Table = node.read(at)?;
    if let Some(key) = table.keys().next() {
        let message = format!("there is no key `{key}`");
        let error = ScenarioError::new(message, node.origin_of(key).clone(), join(at, key));
        return Err(error.help("a terminal has `session` and `tcp`"));
    }
    if given.is_table() {
        let generated: Generated = given.read(&place)?;
        generated.check().map_err(|error| wrong(&given, &place, error))?;
        let value = toml::Value::try_from(generated).expect("parameters are a table");
        table.insert("session".to_owned(), value);
        return Ok(ExchangesFlow { plan: Plan::Terminal(generated), file: None, table });
    }
    let name: String = given.read(&place)?;
    let file = folder.join(&name);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let message = format!("the session file `{}` cannot be read: {error}", file.display());
        ScenarioError::new(message, given.origin().clone(), &place)
            .help("check the path; a table of { rounds, keys, … } generates a session")
    })?;
    Ok(ExchangesFlow { plan: Plan::Recorded(Arc::new(parse(&text, &name)?)), file: Some(file), table })
}

/// Reads the keys of a flow of kind `mail`.
pub(crate) fn read_mail(node: Node, at: &str) -> Result<ExchangesFlow, ScenarioError> {
    let mail: Mail = node.read(at)?;
    mail.check().map_err(|error| wrong(&node, at, error))?;
    let table = toml::Table::try_from(mail).expect("settings are a table");
    Ok(ExchangesFlow { plan: Plan::Mail(mail), file: None, table })
}

/// The first line of a session file.
const HEADER: &str = "kind,waits,pause_ms,request_bytes,response_bytes,server_ms";
/// Most kinds of interactions.
const MOST_KINDS: usize = 16;
/// Most bytes of a request or response.
const MOST_BYTES: u32 = 1 << 30;
/// Longest pause or time of the server: a day.
const LONGEST_MS: f64 = 86_400_000.0;

/// Reads a session from the `text` of a file; `file` is what errors call it.
///
/// # Errors
/// If it is not such a file. The error has the line and the column.
pub(crate) fn parse(text: &str, file: &str) -> Result<Script, ScenarioError> {
    let mut script = Script::default();
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let wrong = |line: usize, field: &str, message: String| {
        ScenarioError::new(message, Origin::Line { file: file.to_owned(), line }, field)
    };
    let help = format!("the first line of a session file is `{HEADER}`");
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((line, other)) => return Err(wrong(line, "", format!("`{other}` is not the header")).help(help)),
        None => return Err(wrong(1, "", "the file is empty".to_owned()).help(help)),
    }
    for (line, row) in lines {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let [kind, waits, pause, request, response, processing] = fields[..] else {
            let message = format!("the line has {} values instead of 6", fields.len());
            return Err(wrong(line, "", message).help(format!("the columns are {HEADER}")));
        };
        let is_name = |text: &str| {
            (1..=32).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !is_name(kind) {
            let message = format!("`{kind}` is no name of a kind");
            return Err(wrong(line, "kind", message).help("1 to 32 lower-case letters and digits, such as `key`"));
        }
        if script.kinds.len() == MOST_KINDS && !script.kinds.iter().any(|known| known == kind) {
            let message = format!("`{kind}` is one kind too many");
            return Err(wrong(line, "kind", message).help(format!("a session has at most {MOST_KINDS} kinds")));
        }
        let waits = match waits {
            "yes" => true,
            "no" => false,
            other => {
                let message = format!("`{other}` is neither `yes` nor `no`");
                let help = "`yes`: the interaction follows the response before it; `no`: the request before it";
                return Err(wrong(line, "waits", message).help(help));
            }
        };
        let bytes = |field: &'static str, text: &str, least: u32| {
            let size = text.parse::<u32>().ok().filter(|size| (least..=MOST_BYTES).contains(size));
            size.ok_or_else(|| {
                wrong(line, field, format!("`{text}` is no number of bytes from {least} to {MOST_BYTES}"))
            })
        };
        let time = |field: &'static str, text: &str| -> Result<Span, ScenarioError> {
            let time = text.parse::<f64>().ok().filter(|time| (0.0..=LONGEST_MS).contains(time));
            let time = time.ok_or_else(|| wrong(line, field, format!("`{text}` is no time in ms, at most a day")))?;
            Ok(Span::from_secs_f64(time / 1e3))
        };
        let exchange = Exchange {
            kind: 0,
            waits,
            pause: time("pause_ms", pause)?,
            request: bytes("request_bytes", request, 0)?,
            response: bytes("response_bytes", response, 1)?,
            processing: time("server_ms", processing)?,
        };
        script.add(kind, exchange);
    }
    if script.exchanges.is_empty() {
        return Err(
            wrong(1, "", "the session has no interactions".to_owned()).help("add a line such as key,yes,200,36,44,0")
        );
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "# a session\nkind,waits,pause_ms,request_bytes,response_bytes,server_ms\n\
                           key,yes,1000,36,44,0\nkey, no, 150.5, 36, 44, 0\n\nopen,yes,0,36,30000,250\n";

    fn error(text: &str) -> String {
        parse(text, "session").expect_err("wrong").to_string()
    }

    #[test]
    fn a_session_is_read() {
        let script = parse(SESSION, "session").expect("a session");
        assert_eq!(script.kinds, ["key", "open"]);
        assert_eq!(script.exchanges.len(), 3);
        assert_eq!(script.exchanges[1].pause, Span::from_micros(150_500));
        assert!(!script.exchanges[1].waits && script.exchanges[2].kind == 1);
        assert_eq!(script.exchanges[2].processing, Span::from_millis(250));
    }

    #[test]
    fn errors_have_the_line_and_the_column() {
        for (from, to, expected) in [
            ("key,yes,1000", "Key!,yes,1000", "session:3: kind"),
            ("key, no", "key, maybe", "session:4: waits"),
            ("150.5", "-1", "session:4: pause_ms"),
            ("36,30000", "x,30000", "session:6: request_bytes"),
            ("30000", "0", "session:6: response_bytes"),
            ("250", "1e99", "session:6: server_ms"),
            (",250", "", "session:6: the line has 5 values"),
            ("kind,waits", "kind,wait", "session:2: "),
        ] {
            let message = error(&SESSION.replace(from, to));
            assert!(message.contains(expected), "{message}");
        }
        assert!(error("").contains("empty"));
        assert!(error(HEADER).contains("no interactions"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}", at in 0..120_usize, cut in 0..60_usize) {
            let _ = parse(&text, "x");
            let mut damaged: String = SESSION.chars().take(at).collect();
            damaged.push_str(&text);
            damaged.extend(SESSION.chars().skip(at + cut));
            let _ = parse(&damaged, "x");
        }
    }
}
