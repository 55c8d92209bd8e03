//! One end of a connection.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use airpath_core::{Context, Ecn, Instant, QuicEvent, QuicStep, Span, TcpEvent, TcpTrigger};
use bytes::{Bytes, BytesMut};
use quinn_proto::crypto;
use quinn_proto::{
    ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Event, TransportErrorCode, VarInt,
};

use crate::clock::{Clock, span};
use crate::config::Config;
use crate::frames::frames;
use crate::identity::{IDENTIFIER, Identity};
use crate::null_crypto::{NullCrypto, TAG};
use crate::packet_log::{LoggedPacket, PacketLog};
use crate::statistics::{Figures, SharedFigures, Statistics};
use crate::streams::{Stream, Streams};

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An end has closed it without an error.
    Closed,
    /// It was lost: by an error of this end or of the peer, or after the idle time-out.
    Lost(String),
}

impl Outcome {
    /// Whether it was closed without an error.
    pub const fn is_orderly(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Lost(reason) => f.write_str(reason),
        }
    }
}

/// One end of a QUIC connection, without I/O or a clock.
///
/// The owner passes in the datagrams that arrive ([`Self::handle_datagram`]) and calls
/// [`Self::handle_timeout`] at [`Self::next_wakeup`]. After either, and after the application has
/// used a stream, it sends every datagram that [`Self::poll_transmit`] returns.
///
/// Calls before [`Self::next_wakeup`] change nothing. A late call delays what QUIC would have sent:
/// QUIC reads the time of each call.
pub struct Connection {
    clock: Clock,
    config: Arc<Config>,
    id: Identity,
    endpoint: Endpoint,
    /// The connection in quinn; a listening end has none before the first datagram.
    quinn: Option<(ConnectionHandle, quinn_proto::Connection)>,
    is_client: bool,
    established: bool,
    outcome: Option<Outcome>,
    streams: Streams,
    /// The packets that quinn reports, if [`Identity::logs_packets`].
    packets: Option<PacketLog>,
    /// Whether packets are not encrypted.
    is_readable: bool,
    figures: SharedFigures,
    /// The figures that were reported last.
    reported: Figures,
    /// Whether there may be something to send: something has happened since quinn last had
    /// nothing. Without it, the pacer would send at any call, not at its timer only.
    ready: bool,
    /// Datagrams received with a CE mark.
    marked_datagrams: u64,
    /// Datagrams of the end point itself, such as version negotiation.
    responses: VecDeque<(Ecn, SocketAddr, Vec<u8>)>,
}

impl Connection {
    /// A client, with the null crypto of `config`.
    pub fn connect(config: Arc<Config>, id: Identity, now: Instant) -> Self {
        let crypto = Arc::new(NullCrypto::new(&config));
        Self { is_readable: true, ..Self::connect_with(config, id, now, crypto, "server.test") }
    }

    /// A client with its own cryptography, for the server `name`.
    ///
    /// # Panics
    /// If the cryptography does not support QUIC version 1 or the name.
    pub fn connect_with(
        config: Arc<Config>,
        mut id: Identity,
        now: Instant,
        crypto: Arc<dyn crypto::ClientConfig>,
        name: &str,
    ) -> Self {
        let (clock, figures) = (Clock::new(), SharedFigures::default());
        let mut endpoint = Endpoint::new(Arc::new(id.endpoint_config(config.datagram_size)), None, true, None);
        let mut client = id.client_config(crypto);
        let packets = id.logs_packets.then(PacketLog::default);
        client.transport_config(Arc::new(config.transport(&figures, packets.as_ref())));
        let connected = endpoint.connect(clock.to_quinn(now), client, id.remote, name);
        let quinn = Some(connected.expect("the address, the version and the name are valid"));
        Self::new(clock, config, id, endpoint, quinn, figures, packets)
    }

    /// A server that waits for one client, with the null crypto of `config`.
    pub fn listen(config: Arc<Config>, id: Identity) -> Self {
        let crypto = Arc::new(NullCrypto::new(&config));
        Self { is_readable: true, ..Self::listen_with(config, id, crypto) }
    }

    /// A server with its own cryptography that waits for one client.
    pub fn listen_with(config: Arc<Config>, mut id: Identity, crypto: Arc<dyn crypto::ServerConfig>) -> Self {
        let (clock, figures) = (Clock::new(), SharedFigures::default());
        let endpoint = id.endpoint_config(config.datagram_size);
        let mut server = id.server_config(crypto);
        let packets = id.logs_packets.then(PacketLog::default);
        server.transport_config(Arc::new(config.transport(&figures, packets.as_ref())));
        let endpoint = Endpoint::new(Arc::new(endpoint), Some(Arc::new(server)), true, None);
        Self::new(clock, config, id, endpoint, None, figures, packets)
    }

