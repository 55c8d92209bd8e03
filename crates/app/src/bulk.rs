//! A bulk transfer over one connection: one end is the [`Source`] of the bytes, the other their
//! [`Drain`]. In a download the drain may send a request first.

use airpath_core::{AppStep, Bytes, Direction, Instant, Span};
use serde::{Deserialize, Serialize};

use crate::transport::Transport;

/// A bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Direction of the bytes: down from the server, or up from the mobile.
    pub direction: Direction,
    /// Application bytes to transfer.
    pub bytes: Bytes,
    /// Bytes of the mobile's request for a download; zero for an upload.
    pub request: Bytes,
}

impl Transfer {
    /// The roles of the mobile's end and of the server's end.
    pub fn roles(&self) -> (Role, Role) {
        let source = Role::Source(Source { awaits: self.request.get(), sends: self.bytes.get(), answered: false });
        let drain = Role::Drain(Drain { request: self.request.get(), expects: self.bytes.get(), connected: false });
        match self.direction {
            Direction::Down => (drain, source),
            Direction::Up => (source, drain),
        }
    }
}

/// One end of a transfer.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Sends the bytes.
    Source(Source),
    /// Receives the bytes.
    Drain(Drain),
}

impl Role {
    /// Acts as the application does now; call it whenever the connection has changed.
    pub fn step(&mut self, transport: &mut impl Transport) -> Progress {
        match self {
            Self::Source(source) => source.step(transport),
            Self::Drain(drain) => drain.step(transport),
        }
    }
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing visible to the application.
    None,
    /// The connection opened.
    Connected,
    /// The source has the whole request and starts to send.
    Requested,
    /// Bytes that the drain has in all, more than before.
    Delivered(u64),
}

/// Milestones of a transfer, from which its figures are computed by all runners: what the
/// applications at both ends observe, not the packets between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)] // What every packet needs is first.
pub struct Milestones {
    /// Bytes that reached the receiving application.
    pub delivered: u64,
    /// The last byte reached it.
    pub finished: Option<Instant>,
    /// The sender received the acknowledgement of the last byte.
    pub acknowledged: Option<Instant>,
    /// The connection was lost.
    pub aborted: Option<Instant>,
    /// The first byte reached the receiving application.
    pub first_byte: Option<Instant>,
    /// The connecting end saw the connection open.
    pub connected: Option<Instant>,
    /// The server had the whole request.
    pub requested: Option<Instant>,
}

impl Milestones {
    /// Records what `progress` of either end means at `now` for a transfer of `bytes`, and returns
    /// the steps to report.
    #[inline]
    pub fn note(&mut self, now: Instant, progress: Progress, bytes: Bytes) -> [Option<AppStep>; 2] {
        match progress {
            Progress::None => [None; 2],
            Progress::Connected => {
                self.connected.get_or_insert(now);
                [Some(AppStep::Connected), None]
            }
            Progress::Requested => {
                self.requested = Some(now);
                [Some(AppStep::Requested), None]
            }
            Progress::Delivered(delivered) => {
                self.delivered = delivered;
                let begins = self.first_byte.is_none();
                let ends = self.finished.is_none() && delivered >= bytes.get();
                self.first_byte.get_or_insert(now);
                if ends {
                    self.finished = Some(now);
                }
                [begins.then_some(AppStep::FirstByte), ends.then_some(AppStep::Finished)]
            }
        }
    }

    /// From `start` until the last byte arrived, or until the transfer failed; until `now` if it
    /// continues.
    pub fn duration(&self, start: Instant, now: Instant) -> Span {
        self.finished.or(self.aborted).unwrap_or(now).since(start)
    }

    /// Outcome of the transfer: `finished`, `aborted` or `unfinished`.
    pub const fn outcome(&self) -> &'static str {
        match (self.finished, self.aborted) {
            (Some(_), _) => "finished",
            (None, Some(_)) => "aborted",
            (None, None) => "unfinished",
        }
    }
}

/// The sending end.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    awaits: u64,
    sends: u64,
    answered: bool,
}

