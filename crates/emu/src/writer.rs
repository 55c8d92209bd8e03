//! A thread that writes large packets to a port, while the thread of the forwarder reads others and
//! runs the protocol.
//!
//! The kernel forwards a packet before the write returns, up to the socket of a local receiver. So
//! a write takes about as long as everything that a proxy does with the packet in user space.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use airpath_core::{Direction, FlowId};
use airpath_path::SharedPayload;

use crate::offload::MAX_HEADER;
use crate::port::{Port, Sent};
use crate::sys::VIRTIO_HEADER;

/// Packets that wait at most before the next one: 4 MB. With fewer, the thread of the forwarder
/// often waits for the other one, which shares a core with the receivers that it wakes up.
pub const MOST_UNWRITTEN: usize = 64;

/// Smaller payloads are not worth waking another thread.
pub const LEAST_PAYLOAD: usize = 16 << 10;

/// A packet to be written.
#[derive(Debug)]
pub struct WriteRequest {
    /// Its flow and direction. Packets of a flow keep their order.
    pub flow: (FlowId, Direction),
    /// The offload header.
    pub virtio: [u8; VIRTIO_HEADER],
    /// The packet's own headers, at the beginning.
    pub header: [u8; MAX_HEADER],
    /// Bytes of these headers.
    pub header_bytes: usize,
    /// The payload.
    pub payload: WrittenPayload,
    /// Number of segments.
    pub segments: u32,
}

/// The payload of a packet to be written.
#[derive(Debug)]
pub enum WrittenPayload {
    /// A part of memory that belongs to this packet.
    Own(Vec<u8>, Range<usize>),
    /// In memory that also belongs to the buffer of a connection.
    Shared(SharedPayload),
}

impl WriteRequest {
    fn write(&self, port: &Port) -> io::Result<Sent> {
        let payload = match &self.payload {
            WrittenPayload::Own(memory, range) => [&memory[range.clone()], &[]],
            WrittenPayload::Shared(shared) => shared.parts(),
        };
        port.send(&self.virtio, &self.header[..self.header_bytes], payload)
    }
}

/// A packet that was written, or not taken by the kernel.
#[derive(Debug)]
pub struct Written {
    /// Segments that the kernel rejected.
    pub rejected: u32,
    /// The payload of the packet, whose memory can be used again.
    pub payload: WrittenPayload,
}

/// The thread, and the packets that it has not written yet.
#[derive(Debug)]
pub struct Writer {
    requests: Option<SyncSender<WriteRequest>>,
    written: Receiver<(WriteRequest, io::Result<Sent>)>,
    thread: Option<JoinHandle<()>>,
    /// Flows of the packets that are not written, in their order.
    unwritten: VecDeque<(FlowId, Direction)>,
}