    fn new(
        clock: Clock,
        config: Arc<Config>,
        id: Identity,
        endpoint: Endpoint,
        quinn: Option<(ConnectionHandle, quinn_proto::Connection)>,
        figures: SharedFigures,
        packets: Option<PacketLog>,
    ) -> Self {
        Self {
            clock,
            config,
            id,
            endpoint,
            is_client: quinn.is_some(),
            quinn,
            established: false,
            outcome: None,
            streams: Streams::default(),
            packets,
            is_readable: false,
            figures,
            reported: Figures::default(),
            ready: true,
            marked_datagrams: 0,
            responses: VecDeque::new(),
        }
    }

    /// A datagram arrives with this ECN field. Datagrams that belong to no connection are dropped.
    pub fn handle_datagram(&mut self, now: Instant, ecn: Ecn, datagram: &[u8]) {
        self.handle_datagram_from(now, self.id.remote, ecn, datagram);
    }

    /// The same from this address of the peer, which may differ from earlier ones if it migrates.
    pub fn handle_datagram_from(&mut self, now: Instant, remote: SocketAddr, ecn: Ecn, datagram: &[u8]) {
        self.ready = true;
        self.marked_datagrams += u64::from(ecn == Ecn::Ce);
        let time = self.clock.to_quinn(now);
        let mut response = Vec::new();
        let event = self.endpoint.handle(time, remote, None, to_quinn(ecn), BytesMut::from(datagram), &mut response);
        match event {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((_, quinn)) = self.quinn.as_mut().filter(|(own, _)| *own == handle) {
                    quinn.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.quinn.is_none() => {
                match self.endpoint.accept(incoming, time, &mut response, None) {
                    Ok(accepted) => self.quinn = Some(accepted),
                    Err(error) => {
                        self.respond(error.response, response);
                        self.outcome = Some(Outcome::Lost(error.cause.to_string()));
                    }
                }
            }
            // This end has one connection. A second client gets no answer.
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(Some(transmit), response),
        }
        self.process();
    }

    /// Handles the timers that have expired by `now`; earlier calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some((_, quinn)) = &mut self.quinn else { return };
        let time = self.clock.to_quinn(now);
        if quinn.poll_timeout().is_some_and(|due| due <= time) {
            self.ready = true;
            quinn.handle_timeout(time);
            self.process();
        }
    }

    /// Writes the next datagram to send into `datagram`, whose contents are replaced. Returns its
    /// ECN field; `None` if there is nothing to send at `now`.
    pub fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<Ecn> {
        self.poll_transmit_to(now, datagram).map(|(ecn, _)| ecn)
    }

