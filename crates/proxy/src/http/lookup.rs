//! The queries of a client connection for the addresses of servers, and its connection to the
//! resolver.

use std::net::SocketAddr;

use airpath_core::{Instant, Span};

use crate::http::channel::Channel;
use crate::http::names::{Message, Names, answer, query};
use crate::http::refusal::Refusal;

/// An answer is waited for this long.
const MOST_TIME: Span = Span::from_secs(10);

/// The queries of a client connection.
#[derive(Debug)]
pub struct Lookup {
    pub names: Names,
    resolver: Option<SocketAddr>,
    is_ipv4: bool,
    /// The connection to the resolver.
    pub channel: Option<Channel>,
    /// Whether a message of the connection was malformed: where the next begins is not known.
    is_broken: bool,
    /// Whether the connection has carried an answer.
    has_answered: bool,
    /// Those without an answer.
    waiting: Vec<Query>,
    next: u16,
}

/// A query without an answer.
#[derive(Debug)]
struct Query {
    id: u16,
    name: String,
    is_sent: bool,
    /// Whether it was sent over an earlier connection, too.
    is_repeated: bool,
    limit: Instant,
}

/// A name that can be looked up again, because its address is stored or another connection is
/// wanted; or why not.
pub type Answered = (String, Result<(), Refusal>);

impl Lookup {
    pub const fn new(names: Names, resolver: Option<SocketAddr>, is_ipv4: bool) -> Self {
        Self {
            names,
            resolver,
            is_ipv4,
            channel: None,
            is_broken: false,
            has_answered: false,
            waiting: Vec::new(),
            next: 0,
        }
    }

    /// Queries the address of a name. Returns whether no query for it is under way already.
    ///
    /// # Errors
    /// Without a resolver.
    pub fn begin(&mut self, now: Instant, name: &str) -> Result<bool, Refusal> {
        self.resolver.ok_or(Refusal::NoResolver)?;
        if self.waiting.iter().any(|query| query.name == name) {
            return Ok(false);
        }
        let (id, name, limit) = (self.next, name.to_owned(), now + MOST_TIME);
        self.waiting.push(Query { id, name, is_sent: false, is_repeated: false, limit });
        self.next = self.next.wrapping_add(1);
        self.send();
        Ok(true)
    }

    /// The resolver, if a connection to it is to be opened.
    pub fn wanted_resolver(&self) -> Option<SocketAddr> {
        self.resolver.filter(|_| self.channel.is_none() && !self.waiting.is_empty())
    }

    /// The connection to the resolver exists now.
    pub fn open(&mut self, channel: Channel) {
        self.channel = Some(channel);
        (self.is_broken, self.has_answered) = (false, false);
        self.send();
    }

    fn send(&mut self) {
        let Some(channel) = self.channel.as_mut().filter(|channel| channel.is_writable()) else { return };
        for Query { id, name, is_sent, .. } in &mut self.waiting {
            if !std::mem::replace(is_sent, true) {
                channel.write(&query(*id, name, self.is_ipv4));
            }
        }
    }

    /// The names that were answered, or cannot be. The addresses are stored.
    pub fn read(&mut self, now: Instant) -> Vec<Answered> {
        let arrives = |channel: &mut Channel| !channel.unread().is_empty() || has_ended(channel);
        let Some(mut channel) = self.channel.take_if(arrives) else { return Vec::new() };
        let (used, mut answered) = self.parse(now, channel.unread());
        channel.consume(used);
        if self.is_broken || has_ended(&channel) {
            answered.extend(self.end());
        }
        self.channel = Some(channel);
        answered
    }

    /// Reads the messages at the start of `bytes`. Returns how many bytes they have.
    fn parse(&mut self, now: Instant, bytes: &[u8]) -> (usize, Vec<Answered>) {
        let (mut used, mut answered) = (0, Vec::new());
        loop {
            match answer(&bytes[used..], self.is_ipv4) {
                Ok(None) => return (used, answered),
                Err(_) => {
                    self.is_broken = true;
                    return (used, answered);
                }
                Ok(Some(Message { id, result, length })) => {
                    used += length;
                    self.has_answered = true;
                    let Some(at) = self.waiting.iter().position(|query| query.id == id) else { continue };
                    let Query { name, .. } = self.waiting.remove(at);
                    let result = result.map(|answer| self.names.insert(now, &name, self.is_ipv4, answer));
                    answered.push((name, result));
                }
            }
        }
    }

    /// The connection has ended. A resolver may close an idle one at any time: what was sent then
    /// is sent once more, over another (RFC 7766 §6.2.4).
    fn end(&mut self) -> Vec<Answered> {
        let may_repeat = self.has_answered && !self.is_broken;
        let mut answered = Vec::new();
        self.waiting.retain_mut(|query| {
            if !query.is_sent {
                return true;
            }
            let repeats = may_repeat && !query.is_repeated;
            (query.is_sent, query.is_repeated) = (false, true);
            answered.push((query.name.clone(), if repeats { Ok(()) } else { Err(Refusal::Resolver) }));
            repeats
        });
        answered
    }

    /// Until when the first answer is waited for.
    pub fn limit(&self) -> Option<Instant> {
        self.waiting.iter().map(|query| query.limit).min()
    }

    /// The names whose answers are not waited for any more.
    pub fn expire(&mut self, now: Instant) -> Vec<Answered> {
        let late = self.waiting.extract_if(.., |query| query.limit <= now);
        late.map(|query| (query.name, Err(Refusal::ResolverTimeout))).collect()
    }

    /// No answer is waited for any more.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Takes the connection to the resolver if it is not to be used any more.
    pub fn take_unused(&mut self, ends: bool) -> Option<Channel> {
        let is_unused = ends || self.is_broken;
        self.channel.take_if(|channel| is_unused || has_ended(channel))
    }
}

fn has_ended(channel: &Channel) -> bool {
    channel.connection.peer_closed() || channel.connection.outcome().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn lookup() -> Lookup {
        Lookup::new(Names::default(), Some(([192, 0, 2, 53], 53).into()), true)
    }

    #[test]
    fn each_query_has_its_own_time() {
        let mut lookup = lookup();
        for (time, name) in [(0, "a"), (6, "b"), (8, "c")] {
            assert_eq!(lookup.begin(at(time), name), Ok(true));
        }
        assert_eq!(lookup.limit(), Some(at(10)));
        // Of the first one, whose identifier is 0.
        let (used, answered) = lookup.parse(at(9), b"\0\x0C\0\0\x81\x83\0\0\0\0\0\0\0\0");
        assert_eq!((used, answered), (14, vec![("a".to_owned(), Err(Refusal::NameNotFound))]));
        assert_eq!(lookup.limit(), Some(at(16)));
        assert_eq!(lookup.expire(at(15)), []);
        assert_eq!(lookup.expire(at(16)), [("b".to_owned(), Err(Refusal::ResolverTimeout))]);
        assert_eq!(lookup.limit(), Some(at(18)));
    }
}
