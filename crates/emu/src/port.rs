//! An end of the link: where packets of a network namespace come out, and are put in.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::uio::writev;
use nix::unistd::read;

use crate::sys::{self, VIRTIO_HEADER};

/// The largest that is read at once: headers and the largest IP packet.
pub const MAX_READ: usize = VIRTIO_HEADER + ETHERNET_HEADER + 65_535;

const ETHERNET_HEADER: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// An end of the link.
#[derive(Debug)]
pub struct Port {
    descriptor: OwnedFd,
    frame: Frame,
}

/// What stands around an IP packet there.
#[derive(Debug)]
enum Frame {
    /// Nothing: a TUN interface.
    Bare,
    /// An Ethernet header: a virtual Ethernet pair. Here are the addresses to send with.
    Ethernet { addresses: [u8; 12] },
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The offload information, a `virtio_net_hdr`.
    pub virtio: [u8; VIRTIO_HEADER],
    /// Where in the buffer the IP packet lies.
    pub packet: Range<usize>,
}

/// What became of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took it.
    Taken,
    /// The kernel refused it: no room, or not a packet to its mind.
    Refused,
}

impl Port {
    /// The end of a TUN interface, made in the network namespace of the calling thread; a `%d` in `name` becomes the
    /// first free number. Returns the interface's name, too.
    ///
    /// # Errors
    /// Where there is no `/dev/net/tun`, or it may not be used.
    pub fn tun(name: &str, offload: bool) -> io::Result<(Self, String)> {
        let (descriptor, name) = sys::tun(name, offload)?;
        Ok((Self { descriptor, frame: Frame::Bare }, name))
    }

    /// The near end, with number `index`, of a virtual Ethernet pair whose other end is that of the programs. The hardware
    /// addresses are those of the near and of the far end.
    ///
    /// # Errors
    /// Where packet sockets may not be used.
    pub fn ethernet(index: u32, near: [u8; 6], far: [u8; 6]) -> io::Result<Self> {
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&far);
        addresses[6..].copy_from_slice(&near);
        Ok(Self { descriptor: sys::packet_socket(index)?, frame: Frame::Ethernet { addresses } })
    }

    /// Reads what comes next, if anything has.
    ///
    /// # Errors
    /// Those of the interface.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let length = match read(&self.descriptor, buffer) {
            Ok(length) => length,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            // The interface was taken down from inside; it may come back.
            Err(Errno::ENETDOWN | Errno::EIO) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut virtio = [0; VIRTIO_HEADER];
        let mut start = VIRTIO_HEADER.min(length);
        virtio[..start].copy_from_slice(&buffer[..start]);
        if let Frame::Ethernet { .. } = self.frame {
            // Where checksums are to be begun and headers end is counted from the beginning of the frame.
            shift(&mut virtio, 2, ETHERNET_HEADER, false);
            shift(&mut virtio, 6, ETHERNET_HEADER, false);
            start = (start + ETHERNET_HEADER).min(length);
        }
        Ok(Some(Received { virtio, packet: start..length }))
    }

    /// Sends an IP packet that is made of `header` and `payload`.
    ///
    /// # Errors
    /// Those of the interface that will not go away.
    #[inline]
    pub fn send(&self, virtio: &[u8; VIRTIO_HEADER], header: &[u8], payload: &[u8]) -> io::Result<Sent> {
        let sent = match &self.frame {
            Frame::Bare => {
                writev(&self.descriptor, &[IoSlice::new(virtio), IoSlice::new(header), IoSlice::new(payload)])
            }
            Frame::Ethernet { addresses } => {
                let mut virtio = *virtio;
                shift(&mut virtio, 2, ETHERNET_HEADER, true);
                shift(&mut virtio, 6, ETHERNET_HEADER, true);
                let mut ethernet = [0; ETHERNET_HEADER];
                ethernet[..12].copy_from_slice(addresses);
                let version = header.first().map_or(0, |first| first >> 4);
                ethernet[12..].copy_from_slice(if version == 6 { &ETHERTYPE_IPV6 } else { &ETHERTYPE_IPV4 });
                let parts = [&virtio[..], &ethernet[..], header, payload].map(IoSlice::new);
                writev(&self.descriptor, &parts)
            }
        };
        match sent {
            Ok(_) => Ok(Sent::Taken),
            Err(Errno::EBADF) => Err(Errno::EBADF.into()),
            Err(_) => Ok(Sent::Refused),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for Port {
    fn as_raw_fd(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }
}

/// Moves an offset in the offload information, if it is in use, past a header or back.
fn shift(virtio: &mut [u8; VIRTIO_HEADER], at: usize, by: usize, past: bool) {
    let offset = u16::from_ne_bytes([virtio[at], virtio[at + 1]]);
    if offset > 0 {
        let moved = if past { offset.saturating_add(by as u16) } else { offset.saturating_sub(by as u16) };
        virtio[at..at + 2].copy_from_slice(&moved.to_ne_bytes());
    }
}
