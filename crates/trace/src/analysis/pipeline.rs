//! Reads and decodes in one thread and processes in another; batches of packets are reused.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use super::TraceError;
use super::reading::{Reading, captured};
use airpath_capture::decode::Decoded;
use airpath_wire::segment::{Datagram, Segment};

/// Packets of a batch: with their headers about the size of a core's second-level cache.
const PACKETS: usize = 1 << 10;

/// Bytes of payload that make a batch full, even with fewer packets.
const PAYLOAD: usize = 1 << 20;

/// Full batches that wait, at most.
const BATCHES_AHEAD: usize = 4;

/// Passes the packets of captures, which another thread reads, in their order to `take`. Stops when
/// `take` returns `false`.
///
/// # Errors
/// As [`captured`].
pub fn read_ahead(files: &[PathBuf], mut take: impl FnMut(&Decoded<'_>) -> bool) -> Result<Reading, TraceError> {
    let (full, batches) = sync_channel(BATCHES_AHEAD);
    let (back, empty) = channel();
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut batch = Batch::default();
            let reading = captured(files, |packet| {
                batch.add(packet);
                if !batch.is_full() {
                    return true;
                }
                let next = empty.try_recv().unwrap_or_default();
                full.send(std::mem::replace(&mut batch, next)).is_ok()
            });
            // The receiver may have stopped.
            let _ = full.send(batch);
            reading
        });
        'batches: for mut batch in batches.iter() {
            for (packet, payload) in &batch.packets {
                if !take(&with(packet, &batch.payload[payload.clone()])) {
                    break 'batches;
                }
            }
            batch.clear();
            // The reader may have finished: then the batch is not reused.
            let _ = back.send(batch);
        }
        // Unblocks a reader that waits to send a batch.
        drop(batches);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Packets in transfer between the threads; their payloads are stored one after the other.
#[derive(Default)]
struct Batch {
    packets: Vec<(Decoded<'static>, Range<usize>)>,
    payload: Vec<u8>,
}

impl Batch {
    fn add(&mut self, packet: &Decoded<'_>) {
        let start = self.payload.len();
        self.payload.extend_from_slice(payload(packet));
        self.packets.push((with(packet, &[]), start..self.payload.len()));
    }

    fn is_full(&self) -> bool {
        self.packets.len() >= PACKETS || self.payload.len() >= PAYLOAD
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.payload.clear();
    }
}

fn payload<'a>(packet: &Decoded<'a>) -> &'a [u8] {
    match packet {
        Decoded::Segment(segment) => segment.payload,
        Decoded::Datagram(datagram) => datagram.payload,
        Decoded::Skipped(_) => &[],
    }
}

/// The same packet with a payload.
const fn with<'a>(packet: &Decoded<'_>, payload: &'a [u8]) -> Decoded<'a> {
    match *packet {
        Decoded::Segment(segment) => Decoded::Segment(Segment { payload, ..segment }),
        Decoded::Datagram(datagram) => Decoded::Datagram(Datagram { payload, ..datagram }),
        Decoded::Skipped(cause) => Decoded::Skipped(cause),
    }
}
