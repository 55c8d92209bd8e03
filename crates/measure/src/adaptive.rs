//! A video in segments over real sockets.
//!
//! Both ends have the settings. The first request is for the list of segments and starts with the
//! session token; each further one is for the next segment and starts with the number of its
//! quality, in network byte order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use airpath_app::Transport;
use airpath_app::adaptive::{Client, Server};
use airpath_core::{AppStep, Instant};
use serde_json::{Value, json};
use socket2::{Domain, Socket};

use crate::clock::now;
use crate::error::MeasureError;
use crate::exchanges::run_client;
use crate::record::Record;
use crate::stream::{Stream, closed_early};
use crate::tcp_settings::{apply, in_force, tcp_socket};
use crate::token::SessionToken;
use crate::work::SegmentedVideo;

/// Bytes of the number of a quality.
pub const QUALITY: usize = size_of::<u32>();

/// Result of a video.
pub struct Played {
    /// When it started.
    pub start: Instant,
    /// When it ended, or was stopped.
    pub end: Instant,
    /// The state of the client.
    pub client: Client,
    /// TCP at this end.
    pub tcp: Value,
    /// Error that ended the connection, if any.
    pub cause: Option<String>,
}

/// Runs the client's end of a video, until it is played, or the record stops.
///
/// # Errors
/// A setting is out of range.
pub fn play(
    video: &SegmentedVideo,
    peer: SocketAddr,
    session: u64,
    record: &mut Record<'_>,
) -> Result<Played, MeasureError> {
    let settings = Arc::new(video.settings().map_err(MeasureError::InvalidRequest)?);
    let script = Arc::new(settings.script());
    let start = now();
    record.note(start, AppStep::Started, 0);
    let mut client = Client::new(settings, script, start);
    let mut tcp = json!({});
    let token = SessionToken { session, flow: 0 };
    let ended = run_session(video, peer, token, &mut client, &mut tcp, record);
    let (end, cause) = (now(), ended.err().map(|error| error.to_string()));
    if cause.is_some() {
        record.note(end, AppStep::Aborted, 0);
    }
    Ok(Played { start, end, client, tcp, cause })
}

fn run_session(
    video: &SegmentedVideo,
    peer: SocketAddr,
    token: SessionToken,
    client: &mut Client,
    tcp: &mut Value,
    record: &mut Record<'_>,
) -> io::Result<()> {
    let socket = tcp_socket(Domain::for_address(peer), &video.tcp)?;
    *tcp = in_force(&socket);
    let mut stream = Stream::connect(socket, peer)?;
    stream.begin_with(&token.to_bytes());
    let mut named = 0;
    let mut name_quality = |stream: &mut Stream, client: &Client| {
        // The player decides on a segment when the one before is complete: all was sent by then.
        if let Some(segment) = client.segments().get(named) {
            stream.begin_with(&(segment.quality as u32).to_be_bytes());
            named += 1;
        }
        Ok(())
    };
    let all = client.settings().segments() + 1;
    run_client(&mut stream, client, all, tcp, record, &mut name_quality)
}

/// The responder's end of a video whose token was read before.
///
/// # Errors
/// The connection is lost, or a request is not valid.
pub fn answer(socket: Socket, video: &SegmentedVideo, stop: &dyn Fn() -> bool) -> io::Result<()> {
    apply(&socket, &video.tcp)?;
    let settings = Arc::new(video.settings().map_err(io::Error::other)?);
    let mut stream = Stream::accepted(socket, SessionToken::LENGTH as u64)?;
    let mut server = Server::new(Arc::clone(&settings));
    let mut next = settings.request.get();
    stream.keep(next, QUALITY);
    while !stop() && !stream.is_over() {
        let moved = stream.exchange()?;
        if let Some(quality) = stream.kept().first_chunk::<QUALITY>() {
            let known = server.request(u32::from_be_bytes(*quality) as usize);
            next += settings.request.get();
            // A client requests a segment after the response to the request before.
            if !known || stream.end.received() > next {
                return Err(io::ErrorKind::InvalidData.into());
            }
            stream.keep(next, QUALITY);
        }
        server.step(now(), &mut stream.end);
        if stream.end.peer_closed() && stream.end.unsent() > 0 {
            return Err(closed_early());
        }
        if !moved {
            stream.wait(server.next_wakeup());
        }
    }
    Ok(())
}
