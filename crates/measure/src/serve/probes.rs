//! Datagrams of the responder: echo and clock replies, and streams.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use airpath_core::{Direction, Instant};
use nix::poll::PollFlags;

use super::sessions::{Session, Sessions};
use crate::clock::{now, wait};
use crate::datagrams::stream;
use crate::probe::{CLOCK_LENGTH, Kind, Probe, emit_times};
use crate::work::{LARGEST_DATAGRAM, Work};

/// Answers datagrams until `stop` is set.
pub fn serve(socket: &UdpSocket, sessions: &Sessions, stop: &AtomicBool) {
    let mut buffer = vec![0; LARGEST_DATAGRAM as usize];
    // The session of the previous datagram: in a stream it is that of the next one as well.
    let mut last: Option<Arc<Session>> = None;
    while !stop.load(Ordering::Relaxed) {
        wait(socket.as_fd(), PollFlags::POLLIN, None);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let arrived = now().as_nanos();
            let Some(probe) = Probe::parse(&buffer[..length]) else { continue };
            let client = from.ip().to_canonical();
            if last.as_ref().is_none_or(|session| {
                session.number != probe.session || session.client != client || session.is_cancelled()
            }) {
                last = sessions.find(probe.session, client);
            }
            if let Some(session) = &last {
                handle_probe(socket, from, session, probe, arrived, &mut buffer[..length]);
            }
        }
    }
}

/// Processes a datagram of `session`.
fn handle_probe(
    socket: &UdpSocket,
    from: SocketAddr,
    session: &Arc<Session>,
    probe: Probe,
    arrived: u64,
    datagram: &mut [u8],
) {
    match (probe.kind, &session.request.work) {
        (Kind::Echo, Work::Ping(_)) => {
            Probe { kind: Kind::EchoReply, ..probe }.emit(datagram);
            // A datagram that cannot be sent is lost, as on any network.
            let _ = socket.send_to(datagram, from);
        }
        (Kind::Clock, _) if datagram.len() == CLOCK_LENGTH => {
            Probe { kind: Kind::ClockReply, ..probe }.emit(datagram);
            emit_times(datagram, arrived, now().as_nanos());
            let _ = socket.send_to(datagram, from);
        }
        (Kind::Datagram, Work::Datagrams(work))
            if u64::from(probe.sequence) < work.count_with(session.request.ip.udp_headers()) =>
        {
            session.receiver().receive(Instant::from_nanos(arrived), probe.sequence, Instant::from_nanos(probe.sent));
        }
        (Kind::Open, Work::Datagrams(work)) if work.direction == Direction::Down && session.begins_to_stream() => {
            let (session, work) = (Arc::clone(session), *work);
            if let Ok(socket) = socket.try_clone() {
                thread::spawn(move || {
                    let number = session.number;
                    let send = |datagram: &[u8]| socket.send_to(datagram, from).map(drop);
                    let headers = session.request.ip.udp_headers();
                    // A socket error ends the stream; the client detects how much of it arrived.
                    let _ = stream(&work, headers, number, &socket, &send, &|| session.is_cancelled(), &|sent| {
                        session.has_sent(sent)
                    });
                });
            }
        }
        _ => {}
    }
}
