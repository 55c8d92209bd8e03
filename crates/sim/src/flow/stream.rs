//! A video from the server to the mobile over RTP.

use std::sync::Arc;

use airpath_app::datagrams::HEADERS;
use airpath_app::streaming::{Client, Datagram, Server, Session, Settings, Video};
use airpath_core::{AppStep, Ecn, Instant, Packet, RandomStream};
use airpath_path::{Payload as Bytes, Side};

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
    started: bool,
    over: bool,
}

impl StreamFlow {
    /// A stream that waits for its start; `random` makes the random streams of its parts.
    pub fn new(
        identity: Identity,
        settings: Settings,
        video: Arc<Video>,
        random: impl Fn(&'static str) -> RandomStream,
    ) -> Self {
        let session = Arc::new(Session::new(settings, video, &mut random("session")));
        Self {
            server: Server::new(Arc::clone(&session), identity.start, random("server")),
            client: Client::new(Arc::clone(&session), identity.start, random("client")),
            session,
            identity,
            started: false,
            over: false,
        }
    }

    /// Whether both ends have left the session.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        network: &mut Network<'_>,
    ) -> Option<Instant> {
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
        if !self.started && side == Side::Server {
            self.started = true;
            self.identity.report(network, now, side, AppStep::Started, 0);
        }
        let was_left = self.client.is_over();
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
        if !was_left && self.client.is_over() {
            let step = if self.client.timed_out() { AppStep::Aborted } else { AppStep::Finished };
            self.identity.report(network, now, side, step, self.client.received().bytes);
        }
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
