//! A video from the server to the mobile over RTP.

mod tcp;

use std::sync::Arc;

use airpath_app::datagrams::HEADERS;
use airpath_app::streaming::{Client, Datagram, Server, Session, Settings, Video};
use airpath_core::{AppStep, Ecn, Instant, Packet, RandomStream};
use airpath_path::{Payload as Bytes, Side};
use airpath_scenario::tcp::Settings as TcpSettings;

use self::tcp::TcpCarrier;
use super::Identity;
use crate::capture::STREAM_PORTS;
use crate::network::{Network, Outgoing};
use crate::packet_buffer::Payload;

/// A stream in progress.
pub struct StreamFlow {
    /// Name, mobile, start.
    pub identity: Identity,
    /// The stream, as both ends have it.
    pub session: Arc<Session>,
    /// The end that sends the video.
    pub server: Server,
    /// The end that displays it.
    pub client: Client,
    /// The connection, if TCP carries the packets.
    pub tcp: Option<Box<TcpCarrier>>,
    started: bool,
    over: bool,
}

impl StreamFlow {
    /// A stream that waits for its start; `random` makes the random streams of its parts.
    pub fn new(
        identity: Identity,
        settings: Settings,
        video: Arc<Video>,
        tcp: Option<&TcpSettings>,
        random: impl Fn(&'static str) -> RandomStream,
    ) -> Self {
        let session = Arc::new(Session::new(settings, video, &mut random("session")));
        Self {
            server: Server::new(Arc::clone(&session), identity.start, random("server")),
            client: Client::new(Arc::clone(&session), identity.start, random("client")),
            tcp: tcp.map(|tcp| Box::new(TcpCarrier::new(tcp, random("server")))),
            session,
            identity,
            started: false,
            over: false,
        }
    }

    /// Whether both ends have left the session, or its connection was lost.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Why it was aborted, if it was.
    pub fn cause(&self) -> Option<String> {
        let lost = self.tcp.as_ref().and_then(|tcp| tcp.lost.as_ref());
        lost.map(|(_, cause)| cause.clone()).or_else(|| self.client.cause())
    }

    /// When its connection was lost, if it was.
    pub fn lost_at(&self) -> Option<Instant> {
        self.tcp.as_ref().and_then(|tcp| tcp.lost.as_ref()).map(|(at, _)| *at)
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
        if let Some(tcp) = &mut self.tcp {
            let (payload, mut cx) = network.payload_for(packet, side);
            let Payload::Segment(segment) = payload else {
                unreachable!("a flow receives only packets of its own kind")
            };
            tcp.receive(now, side, segment, &mut cx);
            return self.wake(now, side, network);
        }
        let (Payload::Stream { channel, sent }, bytes) = network.datagram(packet) else {
            unreachable!("a flow receives only packets of its own kind")
        };
        let (channel, delay) = (*channel, now.since(*sent));
        let arrived = match side {
            Side::Server => {
                self.server.receive(now, bytes);
                None
            }
            Side::Mobile => self.client.receive(now, channel, bytes),
        };
        if let Some(sequence) = arrived {
            let delivered = self.client.received().bytes;
            self.identity.report(network, now, side, AppStep::Arrived { sequence, delay }, delivered);
        }
        self.wake(now, side, network)
    }

    pub(super) fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        let was_left = self.client.is_over();
        let wakeup =
            if self.tcp.is_some() { self.wake_tcp(now, side, network) } else { self.wake_udp(now, side, network) };
        if !was_left && self.client.is_over() {
            let step = if self.client.timed_out() { AppStep::Aborted } else { AppStep::Finished };
            self.identity.report(network, now, Side::Mobile, step, self.client.received().bytes);
        }
        wakeup
    }

    fn wake_udp(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        if !self.started && side == Side::Server {
            self.started = true;
            self.identity.report(network, now, side, AppStep::Started, 0);
        }
        let wakeup = match side {
            Side::Server => {
                while let Some(datagram) = self.server.poll(now) {
                    send(&self.identity, now, side, datagram, network);
                }
                self.server.next_wakeup()
            }
            Side::Mobile => {
                while let Some(datagram) = self.client.poll(now) {
                    send(&self.identity, now, side, datagram, network);
                }
                self.client.next_wakeup()
            }
        };
        self.over = self.server.is_over() && self.client.is_over();
        wakeup
    }
}

fn send(identity: &Identity, now: Instant, side: Side, datagram: Datagram<'_>, network: &mut Network<'_>) {
    let Datagram { channel, head, media } = datagram;
    let outgoing = Outgoing {
        // Equal modulo `STREAM_PORTS`, from which the captures derive neighbouring ports.
        flow: network.flow_of_connection(identity.id, channel as u32 * STREAM_PORTS),
        user: identity.user,
        side,
        size: head.len() as u32 + media + HEADERS,
        ecn: Ecn::NotEct,
        payload: Payload::Stream { channel, sent: now },
    };
    network.send_with(now, outgoing, Bytes::Bytes([head, &[]]));
}
