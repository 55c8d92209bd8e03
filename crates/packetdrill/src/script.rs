//! A script as read.

use airpath_core::{Ecn, Span};
use airpath_wire::tcp::{EcnCounters, Flags};

use crate::code::Code;
use crate::position::Position;

/// A script.
#[derive(Debug)]
pub struct Script<'a> {
    /// Options before the first event, such as `--tolerance_usecs=10000`.
    pub options: Vec<(Position, &'a str, String)>,
    /// The command before the first event.
    pub start: Option<(Position, &'a str)>,
    pub events: Vec<Event<'a>>,
}

/// Something that happens, or is expected to.
#[derive(Debug)]
pub struct Event<'a> {
    pub at: Position,
    pub time: Time,
    pub action: Action<'a>,
}

/// Time of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// Since the start.
    Absolute(Span),
    /// After the event before it.
    Relative(Span),
    AbsoluteRange(Span, Span),
    RelativeRange(Span, Span),
    Any,
}

/// What happens.
#[derive(Debug)]
pub enum Action<'a> {
    /// A segment arrives.
    Arrival(Packet),
    /// A segment is expected.
    Departure(Packet),
    Call(Call<'a>),
    Command(&'a str),
    Code(Code),
    /// A part of the language that this reader skips, with the reason.
    Unsupported(String),
}

/// A TCP segment. Numbers are those of the script.
#[derive(Debug)]
pub struct Packet {
    pub ecn: EcnCheck,
    pub flags: Flags,
    /// The three bits AE, CWR and ECE as a number (RFC 9768 §3.1.1), in place of these flags.
    pub ace: Option<u8>,
    /// The flag AE, by its letter `A`.
    pub accurate: bool,
    pub start: u32,
    pub length: u32,
    pub acknowledgment: u32,
    pub window: Option<u16>,
    /// `None` for `<...>`: any.
    pub options: Option<Vec<TcpOption>>,
}

/// The ECN field of the IP header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCheck {
    Any,
    Is(Ecn),
    /// ECT(0) or ECT(1).
    Capable,
}

/// An option of a TCP header; padding is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    MaximumSegmentSize(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    Timestamps(u32, u32),
    AccurateEcn(EcnCounters),
}

/// A system call.
#[derive(Debug)]
pub struct Call<'a> {
    /// End of a call that blocks; relative if the time of the event is.
    pub end: Option<Span>,
    pub name: &'a str,
    pub arguments: Vec<Value<'a>>,
    pub result: Value<'a>,
    /// The name of an error, such as `EAGAIN`.
    pub error: Option<&'a str>,
}

/// An argument or a result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `...`.
    Any,
    Integer(i64),
    Word(&'a str),
    Text(&'a str),
    List(Vec<Self>),
    /// Values joined by `|`.
    Or(Vec<Self>),
    /// Something in braces.
    Structure,
}
