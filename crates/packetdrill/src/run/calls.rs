//! System calls of a script.

use std::ops::RangeInclusive;

use airpath_core::{Bytes, FlowId, Instant, Span};
use airpath_tcp::{Algorithm, Config, ConfigError, Connection, Nagle, Outcome, ReceiveBuffer, State};

use super::{Runner, Stop};
use crate::script::{Call, Value};
use crate::settings::{algorithm, first_offer};

/// A socket, by its number in the script.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    role: Role,
    no_delay: bool,
    segment_size: Option<u16>,
    opening_retries: Option<u32>,
    algorithm: Option<Algorithm>,
    /// The kernel doubles it, and offers half of that.
    receive_buffer: Option<u64>,
    /// Shut down for writing.
    shut: bool,
    /// Shut down for reading.
    deaf: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Fresh,
    Listening,
    /// The connection belongs to it.
    Connected,
}

impl Socket {
    pub fn is_listening(&self) -> bool {
        self.role == Role::Listening
    }

    /// Settings of a connection of this socket. An error has what does not fit together.
    fn configure(&self, mut config: Config) -> Result<Config, ConfigError> {
        if self.no_delay {
            config.nagle = Nagle::Off;
        }
        config.maximum_segment_size = self.segment_size.unwrap_or(config.maximum_segment_size);
        config.opening_retries = self.opening_retries.unwrap_or(config.opening_retries);
        config.congestion.algorithm = self.algorithm.unwrap_or(config.congestion.algorithm);
        if let Some(bytes) = self.receive_buffer {
            config.receive_buffer = ReceiveBuffer {
                initial: Bytes::new(bytes),
                first_offer: first_offer(bytes, config.maximum_segment_size),
                maximum: Bytes::new(bytes),
                ..config.receive_buffer
            };
        }
        config.check()?;
        Ok(config)
    }
}

/// A call that blocks.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    line: u32,
    kind: PendingKind,
    socket: i64,
    /// When it returns, by the script, how long after its begin, and what.
    end: Instant,
    duration: Span,
    result: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingKind {
    Connect,
    Accept,
    /// The most bytes to read.
    Read(u64),
}

/// Options of sockets that change nothing that this end point has.
const IGNORED_OPTIONS: [&str; 7] =
    ["SO_REUSEADDR", "SO_SNDBUF", "IP_TOS", "IP_MTU_DISCOVER", "IP_FREEBIND", "SO_MARK", "SO_PRIORITY"];
const SET_OPTIONS: [&str; 5] = ["TCP_NODELAY", "TCP_MAXSEG", "TCP_SYNCNT", "TCP_CONGESTION", "SO_RCVBUF"];
/// Values of TCP_MAXSEG: TCP_MIN_MSS to MAX_TCP_WINDOW of Linux.
const SEGMENT_SIZES: RangeInclusive<u16> = 88..=32_767;
/// Values of TCP_SYNCNT: up to MAX_TCP_SYNCNT of Linux.
const SYN_COUNTS: RangeInclusive<u32> = 1..=127;
/// The kernel doubles the value of SO_RCVBUF.
const MOST_RECEIVE_BUFFER: i64 = i32::MAX as i64 / 2;
/// The most bytes of one write or read (MAX_RW_COUNT of Linux).
const MOST_BYTES: i64 = 0x7fff_f000;
const READ_OPTIONS: [&str; 2] = ["TCP_MAXSEG", "SO_ERROR"];