impl Writer {
    /// Starts the thread. It has the credentials of this one.
    ///
    /// # Errors
    /// If there are no descriptors or threads left.
    pub fn start(port: &Port) -> io::Result<Self> {
        let port = port.try_clone()?;
        let (requests, to_write) = sync_channel::<WriteRequest>(MOST_UNWRITTEN + 1);
        let (report, written) = sync_channel(MOST_UNWRITTEN + 1);
        let write_all = move || {
            for request in to_write {
                let outcome = request.write(&port);
                if report.send((request, outcome)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("write".to_owned()).spawn(write_all)?;
        Ok(Self { requests: Some(requests), written, thread: Some(thread), unwritten: VecDeque::new() })
    }

    /// Whether packets of this flow and direction are not written.
    pub fn is_writing(&self, flow: (FlowId, Direction)) -> bool {
        self.unwritten.contains(&flow)
    }

    /// Writes a packet later. At most [`MOST_UNWRITTEN`] may wait before.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn write(&mut self, request: WriteRequest) -> io::Result<()> {
        self.unwritten.push_back(request.flow);
        let requests = self.requests.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        requests.send(request).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The next packet that was written, if there is one. Waits for it while more than
    /// `most_unwritten` are not.
    ///
    /// # Errors
    /// Permanent errors of the interface.
    pub fn next_written(&mut self, most_unwritten: usize) -> io::Result<Option<Written>> {
        let next = if self.unwritten.len() > most_unwritten {
            Some(self.written.recv().map_err(|_| io::ErrorKind::BrokenPipe)?)
        } else {
            self.written.try_recv().ok()
        };
        let Some((WriteRequest { payload, segments, .. }, sent)) = next else { return Ok(None) };
        self.unwritten.pop_front();
        let rejected = if sent? == Sent::Rejected { segments } else { 0 };
        Ok(Some(Written { rejected, payload }))
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
    use std::sync::Arc;

    use super::*;

    const FLOW: (FlowId, Direction) = (FlowId(7), Direction::Down);

    /// A packet of one byte of header and this payload.
    fn request(flow: (FlowId, Direction), payload: Vec<u8>) -> WriteRequest {
        let range = 1..payload.len();
        let header = [7; MAX_HEADER];
        WriteRequest {
            flow,
            virtio: [0; VIRTIO_HEADER],
            header,
            header_bytes: 1,
            payload: WrittenPayload::Own(payload, range),
            segments: 2,
        }
    }

    fn first(written: &Written) -> u8 {
        let WrittenPayload::Own(memory, _) = &written.payload else { panic!("it has its own memory") };
        memory[0]
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
            writer.write(request(FLOW, vec![number; 1000])).expect("a running thread");
            assert!(writer.is_writing(FLOW) && !writer.is_writing((FLOW.0, Direction::Up)));
            assert!(!writer.is_writing((FlowId(8), Direction::Down)));
            if number >= 5 {
                let mut packet = [0; 2000];
                let length = far.recv(&mut packet).expect("a packet");
                assert_eq!(&packet[VIRTIO_HEADER..length], &[&[7][..], &[number - 5; 999]].concat());
            }
            while let Some(written) = writer.next_written(MOST_UNWRITTEN - 1).expect("an open port") {
                assert_eq!(written.rejected, 0);
                returned.push(first(&written));
            }
        }
        while let Some(written) = writer.next_written(0).expect("an open port") {
            returned.push(first(&written));
        }
        assert_eq!(returned, Vec::from_iter(0..100));
        assert!(!writer.is_writing(FLOW));
    }

    #[test]
    fn a_shared_payload_is_written_in_its_order() {
        let (port, far) = pair();
        let mut writer = Writer::start(&port).expect("a thread");
        let memory = Arc::new(vec![3, 1, 4, 1, 5, 9]);
        let shared = SharedPayload([Some((Arc::clone(&memory), 4..6)), Some((Arc::clone(&memory), 0..2))]);
        let new = WriteRequest { payload: WrittenPayload::Shared(shared), ..request(FLOW, Vec::from([0])) };
        writer.write(new).expect("a running thread");
        let mut packet = [0; 100];
        let length = far.recv(&mut packet).expect("a packet");
        assert_eq!(packet[VIRTIO_HEADER..length], [7, 5, 9, 3, 1]);
        let written = writer.next_written(0).expect("an open port").expect("a packet");
        drop(memory);
        let WrittenPayload::Shared(shared) = written.payload else { panic!("its memory is shared") };
        assert_eq!(shared.into_memory().count(), 1, "with the last share it comes back once");
    }

    #[test]
    fn packets_that_the_kernel_rejects_are_counted() {
        let (port, far) = pair();
        drop(far);
        let mut writer = Writer::start(&port).expect("a thread");
        writer.write(request(FLOW, vec![0; 1000])).expect("a running thread");
        let written = writer.next_written(0).expect("no permanent error").expect("a packet");
        assert_eq!(written.rejected, 2);
    }

    #[test]
    fn what_waits_is_written_before_the_thread_ends() {
        let (port, far) = pair();
        let mut writer = Writer::start(&port).expect("a thread");
        for number in 0..5 {
            writer.write(request(FLOW, vec![number; 100])).expect("a running thread");
        }
        drop(writer);
        far.set_nonblocking(true).expect("a socket");
        let mut packet = [0; 200];
        let count = std::iter::from_fn(|| far.recv(&mut packet).ok()).count();
        assert_eq!(count, 5);
    }
}
