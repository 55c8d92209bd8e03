//! ICMP echo requests as sent by ping(8): ICMP (RFC 792) or ICMPv6 (RFC 4443 §4), to any host.
//!
//! The data of a request begins with the header of [`Probe`], so that a reply identifies its
//! session and request: ICMP itself has 16 bits for each.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use airpath_app::Ping;
use airpath_core::Instant;
use airpath_wire::checksum::Sum;
use airpath_wire::icmp::{EchoTypes, IcmpEcho as Header};
use airpath_wire::ip::IpHeader;
use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::Echo;
use crate::clock::wait;
use crate::error::MeasureError;
use crate::probe::{Kind, Probe};
use crate::stream::noise;

/// The largest packet of IP without jumbograms.
const LARGEST_PACKET: usize = 65_535;

/// Kind of the kernel's socket for the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A datagram socket for echo requests (icmp(7)). It needs no privilege but a group in
    /// `net.ipv4.ping_group_range`, also for IPv6. The kernel chooses the identifier, and passes
    /// the matching replies to this socket.
    Datagram,
    /// A raw socket (raw(7)), which needs `CAP_NET_RAW` and receives all ICMP messages of its peer.
    Raw,
}

impl Carrier {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Raw => "raw",
        }
    }
}

/// Echo requests by ICMP.
pub struct IcmpEcho {
    socket: Socket,
    carrier: Carrier,
    types: EchoTypes,
    session: u64,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

impl IcmpEcho {
    /// To `peer`, by the socket that this process may open.
    ///
    /// # Errors
    /// No socket is allowed, or there is no route to the peer.
    pub fn open(peer: IpAddr, ping: &Ping) -> Result<Self, MeasureError> {
        let (socket, carrier) = socket(peer)?;
        let connected = socket.set_nonblocking(true).and_then(|()| socket.connect(&SocketAddr::new(peer, 0).into()));
        connected.map_err(MeasureError::socket(format!("there is no route to {peer}")))?;
        let mut session = [0; 8];
        getrandom::fill(&mut session)
            .map_err(|error| MeasureError::socket("the kernel gives no random number")(io::Error::other(error)))?;
        let mut message = vec![0; Header::LENGTH];
        message.extend_from_slice(&noise()[..ping.size as usize]);
        Ok(Self {
            socket,
            carrier,
            types: if peer.is_ipv4() { EchoTypes::V4 } else { EchoTypes::V6 },
            session: u64::from_be_bytes(session),
            message,
            buffer: vec![0; LARGEST_PACKET],
        })
    }

    /// The kind of its socket.
    pub const fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// The number of the request that this message answers; `None` for other messages.
    fn answered(&self, received: &[u8]) -> Option<u32> {
        // Only the raw socket of IPv4 includes the IP header.
        let message = match self.carrier == Carrier::Raw && self.types == EchoTypes::V4 {
            true => IpHeader::parse(received).ok()?.1,
            false => received,
        };
        let (header, data) = Header::parse(self.types, message).ok()?;
        let probe = Probe::parse(data)?;
        (header.reply && probe.kind == Kind::Echo && probe.session == self.session).then_some(probe.sequence)
    }
}

/// The least privileged socket for echo requests to `peer` that this process may open.
fn socket(peer: IpAddr) -> Result<(Socket, Carrier), MeasureError> {
    let protocol = if peer.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
    let domain = Domain::for_address(SocketAddr::new(peer, 0));
    let open = |kind: Type| Socket::new(domain, kind.cloexec(), Some(protocol));
    if let Ok(socket) = open(Type::DGRAM) {
        return Ok((socket, Carrier::Datagram));
    }
    match open(Type::RAW) {
        Ok(socket) => Ok((socket, Carrier::Raw)),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => Err(MeasureError::NoEcho { source }),
        Err(source) => Err(MeasureError::socket("cannot make a socket for echo requests")(source)),
    }
}

impl Echo for IcmpEcho {
    fn send(&mut self, sequence: u32, sent: Instant) -> io::Result<()> {
        let (header, data) = self.message.split_at_mut(Header::LENGTH);
        Probe { kind: Kind::Echo, session: self.session, flow: 0, sequence, sent: sent.as_nanos() }.emit(data);
        // The kernel completes the checksum with the pseudo header of ICMPv6, and the identifier of
        // a datagram socket.
        let (identifier, sequence) = (self.session as u16, sequence as u16);
        Header { reply: false, identifier, sequence }.emit(self.types, header, Sum::of(data));
        self.socket.send(&self.message).map(drop)
    }

    fn receive(&mut self) -> io::Result<Option<u32>> {
        loop {
            let length = match (&self.socket).read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            if let Some(sequence) = self.answered(&self.buffer[..length]) {
                return Ok(Some(sequence));
            }
        }
    }

    fn wait(&self, until: Option<Instant>) {
        wait(self.socket.as_fd(), PollFlags::POLLIN, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;
    use airpath_core::Span;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn echo(peer: IpAddr) -> Option<IcmpEcho> {
        match IcmpEcho::open(peer, &Ping::default()) {
            Ok(echo) => Some(echo),
            Err(error) => {
                airpath_testing::skip("icmp-socket", &error.to_string());
                None
            }
        }
    }

    #[test]
    fn this_host_answers() {
        for peer in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let Some(mut echo) = echo(peer) else { continue };
            // More than 16 bits: the sequence numbers are those of the data.
            let sent = [0, 70_000, 7];
            sent.iter().for_each(|sequence| echo.send(*sequence, now()).unwrap());
            let (mut answered, end) = (Vec::new(), now() + Span::from_secs(10));
            while answered.len() < sent.len() && now() < end {
                echo.wait(Some(end));
                answered.extend(std::iter::from_fn(|| echo.receive().unwrap()));
            }
            assert_eq!(answered, sent, "{peer}");
        }
    }

    #[test]
    fn what_is_not_an_answer_to_us_is_none() {
        let Some(mut echo) = echo(Ipv4Addr::LOCALHOST.into()) else { return };
        echo.carrier = Carrier::Datagram;
        let message = |echo: &IcmpEcho, reply: bool, session: u64| {
            let mut message = vec![0; Header::LENGTH + 56];
            let (header, data) = message.split_at_mut(Header::LENGTH);
            Probe { kind: Kind::Echo, session, flow: 0, sequence: 5, sent: 0 }.emit(data);
            Header { reply, identifier: 0, sequence: 5 }.emit(echo.types, header, Sum::of(data));
            message
        };
        assert_eq!(echo.answered(&message(&echo, true, echo.session)), Some(5));
        assert_eq!(echo.answered(&message(&echo, false, echo.session)), None, "a request, as loopback shows it");
        assert_eq!(echo.answered(&message(&echo, true, !echo.session)), None, "of another process");
        assert_eq!(echo.answered(&message(&echo, true, echo.session)[..20]), None, "cut short");
        echo.carrier = Carrier::Raw;
        assert_eq!(echo.answered(&message(&echo, true, echo.session)), None, "no IP header");
    }
}