/// Why a call is not applicable, if it is not.
pub fn unsupported(call: &Call<'_>) -> Option<String> {
    let word = |index: usize| match call.arguments.get(index) {
        Some(Value::Word(word)) => *word,
        _ => "",
    };
    let flags = |index: usize| !matches!(call.arguments.get(index), None | Some(Value::Integer(0)));
    let null = Value::Word("NULL");
    let may_be_null = match call.name {
        "accept" | "connect" => true,
        "write" | "send" | "sendto" | "read" | "recv" | "recvfrom" => call.end.is_none(),
        _ => false,
    };
    if call.arguments.contains(&null) && !may_be_null {
        return Some("invalid addresses of memory".into());
    }
    match call.name {
        "connect" | "accept" | "read" | "recv" | "recvfrom" | "write" | "send" | "sendto" => {}
        name if call.end.is_some() => return Some(format!("a call of {name} that blocks")),
        _ => {}
    }
    match call.name {
        "socket" if !is_stream(call.arguments.get(1)) => Some("a socket that is not SOCK_STREAM".into()),
        "write" | "send" | "sendto" if call.end.is_some() => {
            Some("a write that blocks: this end point has no limit of its send buffer".into())
        }
        "send" | "sendto" | "recv" | "recvfrom" if flags(3) => Some(format!("flags of the call {}", call.name)),
        "setsockopt" if !IGNORED_OPTIONS.contains(&word(2)) && !SET_OPTIONS.contains(&word(2)) => {
            Some(format!("the option {} of a socket", word(2)))
        }
        "getsockopt" if !READ_OPTIONS.contains(&word(2)) => Some(format!("reading the option {} of a socket", word(2))),
        "ioctl" if word(1) != "SIOCINQ" && word(1) != "FIONREAD" => Some(format!("ioctl with {}", word(1))),
        "socket" | "bind" | "listen" | "accept" | "connect" | "fcntl" | "setsockopt" | "getsockopt" | "write"
        | "send" | "sendto" | "sendfile" | "open" | "read" | "recv" | "recvfrom" | "close" | "shutdown" | "ioctl" => {
            None
        }
        name => Some(format!("the call {name}")),
    }
}

/// Whether the type of a socket is `SOCK_STREAM`, perhaps with flags.
fn is_stream(kind: Option<&Value<'_>>) -> bool {
    match kind {
        Some(Value::Or(parts)) => parts.contains(&Value::Word("SOCK_STREAM")),
        kind => kind == Some(&Value::Word("SOCK_STREAM")),
    }
}

/// What a call returns: a number, or the name of an error.
type Returned = Result<i64, &'static str>;

