//! The protocol and the timeline of one connection, from its segments.

use airpath_wire::tcp::Flags;

use crate::conversation::Conversation;
use crate::stream::{Mark, Piece};
use crate::timeline::{Application, Timeline};
use crate::tls::{self, Session};
use airpath_observe::End;
use airpath_wire::segment::Endpoint;

/// Observes one connection.
#[derive(Debug)]
pub struct Watch {
    timeline: Timeline,
    protocol: Protocol,
    keep_fields: bool,
}

#[derive(Debug)]
enum Protocol {
    Undecided,
    Http(Box<Conversation>),
    Tls(Box<Session>),
    Other,
}

impl Watch {
    /// Starts with the first segment of a connection that `client` opened to `server`. Keeps all
    /// header fields, or only [`KEPT_FIELDS`](super::KEPT_FIELDS).
    pub const fn new(client: Endpoint, server: Endpoint, first: Mark, keep_fields: bool) -> Self {
        let timeline = Timeline {
            client,
            server,
            first,
            opened: None,
            accepted: None,
            established: None,
            closed: None,
            reset: false,
            application: Application::Silent,
        };
        Self { timeline, protocol: Protocol::Undecided, keep_fields }
    }

    /// Takes a segment: its payload and its control bits.
    pub fn segment(&mut self, from: End, flags: Flags, piece: Piece<'_>) {
        self.mark(from, flags, piece.mark);
        if from == End::Client
            && let (Protocol::Http(conversation), Some(up_to)) = (&mut self.protocol, piece.acknowledged)
        {
            conversation.acknowledged(up_to, piece.mark);
        }
        if piece.length > 0 {
            self.payload(from, piece);
        }
        if flags.contains(Flags::FIN)
            && let Protocol::Http(conversation) = &mut self.protocol
        {
            conversation.close(from, piece.offset.saturating_add(piece.length.into()));
        }
    }

    /// Whether the connection carries HTTP, by the segments so far.
    pub const fn is_http(&self) -> bool {
        matches!(self.protocol, Protocol::Http(_))
    }

    /// Ends the connection.
    pub fn finish(self) -> Timeline {
        let application = match self.protocol {
            Protocol::Undecided => Application::Silent,
            Protocol::Http(conversation) if conversation.is_http() => Application::Http(conversation.finish()),
            // A request may still be buffered behind bytes that the capture missed.
            Protocol::Http(conversation) => match conversation.finish() {
                exchanges if exchanges.is_empty() => Application::Other,
                exchanges => Application::Http(exchanges),
            },
            Protocol::Tls(session) => Application::Tls(session.finish()),
            Protocol::Other => Application::Other,
        };
        Timeline { application, ..self.timeline }
    }

    fn mark(&mut self, from: End, flags: Flags, mark: Mark) {
        let timeline = &mut self.timeline;
        if flags.contains(Flags::SYN) {
            let which = if from == End::Client { &mut timeline.opened } else { &mut timeline.accepted };
            which.get_or_insert(mark);
        } else if from == End::Client && timeline.accepted.is_some() && flags.contains(Flags::ACK) {
            timeline.established.get_or_insert(mark);
        }
        if flags.contains(Flags::FIN) || flags.contains(Flags::RST) {
            timeline.closed.get_or_insert(mark);
        }
        timeline.reset |= flags.contains(Flags::RST);
    }

    fn payload(&mut self, from: End, piece: Piece<'_>) {
        let from_its_beginning = self.timeline.opened.is_some() || self.timeline.accepted.is_some();
        if matches!(self.protocol, Protocol::Undecided) {
            let client_begins = from == End::Client && (piece.offset == 0 || !from_its_beginning);
            self.protocol = if client_begins && tls::begins(piece.captured) {
                Protocol::Tls(Box::new(Session::new()))
            } else {
                Protocol::Http(Box::new(Conversation::new(from_its_beginning, self.keep_fields)))
            };
        }
        match &mut self.protocol {
            Protocol::Http(conversation) => {
                conversation.push(from, piece);
                if !conversation.is_http() && conversation.is_foreign() {
                    self.protocol = Protocol::Other;
                }
            }
            Protocol::Tls(session) => session.push(from, piece),
            Protocol::Undecided | Protocol::Other => {}
        }
    }
}
