//! The end of a connection: orderly, by a reset, or by a timeout (RFC 9293 §3.6).

use airpath_core::{Context, Instant, TcpTrigger};

use airpath_wire::tcp::{Flags, TcpHeader};

use super::{Connection, Reset};
use crate::sequence::to_wire;
use crate::state::{Outcome, State};
use crate::timers::{Timer, after};

impl Connection {
    /// Closes this end's stream after the written data; the peer's continues. A connection that is
    /// not open yet is opened first. Without a handshake this sends nothing.
    pub fn close(&mut self) {
        if self.sender.is_closing() || !self.config.handshake {
            return;
        }
        self.sender.close();
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
    }

    /// Aborts the connection with a reset.
    pub fn abort(&mut self, now: Instant, cx: &mut Context<'_>) {
        if self.outcome.is_some() || self.state == State::Closed {
            return;
        }
        let heard_of = !matches!(self.state, State::Listen | State::SynSent | State::TimeWait);
        if heard_of {
            self.reset = Some(Reset {
                sequence: to_wire(self.id.initial_sequence, self.sender.next),
                acknowledgment: Some(to_wire(self.receiver.initial, self.receiver.next)),
                ends: true,
            });
        }
        self.end(now, Outcome::Aborted, cx);
    }

    /// Answers a segment without a connection (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(&mut self, header: &TcpHeader, length: u32) {
        if header.flags.contains(Flags::RST) {
            return;
        }
        self.reset = Some(if header.flags.contains(Flags::ACK) {
            Reset { sequence: header.acknowledgment, acknowledgment: None, ends: false }
        } else {
            let length = length + u32::from(header.flags.contains(Flags::SYN));
            Reset { sequence: 0, acknowledgment: Some(header.sequence.wrapping_add(length)), ends: false }
        });
    }

    /// Advances the state after a FIN was received, or this end's was acknowledged.
    #[inline]
    pub(super) fn advance_state(&mut self, now: Instant, cx: &mut Context<'_>) {
        let (sent, received) = (self.sender.is_complete(), self.receiver.is_complete());
        if !sent && !received {
            return;
        }
        match self.state {
            State::Established if received => self.state = State::CloseWait,
            State::FinWait1 if sent && received => self.begin_time_wait(now),
            State::FinWait1 if sent => self.state = State::FinWait2,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 if received => self.begin_time_wait(now),
            State::Closing if sent => self.begin_time_wait(now),
            State::LastAck if sent => self.end(now, Outcome::Closed, cx),
            _ => {}
        }
    }

    /// Both streams are complete, but the peer may still retransmit its FIN.
    pub(super) fn begin_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait, after(now, self.config.time_wait));
    }

    /// Ends the connection.
    pub(super) fn end(&mut self, now: Instant, outcome: Outcome, cx: &mut Context<'_>) {
        self.state = State::Closed;
        self.outcome = Some(outcome);
        self.timers.stop_all();
        self.report(now, TcpTrigger::Closed, None, cx);
    }
}