    /// The same with the address of the peer to which it goes.
    pub fn poll_transmit_to(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<(Ecn, SocketAddr)> {
        datagram.clear();
        if let Some((ecn, remote, response)) = self.responses.pop_front() {
            datagram.extend_from_slice(&response);
            return Some((ecn, remote));
        }
        let (_, quinn) = self.quinn.as_mut()?;
        if !self.streams.is_flushed() && self.streams.flush(quinn) {
            self.ready = true;
        }
        if !self.ready {
            return None;
        }
        let transmit = quinn.poll_transmit(self.clock.to_quinn(now), 1, datagram);
        self.ready = transmit.is_some();
        transmit.map(|transmit| (from_quinn(transmit.ecn), transmit.destination))
    }

    /// The client has another address: it migrates, and sends a packet from there. Only a
    /// connection whose handshake is confirmed may (RFC 9000 §9); a closed one does not.
    ///
    /// quinn keeps the congestion window and the round trip of a client, which RFC 9000 §9.4
    /// resets.
    pub fn migrate(&mut self) {
        // quinn panics if a drained connection needs further connection IDs.
        if let Some((_, quinn)) = self.quinn.as_mut().filter(|(_, quinn)| self.established && !quinn.is_closed()) {
            self.ready = true;
            quinn.local_address_changed();
        }
    }

    /// When to call [`Self::handle_timeout`] next, if nothing changes before.
    pub fn next_wakeup(&mut self) -> Option<Instant> {
        let (_, quinn) = self.quinn.as_mut()?;
        quinn.poll_timeout().map(|time| self.clock.instant_of(time))
    }

    /// Closes the connection without an error. Data that was not acknowledged may be lost.
    pub fn close(&mut self, now: Instant) {
        if let Some((_, quinn)) = &mut self.quinn {
            self.ready = true;
            quinn.close(self.clock.to_quinn(now), VarInt::from_u32(0), Bytes::new());
        }
        self.outcome.get_or_insert(Outcome::Closed);
    }

    /// Whether the handshake is complete.
    pub const fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the handshake of a client is confirmed: the server has reported that it is complete
    /// (RFC 9001 §4.1.2).
    pub fn is_confirmed(&self) -> bool {
        self.quinn.as_ref().is_some_and(|(_, quinn)| quinn.stats().frame_rx.handshake_done > 0)
    }

    /// Whether this end opened the connection.
    pub const fn is_client(&self) -> bool {
        self.is_client
    }

    /// How it ended; `None` while it is open.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Opens a stream. Returns its index, or `None` while the peer allows no more.
    pub fn open_stream(&mut self) -> Option<usize> {
        let (_, quinn) = self.quinn.as_mut().filter(|_| self.established)?;
        self.streams.open(quinn)
    }

    /// Number of streams that this end has opened or accepted.
    pub fn stream_count(&self) -> usize {
        self.streams.count()
    }

    /// The stream that is number `index` of those that this end has opened or accepted.
    ///
    /// # Panics
    /// If there are fewer streams.
    pub fn stream(&mut self, index: usize) -> Stream<'_> {
        self.streams.stream(index)
    }

    /// Written bytes of the first stream for which quinn has had no room; 0 without a stream.
    pub fn unsent(&self) -> u64 {
        self.streams.first().map_or(0, |first| first.unsent())
    }

    /// Bytes of the first stream that arrived in order and are unread.
    pub fn readable(&self) -> u64 {
        self.streams.first().map_or(0, |first| first.readable())
    }

    /// All bytes of the first stream that arrived in order so far.
    pub fn received(&self) -> u64 {
        self.streams.first().map_or(0, |first| first.received())
    }

    /// Whether the peer has ended the first stream.
    pub fn peer_closed(&self) -> bool {
        self.streams.first().is_some_and(|first| first.peer_closed())
    }

    /// Whether the peer has acknowledged all bytes and the end of the first stream.
    pub fn is_acknowledged(&self) -> bool {
        self.streams.first().is_some_and(|first| first.is_acknowledged())
    }

    /// Whether there are streams, and each has ended in both directions and is acknowledged.
    pub fn streams_done(&self) -> bool {
        self.streams.are_done()
    }

    /// Counters and round trips.
    pub fn statistics(&self) -> Statistics {
        let Figures { congestion_events, persistent_congestion, marks, rtt_min, rtt_max, rtt_sum, rtt_samples, .. } =
            self.figures.get();
        let quinn = self.quinn.as_ref().map(|(_, quinn)| quinn.stats()).unwrap_or_default();
        Statistics {
            datagrams: quinn.udp_tx.datagrams,
            datagram_bytes: quinn.udp_tx.bytes,
            stream_frames: quinn.frame_tx.stream,
            ack_frames: quinn.frame_tx.acks,
            marked_datagrams: self.marked_datagrams,
            lost_packets: quinn.path.lost_packets,
            lost_bytes: quinn.path.lost_bytes,
            congestion_events,
            persistent_congestion,
            marks,
            rtt_min,
            rtt_max,
            rtt_sum,
            rtt_samples,
        }
    }

    /// Reports the packets of `datagram`, which [`Self::poll_transmit`] has returned and which is
    /// `packet` in the log. Does nothing without [`Identity::logs_packets`].
    pub fn report_sent(&mut self, now: Instant, packet: u64, datagram: &[u8], cx: &mut Context<'_>) {
        self.report_packets(now, packet, datagram, cx);
    }

    /// Reports what quinn has reported since the last call. Sent packets are those of `datagram`.
    fn report_packets(&mut self, now: Instant, packet: u64, mut datagram: &[u8], cx: &mut Context<'_>) {
        let Some(packets) = &self.packets else { return };
        let Identity { flow, connection, direction, .. } = self.id;
        for LoggedPacket { is_lost, packet_type, number, size } in packets.take() {
            let mut step = QuicStep::Lost;
            if !is_lost {
                // quinn reports the packets of a datagram in their order, with their sizes.
                let (bytes, rest) = datagram.split_at(size as usize);
                datagram = rest;
                let frames = if self.is_readable { frames(bytes, IDENTIFIER, TAG) } else { None };
                step = QuicStep::Sent { packet, size, frames };
            }
            cx.quic(now, || QuicEvent { flow, connection, direction, step, packet_type, number });
        }
    }

