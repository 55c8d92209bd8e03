//! Flows: the two ends of each, and the workload between them.

mod connections;
mod datagrams;
mod exchanges;
mod ftp;
mod page;
mod ping;
mod quic;
mod stream;
mod transactions;
mod transfer;
mod voice;

use airpath_app::adaptive;
use airpath_core::{AppEvent, AppStep, Bytes, FlowId, Instant, Packet, RandomStream, UserId};
use airpath_path::Side;
use airpath_tcp::Connection;

use crate::network::Network;
use crate::packet_buffer::Payload;

pub use datagrams::DatagramsFlow;
pub use exchanges::{ExchangesFlow, Scripted};
pub use ftp::FtpFlow;
pub use page::PageFlow;
pub use ping::PingFlow;
pub use quic::{QuicTransactionsFlow, QuicTransferFlow};
pub use stream::StreamFlow;
pub use transactions::TransactionsFlow;
pub use transfer::TransferFlow;
pub use voice::VoiceFlow;

/// What all flows have in common. What every packet needs is first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Identity {
    /// Its number.
    pub id: FlowId,
    /// Its mobile.
    pub user: UserId,
    /// Its name in results.
    pub name: String,
    /// How many tables of flows before its own have the same name.
    pub namesakes: u32,
    /// When it starts.
    pub start: Instant,
    /// Whether its ends migrate when its bearer changes.
    pub migrates: bool,
    /// Whether its packets of QUIC are logged.
    pub logs_packets: bool,
    /// The stream of the random choices of its congestion control.
    pub random: RandomStream,
}

impl Identity {
    fn report(&self, network: &mut Network<'_>, now: Instant, side: Side, step: AppStep, delivered: u64) {
        let event = || AppEvent { flow: self.id, step, delivered: Bytes::new(delivered) };
        network.report(now, self.user, side, event);
    }
}

/// Seeds the random choices of one end of connection `number` of a flow, if its congestion control
/// makes any.
fn seed(connection: &mut Connection, random: &RandomStream, number: u32, side: Side) {
    if connection.config().congestion.algorithm.is_random() {
        let end = u64::from(number) * 2 + u64::from(side == Side::Server);
        connection.set_seed(random.clone().bits() ^ end);
    }
}

/// One flow.
pub enum Flow {
    /// A bulk transfer over TCP.
    Transfer(Box<TransferFlow>),
    /// Echo requests from the mobile.
    Ping(Box<PingFlow>),
    /// Datagrams at a constant rate.
    Datagrams(Box<DatagramsFlow>),
    /// Requests of the mobile and responses of the server.
    Transactions(Box<TransactionsFlow>),
    /// A bulk transfer over QUIC.
    QuicTransfer(Box<QuicTransferFlow>),
    /// Requests and responses over QUIC.
    QuicTransactions(Box<QuicTransactionsFlow>),
    /// Web pages.
    Page(Box<PageFlow>),
    /// A video over RTP.
    Stream(Box<StreamFlow>),
    /// A video over HTTP in segments of several qualities.
    Adaptive(Box<ExchangesFlow<adaptive::Client>>),
    /// A call over RTP.
    Voice(Box<VoiceFlow>),
    /// A remote terminal, or mail.
    Exchanges(Box<ExchangesFlow<Scripted>>),
    /// FTP.
    Ftp(Box<FtpFlow>),
}

impl Flow {
    /// What all flows have in common.
    pub const fn identity(&self) -> &Identity {
        match self {
            Self::Transfer(flow) => &flow.identity,
            Self::Ping(flow) => &flow.identity,
            Self::Datagrams(flow) => &flow.identity,
            Self::Transactions(flow) => &flow.identity,
            Self::QuicTransfer(flow) => &flow.identity,
            Self::QuicTransactions(flow) => &flow.identity,
            Self::Page(flow) => &flow.identity,
            Self::Stream(flow) => &flow.identity,
            Self::Adaptive(flow) => &flow.identity,
            Self::Voice(flow) => &flow.identity,
            Self::Exchanges(flow) => &flow.identity,
            Self::Ftp(flow) => &flow.identity,
        }
    }

