//! A station of HDLC in asynchronous balanced mode (ISO/IEC 13239): what RLP (3GPP TS 24.022) and LAPM (ITU-T V.42) have in common.
//!
//! Two stations face each other; each sends numbered information frames, acknowledges those of the other by the N(R) of
//! whatever it sends, and asks again for what is missing:
//!
//! - **SREJ** asks for one frame, and asks again when T1 has passed without it; what came behind it is kept;
//! - **REJ** asks for all from one frame on; what comes behind it meanwhile is discarded;
//! - **checkpoint recovery**: when T1 has passed since the last information frame without all of them being acknowledged, the
//!   sender polls (P bit). The answer (F bit) says from where on to send again; the receiver forgets what it kept behind a
//!   gap. The sender sends no information while it waits for the answer;
//! - **link reset**: after N2 polls without an answer the station sends SABM. With it, and with the UA that answers, both
//!   begin anew; what was under way is lost. After N2 of them without an answer the link is disconnected.
//!
//! Numbers are absolute within one life of the link: the modulus of the field only bounds the window. A frame knows how many
//! octets it carries, not which: they leave in the order in which they were cut.

mod receiving;
mod sending;

use airpath_core::{Instant, Span};

use receiving::Receiving;
use sending::Sending;

/// What a station is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Information frames that may be unacknowledged.
    pub window: u32,
    /// T1 (T401 of V.42): how long it waits for an acknowledgement or an answer.
    pub acknowledgement_timer: Span,
    /// N2 (N400 of V.42): how often it asks without an answer.
    pub attempts: u32,
    /// Whether it asks for single frames, by SREJ, rather than by REJ for all from one on.
    pub selective: bool,
    /// Octets of user data that an information frame carries at most.
    pub payload: u32,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// SABM: begin anew. `cut` is the position in its stream of octets up to which the sender has sent.
    Begin {
        /// Position in the stream.
        cut: u64,
    },
    /// UA: it has begun anew.
    Begun,
    /// Information, supervision or both.
    Numbered {
        /// The user data.
        information: Option<Information>,
        /// What it says of the other direction.
        supervision: Supervision,
        /// P: an answer is wanted.
        poll: bool,
        /// F: this is the answer.
        last: bool,
    },
}

impl Frame {
    /// Octets of user data.
    pub const fn octets(&self) -> u32 {
        match self {
            Self::Numbered { information: Some(information), .. } => information.octets,
            _ => 0,
        }
    }

    /// Whether it carries user data that was sent before.
    pub const fn is_repeated(&self) -> bool {
        matches!(self, Self::Numbered { information: Some(Information { repeated: true, .. }), .. })
    }
}

/// The user data of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    /// N(S).
    pub number: u64,
    /// How many octets.
    pub octets: u32,
    /// Whether it was sent before.
    pub repeated: bool,
}

/// What a frame says of the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervision {
    /// RR: all before this one are there.
    Ready(u64),
    /// REJ: all before this one are there; this one and all behind it are wanted.
    Reject(u64),
    /// SREJ: this one is wanted.
    SelectiveReject(u64),
}

/// What came of a frame that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// Octets that are now in sequence.
    pub delivered: u64,
    /// The link begins anew: the octets that the peer had sent are lost up to this position, and all that this station had sent.
    pub begun_anew: Option<u64>,
}

/// How the link is, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Information flows.
    Connected,
    /// A poll waits for its answer.
    Recovering,
    /// SABM waits for its answer.
    Resetting,
    /// It has given up.
    Disconnected,
}

/// A station.
#[derive(Clone, Debug)]
pub struct Station {
    settings: Settings,
    sending: Sending,
    receiving: Receiving,
    /// What is asked of the peer, if anything.
    question: Option<Question>,
    /// UA is to be sent.
    begun: bool,
    is_disconnected: bool,
}

/// Something that wants an answer.
#[derive(Clone, Copy, Debug)]
struct Question {
    kind: Kind,
    /// How often it was asked.
    asked: u32,
    /// When to ask again; `None` if it is still to be asked.
    again: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Poll,
    Begin,
}

impl Station {
    /// A station of a link that has just been established.
    pub fn new(settings: Settings) -> Self {
        Self {
            sending: Sending::default(),
            receiving: Receiving::default(),
            question: None,
            begun: false,
            is_disconnected: false,
            settings,
        }
    }

    /// How the link is, as it sees it.
    pub const fn phase(&self) -> Phase {
        match self.question {
            _ if self.is_disconnected => Phase::Disconnected,
            None => Phase::Connected,
            Some(Question { kind: Kind::Poll, .. }) => Phase::Recovering,
            Some(Question { kind: Kind::Begin, .. }) => Phase::Resetting,
        }
    }

