//! A station of HDLC in asynchronous balanced mode (ISO/IEC 13239): what RLP (3GPP TS 24.022) and
//! LAPM (ITU-T V.42) have in common.
//!
//! Two stations face each other; each sends numbered information frames, acknowledges those of the
//! other by the N(R) of whatever it sends, and requests missing frames again:
//!
//! - **SREJ** requests one frame, and again when T1 expires without it; later frames are kept;
//! - **REJ** requests all from one frame on; later frames are discarded meanwhile;
//! - **checkpoint recovery**: when T1 has passed since the last information frame without all of
//!   them being acknowledged, the sender polls (P bit). The answer (F bit) gives the frame from
//!   which to send again; the receiver forgets what it kept behind a gap. The sender sends no
//!   information while it waits for the answer;
//! - **link reset**: after N2 polls without an answer the station sends SABM. With it, and with the
//!   UA in response, both restart; frames in flight are lost. After N2 SABMs without a response the
//!   link is disconnected.
//!
//! Numbers are absolute within one life of the link: the modulus of the field only bounds the
//! window. A frame has the number of its octets, not their content: they leave in the order in
//! which they were cut.

mod receiving;
mod sending;

use airpath_core::{Instant, Span, earliest};

use receiving::Receiving;
use sending::Sending;

/// What a station is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Information frames that may be unacknowledged.
    pub window: u32,
    /// T1 (T401 of V.42): how long it waits for an acknowledgement or an answer.
    pub acknowledgement_timer: Span,
    /// N2 (N400 of V.42): polls without an answer.
    pub attempts: u32,
    /// Whether it requests single frames, by SREJ, rather than all from one on, by REJ.
    pub selective: bool,
    /// Octets of user data that an information frame carries at most.
    pub payload: u32,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// SABM: restart. `cut` is the position in its stream of octets up to which the sender has
    /// sent.
    Begin {
        /// Position in the stream.
        cut: u64,
    },
    /// UA: it has restarted.
    Begun,
    /// Information, supervision or both.
    Numbered {
        /// The user data.
        information: Option<Information>,
        /// Its supervision of the other direction.
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

/// The supervision of the other direction in a frame.
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
    /// The link restarts: the octets that the peer had sent are lost up to this position, and
    /// all that this station had sent.
    pub restarted_at: Option<u64>,
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
    /// A command to the peer that is not answered yet.
    question: Option<Question>,
    /// UA is to be sent.
    begun: bool,
    is_disconnected: bool,
}

/// Something that wants an answer.
#[derive(Clone, Copy, Debug)]
struct Question {
    kind: Kind,
    /// How often it was sent.
    attempts: u32,
    /// When to send it again; `None` if it is still to be sent.
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

    /// Whether it has frames to send, or waits for a response, while `waiting` octets wait to be
    /// cut.
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
            None => earliest([self.sending.timer(), self.receiving.next_repetition()]),
        }
    }

    /// The next frame that it sends at `now`, if any; `waiting` octets wait to be cut, `position`
    /// is that of the next of them. A frame with information that is not repeated cuts its octets.
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
            question.attempts += 1;
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

    /// Its supervision of the other direction, and whether that is an answer.
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
                if question.attempts >= self.settings.attempts {
                    match question.kind {
                        Kind::Poll => *question = Question { kind: Kind::Begin, attempts: 0, again: None },
                        Kind::Begin => self.is_disconnected = true,
                    }
                }
            }
            None if self.sending.timer().is_some_and(|timer| timer <= now) => {
                self.question = Some(Question { kind: Kind::Poll, attempts: 0, again: None });
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
                self.reset_state();
                self.begun = true;
                Reaction { delivered: 0, restarted_at: Some(cut) }
            }
            Frame::Begun if is_resetting => {
                self.reset_state();
                Reaction::default()
            }
            // Frames sent before the link restarted.
            Frame::Begun => Reaction::default(),
            Frame::Numbered { .. } if is_resetting => Reaction::default(),
            Frame::Numbered { information, supervision, poll, last } => {
                if poll {
                    self.receiving.answer();
                }
                let delivered = information.map_or(0, |information| self.receiving.take(information, &self.settings));
                self.hear(now, supervision, last);
                Reaction { delivered, restarted_at: None }
            }
        }
    }

    /// Handles the peer's supervision of this station's frames.
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

    fn reset_state(&mut self) {
        self.sending = Sending::default();
        self.receiving = Receiving::default();
        self.question = None;
    }
}

#[cfg(test)]
mod tests;
