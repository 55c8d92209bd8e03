//! TLS as round trips and bytes.
//!
//! The sizes of the messages are those of OpenSSL 3.0 (`openssl s_client -msg` against
//! `openssl s_server` with an ECDSA P-256 key; a server name of 15 bytes), with the certificates
//! added. The ClientHello is a setting: that of a browser is larger by its extensions.

use super::settings::{Resumption, Settings, Tls};

/// A handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Bytes of the client and of the server in each round trip.
    pub round_trips: [(u64, u64); 3],
    /// Number of round trips.
    pub count: u8,
    /// Bytes of the client after them, up to its Finished.
    pub last: u64,
    /// Whether requests follow the first bytes of the client, without waiting.
    pub early_data: bool,
    /// Bytes of the server after these: tickets for later connections (RFC 8446 §4.6.1).
    pub tickets: u64,
}

/// Request and response of CONNECT (RFC 9110 §9.3.6), by which a proxy opens a tunnel: a head
/// with the fields Host, User-Agent and Proxy-Connection, and a status line.
const CONNECT: (u64, u64) = (122, 39);

/// What a ticket adds to a ClientHello: with TLS 1.3 the extension with its binder.
const TICKET_V13: u64 = 271;
const TICKET_V12: u64 = 208;

/// The record of an EndOfEarlyData message, 4 bytes of handshake (RFC 8446 §4.5).
const END_OF_EARLY_DATA: u64 = 4 + 22;

/// A record has up to 2¹⁴ bytes (RFC 8446 §5.1).
pub const RECORD: u64 = 1 << 14;

impl Handshake {
    /// The handshake of a connection; `known` if the browser has a ticket of the origin.
    pub fn of(settings: &Settings, known: bool) -> Self {
        let (hello, certificates) = (settings.client_hello.get(), settings.certificates.get());
        let resumes = known && settings.resumption != Resumption::None;
        let (trips, last, tickets): (&[_], _, _) = match (settings.tls, resumes) {
            (Tls::None, _) => {
                return Self { round_trips: [(0, 0); 3], count: 0, last: 0, early_data: false, tickets: 0 };
            }
            // RFC 8446 §2: one round trip. Two tickets follow.
            (Tls::V13, false) => (&[(hello, 371 + certificates)], 80, 510),
            // RFC 8446 §2.2.
            (Tls::V13, true) => (&[(hello + TICKET_V13, 241)], 80, 255),
            // RFC 5246 §7.3: two round trips. The ticket is part of the second (RFC 5077 §3.1).
            (Tls::V12, false) => (&[(hello, 215 + certificates), (93, 242)], 0, 0),
            // RFC 5246 §7.3, RFC 5077 §3.1: one round trip.
            (Tls::V12, true) => (&[(hello + TICKET_V12, 141)], 51, 0),
        };
        let early_data = settings.tls == Tls::V13 && resumes && settings.resumption == Resumption::ZeroRtt;
        let tunnel = settings.proxy.then_some(CONNECT);
        let last = if early_data { END_OF_EARLY_DATA + last } else { last };
        let mut handshake = Self { round_trips: [(0, 0); 3], count: 0, last, early_data, tickets };
        for trip in tunnel.iter().chain(trips) {
            handshake.round_trips[usize::from(handshake.count)] = *trip;
            handshake.count += 1;
        }
        handshake
    }

    /// Number of round trips before the first request.
    pub const fn waits(&self) -> u8 {
        if self.early_data { self.count - 1 } else { self.count }
    }
}

/// Bytes on the wire of `bytes` of a stream.
pub const fn protected(tls: Tls, bytes: u64) -> u64 {
    // Header, explicit nonce, AES-GCM tag (RFC 5288 §3); header, type, tag (RFC 8446 §5.2).
    let overhead = match tls {
        Tls::None => return bytes,
        Tls::V12 => 5 + 8 + 16,
        Tls::V13 => 5 + 1 + 16,
    };
    bytes + bytes.div_ceil(RECORD) * overhead
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(tls: Tls, resumption: Resumption, known: bool, proxy: bool) -> u8 {
        Handshake::of(&Settings { tls, resumption, proxy, ..Settings::default() }, known).waits()
    }

    #[test]
    fn round_trips_before_the_first_request() {
        assert_eq!(waits(Tls::None, Resumption::None, false, true), 0);
        assert_eq!(waits(Tls::V12, Resumption::Ticket, false, false), 2);
        assert_eq!(waits(Tls::V12, Resumption::Ticket, true, false), 1);
        assert_eq!(waits(Tls::V13, Resumption::Ticket, false, false), 1);
        assert_eq!(waits(Tls::V13, Resumption::ZeroRtt, false, false), 1);
        assert_eq!(waits(Tls::V13, Resumption::ZeroRtt, true, false), 0);
        assert_eq!(waits(Tls::V13, Resumption::ZeroRtt, true, true), 1);
        assert_eq!(waits(Tls::V12, Resumption::None, true, true), 3);
    }

    #[test]
    fn early_data_has_an_end() {
        let last =
            |resumption| Handshake::of(&Settings { tls: Tls::V13, resumption, ..Settings::default() }, true).last;
        assert_eq!((last(Resumption::Ticket), last(Resumption::ZeroRtt)), (80, 80 + 26));
    }

    #[test]
    fn records_add_to_the_stream() {
        assert_eq!(protected(Tls::None, 20_000), 20_000);
        assert_eq!(protected(Tls::V13, 20_000), 20_044);
        assert_eq!(protected(Tls::V12, 100), 129);
    }
}
