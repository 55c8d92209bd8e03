//! Transactions over real sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use airpath_app::Transport;
use airpath_app::transactions::{Asked, Client, Connections};
use airpath_core::{AppStep, Instant};
use nix::poll::PollFlags;
use serde_json::{Value, json};
use socket2::Domain;

use crate::clock::{now, wait};
use crate::order::Exchange;
use crate::protocol::Ticket;
use crate::record::Record;
use crate::stream::{Stream, closed_early};
use crate::tcp_info::TcpInfo;
use crate::tcp_settings::{in_force, tcp_socket};

/// What became of transactions.
pub struct Transacted {
    /// When they began.
    pub start: Instant,
    /// What the asking end saw.
    pub client: Client,
    /// TCP as it was at this end of the latest connection.
    pub tcp: Value,
    /// Why a connection was lost, if one was.
    pub cause: Option<String>,
    /// Whether there were all.
    pub over: bool,
}

/// Asks until there were all transactions, or the record says to stop.
pub fn transact(exchange: &Exchange, peer: SocketAddr, order: u64, record: &mut Record<'_>) -> Transacted {
    let start = now();
    record.note(start, AppStep::Started, 0);
    let mut client = Client::new(exchange.transactions, start);
    let mut tcp = json!({});
    let ended = ask(exchange, peer, Ticket { order, flow: 0 }, &mut client, &mut tcp, record);
    if ended.is_err() {
        record.note(now(), AppStep::Aborted, delivered(exchange, &client));
    }
    let over = client.is_over(now());
    Transacted { start, client, tcp, cause: ended.err().map(|error| error.to_string()), over }
}

fn ask(
    exchange: &Exchange,
    peer: SocketAddr,
    ticket: Ticket,
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
            opened.begin_with(&ticket.to_bytes());
            stream = Some(opened);
        }
        let Some(current) = stream.as_mut() else {
            // Between two connections there is nothing but the clock to wait for.
            let pause = socket2::Socket::new(Domain::for_address(peer), socket2::Type::DGRAM.cloexec(), None)?;
            wait(pause.as_fd(), PollFlags::empty(), client.next_wakeup());
            continue;
        };
        let mut acted = current.exchange()?;
        let mut answered = false;
        loop {
            match client.step(now(), &mut current.end) {
                Asked::Nothing => break,
                Asked::Connected => record.note(now(), AppStep::Connected, delivered(exchange, client)),
                Asked::Request => {}
                Asked::Response(sequence, delay) => {
                    record.note(now(), AppStep::Arrived { sequence, delay }, delivered(exchange, client));
                    record.progress(client.latencies().count(), exchange.transactions.transactions.into());
                    answered = true;
                }
            }
            acted = true;
        }
        if answered && (each || client.is_over(now())) {
            if let Some(info) = TcpInfo::of(current.socket()) {
                info.tell(tcp);
            }
            // Sends the FIN; what is left of the connection is the kernel's.
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