    /// Whether it has something to send, or waits for something, while `waiting` octets wait to be cut.
    pub fn is_busy(&self, waiting: u64) -> bool {
        if self.is_disconnected {
            return false;
        }
        self.question.is_some()
            || self.begun
            || waiting > 0
            || self.sending.is_outstanding()
            || self.receiving.wants_to_speak()
    }

    /// When one of its timers runs out, so that it has something to send where it had nothing.
    pub fn next_timer(&self) -> Option<Instant> {
        if self.is_disconnected {
            return None;
        }
        match self.question {
            Some(question) => question.again,
            None => [self.sending.timer(), self.receiving.next_repetition()].into_iter().flatten().min(),
        }
    }

    /// The next frame that it sends at `now`, if any; `waiting` octets wait to be cut, `position` is that of the next of
    /// them. A frame with information that is not repeated cuts its octets.
    pub fn next_frame(&mut self, now: Instant, waiting: u64, position: u64) -> Option<Frame> {
        if self.is_disconnected {
            return None;
        }
        self.watch_timers(now);
        if self.is_disconnected {
            return None;
        }
        if std::mem::take(&mut self.begun) {
            return Some(Frame::Begun);
        }
        if let Some(question) = &mut self.question
            && question.again.is_none()
        {
            question.asked += 1;
            question.again = Some(now + self.settings.acknowledgement_timer);
            return Some(match question.kind {
                Kind::Begin => Frame::Begin { cut: position },
                Kind::Poll => Frame::Numbered {
                    information: None,
                    supervision: self.receiving.supervision(now, &self.settings),
                    poll: true,
                    last: false,
                },
            });
        }
        match self.question {
            Some(Question { kind: Kind::Begin, .. }) => return None,
            Some(Question { kind: Kind::Poll, .. }) => {}
            None => {
                if let Some(information) = self.sending.next(now, waiting, &self.settings) {
                    let (supervision, last) = self.speak(now);
                    return Some(Frame::Numbered { information: Some(information), supervision, poll: false, last });
                }
            }
        }
        self.receiving.wants_to_speak_now(now).then(|| {
            let (supervision, last) = self.speak(now);
            Frame::Numbered { information: None, supervision, poll: false, last }
        })
    }

    /// What it says of the other direction, and whether that is an answer.
    fn speak(&mut self, now: Instant) -> (Supervision, bool) {
        if self.receiving.take_answer() {
            return (self.receiving.ready(), true);
        }
        (self.receiving.supervision(now, &self.settings), false)
    }

    fn watch_timers(&mut self, now: Instant) {
        match &mut self.question {
            Some(question) if question.again.is_some_and(|again| again <= now) => {
                question.again = None;
                if question.asked >= self.settings.attempts {
                    match question.kind {
                        Kind::Poll => *question = Question { kind: Kind::Begin, asked: 0, again: None },
                        Kind::Begin => self.is_disconnected = true,
                    }
                }
            }
            None if self.sending.timer().is_some_and(|timer| timer <= now) => {
                self.question = Some(Question { kind: Kind::Poll, asked: 0, again: None });
            }
            _ => {}
        }
    }

    /// Takes in a frame that came without errors.
    pub fn receive(&mut self, now: Instant, frame: Frame) -> Reaction {
        if self.is_disconnected {
            return Reaction::default();
        }
        let is_resetting = self.phase() == Phase::Resetting;
        match frame {
            Frame::Begin { cut } => {
                self.begin_anew();
                self.begun = true;
                Reaction { delivered: 0, begun_anew: Some(cut) }
            }
            Frame::Begun if is_resetting => {
                self.begin_anew();
                Reaction::default()
            }
            // What was sent before the link began anew.
            Frame::Begun => Reaction::default(),
            Frame::Numbered { .. } if is_resetting => Reaction::default(),
            Frame::Numbered { information, supervision, poll, last } => {
                if poll {
                    self.receiving.answer();
                }
                let delivered = information.map_or(0, |information| self.receiving.take(information, &self.settings));
                self.hear(now, supervision, last);
                Reaction { delivered, begun_anew: None }
            }
        }
    }

    /// Takes in what the peer says of what this station sent.
    fn hear(&mut self, now: Instant, supervision: Supervision, last: bool) {
        let is_polling = self.phase() == Phase::Recovering;
        match supervision {
            Supervision::Ready(next) => {
                self.sending.acknowledge(next);
                if is_polling && last {
                    self.question = None;
                    self.sending.go_back();
                }
            }
            // While a poll waits for its answer, what was wanted before it does not count.
            _ if is_polling => {}
            Supervision::Reject(next) => {
                self.sending.acknowledge(next);
                self.sending.go_back();
            }
            Supervision::SelectiveReject(number) => self.sending.want(now, number, &self.settings),
        }
    }

    fn begin_anew(&mut self) {
        self.sending = Sending::default();
        self.receiving = Receiving::default();
        self.question = None;
    }
}

#[cfg(test)]
mod tests;
