//! Reads a script.

mod packet;

use airpath_core::Span;

use crate::code::Code;
use crate::lexer::{Kind, Token, tokens};
use crate::position::{Position, SyntaxError};
use crate::script::{Action, Call, Event, Script, Time, Value};

/// Reads a script. What the language has and this reader has not becomes
/// [`Action::Unsupported`]; everything else that does not fit is an error.
pub fn parse(text: &str) -> Result<Script<'_>, SyntaxError> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, elapsed: Span::ZERO };
    let options = parser.options()?;
    let start = match *parser.peek() {
        Kind::Command(command) => Some((parser.take().at, command)),
        _ => None,
    };
    let mut events = Vec::new();
    while *parser.peek() != Kind::End {
        if let Kind::Command(command) = *parser.peek() {
            // The command at the end, without a time.
            let at = parser.take().at;
            events.push(Event { at, time: Time::Any, action: Action::Command(command) });
            if *parser.peek() != Kind::End {
                return Err(parser.unexpected("the end of the script after a command without a time"));
            }
            break;
        }
        events.push(parser.event()?);
    }
    check_order(&events)?;
    Ok(Script { options, start, events })
}

/// Whether the first event is at 0, and no absolute time is before the absolute time of the event
/// before it, as packetdrill demands (`get_next_event`).
fn check_order(events: &[Event<'_>]) -> Result<(), SyntaxError> {
    let absolute = |time: Time| match time {
        Time::Absolute(begin) | Time::AbsoluteRange(begin, _) => Some(begin),
        _ => None,
    };
    if let Some(first) = events.first()
        && let Time::Absolute(begin)
        | Time::Relative(begin)
        | Time::AbsoluteRange(begin, _)
        | Time::RelativeRange(begin, _) = first.time
        && !begin.is_zero()
    {
        return Err(SyntaxError::new(first.at, "the first event is at time 0"));
    }
    for pair in events.windows(2) {
        if let (Some(before), Some(begin)) = (absolute(pair[0].time), absolute(pair[1].time))
            && begin < before
        {
            let (begin, before) = (begin.as_secs_f64(), before.as_secs_f64());
            return Err(SyntaxError::new(pair[1].at, format!("{begin} s is before the last event, {before} s")));
        }
    }
    Ok(())
}

/// The system calls of packetdrill, with those that are not applicable here.
const CALLS: [&str; 32] = [
    "accept",
    "bind",
    "cap_set",
    "close",
    "connect",
    "epoll_create",
    "epoll_ctl",
    "epoll_wait",
    "fcntl",
    "getsockopt",
    "ioctl",
    "listen",
    "open",
    "pipe",
    "poll",
    "psp_rx_assoc",
    "psp_tx_assoc",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendfile",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "splice",
    "write",
    "writev",
];

/// Why parsing of an event ends.
enum Stop {
    Invalid(SyntaxError),
    /// The rest of the event is skipped.
    Unsupported(String),
}

impl From<SyntaxError> for Stop {
    fn from(error: SyntaxError) -> Self {
        Self::Invalid(error)
    }
}

/// The longest time in a script, and the longest sum of its relative times.
const LONGEST: Span = Span::from_secs(100_000_000);

/// Values within values.
const MOST_NESTED: u32 = 100;

/// The largest window of TCP (RFC 7323 §2.3). More payload than that never arrives at once.
const MOST_PAYLOAD: u32 = 1 << 30;

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    /// Values around the current one.
    depth: u32,
    /// Sum of the relative times so far.
    elapsed: Span,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &Kind<'a> {
        &self.tokens[self.next].kind
    }

    fn peek_after(&self, distance: usize) -> &Kind<'a> {
        self.tokens.get(self.next + distance).map_or(&Kind::End, |token| &token.kind)
    }

    fn at(&self) -> Position {
        self.tokens[self.next].at
    }

    /// Whether the next token is the first of its line.
    fn leads(&self) -> bool {
        self.tokens[self.next].leads
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.tokens[self.next].clone();
        if token.kind != Kind::End {
            self.next += 1;
        }
        token
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        SyntaxError::new(self.at(), format!("expected {expected}, not {}", self.peek()))
    }

    fn is_sign(&self, sign: char) -> bool {
        *self.peek() == Kind::Sign(sign)
    }

    fn is_word(&self, word: &str) -> bool {
        *self.peek() == Kind::Word(word)
    }

    /// Takes `sign` if it is next.
    fn accept(&mut self, sign: char) -> bool {
        let is = self.is_sign(sign);
        self.next += usize::from(is);
        is
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.next += usize::from(is);
        is
    }

    fn expect(&mut self, sign: char, context: &str) -> Result<(), SyntaxError> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}` {context}"))) }
    }

    /// A whole number that fits the wanted type.
    fn integer<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, SyntaxError> {
        let Kind::Integer(number) = *self.peek() else { return Err(self.unexpected(what)) };
        let fits = T::try_from(number);
        let value = fits.map_err(|_| SyntaxError::new(self.at(), format!("{number} is out of range for {what}")))?;
        self.next += 1;
        Ok(value)
    }

    /// Lines such as `--tolerance_usecs=10000`.
    fn options(&mut self) -> Result<Vec<(Position, &'a str, String)>, SyntaxError> {
        let mut options = Vec::new();
        while let Kind::Flag(name) = *self.peek() {
            let at = self.take().at;
            let mut value = String::new();
            if self.accept('=') {
                let line = self.tokens[self.next - 1].at.line;
                while self.at().line == line && *self.peek() != Kind::End {
                    match self.take().kind {
                        Kind::Integer(number) => value += &number.to_string(),
                        Kind::Decimal(_, text) | Kind::Word(text) | Kind::Text(text) | Kind::Command(text) => {
                            value += text;
                        }
                        Kind::Sign(sign) => value.push(sign),
                        other => value += &other.to_string(),
                    }
                }
            }
            options.push((at, name, value));
        }
        Ok(options)
    }

    fn event(&mut self) -> Result<Event<'a>, SyntaxError> {
        let at = self.at();
        let time = self.time()?;
        self.pass(at, time)?;
        self.check_after_time(at, time)?;
        let action = match self.action() {
            Ok(action) => action,
            Err(Stop::Invalid(error)) => return Err(error),
            Err(Stop::Unsupported(reason)) => {
                self.skip_event();
                Action::Unsupported(reason)
            }
        };
        Ok(Event { at, time, action })
    }

    /// Adds a relative time to those before it.
    fn pass(&mut self, at: Position, time: Time) -> Result<(), SyntaxError> {
        if let Time::Relative(span) | Time::RelativeRange(_, span) = time {
            self.elapsed += span;
        }
        if self.elapsed > LONGEST {
            let most = LONGEST.as_secs_f64();
            return Err(SyntaxError::new(at, format!("the times up to here add up to more than {most} s")));
        }
        Ok(())
    }

    /// What may follow `time`, as in packetdrill.
    fn check_after_time(&self, at: Position, time: Time) -> Result<(), SyntaxError> {
        let is_exact = matches!(time, Time::Absolute(_) | Time::Relative(_));
        if !is_exact && !self.is_sign('>') {
            let what = if time == Time::Any { "the time `*`" } else { "a range of times" };
            return Err(SyntaxError::new(at, format!("{what} needs a segment that is expected: `>`")));
        }
        if self.tokens[self.next].adjoins && matches!(self.peek(), Kind::Word(_)) {
            let problem = format!("times are seconds without a unit: remove {}", self.peek());
            return Err(SyntaxError::new(self.at(), problem));
        }
        Ok(())
    }

    /// Skips to the next line that begins with a time.
    fn skip_event(&mut self) {
        loop {
            let token = &self.tokens[self.next];
            let time = matches!(token.kind, Kind::Sign('+' | '*') | Kind::Integer(_) | Kind::Decimal(..));
            if token.kind == Kind::End || token.leads && (time || matches!(token.kind, Kind::Command(_))) {
                return;
            }
            self.next += 1;
        }
    }

    fn time(&mut self) -> Result<Time, SyntaxError> {
        if self.accept('*') {
            return Ok(Time::Any);
        }
        let relative = self.accept('+');
        let begin = self.seconds("a time, such as `+.1` or `0.5`")?;
        if self.accept('~') {
            if relative {
                self.expect('+', "before the end of a range of relative times")?;
            }
            let end_at = self.at();
            let end = self.seconds("the end of a range of times")?;
            if end < begin {
                return Err(SyntaxError::new(end_at, "the range of times ends before it begins"));
            }
            return Ok(if relative { Time::RelativeRange(begin, end) } else { Time::AbsoluteRange(begin, end) });
        }
        Ok(if relative { Time::Relative(begin) } else { Time::Absolute(begin) })
    }

    fn seconds(&mut self, what: &str) -> Result<Span, SyntaxError> {
        let value = match *self.peek() {
            Kind::Integer(number) => number as f64,
            Kind::Decimal(number, _) => number,
            _ => return Err(self.unexpected(what)),
        };
        if !(0.0..=LONGEST.as_secs_f64()).contains(&value) {
            return Err(SyntaxError::new(self.at(), format!("{value} s is out of range for {what}")));
        }
        self.next += 1;
        // Microseconds, as in packetdrill.
        Ok(Span::from_micros((value * 1e6).round() as u64))
    }

    fn action(&mut self) -> Result<Action<'a>, Stop> {
        match *self.peek() {
            Kind::Sign('<') => {
                self.next += 1;
                Ok(Action::Arrival(self.packet(true)?))
            }
            Kind::Sign('>') => {
                self.next += 1;
                Ok(Action::Departure(self.packet(false)?))
            }
            Kind::Command(command) => {
                self.next += 1;
                Ok(Action::Command(command))
            }
            Kind::Code(code) => {
                let at = self.take().at;
                Ok(Action::Code(Code::parse(code, Position { column: at.column + 2, ..at })?))
            }
            Kind::Word(_) | Kind::Ellipsis => Ok(Action::Call(self.call()?)),
            _ => Err(self.unexpected("`<`, `>`, a system call, a command in back quotes or `%{`").into()),
        }
    }

    fn call(&mut self) -> Result<Call<'a>, Stop> {
        let end = if *self.peek() == Kind::Ellipsis {
            self.next += 1;
            Some(self.seconds("the time at which the call returns")?)
        } else {
            None
        };
        let Kind::Word(name) = *self.peek() else { return Err(self.unexpected("the name of a system call").into()) };
        let at = self.take().at;
        self.expect('(', "after the name of a system call")?;
        if !CALLS.contains(&name) {
            return Err(SyntaxError::new(at, format!("packetdrill has no system call `{name}`")).into());
        }
        let arguments = self.values(')')?;
        self.expect('=', "and the result of the call")?;
        let result = self.value()?;
        let mut error = None;
        if let Kind::Word(word) = *self.peek() {
            self.next += 1;
            error = Some(word);
        }
        if self.accept('(') {
            // A remark, such as the text of the error.
            while !self.accept(')') {
                if *self.peek() == Kind::End {
                    return Err(self.unexpected("`)`").into());
                }
                self.next += 1;
            }
        }
        Ok(Call { end, name, arguments, result, error })
    }

    /// Values up to the sign `end`, which is taken.
    fn values(&mut self, end: char) -> Result<Vec<Value<'a>>, SyntaxError> {
        let mut values = Vec::new();
        if self.accept(end) {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if self.accept(end) {
                return Ok(values);
            }
            if !self.accept(',') {
                return Err(self.unexpected(&format!("`,` or `{end}`")));
            }
        }
    }

    fn value(&mut self) -> Result<Value<'a>, SyntaxError> {
        if self.depth == MOST_NESTED {
            return Err(SyntaxError::new(self.at(), format!("more than {MOST_NESTED} values within each other")));
        }
        self.depth += 1;
        let value = self.joined_value();
        self.depth -= 1;
        value
    }

    fn joined_value(&mut self) -> Result<Value<'a>, SyntaxError> {
        let first = self.single_value()?;
        if !self.is_sign('|') {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.accept('|') {
            values.push(self.single_value()?);
        }
        Ok(Value::Or(values))
    }

    fn single_value(&mut self) -> Result<Value<'a>, SyntaxError> {
        match *self.peek() {
            Kind::Ellipsis => {
                self.next += 1;
                Ok(Value::Any)
            }
            Kind::Integer(number) => {
                self.next += 1;
                Ok(Value::Integer(number))
            }
            Kind::Text(text) => {
                self.next += 1;
                // Several strings in a row are one; a string and `...` has any end.
                while matches!(self.peek(), Kind::Text(_) | Kind::Ellipsis) {
                    self.next += 1;
                }
                Ok(Value::Text(text))
            }
            Kind::Word(word) => {
                self.next += 1;
                if self.accept('(') {
                    self.values(')')?;
                    return Ok(Value::Structure);
                }
                if self.accept('=') {
                    // `symbol=value`.
                    self.value()?;
                }
                Ok(Value::Word(word))
            }
            Kind::Sign('[') => {
                self.next += 1;
                Ok(Value::List(self.values(']')?))
            }
            Kind::Sign('{') => {
                self.skip_braces()?;
                Ok(Value::Structure)
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    fn skip_braces(&mut self) -> Result<(), SyntaxError> {
        let begin = self.at();
        let mut depth = 0_u32;
        loop {
            match self.take().kind {
                Kind::Sign('{') => depth += 1,
                Kind::Sign('}') => depth -= 1,
                Kind::End => return Err(SyntaxError::new(begin, "the `{` here has no `}`")),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).expect_err("the script is invalid").to_string()
    }

    #[test]
    fn times_and_calls() {
        let script = parse("--mtu=1500\n`./defaults.sh`\n0 socket(..., SOCK_STREAM, 0) = 3\n+.1~+.2 > . 1:1(0) ack 1 <...>\n* > . 1:1(0) ack 1\n+0...0.5 read(3, ..., 10) = -1 EAGAIN (no data yet)").expect("it is valid");
        assert_eq!(script.options[0].1, "mtu");
        assert_eq!(script.options[0].2, "1500");
        assert_eq!(script.start.map(|(_, command)| command), Some("./defaults.sh"));
        let times: Vec<_> = script.events.iter().map(|event| event.time).collect();
        let millis = Span::from_millis;
        let expected = [
            Time::Absolute(millis(0)),
            Time::RelativeRange(millis(100), millis(200)),
            Time::Any,
            Time::Relative(millis(0)),
        ];
        assert_eq!(times, expected);
        let Action::Call(call) = &script.events[3].action else { panic!("{:?}", script.events[3]) };
        assert_eq!((call.name, call.end, call.error), ("read", Some(millis(500)), Some("EAGAIN")));
        assert_eq!(call.arguments, [Value::Integer(3), Value::Any, Value::Integer(10)]);
        assert_eq!(call.result, Value::Integer(-1));
    }

    #[test]
    fn errors_have_line_and_column() {
        assert_eq!(
            error("0 socket(...) = 3\n+.1 write 4"),
            "2:11: expected `(` after the name of a system call, not `4`"
        );
        assert_eq!(error("+.2~+.1 > . 1:1(0)"), "1:6: the range of times ends before it begins");
        assert_eq!(error("zero socket() = 3"), "1:1: expected a time, such as `+.1` or `0.5`, not `zero`");
        assert_eq!(error("0 read(4, ..., {1) = 3"), "1:16: the `{` here has no `}`");
        assert_eq!(error("+0 ...0.5 sokcet(4) = 0"), "1:11: packetdrill has no system call `sokcet`");
        assert_eq!(error("+.1s < . 1:1(0) ack 1 win 5"), "1:4: times are seconds without a unit: remove `s`");
        for event in ["< . 1:1(0) win 5", "close(3) = 0", "%{ x = 1 }%", "`sysctl -q a=1`"] {
            assert_eq!(error(&format!("* {event}")), "1:1: the time `*` needs a segment that is expected: `>`");
            let range = error(&format!("+0~+1 {event}"));
            assert_eq!(range, "1:1: a range of times needs a segment that is expected: `>`");
        }
        assert_eq!(error("0 5"), "1:3: expected `<`, `>`, a system call, a command in back quotes or `%{`, not `5`");
    }

    #[test]
    fn times_and_depths_have_limits() {
        let long = "+99999999 close(3) = 0\n";
        assert_eq!(
            error(&format!("{long}+2 close(3) = 0")),
            "2:1: the times up to here add up to more than 100000000 s"
        );
        assert_eq!(error("+1e9 close(3) = 0"), "1:2: expected a time, such as `+.1` or `0.5`, not `1e9`");
        assert_eq!(
            error("1000000000 close(3) = 0"),
            "1:1: 1000000000 s is out of range for a time, such as `+.1` or `0.5`"
        );
        assert!(parse(&format!("+0 open({}{}) = 5", "[".repeat(50), "]".repeat(50))).is_ok());
        for opening in ["[", "a=", "a("] {
            let error = error(&format!("+0 open({}", opening.repeat(50_000)));
            assert!(error.ends_with("more than 100 values within each other"), "{error}");
        }
        let error = error("+0 < . 1:4294967290(4294967289) ack 1 win 5");
        assert_eq!(error, "1:8: a segment has at most 1073741824 bytes");
    }

    #[test]
    fn unsupported_packets_are_skipped_up_to_the_next_event() {
        let script =
            parse("+0 < icmp unreachable frag_needed mtu 1200 [1:1(0)]\n+0 close(3) = 0").expect("it is valid");
        assert!(matches!(&script.events[0].action, Action::Unsupported(reason) if reason == "packets of icmp"));
        assert!(matches!(&script.events[1].action, Action::Call(call) if call.name == "close"));
    }
}