impl Runner<'_> {
    /// Runs a call. The time at which it returns counts from `base`.
    pub fn call(&mut self, call: &Call<'_>, base: Instant) -> Result<(), Stop> {
        if let Some(pending) = self.pending {
            return Err(self.failed(format!("the call of line {} still blocks", pending.line)));
        }
        let number = |index: usize| match call.arguments.get(index) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        };
        let result = match call.result {
            Value::Integer(number) => number,
            _ => 0,
        };
        let socket = number(0);
        if !matches!(call.name, "socket" | "open") && !self.sockets.contains_key(&socket) {
            return Err(self.failed(format!("{}: there is no socket {socket}", call.name)));
        }
        if let Some(end) = call.end {
            let kind = match call.name {
                "connect" => PendingKind::Connect,
                "accept" => PendingKind::Accept,
                _ => PendingKind::Read(number(2).unsigned_abs()),
            };
            if kind == PendingKind::Connect {
                self.connect(socket)?;
            }
            let end = base + end;
            let duration = end.since(self.now);
            self.pending = Some(Pending { line: self.line, kind, socket, end, duration, result });
            return self.transmit();
        }
        let is_null = call.arguments.get(1) == Some(&Value::Word("NULL"));
        let returned = match call.name {
            "socket" => {
                self.sockets.insert(result, Socket::default());
                Ok(result)
            }
            "bind" => Ok(0),
            "open" => Ok(result),
            "fcntl" => Ok(result),
            "listen" => {
                self.socket(socket).role = Role::Listening;
                Ok(0)
            }
            "accept" => self.accept(result),
            "connect" => {
                let again = self.connection.is_some() && self.socket(socket).role == Role::Connected;
                if again {
                    self.connected()
                } else {
                    self.connect(socket)?;
                    Err("EINPROGRESS")
                }
            }
            "write" | "send" | "sendto" if is_null && number(2) > 0 => Err("EFAULT"),
            "read" | "recv" | "recvfrom" if is_null && self.is_readable() => Err("EFAULT"),
            "write" | "send" | "sendto" | "read" | "recv" | "recvfrom" if number(2) < 0 => Err("EINVAL"),
            "sendfile" if number(3) < 0 => Err("EINVAL"),
            "sendfile" => self.write(socket, number(3)),
            "write" | "send" | "sendto" => {
                if 0 < result && result < number(2) {
                    let reason = "a write is cut: this end point has no limit of its send buffer";
                    return Err(Stop::NotApplicable(crate::Finding::new(self.line, reason)));
                }
                self.write(socket, number(2))
            }
            "read" | "recv" | "recvfrom" => match self.read(number(2).unsigned_abs()) {
                Err("EAGAIN") if self.socket(socket).deaf => Ok(0),
                returned => returned,
            },
            "close" => self.close(socket),
            "shutdown" => self.shut_down(socket, call),
            "setsockopt" => self.set_option(socket, call)?,
            "getsockopt" => self.read_option(call)?,
            "ioctl" => {
                let readable = self.connection.as_ref().map_or(0, Connection::readable);
                self.compare_value(call, 2, readable)?;
                Ok(0)
            }
            name => return Err(self.failed(format!("the call {name}"))),
        };
        self.compare_result(call, returned)?;
        self.transmit()
    }

    fn socket(&mut self, number: i64) -> &mut Socket {
        self.sockets.get_mut(&number).expect("its existence was checked")
    }

    fn compare_result(&self, call: &Call<'_>, returned: Returned) -> Result<(), Stop> {
        let shown = match returned {
            Ok(number) => number.to_string(),
            Err(error) => format!("-1 {error}"),
        };
        let fits = match (&call.result, returned) {
            (Value::Any, _) => true,
            (Value::Integer(wanted), Ok(number)) => *wanted == number,
            (Value::Integer(-1), Err(error)) => call.error.is_none_or(|wanted| wanted == error),
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.failed(format!("{} returns {shown}", call.name))) }
    }

    /// Compares a value with that in the argument `index`, alone or in brackets.
    fn compare_value(&self, call: &Call<'_>, index: usize, value: u64) -> Result<(), Stop> {
        let wanted = match call.arguments.get(index) {
            Some(Value::List(items)) => items.first(),
            other => other,
        };
        match wanted {
            Some(Value::Integer(number)) if u64::try_from(*number) != Ok(value) => {
                Err(self.failed(format!("{} finds {value}, expected {number}", call.name)))
            }
            _ => Ok(()),
        }
    }

    /// The settings of a connection of `socket`.
    pub fn configured(&self, socket: &Socket, config: Config) -> Result<Config, Stop> {
        let problem = |error| crate::Finding::new(self.line, format!("the options of the socket: {error}"));
        socket.configure(config).map_err(|error| Stop::NotApplicable(problem(error)))
    }

    fn connect(&mut self, number: i64) -> Result<(), Stop> {
        let config = self.configured(&self.sockets[&number], self.settings.connecting())?;
        self.socket(number).role = Role::Connected;
        self.connection = Some(Connection::connect(config, Self::identity(), self.now));
        self.connects = true;
        Ok(())
    }

    /// Result of a connect while the connection opens, or after that.
    fn connected(&self) -> Returned {
        match self.connection.as_ref().map(|connection| (connection.state(), connection.outcome())) {
            Some((State::SynSent | State::SynReceived, _)) => Err("EALREADY"),
            Some((_, Some(outcome))) => Err(error_of(outcome)),
            _ => Ok(0),
        }
    }

    fn accept(&mut self, number: i64) -> Returned {
        let is_open = self.connection.as_ref().is_some_and(|connection| connection.state().is_synchronised());
        if !self.unaccepted || !is_open {
            return Err("EAGAIN");
        }
        self.unaccepted = false;
        let listener = self.sockets.values().find(|socket| socket.is_listening());
        let inherited = listener.cloned().unwrap_or_default();
        self.sockets.insert(number, Socket { role: Role::Connected, ..inherited });
        Ok(number)
    }

    fn write(&mut self, number: i64, bytes: i64) -> Returned {
        let shut = self.socket(number).shut;
        let Some(connection) = self.connection.as_mut() else { return Err("ENOTCONN") };
        match connection.outcome() {
            _ if shut => return Err("EPIPE"),
            Some(Outcome::Closed) => return Err("EPIPE"),
            Some(outcome) => return Err(error_of(outcome)),
            None => {}
        }
        if !connection.state().is_synchronised() {
            return Err("EAGAIN");
        }
        let bytes = bytes.min(MOST_BYTES);
        connection.write(bytes.unsigned_abs());
        Ok(bytes)
    }

    fn read(&mut self, most: u64) -> Returned {
        let Some(connection) = self.connection.as_mut() else { return Err("ENOTCONN") };
        let bytes = connection.readable().min(most);
        if bytes > 0 {
            connection.read(bytes);
            return Ok(bytes.cast_signed());
        }
        match connection.outcome() {
            Some(Outcome::Closed) => Ok(0),
            Some(outcome) => Err(error_of(outcome)),
            None if connection.peer_closed() => Ok(0),
            None => Err("EAGAIN"),
        }
    }

    fn is_readable(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.readable() > 0)
    }

    fn close(&mut self, number: i64) -> Returned {
        let role = self.socket(number).role;
        self.sockets.remove(&number);
        if role == Role::Connected {
            self.with(|connection, now, cx| {
                // Unread data are lost, so the peer gets a reset (RFC 2525 §2.17); a connection
                // that is not open yet disappears.
                let opens = matches!(connection.state(), State::SynSent | State::SynReceived);
                if connection.readable() > 0 || opens {
                    connection.abort(now, cx);
                } else {
                    connection.close();
                }
            });
        }
        Ok(0)
    }

    fn shut_down(&mut self, number: i64, call: &Call<'_>) -> Returned {
        let reads = matches!(call.arguments.get(1), Some(Value::Word("SHUT_RD" | "SHUT_RDWR")));
        self.socket(number).deaf |= reads;
        let writes = matches!(call.arguments.get(1), Some(Value::Word("SHUT_WR" | "SHUT_RDWR")));
        if writes && let Some(connection) = self.connection.as_mut() {
            if connection.outcome().is_some() {
                return Err("ENOTCONN");
            }
            connection.close();
            self.socket(number).shut = true;
        }
        Ok(0)
    }

    fn set_option(&mut self, number: i64, call: &Call<'_>) -> Result<Returned, Stop> {
        let value = match call.arguments.get(3) {
            Some(Value::List(items)) => items.first(),
            other => other,
        };
        let integer = match value {
            Some(Value::Integer(integer)) => *integer,
            _ => 0,
        };
        let Some(Value::Word(name)) = call.arguments.get(2) else { return Ok(Err("EINVAL")) };
        let socket = self.socket(number);
        let connected = socket.role == Role::Connected;
        match *name {
            "TCP_NODELAY" => socket.no_delay = integer != 0,
            "TCP_MAXSEG" => match u16::try_from(integer) {
                Ok(0) => socket.segment_size = None,
                Ok(size) if SEGMENT_SIZES.contains(&size) => socket.segment_size = Some(size),
                _ => return Ok(Err("EINVAL")),
            },
            "SO_RCVBUF" if connected => {
                let reason = "SO_RCVBUF of an open connection: its window does not shrink";
                return Err(Stop::NotApplicable(crate::Finding::new(self.line, reason)));
            }
            "SO_RCVBUF" => {
                socket.receive_buffer = u64::try_from(integer.min(MOST_RECEIVE_BUFFER)).ok().filter(|bytes| *bytes > 0);
            }
            "TCP_SYNCNT" => match u32::try_from(integer) {
                Ok(count) if SYN_COUNTS.contains(&count) => socket.opening_retries = Some(count),
                _ => return Ok(Err("EINVAL")),
            },
            "TCP_CONGESTION" => match value {
                Some(Value::Text(name)) => match algorithm(name) {
                    Some(algorithm) => socket.algorithm = Some(algorithm),
                    None => return Ok(Err("ENOENT")),
                },
                _ => return Ok(Err("EINVAL")),
            },
            _ => {}
        }
        if *name == "TCP_NODELAY" && connected {
            let nagle = if integer == 0 { Nagle::Minshall } else { Nagle::Off };
            if let Some(connection) = self.connection.as_mut() {
                let config = Config { nagle, ..Config::clone(connection.config()) };
                connection.restore(config.into(), FlowId(0));
            }
        }
        Ok(Ok(0))
    }

    fn read_option(&self, call: &Call<'_>) -> Result<Returned, Stop> {
        let connection = self.connection.as_ref();
        let Some(Value::Word(name)) = call.arguments.get(2) else { return Ok(Err("EINVAL")) };
        if *name == "TCP_MAXSEG" {
            let socket = match call.arguments.first() {
                Some(Value::Integer(number)) => self.sockets.get(number),
                _ => None,
            };
            let configured =
                socket.filter(|socket| socket.role != Role::Connected).and_then(|socket| socket.segment_size);
            let negotiated = connection.map_or(536, |connection| u64::from(connection.segment_size()));
            self.compare_value(call, 3, configured.map_or(negotiated, u64::from))?;
        } else {
            let error = connection.and_then(Connection::outcome).filter(|outcome| *outcome != Outcome::Closed);
            let wanted = match call.arguments.get(3) {
                Some(Value::List(items)) => items.first(),
                other => other,
            };
            let fits = match (wanted, error.map(error_of)) {
                (Some(Value::Integer(number)), error) => (*number == 0) == error.is_none(),
                (Some(Value::Word(word)), error) => error == Some(word),
                _ => true,
            };
            if !fits {
                return Err(self.failed(format!("the error of the socket is {}", error.map_or("none", error_of))));
            }
        }
        Ok(Ok(0))
    }

    /// Ends the call that blocks, if what it waits for has happened.
    pub fn complete_pending(&mut self) -> Result<(), Stop> {
        let (Some(pending), Some(connection)) = (self.pending, self.connection.as_ref()) else { return Ok(()) };
        let open = connection.state().is_synchronised();
        let over = connection.outcome().is_some();
        let done = match pending.kind {
            PendingKind::Connect => open || over,
            PendingKind::Accept => open && self.unaccepted,
            PendingKind::Read(_) => connection.readable() > 0 || connection.peer_closed() || over,
        };
        if !done {
            return Ok(());
        }
        self.pending = None;
        self.line = pending.line;
        // packetdrill counts from the begin of the call, not from the last event.
        let tolerance = self.settings.tolerance(pending.duration);
        if self.now + tolerance < pending.end || self.now > pending.end + tolerance {
            let (now, end) = (Self::seconds(self.now), Self::seconds(pending.end));
            return Err(self.failed(format!("the call returns at {now}, expected at {end}")));
        }
        let returned = match pending.kind {
            PendingKind::Connect => self.connected(),
            PendingKind::Accept => self.accept(pending.result),
            PendingKind::Read(most) => self.read(most),
        };
        let number = returned.unwrap_or(-1);
        if number == pending.result {
            Ok(())
        } else {
            let socket = pending.socket;
            Err(self.failed(format!("the call for socket {socket} returns {number}, expected {}", pending.result)))
        }
    }
}

/// The error of a call on a connection that has ended.
const fn error_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Closed => "EPIPE",
        Outcome::Reset => "ECONNRESET",
        Outcome::Refused => "ECONNREFUSED",
        Outcome::Unreachable => "EHOSTUNREACH",
        Outcome::Aborted => "ECONNABORTED",
        Outcome::TimedOut(_) => "ETIMEDOUT",
    }
}