impl Source {
    fn step(&mut self, transport: &mut impl Transport) -> Progress {
        if self.answered || !transport.is_established() {
            return Progress::None;
        }
        let waiting = transport.readable();
        transport.read(waiting);
        if transport.received() < self.awaits {
            return Progress::None;
        }
        self.answered = true;
        transport.write(self.sends);
        transport.close();
        if self.awaits > 0 { Progress::Requested } else { Progress::Connected }
    }
}

/// The receiving end.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    request: u64,
    expects: u64,
    connected: bool,
}

impl Drain {
    /// Bytes that it expects in all.
    pub const fn expects(&self) -> u64 {
        self.expects
    }

    fn step(&mut self, transport: &mut impl Transport) -> Progress {
        if !self.connected {
            if !transport.is_established() {
                return Progress::None;
            }
            self.connected = true;
            transport.write(self.request);
            // Requests of HTTP/1.0 and FTP do not end the stream; this one does when everything has
            // arrived.
            if transport.readable() == 0 {
                return Progress::Connected;
            }
        }
        let waiting = transport.readable();
        if waiting == 0 {
            return Progress::None;
        }
        transport.read(waiting);
        let received = transport.received();
        if received >= self.expects {
            transport.close();
        }
        Progress::Delivered(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::StreamEnd;

    fn download(request: u64) -> (Role, Role) {
        Transfer { direction: Direction::Down, bytes: Bytes::new(1000), request: Bytes::new(request) }.roles()
    }

    #[test]
    fn a_download_waits_for_the_whole_request() {
        let (mut mobile, mut server) = download(200);
        let (mut near, mut far) = (StreamEnd::default(), StreamEnd::default());
        assert_eq!(mobile.step(&mut near), Progress::None, "not yet open");
        near.establish();
        far.establish();
        assert_eq!(mobile.step(&mut near), Progress::Connected);
        assert_eq!((near.unsent(), near.is_closed()), (200, false));
        far.receive(199);
        assert_eq!(server.step(&mut far), Progress::None);
        far.receive(1);
        assert_eq!(server.step(&mut far), Progress::Requested);
        assert_eq!((far.unsent(), far.is_closed()), (1000, true));
        assert_eq!(server.step(&mut far), Progress::None, "it sends once");
    }

    #[test]
    fn the_drain_reads_all_and_closes_at_the_end() {
        let (mut mobile, _) = download(0);
        let mut near = StreamEnd::opened(600);
        assert_eq!(
            mobile.step(&mut near),
            Progress::Delivered(600),
            "data may come with the last step of the handshake"
        );
        assert_eq!((near.readable(), near.is_closed()), (0, false));
        near.receive(400);
        assert_eq!(mobile.step(&mut near), Progress::Delivered(1000));
        assert!(near.is_closed());
    }

    #[test]
    fn marks_are_those_of_the_applications() {
        let (at, bytes) = (Instant::from_nanos, Bytes::new(1000));
        let mut milestones = Milestones::default();
        assert_eq!(milestones.note(at(1), Progress::None, bytes), [None, None]);
        assert_eq!(milestones.note(at(2), Progress::Connected, bytes), [Some(AppStep::Connected), None]);
        assert_eq!(milestones.note(at(3), Progress::Delivered(600), bytes), [Some(AppStep::FirstByte), None]);
        assert_eq!((milestones.outcome(), milestones.duration(at(1), at(4))), ("unfinished", Span::from_nanos(3)));
        assert_eq!(milestones.note(at(5), Progress::Delivered(1000), bytes), [None, Some(AppStep::Finished)]);
        assert_eq!((milestones.outcome(), milestones.duration(at(1), at(9))), ("finished", Span::from_nanos(4)));
        let whole = Milestones::default().note(at(1), Progress::Delivered(1000), bytes);
        assert_eq!(whole, [Some(AppStep::FirstByte), Some(AppStep::Finished)], "all may come at once");
    }

    #[test]
    fn an_upload_begins_with_the_connection() {
        let transfer = Transfer { direction: Direction::Up, bytes: Bytes::new(5), request: Bytes::ZERO };
        let (mut mobile, _) = transfer.roles();
        let mut near = StreamEnd::opened(0);
        assert_eq!(mobile.step(&mut near), Progress::Connected);
        assert_eq!((near.unsent(), near.is_closed()), (5, true));
    }
}
