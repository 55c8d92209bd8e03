//! FTP (RFC 959): a client with its control connection and a data connection for each file.
//!
//! Sizes of commands and replies are those of the texts below. Contents are counted, not carried.
//! The client is the mobile.

use std::collections::BTreeMap;

use airpath_core::{Bytes, Direction, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::exchanges::terminal::SettingError;
use crate::samples::Samples;
use crate::transport::Transport;

/// Which end opens the data connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The client, to a port of the server (`PASV`).
    #[default]
    Passive,
    /// The server, from its port 20 to a port of the client (`PORT`).
    Active,
}

impl Mode {
    /// The name under which it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passive => "passive",
            Self::Active => "active",
        }
    }
}

/// A session of FTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Of the files: to the mobile (`RETR`) or from it (`STOR`).
    pub direction: Direction,
    /// Number of files.
    pub files: u32,
    /// Bytes of a file.
    pub file: Bytes,
    /// Which end opens the data connections.
    pub mode: Mode,
    /// Time of the server for each command.
    pub processing: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            direction: Direction::Down,
            files: 1,
            file: Bytes::new(100_000),
            mode: Mode::Passive,
            processing: Span::ZERO,
        }
    }
}

impl Settings {
    /// Most bytes of a file.
    const MOST_BYTES: u64 = 1 << 40;
    /// Most files: each has a port of the mobile.
    const MOST_FILES: u32 = 10_000;

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |field, message: &'static str| Err(SettingError { field, message: message.into() });
        if !(1..=Self::MOST_FILES).contains(&self.files) {
            return wrong("files", "a session has 1 to 10,000 files");
        }
        if !(1..=Self::MOST_BYTES).contains(&self.file.get()) {
            return wrong("file", "a file has 1 byte to 1 TiB");
        }
        if self.processing > Span::from_secs(24 * 3600) {
            return wrong("processing", "it is at most one day");
        }
        Ok(())
    }

    /// Commands of the session, in order.
    const fn commands(&self) -> u32 {
        LOGIN + 2 * self.files + 1
    }

    /// Command number `number`; the greeting of the server has an empty one before all.
    fn command(&self, number: u32) -> Command {
        match number {
            0 => Command { kind: "session", text: String::new(), reply: "220 FTP server ready.\r\n".into() },
            1 => Command::new("session", "USER mobile", "331 Please specify the password."),
            2 => Command::new("session", "PASS password", "230 Login successful."),
            3 => Command::new("session", "TYPE I", "200 Switching to Binary mode."),
            _ if number == self.commands() - 1 => Command::new("session", "QUIT", "221 Goodbye."),
            _ => self.command_of_file(number),
        }
    }

    fn command_of_file(&self, number: u32) -> Command {
        let (file, transfers) = ((number - LOGIN) / 2, (number - LOGIN) % 2 == 1);
        let name = format!("file{file:05}");
        match (transfers, self.mode, self.direction) {
            (false, Mode::Passive, _) => {
                Command::new("prepare", "PASV", "227 Entering Passive Mode (192,0,2,1,195,80).")
            }
            (false, Mode::Active, _) => Command::new("prepare", "PORT 10,0,0,2,195,80", "200 PORT command successful."),
            (true, _, Direction::Down) => {
                let size = self.file.get();
                let mark = format!("150 Opening BINARY mode data connection for {name} ({size} bytes).");
                Command::new(FILE, &format!("RETR {name}"), &mark)
            }
            (true, _, Direction::Up) => Command::new(FILE, &format!("STOR {name}"), "150 Ok to send data."),
        }
    }

    /// The file that command `number` transfers, from zero.
    const fn transfers(&self, number: u32) -> Option<u32> {
        let names_file = number >= LOGIN && number < LOGIN + 2 * self.files;
        if names_file && (number - LOGIN) % 2 == 1 { Some((number - LOGIN) / 2) } else { None }
    }
}

/// Commands before those of the first file, the greeting included.
const LOGIN: u32 = 4;
/// The kind of the commands that transfer a file.
const FILE: &str = "file";
/// The reply after a transfer (RFC 959 §4.2.2).
const COMPLETE: &str = "226 Transfer complete.\r\n";

