//! The responder's datagrams: echoes, and what time it is.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use airpath_core::{Direction, Instant};
use nix::poll::PollFlags;

use super::desk::{Desk, Job};
use crate::clock::{now, wait};
use crate::datagrams::stream;
use crate::order::{LARGEST_DATAGRAM, Work};
use crate::probe::{CLOCK_LENGTH, Kind, Probe, emit_times};

/// Answers datagrams until `stop` is set.
pub fn serve(socket: &UdpSocket, desk: &Desk, stop: &AtomicBool) {
    let mut buffer = vec![0; LARGEST_DATAGRAM as usize];
    // The order of the datagram before: in a stream it is that of the next one as well.
    let mut last: Option<Arc<Job>> = None;
    while !stop.load(Ordering::Relaxed) {
        wait(socket.as_fd(), PollFlags::POLLIN, None);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let arrived = now().as_nanos();
            let Some(probe) = Probe::parse(&buffer[..length]) else { continue };
            let client = from.ip().to_canonical();
            if last.as_ref().is_none_or(|job| job.number != probe.order || job.client != client || job.is_cancelled()) {
                last = desk.find(probe.order, client);
            }
            if let Some(job) = &last {
                heed(socket, from, job, probe, arrived, &mut buffer[..length]);
            }
        }
    }
}

/// Does what a datagram of `job` asks for.
fn heed(socket: &UdpSocket, from: SocketAddr, job: &Arc<Job>, probe: Probe, arrived: u64, datagram: &mut [u8]) {
    match (probe.kind, &job.order.work) {
        (Kind::Echo, Work::Ping(_)) => {
            Probe { kind: Kind::EchoReply, ..probe }.emit(datagram);
            // What cannot be sent is lost, as on any network.
            let _ = socket.send_to(datagram, from);
        }
        (Kind::Clock, _) if datagram.len() == CLOCK_LENGTH => {
            Probe { kind: Kind::ClockReply, ..probe }.emit(datagram);
            emit_times(datagram, arrived, now().as_nanos());
            let _ = socket.send_to(datagram, from);
        }
        (Kind::Datagram, Work::Datagrams(work)) if u64::from(probe.sequence) < work.count() => {
            job.receiver().receive(Instant::from_nanos(arrived), probe.sequence, Instant::from_nanos(probe.sent));
        }
        (Kind::Open, Work::Datagrams(work)) if work.direction == Direction::Down && job.begins_to_stream() => {
            let (job, work) = (Arc::clone(job), *work);
            if let Ok(socket) = socket.try_clone() {
                thread::spawn(move || {
                    let order = job.number;
                    let send = |datagram: &[u8]| socket.send_to(datagram, from).map(drop);
                    // A socket that fails ends the stream; the client sees how much of it there
                    // was.
                    let _ = stream(&work, order, &socket, &send, &|| job.is_cancelled(), &|sent| job.has_sent(sent));
                });
            }
        }
        _ => {}
    }
}
