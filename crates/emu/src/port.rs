//! A port: reads packets that leave a network namespace and sends packets into it.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::uio::{readv, writev};
use nix::unistd::write;

use crate::sys::{self, VIRTIO_HEADER};

/// The largest read: one byte more than the largest IP packet.
pub const MAX_READ: usize = 65_536;

/// Bytes up to which a packet is copied to be written in one piece.
const SMALL: usize = 256;

const ETHERNET_HEADER: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// An end of the link.
#[derive(Debug)]
pub struct Port {
    descriptor: OwnedFd,
    frame: Frame,
    /// Packets of the packet socket that were lost, as far as they have been counted.
    lost: Cell<u64>,
}

/// What encloses an IP packet at the port.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// Nothing: a TUN interface.
    Bare,
    /// An Ethernet header: a virtual Ethernet pair. Destination and source address for sending.
    Ethernet { addresses: [u8; 12] },
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The offload information, a `virtio_net_hdr`.
    pub virtio: [u8; VIRTIO_HEADER],
    /// Bytes of the IP packet, from the start of the buffer on.
    pub length: usize,
}

/// Outcome of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took it.
    Taken,
    /// The kernel rejected it: no buffer space, or not a valid packet.
    Rejected,
}

impl Port {
    /// Creates a TUN interface in the network namespace of the calling thread; a `%d` in `name`
    /// becomes the first free number. Returns its port and its name.
    ///
    /// # Errors
    /// If `/dev/net/tun` does not exist or may not be used.
    pub fn tun(name: &str, offload: bool) -> io::Result<(Self, String)> {
        let (descriptor, name) = sys::tun(name, offload)?;
        Ok((Self::of_tun(descriptor), name))
    }

    /// The port of a TUN interface that another process has created with offload.
    pub const fn of_tun(descriptor: OwnedFd) -> Self {
        Self { descriptor, frame: Frame::Bare, lost: Cell::new(0) }
    }

    /// The port at the near end, with interface number `index`, of a virtual Ethernet pair whose
    /// far end is the interface of the programs. The hardware addresses are those of the near and
    /// of the far end.
    ///
    /// # Errors
    /// If packet sockets may not be used.
    pub fn ethernet(index: u32, near: [u8; 6], far: [u8; 6]) -> io::Result<Self> {
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&far);
        addresses[6..].copy_from_slice(&near);
        let frame = Frame::Ethernet { addresses };
        Ok(Self { descriptor: sys::packet_socket(index)?, frame, lost: Cell::new(0) })
    }

    /// Another port of the same interface.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { descriptor: self.descriptor.try_clone()?, frame: self.frame, lost: Cell::new(0) })
    }

    /// Packets that were lost at a packet socket: its receive buffer was full, or the kernel could
    /// not pass them to this process. The kernel counts those of a TUN interface at the interface.
    pub fn lost(&self) -> u64 {
        if let Frame::Ethernet { .. } = self.frame {
            let dropped = sys::take_packet_drops(&self.descriptor).unwrap_or(0);
            self.lost.set(self.lost.get() + u64::from(dropped));
        }
        self.lost.get()
    }

    /// Reads the next packet, if there is one.
    ///
    /// # Errors
    /// Those of the interface.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let (mut virtio, mut ethernet) = ([0; VIRTIO_HEADER], [0; ETHERNET_HEADER]);
        let enclosing: &mut [u8] = match self.frame {
            Frame::Bare => &mut [],
            Frame::Ethernet { .. } => &mut ethernet,
        };
        let headers = VIRTIO_HEADER + enclosing.len();
        let mut parts = [&mut virtio, enclosing, buffer].map(IoSliceMut::new);
        let length = match readv(&self.descriptor, &mut parts) {
            Ok(length) => length,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            // A program has set the interface down; it may set it up again.
            Err(Errno::ENETDOWN | Errno::EIO) => return Ok(None),
            // Linux before 6.2 cannot describe UDP GSO at a packet socket, and drops the packet.
            Err(Errno::EINVAL) if matches!(self.frame, Frame::Ethernet { .. }) => {
                self.lost.set(self.lost.get() + 1);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if let Frame::Ethernet { .. } = self.frame {
            // Offsets in the offload header count from the beginning of the frame.
            shift(&mut virtio, 2, ETHERNET_HEADER, false);
            shift(&mut virtio, 6, ETHERNET_HEADER, false);
        }
        Ok(Some(Received { virtio, length: length.saturating_sub(headers) }))
    }

    /// Sends the IP packet that consists of `header` and the parts of `payload`.
    ///
    /// # Errors
    /// Permanent errors of the interface.
    #[inline]
    pub fn send(&self, virtio: &[u8; VIRTIO_HEADER], header: &[u8], payload: [&[u8]; 2]) -> io::Result<Sent> {
        let sent = match &self.frame {
            Frame::Bare if header.len() + payload[0].len() <= SMALL && payload[1].is_empty() => {
                // One piece is cheaper to read for the kernel than a list of pieces.
                let mut packet = [0; VIRTIO_HEADER + SMALL];
                let mut end = 0;
                for part in [&virtio[..], header, payload[0]] {
                    packet[end..end + part.len()].copy_from_slice(part);
                    end += part.len();
                }
                write(&self.descriptor, &packet[..end])
            }
            Frame::Bare => {
                let parts = [virtio, header, payload[0], payload[1]].map(IoSlice::new);
                // The kernel reads the description of each part.
                writev(&self.descriptor, &parts[..if payload[1].is_empty() { 3 } else { 4 }])
            }
            Frame::Ethernet { addresses } => {
                let mut virtio = *virtio;
                shift(&mut virtio, 2, ETHERNET_HEADER, true);
                shift(&mut virtio, 6, ETHERNET_HEADER, true);
                let mut ethernet = [0; ETHERNET_HEADER];
                ethernet[..12].copy_from_slice(addresses);
                let version = header.first().map_or(0, |first| first >> 4);
                ethernet[12..].copy_from_slice(if version == 6 { &ETHERTYPE_IPV6 } else { &ETHERTYPE_IPV4 });
                let parts = [&virtio[..], &ethernet[..], header, payload[0], payload[1]].map(IoSlice::new);
                writev(&self.descriptor, &parts)
            }
        };
        match sent {
            Ok(_) => Ok(Sent::Taken),
            Err(Errno::EBADF) => Err(Errno::EBADF.into()),
            Err(_) => Ok(Sent::Rejected),
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

/// Adds the length of a header to an offset in the offload information, if it is in use, or
/// subtracts it.
fn shift(virtio: &mut [u8; VIRTIO_HEADER], at: usize, by: usize, add: bool) {
    let offset = u16::from_ne_bytes([virtio[at], virtio[at + 1]]);
    if offset > 0 {
        let moved = if add { offset.saturating_add(by as u16) } else { offset.saturating_sub(by as u16) };
        virtio[at..at + 2].copy_from_slice(&moved.to_ne_bytes());
    }
}
