//! A remote terminal over real sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use airpath_app::Transport;
use airpath_app::exchanges::{Client, Script, Server};
use airpath_core::{AppStep, Instant};
use serde_json::{Value, json};
use socket2::{Domain, Socket};

use crate::clock::now;
use crate::exchanges::run_client;
use crate::record::Record;
use crate::stream::Stream;
use crate::tcp_settings::{apply, in_force, tcp_socket};
use crate::token::SessionToken;
use crate::work::Terminal;

/// Result of a session.
pub struct Interacted {
    /// Start time.
    pub start: Instant,
    /// The interactions.
    pub script: Arc<Script>,
    /// The state of the client.
    pub client: Client,
    /// TCP at this end.
    pub tcp: Value,
    /// Error that ended the connection, if any.
    pub cause: Option<String>,
}

/// Runs the client's end of a session, until all responses are complete, or the record stops.
pub fn interact(terminal: &Terminal, peer: SocketAddr, session: u64, record: &mut Record<'_>) -> Interacted {
    let start = now();
    record.note(start, AppStep::Started, 0);
    let script = terminal.script();
    let mut client = Client::new(Arc::clone(&script), start);
    let mut tcp = json!({});
    let token = SessionToken { session, flow: 0 };
    let ended = run_session(terminal, &script, peer, token, &mut client, &mut tcp, record);
    let cause = ended.err().map(|error| error.to_string());
    if cause.is_some() {
        record.note(now(), AppStep::Aborted, 0);
    }
    Interacted { start, script, client, tcp, cause }
}

fn run_session(
    terminal: &Terminal,
    script: &Script,
    peer: SocketAddr,
    token: SessionToken,
    client: &mut Client,
    tcp: &mut Value,
    record: &mut Record<'_>,
) -> io::Result<()> {
    let socket = tcp_socket(Domain::for_address(peer), &terminal.tcp)?;
    *tcp = in_force(&socket);
    let mut stream = Stream::connect(socket, peer)?;
    // At once: the responder closes a connection without a token, and users may think for longer.
    stream.begin_with(&token.to_bytes());
    stream.end.write(SessionToken::LENGTH as u64);
    // Nagle's algorithm would hold the first request until the token is acknowledged, as it holds
    // none at the start of a real session. It is on again once the first request is sent.
    let mut nagle_waits = !terminal.tcp.no_delay;
    if nagle_waits {
        stream.socket().set_tcp_nodelay(true)?;
    }
    let mut first_request = |stream: &mut Stream, _: &Client| {
        if nagle_waits && stream.end.taken() > SessionToken::LENGTH as u64 {
            stream.socket().set_tcp_nodelay(false)?;
            nagle_waits = false;
        }
        Ok(())
    };
    let all = script.exchanges.len() as u64;
    run_client(&mut stream, client, all, tcp, record, &mut first_request)
}

/// The responder's end of a session whose token was read before.
///
/// # Errors
/// The connection is lost.
pub fn answer(socket: Socket, terminal: &Terminal, stop: &dyn Fn() -> bool) -> io::Result<()> {
    apply(&socket, &terminal.tcp)?;
    let mut stream = Stream::accepted(socket, 0)?;
    let mut server = Server::new(terminal.script());
    while !stop() && !stream.is_over() {
        let moved = stream.exchange()?;
        server.step(now(), &mut stream.end);
        if !moved && stream.end.unsent() == 0 {
            stream.wait(server.next_wakeup());
        }
    }
    Ok(())
}
