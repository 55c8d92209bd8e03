//! A thread that writes large packets to a port, while the thread of the forwarder reads others and
//! runs the protocol.
//!
//! The kernel forwards a packet before the write returns, up to the socket of a local receiver. So
//! a write takes about as long as everything that a proxy does with the packet in user space.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use airpath_core::Direction;

use crate::offload::MAX_HEADER;
use crate::port::{Port, Sent};
use crate::sys::VIRTIO_HEADER;

/// Packets that wait at most: 1 MB, which may still be in the cache when they are written.
pub const MOST_UNWRITTEN: usize = 16;

/// Smaller payloads are not worth waking another thread.
pub const LEAST_PAYLOAD: usize = 16 << 10;

/// A packet to be written.
#[derive(Debug)]
pub struct WriteRequest {
    /// The direction in which it goes. Packets of one direction keep their order.
    pub direction: Direction,
    /// The offload header.
    pub virtio: [u8; VIRTIO_HEADER],
    /// The packet's own headers, at the beginning.
    pub header: [u8; MAX_HEADER],
    /// Bytes of these headers.
    pub header_bytes: usize,
    /// Memory with the payload.
    pub memory: Vec<u8>,
    /// Where the payload is.
    pub payload: Range<usize>,
    /// Number of segments.
    pub segments: u32,
}

impl WriteRequest {
    fn write(&self, port: &Port) -> io::Result<Sent> {
        port.send(&self.virtio, &self.header[..self.header_bytes], &self.memory[self.payload.clone()])
    }
}

/// A packet that was written, or not taken by the kernel.
#[derive(Debug)]
pub struct Written {
    /// Segments that the kernel rejected.
    pub rejected: u32,
    /// The memory of the packet, to be used again.
    pub memory: Vec<u8>,
}

/// The thread, and the packets that it has not written yet.
#[derive(Debug)]
pub struct Writer {
    requests: Option<SyncSender<WriteRequest>>,
    written: Receiver<(WriteRequest, io::Result<Sent>)>,
    thread: Option<JoinHandle<()>>,
    /// In the order of [`Direction::BOTH`].
    unwritten: [usize; 2],
}

impl Writer {
    /// Starts the thread. It has the credentials of this one.
    ///
    /// # Errors
    /// If there are no descriptors or threads left.
    pub fn start(port: &Port) -> io::Result<Self> {
        let port = port.try_clone()?;
        let (requests, to_write) = sync_channel::<WriteRequest>(MOST_UNWRITTEN);
        let (report, written) = sync_channel(MOST_UNWRITTEN);
        let write_all = move || {
            for request in to_write {
                let outcome = request.write(&port);
                if report.send((request, outcome)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("write".to_owned()).spawn(write_all)?;
        Ok(Self { requests: Some(requests), written, thread: Some(thread), unwritten: [0; 2] })
    }

    /// Whether packets of `direction` wait.
    pub const fn is_writing(&self, direction: Direction) -> bool {
        self.unwritten[direction as usize] > 0
    }

    /// Writes a packet later. At most [`MOST_UNWRITTEN`] may wait.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn write(&mut self, request: WriteRequest) -> io::Result<()> {
        self.unwritten[request.direction as usize] += 1;
        let requests = self.requests.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        requests.send(request).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The next packet that was written, if there is one. Waits for it while more than
    /// `most_unwritten` are not.
    ///
    /// # Errors
    /// Permanent errors of the interface.
    pub fn next_written(&mut self, most_unwritten: usize) -> io::Result<Option<Written>> {
        let next = if self.unwritten[0] + self.unwritten[1] > most_unwritten {
            Some(self.written.recv().map_err(|_| io::ErrorKind::BrokenPipe)?)
        } else {
            self.written.try_recv().ok()
        };
        let Some((WriteRequest { direction, memory, segments, .. }, sent)) = next else { return Ok(None) };
        self.unwritten[direction as usize] -= 1;
        let rejected = if sent? == Sent::Rejected { segments } else { 0 };
        Ok(Some(Written { rejected, memory }))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread ends when it has written what waits.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// A packet of one byte of header and this payload.
    fn request(direction: Direction, payload: Vec<u8>) -> WriteRequest {
        let range = 1..payload.len();
        let header = [7; MAX_HEADER];
        WriteRequest {
            direction,
            virtio: [0; VIRTIO_HEADER],
            header,
            header_bytes: 1,
            memory: payload,
            payload: range,
            segments: 2,
        }
    }

    fn pair() -> (Port, UnixDatagram) {
        let (near, far) = UnixDatagram::pair().expect("sockets");
        (Port::of_tun(OwnedFd::from(near)), far)
    }

    #[test]
    fn packets_are_written_in_their_order_and_their_memory_comes_back() {
        let (port, far) = pair();
        let mut writer = Writer::start(&port).expect("a thread");
        let mut returned = Vec::new();
        for number in 0..100 {
            // The far end reads only later, so the thread must wait in between.
            writer.write(request(Direction::Down, vec![number; 1000])).expect("a running thread");
            assert!(writer.is_writing(Direction::Down) && !writer.is_writing(Direction::Up));
            if number >= 5 {
                let mut packet = [0; 2000];
                let length = far.recv(&mut packet).expect("a packet");
                assert_eq!(&packet[VIRTIO_HEADER..length], &[&[7][..], &[number - 5; 999]].concat());
            }
            while let Some(written) = writer.next_written(MOST_UNWRITTEN - 1).expect("an open port") {
                assert_eq!(written.rejected, 0);
                returned.push(written.memory[0]);
            }
        }
        while let Some(written) = writer.next_written(0).expect("an open port") {
            returned.push(written.memory[0]);
        }
        assert_eq!(returned, Vec::from_iter(0..100));
        assert!(!writer.is_writing(Direction::Down));
    }

    #[test]
    fn packets_that_the_kernel_rejects_are_counted() {
        let (port, far) = pair();
        drop(far);
        let mut writer = Writer::start(&port).expect("a thread");
        writer.write(request(Direction::Up, vec![0; 1000])).expect("a running thread");
        let written = writer.next_written(0).expect("no permanent error").expect("a packet");
        assert_eq!(written.rejected, 2);
    }

    #[test]
    fn what_waits_is_written_before_the_thread_ends() {
        let (port, far) = pair();
        let mut writer = Writer::start(&port).expect("a thread");
        for number in 0..5 {
            writer.write(request(Direction::Up, vec![number; 100])).expect("a running thread");
        }
        drop(writer);
        far.set_nonblocking(true).expect("a socket");
        let mut packet = [0; 200];
        let count = std::iter::from_fn(|| far.recv(&mut packet).ok()).count();
        assert_eq!(count, 5);
    }
}