/// A command and its first reply.
struct Command {
    kind: &'static str,
    text: String,
    reply: String,
}

impl Command {
    fn new(kind: &'static str, text: &str, reply: &str) -> Self {
        Self { kind, text: format!("{text}\r\n"), reply: format!("{reply}\r\n") }
    }
}

/// Result of a step of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do for the owner of the connections.
    Nothing,
    /// The control connection opened.
    Connected,
    /// Something changed: step again.
    Progress,
    /// Open the data connection for this file from this end.
    Open(u32),
    /// This file is complete, after this time from its command.
    File(u32, Span),
}

/// The client.
#[derive(Clone, Debug)]
pub struct Client {
    settings: Settings,
    started: Instant,
    connected: Option<Instant>,
    /// The command that is next, or awaits its reply.
    number: u32,
    /// When it was sent.
    sent: Option<Instant>,
    /// Bytes of the replies that are complete.
    replies: u64,
    /// Whether the reply before a transfer has arrived.
    marked: bool,
    /// Whether the data connection of the file was requested.
    opened: bool,
    /// Whether all data of the file were received, or written.
    moved: bool,
    files: u32,
    first_file: Option<Instant>,
    finished: Option<Instant>,
    transfer_time: Span,
    latencies: BTreeMap<&'static str, Samples>,
}

impl Client {
    /// A client whose control connection opens at `start`.
    pub const fn new(settings: Settings, start: Instant) -> Self {
        Self {
            settings,
            started: start,
            connected: None,
            number: 0,
            sent: None,
            replies: 0,
            marked: false,
            opened: false,
            moved: false,
            files: 0,
            first_file: None,
            finished: None,
            transfer_time: Span::ZERO,
            latencies: BTreeMap::new(),
        }
    }

    /// Acts as the application does now; `data` is the data connection of the current file. Call
    /// it until it returns [`Step::Nothing`], whenever a connection has changed.
    pub fn step<T: Transport>(&mut self, now: Instant, control: &mut T, data: Option<&mut T>) -> Step {
        if !control.is_established() || self.finished.is_some() {
            return Step::Nothing;
        }
        if self.connected.is_none() {
            self.connected = Some(now);
            return Step::Connected;
        }
        let waiting = control.readable();
        control.read(waiting);
        let command = self.settings.command(self.number);
        let file = self.settings.transfers(self.number);
        let Some(sent) = self.sent else { return self.send(now, &command, file, control, data) };
        match file {
            None => {
                if !self.take_reply(&command.reply, control) {
                    return Step::Nothing;
                }
                self.complete(command.kind, now.since(sent));
                if self.number == self.settings.commands() {
                    self.finished = Some(now);
                    control.close();
                }
                Step::Progress
            }
            Some(file) => self.transfer(now, &command, (file, sent), control, data),
        }
    }

    /// Sends the command, in passive mode of a transfer after its data connection is open.
    fn send<T: Transport>(
        &mut self,
        now: Instant,
        command: &Command,
        file: Option<u32>,
        control: &mut T,
        data: Option<&mut T>,
    ) -> Step {
        if let (Some(file), Mode::Passive) = (file, self.settings.mode) {
            if !self.opened {
                self.opened = true;
                return Step::Open(file);
            }
            if !data.is_some_and(|data| data.is_established()) {
                return Step::Nothing;
            }
        }
        control.write(command.text.len() as u64);
        self.sent = Some(now);
        Step::Progress
    }

    fn transfer<T: Transport>(
        &mut self,
        now: Instant,
        command: &Command,
        (file, sent): (u32, Instant),
        control: &mut T,
        data: Option<&mut T>,
    ) -> Step {
        if !self.marked && self.take_reply(&command.reply, control) {
            self.marked = true;
        }
        if let Some(data) = data {
            let waiting = data.readable();
            data.read(waiting);
            match self.settings.direction {
                Direction::Down if data.peer_closed() && !self.moved => {
                    data.close();
                    self.moved = true;
                }
                Direction::Up if self.marked && !self.moved => {
                    data.write(self.settings.file.get());
                    data.close();
                    self.moved = true;
                }
                _ => {}
            }
        }
        if !(self.marked && self.moved && self.take_reply(COMPLETE, control)) {
            return Step::Nothing;
        }
        let latency = now.since(sent);
        self.complete(FILE, latency);
        (self.marked, self.opened, self.moved) = (false, false, false);
        self.files += 1;
        self.first_file.get_or_insert(now);
        self.transfer_time += latency;
        Step::File(file, latency)
    }