    /// `side` receives `packet`. Returns the next wake-up of that side.
    #[inline]
    pub fn receive(&mut self, now: Instant, side: Side, packet: &Packet, network: &mut Network<'_>) -> Option<Instant> {
        match self {
            Self::QuicTransfer(flow) => return flow.receive(now, side, packet, network),
            Self::QuicTransactions(flow) => return flow.receive(now, side, packet, network),
            Self::Page(flow) => return flow.receive(now, side, packet, network),
            Self::Stream(flow) => return flow.receive(now, side, packet, network),
            Self::Voice(flow) => return flow.receive(now, side, packet, network),
            _ => {}
        }
        let (payload, mut cx) = network.payload_for(packet, side);
        match (self, payload) {
            (Self::Transfer(flow), Payload::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, network)
            }
            (Self::Transactions(flow), Payload::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, network)
            }
            (Self::Exchanges(flow), Payload::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, network)
            }
            (Self::Ftp(flow), Payload::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, network)
            }
            (Self::Adaptive(flow), Payload::Segment(segment)) => {
                flow.receive(now, side, segment, &mut cx);
                flow.proceed(now, side, network)
            }
            (Self::Ping(flow), &Payload::Echo { sequence, sent, reply }) => {
                flow.receive(now, sequence, sent, reply, network)
            }
            (Self::Datagrams(flow), &Payload::Datagram { sequence, sent }) => {
                flow.receive(now, sequence, sent, network)
            }
            _ => unreachable!("a flow receives only packets of its own kind"),
        }
    }

    /// Handles a wake-up of `side`. Returns its next wake-up.
    pub fn wake(&mut self, now: Instant, side: Side, network: &mut Network<'_>) -> Option<Instant> {
        match self {
            Self::Transfer(flow) => flow.wake(now, side, network),
            Self::Ping(flow) => flow.wake(now, network),
            Self::Datagrams(flow) => flow.wake(now, network),
            Self::Transactions(flow) => flow.wake(now, side, network),
            Self::QuicTransfer(flow) => flow.wake(now, side, network),
            Self::QuicTransactions(flow) => flow.wake(now, side, network),
            Self::Page(flow) => flow.wake(now, side, network),
            Self::Stream(flow) => flow.wake(now, side, network),
            Self::Adaptive(flow) => flow.wake(now, side, network),
            Self::Voice(flow) => flow.wake(now, side, network),
            Self::Exchanges(flow) => flow.wake(now, side, network),
            Self::Ftp(flow) => flow.wake(now, side, network),
        }
    }

    /// Logs the packets of QUIC, if it has any. Call it before the first wake-up.
    pub fn log_packets(&mut self) {
        match self {
            Self::QuicTransfer(flow) => flow.log_packets(),
            Self::QuicTransactions(flow) => flow.identity.logs_packets = true,
            Self::Page(flow) => flow.identity.logs_packets = true,
            _ => {}
        }
    }

    /// Whether its ends can migrate to other addresses: it is over QUIC.
    pub fn can_migrate(&self) -> bool {
        match self {
            Self::QuicTransfer(_) | Self::QuicTransactions(_) => true,
            Self::Page(flow) => flow.is_over_quic(),
            _ => false,
        }
    }

    /// Whether the workload is complete or aborted.
    pub const fn is_over(&self) -> bool {
        match self {
            Self::Transfer(flow) => flow.is_over(),
            Self::Ping(flow) => flow.is_over(),
            Self::Datagrams(flow) => flow.is_over(),
            Self::Transactions(flow) => flow.is_over(),
            Self::QuicTransfer(flow) => flow.is_over(),
            Self::QuicTransactions(flow) => flow.is_over(),
            Self::Page(flow) => flow.is_over(),
            Self::Stream(flow) => flow.is_over(),
            Self::Adaptive(flow) => flow.is_over(),
            Self::Voice(flow) => flow.is_over(),
            Self::Exchanges(flow) => flow.is_over(),
            Self::Ftp(flow) => flow.is_over(),
        }
    }
}
