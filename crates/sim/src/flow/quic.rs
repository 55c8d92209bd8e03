//! Flows over QUIC: connections whose datagrams are the packets' payload.

mod transactions;
mod transfer;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use airpath_app::datagrams::HEADERS;
use airpath_core::{Direction, Ecn, FlowId, Instant, Seed, UserId};
use airpath_path::{Payload as Content, Side};
use airpath_quic::{Config, Connection, Identity as QuicIdentity};
use airpath_scenario::stream_name;

use super::Identity;
use super::connections::port_of;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;

pub use transactions::QuicTransactionsFlow;
pub use transfer::QuicTransferFlow;

/// The address of an interface, for the server's end: an address for private use (RFC 1918).
fn address_of(user: UserId) -> SocketAddr {
    (Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + user.number()), CLIENT_PORT).into()
}

/// The interface with this address; `None` for an address of another kind.
fn user_of(address: SocketAddr) -> Option<UserId> {
    let IpAddr::V4(address) = address.ip() else { return None };
    address.to_bits().checked_sub(FIRST_ADDRESS.to_bits()).filter(|number| *number < UserId::LIMIT).map(UserId::new)
}

const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const CLIENT_PORT: u16 = 443;

/// A connection with its two ends.
pub struct Pair {
    flow: FlowId,
    /// The mobile's port.
    port: u16,
    /// The interface of the mobile, if its ends migrate and it has sent anything.
    interface: Option<UserId>,
    /// The mobile's end, which opens the connection.
    pub mobile: Connection,
    /// The server's end.
    pub server: Connection,
    /// A datagram to send.
    datagram: Vec<u8>,
}

impl Pair {
    /// Connection number `number` of a flow, which is `flow` on the path.
    pub fn new(now: Instant, identity: &Identity, flow: FlowId, number: u32, config: &Arc<Config>, seed: Seed) -> Self {
        let streams = stream_name(&identity.name, identity.namesakes);
        let end = |direction, side: &str| {
            let random = |part: &str| seed.stream(&format!("flow-{streams}/quic-{number}/{side}/{part}"));
            let mut end = QuicIdentity::new(flow, direction, random);
            // On the path, each connection of a page is a flow.
            end.connection = if flow == identity.id { number } else { 0 };
            (end.migration, end.logs_packets) = (identity.migrates, identity.logs_packets);
            end
        };
        Self {
            flow,
            port: port_of(identity, number),
            interface: None,
            mobile: Connection::connect(Arc::clone(config), end(Direction::Up, "mobile"), now),
            server: Connection::listen(Arc::clone(config), end(Direction::Down, "server")),
            datagram: Vec::new(),
        }
    }

    /// The mobile's port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// One end.
    pub const fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Mobile => &mut self.mobile,
            Side::Server => &mut self.server,
        }
    }

    /// `side` receives a datagram with this ECN field, from or at the interface `user`.
    pub fn receive(
        &mut self,
        now: Instant,
        side: Side,
        (ecn, user): (Ecn, UserId),
        identity: &Identity,
        network: &mut Network<'_>,
        datagram: &[u8],
    ) {
        let end = self.end(side);
        if identity.migrates && side == Side::Server {
            end.handle_datagram_from(now, address_of(user), ecn, datagram);
        } else {
            end.handle_datagram(now, ecn, datagram);
        }
        let component = network.component(identity.user, side);
        end.report(now, &mut network.context(component));
    }

    /// Handles the timers of `side` that have expired.
    pub fn handle_timeout(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        let end = self.end(side);
        end.handle_timeout(now);
        let component = network.component(identity.user, side);
        end.report(now, &mut network.context(component));
    }

    /// Closes the connection if `side` is the mobile, and has nothing left to do.
    fn close_if_done(&mut self, now: Instant, side: Side) {
        if side == Side::Mobile && self.mobile.outcome().is_none() && self.mobile.streams_done() {
            self.mobile.close(now);
        }
    }

    /// Sends the datagrams of `side`.
    pub fn transmit(&mut self, now: Instant, side: Side, identity: &Identity, network: &mut Network<'_>) {
        if identity.migrates && side == Side::Mobile {
            self.follow(network.interface(self.flow, identity.user));
        }
        let Self { flow, port, interface, mobile, server, datagram } = self;
        let end = match side {
            Side::Mobile => mobile,
            Side::Server => server,
        };
        while let Some((ecn, remote)) = end.poll_transmit_to(now, datagram) {
            let user = match side {
                Side::Mobile => *interface,
                Side::Server => user_of(remote).filter(|_| identity.migrates),
            };
            let (packet, component) = (network.packets, network.component(identity.user, side));
            end.report_sent(now, packet, datagram, &mut network.context(component));
            let outgoing = Outgoing {
                flow: *flow,
                user: user.unwrap_or(identity.user),
                side,
                size: datagram.len() as u32 + HEADERS,
                ecn,
                payload: Payload::Quic { port: *port },
            };
            network.send_with(now, outgoing, Content::Bytes([datagram, &[]]));
        }
    }

    /// The mobile's end is to use this interface: it migrates if it used another one. Before the
    /// handshake is confirmed, it may not (RFC 9000 §9); a closed connection stays where it is.
    fn follow(&mut self, interface: UserId) {
        if self.mobile.outcome().is_some() {
            return;
        }
        match self.interface {
            Some(current) if current != interface && self.mobile.is_confirmed() => {
                self.mobile.migrate();
                self.interface = Some(interface);
            }
            Some(_) => {}
            None => self.interface = Some(interface),
        }
    }

    /// The next timer of `side`.
    pub fn next_wakeup(&mut self, now: Instant, side: Side) -> Option<Instant> {
        // quinn may have a timer of the past, which the next call handles.
        self.end(side).next_wakeup().map(|due| due.max(now))
    }

    /// Why an end lost the connection, if one did before the mobile closed it.
    pub fn loss(&self) -> Option<String> {
        if self.mobile.outcome().is_some_and(airpath_quic::Outcome::is_orderly) {
            return None;
        }
        let at_server = || Self::loss_of(&self.server).map(|outcome| format!("{outcome}, reported by the server"));
        self.loss_at_mobile().or_else(at_server)
    }

    /// Why the mobile lost the connection, if it did.
    pub fn loss_at_mobile(&self) -> Option<String> {
        Self::loss_of(&self.mobile).map(|outcome| format!("{outcome}, reported by the mobile"))
    }

    fn loss_of(end: &Connection) -> Option<&airpath_quic::Outcome> {
        end.outcome().filter(|outcome| !outcome.is_orderly())
    }
}