    /// Takes a reply, if all of it has arrived.
    fn take_reply(&mut self, reply: &str, control: &impl Transport) -> bool {
        let is_complete = control.received() >= self.replies + reply.len() as u64;
        if is_complete {
            self.replies += reply.len() as u64;
        }
        is_complete
    }

    fn complete(&mut self, kind: &'static str, latency: Span) {
        self.latencies.entry(kind).or_default().add(latency);
        self.number += 1;
        self.sent = None;
    }

    /// The file whose data connection [`Self::step`] needs now.
    pub const fn file(&self) -> Option<u32> {
        self.settings.transfers(self.number)
    }

    /// Whether the last reply has arrived.
    pub const fn is_complete(&self) -> bool {
        self.finished.is_some()
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Files that are complete.
    pub const fn files(&self) -> u32 {
        self.files
    }

    /// Files that were requested.
    pub fn requested(&self) -> u32 {
        self.files + u32::from(self.file().is_some() && self.sent.is_some())
    }

    /// Times from the commands of the files until they were complete.
    pub fn times(&self) -> Samples {
        self.latencies.get(FILE).cloned().unwrap_or_default()
    }

    /// From the start until the control connection was open.
    pub fn connect(&self) -> Option<Span> {
        self.connected.map(|at| at.since(self.started))
    }

    /// From the start until the first file was complete.
    pub fn first_file(&self) -> Option<Span> {
        self.first_file.map(|at| at.since(self.started))
    }

    /// From the start until the last reply.
    pub fn duration(&self) -> Option<Span> {
        self.finished.map(|at| at.since(self.started))
    }

    /// Time from the command of a file until it was complete, of all files together.
    pub const fn transfer_time(&self) -> Span {
        self.transfer_time
    }

    /// Latencies by kind: `session`, `prepare`, `file`.
    pub const fn latencies(&self) -> &BTreeMap<&'static str, Samples> {
        &self.latencies
    }
}

/// The server.
#[derive(Clone, Debug)]
pub struct Server {
    settings: Settings,
    /// The command that is next.
    number: u32,
    /// Bytes of the commands that were received.
    commands: u64,
    /// When the command is answered.
    due: Option<Instant>,
    opened: bool,
    marked: bool,
}

impl Server {
    /// A server for a client with these settings.
    pub const fn new(settings: Settings) -> Self {
        Self { settings, number: 0, commands: 0, due: None, opened: false, marked: false }
    }

    /// Acts as the application does now, as [`Client::step`].
    pub fn step<T: Transport>(&mut self, now: Instant, control: &mut T, data: Option<&mut T>) -> Step {
        if !control.is_established() {
            return Step::Nothing;
        }
        let waiting = control.readable();
        control.read(waiting);
        if self.number == self.settings.commands() {
            if control.peer_closed() {
                control.close();
            }
            return Step::Nothing;
        }
        let command = self.settings.command(self.number);
        let Some(due) = self.due else {
            if control.received() < self.commands + command.text.len() as u64 {
                return Step::Nothing;
            }
            self.commands += command.text.len() as u64;
            self.due = Some(now + self.settings.processing);
            return Step::Progress;
        };
        if due > now {
            return Step::Nothing;
        }
        match self.settings.transfers(self.number) {
            None => {
                control.write(command.reply.len() as u64);
                self.number += 1;
                self.due = None;
                Step::Progress
            }
            Some(file) => self.transfer(&command, file, control, data),
        }
    }

