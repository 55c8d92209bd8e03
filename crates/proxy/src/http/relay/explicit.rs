//! The part of a client connection that only an explicit proxy has: look-ups of names, and server
//! connections to several servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use airpath_core::{Instant, Span};
use airpath_tcp::Outcome;

use super::{HttpRelay, NewServer};
use crate::http::Config;
use crate::http::channel::Channel;
use crate::http::lookup::{Answered, Lookup};
use crate::http::names::Names;
use crate::http::refusal::Refusal;
use crate::http::session::Session;
use crate::http::target::{ExplicitProxy, Host, Origin};

/// Addresses of a server that are tried for one connection.
const MOST_TRIES: u32 = 3;

/// What the client connection of an explicit proxy has besides.
#[derive(Debug)]
pub(super) struct Explicit {
    pub proxy: ExplicitProxy,
    pub lookup: Lookup,
    /// Server connections that are not open, by number: since when, and addresses that were tried.
    pub opening: BTreeMap<usize, (Instant, u32)>,
    /// Most time to open one.
    most_time: Span,
}

/// The address of a server connection that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The server's; `None` where packets have no addresses.
    Server(Option<SocketAddr>),
    /// It is queried, over a connection to the resolver that is to be opened first.
    Resolver(SocketAddr),
    /// It is queried.
    Queried,
    /// There is none, and the request was refused.
    Refused,
}

impl HttpRelay {
    /// Where a server connection that is wanted leads to.
    pub fn destination(&mut self, now: Instant, number: usize) -> Destination {
        let Some(explicit) = &mut self.explicit else { return Destination::Server(self.server) };
        let Some(Origin { host, port }) = self.session.origin(number) else { return Destination::Server(None) };
        let address = match host {
            Host::Address(address) => *address,
            Host::Name(name) => match explicit.lookup.names.find(now, name, explicit.proxy.address.is_ipv4()) {
                Some(address) => address,
                None => {
                    let begun = explicit.lookup.begin(now, name);
                    self.session.set_resolving(number);
                    return match begun {
                        Ok(is_new) => {
                            self.session.statistics.name_queries += u64::from(is_new);
                            explicit.lookup.wanted_resolver().map_or(Destination::Queried, Destination::Resolver)
                        }
                        Err(refusal) => {
                            self.session.fail(number, refusal);
                            Destination::Refused
                        }
                    };
                }
            },
        };
        let refusal = match address {
            address if !explicit.proxy.permits(address) => Refusal::Address,
            address if address.is_ipv4() != explicit.proxy.address.is_ipv4() => Refusal::Unreachable,
            address => return Destination::Server(Some(SocketAddr::new(address, *port))),
        };
        self.session.fail(number, refusal);
        Destination::Refused
    }

    /// The connection to the resolver exists now, or cannot be had.
    pub fn open_lookup(&mut self, now: Instant, new: Option<NewServer>, config: &Arc<airpath_tcp::Config>) {
        let Some(explicit) = &mut self.explicit else { return };
        match new {
            Some(new) => explicit.lookup.open(new.connect(now, self.port, config)),
            None => self.fail_lookups(Refusal::Unreachable),
        }
    }

    /// Reads the answers of the resolver.
    pub(super) fn read_lookup(&mut self, now: Instant) {
        let Some(explicit) = &mut self.explicit else { return };
        let answered = explicit.lookup.read(now);
        self.finish_lookups(&answered);
    }

    fn finish_lookups(&mut self, answered: &[Answered]) {
        let resolving = if answered.is_empty() { Vec::new() } else { self.session.resolving() };
        for number in resolving {
            let name = match self.session.origin(number) {
                Some(Origin { host: Host::Name(name), .. }) => name.clone(),
                _ => continue,
            };
            match answered.iter().find(|(answered, _)| *answered == name) {
                Some((_, Ok(()))) => self.session.set_wanted(number),
                Some((_, Err(refusal))) => self.session.fail(number, *refusal),
                None => {}
            }
        }
    }

    /// Answers the requests that wait for the resolver with an error.
    fn fail_lookups(&mut self, refusal: Refusal) {
        self.explicit.iter_mut().for_each(|explicit| explicit.lookup.forget());
        for number in self.session.resolving() {
            self.session.fail(number, refusal);
        }
    }

    /// Gives up waiting for servers and the resolver of an explicit proxy.
    pub(super) fn give_up(&mut self, now: Instant) {
        let Some(explicit) = &mut self.explicit else { return };
        let late: Vec<usize> = explicit.limits().filter(|(limit, _)| *limit <= now).map(|(_, number)| number).collect();
        for number in late {
            explicit.opening.remove(&number);
            if !self.session.is_connected(number) && !self.session.has_abandoned(number) {
                self.session.fail(number, Refusal::ConnectionTimeout);
            }
        }
        let late = explicit.lookup.expire(now);
        self.finish_lookups(&late);
    }

    /// Releases the server connections that an explicit proxy does not use any more, so that others
    /// take their place; with `ends`, also the one to the resolver.
    pub(super) fn close_explicit(&mut self, ends: bool) {
        let Some(explicit) = &mut self.explicit else { return };
        let session = &self.session;
        explicit.opening.retain(|number, _| !session.is_connected(*number) && !session.has_abandoned(*number));
        let mut released: Vec<Channel> = explicit.lookup.take_unused(ends).into_iter().collect();
        for number in 0..self.session.servers_count() {
            // A tunnel whose server has ended its direction still carries the other.
            if self.session.has_abandoned(number) && self.session.tunnel_server() != Some(number) {
                released.extend(self.servers.get_mut(number).and_then(Option::take));
                self.session.release_server(number);
            }
        }
        for mut channel in released {
            if channel.is_writable() {
                channel.close();
            }
            self.released.push(channel);
        }
    }
}

impl Explicit {
    /// What a client connection to the proxy's own `address` has, which may wait `most_time` for a
    /// server.
    pub fn new(address: SocketAddr, http: &Config, names: &Names, most_time: Span) -> Self {
        Self {
            proxy: ExplicitProxy { address, connect_ports: http.connect_ports.clone() },
            lookup: Lookup::new(names.clone(), http.resolver, address.is_ipv4()),
            opening: BTreeMap::new(),
            most_time,
        }
    }

    /// Until when server connections may be opened, with their numbers.
    pub fn limits(&self) -> impl Iterator<Item = (Instant, usize)> {
        self.opening.iter().map(|(number, (since, _))| (*since + self.most_time, *number))
    }

    /// A server has not accepted a connection: another of its addresses is tried, or the request is
    /// answered with an error.
    pub fn not_opened(&mut self, session: &mut Session, number: usize, server: Option<SocketAddr>, outcome: Outcome) {
        let tried = self.opening.get_mut(&number).map_or(MOST_TRIES, |(_, tried)| {
            *tried += 1;
            *tried
        });
        if let Some(Origin { host: Host::Name(name), .. }) = session.origin(number)
            && let Some(server) = server
            && self.lookup.names.defer(name, server.ip())
            && tried < MOST_TRIES
        {
            return session.set_wanted(number);
        }
        session.fail(
            number,
            match outcome {
                Outcome::Refused | Outcome::Reset => Refusal::ConnectionRefused,
                Outcome::TimedOut(_) => Refusal::ConnectionTimeout,
                Outcome::Closed | Outcome::Unreachable | Outcome::Aborted => Refusal::Unreachable,
            },
        );
    }
}