    /// Reports the packets that quinn has declared lost since the last call, and changes of the
    /// sender as [`TcpEvent`]s. Call it after each input.
    pub fn report(&mut self, now: Instant, cx: &mut Context<'_>) {
        self.report_packets(now, 0, &[], cx);
        if !cx.wants(airpath_core::Classes::TCP) {
            return;
        }
        let (before, figures) = (self.reported, self.figures.get());
        let trigger = if figures.persistent_congestion > before.persistent_congestion {
            TcpTrigger::Timeout
        } else if figures.marks > before.marks {
            TcpTrigger::CongestionExperienced
        } else if figures.congestion_events > before.congestion_events {
            TcpTrigger::FastRetransmit
        } else if figures.recoveries > before.recoveries {
            TcpTrigger::RecoveryEnd
        } else if figures.acks > before.acks {
            TcpTrigger::Ack
        } else {
            return;
        };
        self.reported = figures;
        let Some((_, quinn)) = &self.quinn else { return };
        let metrics = quinn.congestion_state().metrics();
        let smoothed = span(quinn.rtt());
        cx.tcp(now, || TcpEvent {
            flow: self.id.flow,
            direction: self.id.direction,
            trigger,
            congestion_window: metrics.congestion_window,
            slow_start_threshold: metrics.ssthresh.filter(|bytes| *bytes < u64::MAX),
            in_flight: figures.in_flight,
            outstanding: figures.in_flight,
            peer_window: self.config.receive_window.get(),
            acknowledged: figures.acknowledged_bytes as i64,
            round_trip: figures.latest.filter(|_| figures.rtt_samples > before.rtt_samples),
            smoothed_round_trip: figures.latest.map(|_| smoothed),
            retransmission_timeout: probe_timeout(smoothed, figures.variation),
            // quinn paces by window and round trip; the rate of its `Bbr` has no effect.
            pacing_rate: None,
            pacing_gain: None,
        });
    }

    /// Handles the events of quinn until there are none.
    fn process(&mut self) {
        let Self { endpoint, quinn: Some((handle, quinn)), streams, .. } = self else { return };
        loop {
            let mut idle = true;
            while let Some(event) = quinn.poll_endpoint_events() {
                idle = false;
                if let Some(answer) = endpoint.handle_event(*handle, event) {
                    quinn.handle_event(answer);
                }
            }
            while let Some(event) = quinn.poll() {
                idle = false;
                match event {
                    Event::Connected => self.established = true,
                    Event::Stream(event) => streams.handle_event(quinn, event),
                    Event::ConnectionLost { reason } => {
                        self.outcome.get_or_insert_with(|| outcome_of(&reason));
                    }
                    Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {}
                }
            }
            if idle {
                return;
            }
        }
    }

    fn respond(&mut self, transmit: Option<quinn_proto::Transmit>, mut datagram: Vec<u8>) {
        if let Some(transmit) = transmit {
            datagram.truncate(transmit.size);
            self.responses.push_back((from_quinn(transmit.ecn), transmit.destination, datagram));
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, established, outcome, streams, .. } = self;
        let mut connection = f.debug_struct("Connection");
        connection.field("id", id).field("established", established).field("outcome", outcome);
        connection.field("streams", streams).finish_non_exhaustive()
    }
}

/// The probe time-out in the application space (RFC 9002 §6.2.1), with the default maximum delay of
/// acknowledgements (RFC 9000 §18.2) and a granularity of 1 ms.
fn probe_timeout(smoothed: Span, variation: Span) -> Span {
    smoothed + (variation * 4).max(Span::from_millis(1)) + Span::from_millis(25)
}

fn outcome_of(reason: &ConnectionError) -> Outcome {
    match reason {
        ConnectionError::LocallyClosed => Outcome::Closed,
        ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(0) => Outcome::Closed,
        ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::NO_ERROR => Outcome::Closed,
        ConnectionError::TimedOut => Outcome::Lost("idle time-out".to_owned()),
        other => Outcome::Lost(other.to_string()),
    }
}

const fn to_quinn(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

const fn from_quinn(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}
