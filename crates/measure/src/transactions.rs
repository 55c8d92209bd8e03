//! Transactions over real sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use airpath_app::Transport;
use airpath_app::transactions::{Client, ClientStep, Connections};
use airpath_core::{AppStep, Instant};
use nix::poll::PollFlags;
use serde_json::{Value, json};
use socket2::Domain;

use crate::clock::{now, wait};
use crate::record::Record;
use crate::stream::{Stream, closed_early};
use crate::tcp_info::TcpInfo;
use crate::tcp_settings::{in_force, tcp_socket};
use crate::token::SessionToken;
use crate::work::Exchange;

/// Result of transactions.
pub struct Transacted {
    /// Start time.
    pub start: Instant,
    /// The state of the client.
    pub client: Client,
    /// TCP at this end of the latest connection.
    pub tcp: Value,
    /// Error that ended a connection, if any.
    pub cause: Option<String>,
    /// Whether all transactions were made.
    pub over: bool,
}

/// Sends requests until all transactions are made, or the record stops.
pub fn transact(exchange: &Exchange, peer: SocketAddr, session: u64, record: &mut Record<'_>) -> Transacted {
    let start = now();
    record.note(start, AppStep::Started, 0);
    let mut client = Client::new(exchange.transactions, start);
    let mut tcp = json!({});
    let ended = run_transactions(exchange, peer, SessionToken { session, flow: 0 }, &mut client, &mut tcp, record);
    if ended.is_err() {
        record.note(now(), AppStep::Aborted, delivered(exchange, &client));
    }
    let over = client.is_over(now());
    Transacted { start, client, tcp, cause: ended.err().map(|error| error.to_string()), over }
}

fn run_transactions(
    exchange: &Exchange,
    peer: SocketAddr,
    token: SessionToken,
    client: &mut Client,
    tcp: &mut Value,
    record: &mut Record<'_>,
) -> io::Result<()> {
    let each = exchange.transactions.connections == Connections::Each;
    let mut stream: Option<Stream> = None;
    while !record.is_stopped() && !client.is_over(now()) {
        if client.opens(now()) {
            let socket = tcp_socket(Domain::for_address(peer), &exchange.tcp)?;
            *tcp = in_force(&socket);
            let mut opened = Stream::connect(socket, peer)?;
            opened.begin_with(&token.to_bytes());
            stream = Some(opened);
        }
        let Some(current) = stream.as_mut() else {
            // Between two connections only the clock is waited for.
            let pause = socket2::Socket::new(Domain::for_address(peer), socket2::Type::DGRAM.cloexec(), None)?;
            wait(pause.as_fd(), PollFlags::empty(), client.next_wakeup());
            continue;
        };
        let mut acted = current.exchange()?;
        let mut answered = false;
        loop {
            match client.step(now(), &mut current.end) {
                ClientStep::Nothing => break,
                ClientStep::Connected => record.note(now(), AppStep::Connected, delivered(exchange, client)),
                ClientStep::Request => {}
                ClientStep::Response(sequence, delay) => {
                    record.note(now(), AppStep::Arrived { sequence, delay }, delivered(exchange, client));
                    record.progress(client.latencies().count(), exchange.transactions.transactions.into());
                    answered = true;
                }
            }
            acted = true;
        }
        if answered && (each || client.is_over(now())) {
            if let Some(info) = TcpInfo::of(current.socket()) {
                info.add_settings(tcp);
            }
            // Sends the FIN; the kernel completes the connection.
            current.exchange()?;
            stream = None;
        } else if current.end.peer_closed() {
            return Err(closed_early());
        } else if !acted {
            current.wait(client.next_wakeup());
        }
    }
    Ok(())
}

fn delivered(exchange: &Exchange, client: &Client) -> u64 {
    client.latencies().count() * exchange.transactions.response.get()
}
