//! The servers of web pages, with HTTP/1.x as text.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use airpath_app::web::{RequestHead, ServerText};
use airpath_core::Instant;
use socket2::Socket;

use super::sessions::{Session, Sessions};
use crate::clock::{now, wait_for_any};
use crate::since;
use crate::tcp_settings::apply;
use crate::text_stream::TextStream;
use crate::token::SESSION_FIELD;
use crate::work::{LONGEST, PageLoad, Work};

/// Bytes that wait for the kernel from which on neither requests are read nor responses made.
const MOST_UNSENT: usize = 256 * 1024;

/// Serves a connection with HTTP whose first bytes are `begun`; its first head must be complete by
/// `until`.
///
/// # Errors
/// The connection is lost, or its client violates the protocol.
pub fn serve(
    socket: Socket,
    mut begun: Vec<u8>,
    until: Instant,
    client: IpAddr,
    sessions: &Sessions,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let mut stream = TextStream::accepted(socket)?;
    let number = loop {
        if let Some(number) = session_of(&begun).ok_or_else(invalid)? {
            break number;
        }
        match stream.receive()? {
            Some([]) => return Ok(()),
            Some(received) => begun.extend(received),
            None if stop() || now() >= until => return Ok(()),
            None => wait_for_any(&mut [stream.events(true)], Some(until)),
        }
    };
    let session = sessions.find(number, client).ok_or_else(invalid)?;
    let Work::Page(load) = &session.request.work else { return Err(invalid()) };
    apply(stream.socket(), &load.tcp)?;
    respond(&mut stream, &session, load, &begun, stop)
}

/// Serves the requests of a connection, from `begun` on.
fn respond(
    stream: &mut TextStream,
    session: &Session,
    load: &PageLoad,
    begun: &[u8],
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let Some(urls) = session.urls() else { return Ok(()) };
    let mut server = ServerText::new(Arc::clone(urls));
    server.receive(begun);
    let (start, most) = (now(), load.settings.pipeline.depth as usize);
    while !stop() && !session.is_cancelled() && now() < start + LONGEST && !stream.is_over() {
        // A client that pipelines more than it has announced must not fill the memory.
        if server.outstanding() > most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let time = since(start, now());
        if stream.unsent() < MOST_UNSENT && server.step(time, stream.outgoing()) {
            stream.close();
        }
        let mut moved = stream.send()?;
        let reads = stream.unsent() < MOST_UNSENT;
        if reads && let Some(received) = stream.receive()? {
            moved = true;
            server.receive(received);
            if stream.has_ended() {
                server.end();
            }
        }
        if !moved {
            let wakeup = if reads { server.next_wakeup(time) } else { None };
            let until = wakeup.map(|wakeup| start + wakeup.since(Instant::ZERO));
            wait_for_any(&mut [stream.events(reads)], until);
        }
    }
    Ok(())
}

/// The session that the first head of `bytes` names: `Some(None)` if the head is not complete.
/// `None` if it is not one of a session.
fn session_of(bytes: &[u8]) -> Option<Option<u64>> {
    match RequestHead::parse(bytes).ok()? {
        None => Some(None),
        Some(head) => u64::from_str_radix(head.field(SESSION_FIELD)?, 16).ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::HEAD_LIMIT;

    #[test]
    fn the_first_head_names_the_session() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nairpath-session: 00000000000000ff\r\n\r\n";
        assert_eq!(session_of(head), Some(Some(255)));
        assert_eq!(session_of(&head[..head.len() - 2]), Some(None));
        assert_eq!(session_of(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
        assert_eq!(session_of(b"GET \x00 HTTP/1.1\r\n"), None);
        // A head without end must not fill the memory.
        let long = [b"GET / HTTP/1.1\r\nHost: ".as_slice(), &vec![b'a'; HEAD_LIMIT]].concat();
        assert_eq!(session_of(&long), None);
    }
}