    fn transfer<T: Transport>(&mut self, command: &Command, file: u32, control: &mut T, data: Option<&mut T>) -> Step {
        if !self.marked {
            if self.settings.mode == Mode::Active && !self.opened {
                self.opened = true;
                return Step::Open(file);
            }
            let Some(data) = data.filter(|data| data.is_established()) else { return Step::Nothing };
            control.write(command.reply.len() as u64);
            self.marked = true;
            if self.settings.direction == Direction::Down {
                data.write(self.settings.file.get());
                data.close();
            }
            return Step::Progress;
        }
        // A data connection that is gone was closed by both ends.
        let is_over = data.is_none_or(|data| match self.settings.direction {
            Direction::Down => data.unsent() == 0,
            Direction::Up => {
                let waiting = data.readable();
                data.read(waiting);
                if data.peer_closed() {
                    data.close();
                }
                data.peer_closed()
            }
        });
        if !is_over {
            return Step::Nothing;
        }
        control.write(COMPLETE.len() as u64);
        (self.opened, self.marked, self.due) = (false, false, None);
        self.number += 1;
        Step::Progress
    }

    /// The file whose data connection [`Self::step`] needs now.
    pub const fn file(&self) -> Option<u32> {
        self.settings.transfers(self.number)
    }

    /// When to call [`Self::step`] next, if nothing changes before.
    pub fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.due.filter(|due| *due > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::StreamEnd;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Moves what one end has written to the other.
    fn exchange(from: &mut StreamEnd, to: &mut StreamEnd) {
        let bytes = from.unsent();
        from.take(bytes);
        to.receive(bytes);
        if from.is_closed() {
            to.end();
        }
    }

    /// Runs a session without delays; returns the ends that opened data connections.
    fn run(settings: Settings) -> (Client, Vec<&'static str>) {
        let (mut client, mut server) = (Client::new(settings, at(0)), Server::new(settings));
        let mut control = [StreamEnd::opened(0), StreamEnd::opened(0)];
        let mut data: Option<(u32, [StreamEnd; 2])> = None;
        let mut opened = Vec::new();
        for now in 0..10_000 {
            let mut step = |is_client: bool, data: &mut Option<(u32, [StreamEnd; 2])>, client: &mut Client| {
                let wanted = if is_client { client.file() } else { server.file() };
                let end = data.as_mut().filter(|(file, _)| Some(*file) == wanted);
                let end = end.map(|(_, ends)| &mut ends[usize::from(!is_client)]);
                if is_client {
                    client.step(at(now), &mut control[0], end)
                } else {
                    server.step(at(now), &mut control[1], end)
                }
            };
            for is_client in [true, false] {
                if let Step::Open(file) = step(is_client, &mut data, &mut client) {
                    opened.push(if is_client { "client" } else { "server" });
                    data = Some((file, [StreamEnd::opened(0), StreamEnd::opened(0)]));
                }
            }
            for [from, to] in [[0, 1], [1, 0]] {
                let [mut a, mut b] = [control[from].clone(), control[to].clone()];
                exchange(&mut a, &mut b);
                (control[from], control[to]) = (a, b);
                if let Some((_, ends)) = &mut data {
                    let [mut a, mut b] = [ends[from].clone(), ends[to].clone()];
                    exchange(&mut a, &mut b);
                    (ends[from], ends[to]) = (a, b);
                }
            }
        }
        (client, opened)
    }

    #[test]
    fn each_file_has_a_data_connection_that_the_mode_opens() {
        for (mode, end) in [(Mode::Passive, "client"), (Mode::Active, "server")] {
            for direction in Direction::BOTH {
                let settings = Settings { direction, files: 3, mode, ..Settings::default() };
                let (client, opened) = run(settings);
                assert_eq!(opened, [end; 3], "{settings:?}");
                assert!(client.is_complete() && client.files() == 3, "{settings:?}");
                let counts: Vec<_> = client.latencies().iter().map(|(kind, all)| (*kind, all.count())).collect();
                assert_eq!(counts, [("file", 3), ("prepare", 3), ("session", 5)]);
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = |settings: Settings| settings.check().expect_err("out of range").field;
        assert_eq!(error(Settings { files: 0, ..Settings::default() }), "files");
        assert_eq!(error(Settings { file: Bytes::ZERO, ..Settings::default() }), "file");
        assert_eq!(error(Settings { processing: Span::from_secs(100_000), ..Settings::default() }), "processing");
    }
}
