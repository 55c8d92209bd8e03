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
    /// Names without an answer: their identifiers, and whether they were sent.
    waiting: Vec<(u16, String, bool)>,
    next: u16,
    /// Until when the first answer is waited for.
    limit: Option<Instant>,
}

impl Lookup {
    pub const fn new(names: Names, resolver: Option<SocketAddr>, is_ipv4: bool) -> Self {
        Self { names, resolver, is_ipv4, channel: None, waiting: Vec::new(), next: 0, limit: None }
    }

    /// Queries the address of a name. Returns whether no query for it is under way already.
    ///
    /// # Errors
    /// Without a resolver.
    pub fn begin(&mut self, now: Instant, name: &str) -> Result<bool, Refusal> {
        self.resolver.ok_or(Refusal::NoResolver)?;
        if self.waiting.iter().any(|(_, waiting, _)| waiting == name) {
            return Ok(false);
        }
        self.waiting.push((self.next, name.to_owned(), false));
        self.next = self.next.wrapping_add(1);
        self.limit.get_or_insert(now + MOST_TIME);
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
        self.send();
    }

    fn send(&mut self) {
        let Some(channel) = self.channel.as_mut().filter(|channel| channel.is_writable()) else { return };
        for (id, name, is_sent) in &mut self.waiting {
            if !std::mem::replace(is_sent, true) {
                channel.write(&query(*id, name, self.is_ipv4));
            }
        }
    }

    /// The names that were answered, and with which result. The addresses are stored.
    pub fn read(&mut self, now: Instant) -> Vec<(String, Result<(), Refusal>)> {
        let Some(channel) = &mut self.channel else { return Vec::new() };
        let mut answered = Vec::new();
        let is_broken = loop {
            match answer(channel.unread(), self.is_ipv4) {
                Ok(None) => break false,
                Err(_) => break true,
                Ok(Some(Message { id, result, length })) => {
                    channel.consume(length);
                    let Some(at) = self.waiting.iter().position(|(waiting, _, _)| *waiting == id) else { continue };
                    let (_, name, _) = self.waiting.swap_remove(at);
                    let result = result.map(|answer| self.names.insert(now, &name, self.is_ipv4, answer));
                    answered.push((name, result));
                }
            }
        };
        if is_broken || channel.connection.peer_closed() || channel.connection.outcome().is_some() {
            answered.extend(self.waiting.drain(..).map(|(_, name, _)| (name, Err(Refusal::Resolver))));
        }
        self.limit = self.limit.filter(|_| !self.waiting.is_empty());
        answered
    }

    /// Until when an answer is waited for.
    pub const fn limit(&self) -> Option<Instant> {
        self.limit
    }

    /// No answer is waited for any more.
    pub fn forget(&mut self) {
        self.waiting.clear();
        self.limit = None;
    }

    /// Takes the connection to the resolver if it is not to be used any more.
    pub fn take_unused(&mut self, ends: bool) -> Option<Channel> {
        let has_ended =
            |channel: &mut Channel| channel.connection.peer_closed() || channel.connection.outcome().is_some();
        self.channel.take_if(|channel| ends || has_ended(channel))
    }
}
