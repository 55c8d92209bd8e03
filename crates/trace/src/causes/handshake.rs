//! The handshake: its end, its round trip, and its wait behind other connections.

use std::sync::Arc;

use airpath_core::{Instant, Span};
use airpath_observe::{End, Observation};
use airpath_wire::tcp::Flags;

use super::neighbours::{Meanwhile, Neighbours};
use super::timeline::{Label, Timeline};
use super::{Cause, Causes, Confidence, Fate, Phase, Stall, Stamp, from_far};
use crate::two_point::silence::PATIENCE;

impl Causes {
    pub(super) fn set_up(&mut self, observation: &Observation) {
        let (syn, ack) = (observation.flags.contains(Flags::SYN), observation.flags.contains(Flags::ACK));
        if let Some(timestamps) = observation.timestamps.filter(|_| syn) {
            self.handshake[observation.from as usize] = Some((timestamps, observation.time));
        }
        match (syn, ack) {
            (true, false) => {
                self.syn = Some(match self.syn {
                    Some((first, _, again)) => (first, observation.time, again + 1),
                    None => (Stamp::of(observation), observation.time, 0),
                });
            }
            (true, true) => {
                self.syn_ack = Some(match self.syn_ack {
                    Some((first, _)) => (first, true),
                    None => (observation.time, false),
                });
                if let Some((first, _, again @ 1..)) = self.syn {
                    self.account.add_stall(Stall {
                        begin: first.time,
                        end: observation.time,
                        first_frame: first.frame,
                        last_frame: observation.frame,
                        outstanding: 0,
                        timeouts: again,
                        tail_probes: 0,
                        fate: Fate::SynLost,
                        path_gap: Span::ZERO,
                    });
                }
                // At the client the SYN-ACK opens the connection (RFC 9293 §3.5).
                if self.near == Some(End::Client) {
                    if self.syn.is_none() {
                        self.timeline.doubt_all();
                    }
                    self.phase = Phase::Open;
                    self.completed(observation);
                }
            }
            _ => {
                if let Some(near) = self.near.or_else(|| self.infer_near(observation)) {
                    self.set_near(near);
                }
                if self.syn.is_none() || self.syn_ack.is_none() {
                    self.timeline.doubt_all();
                }
                self.phase = Phase::Open;
                self.completed(observation);
                self.open(observation);
            }
        }
    }

    /// The handshake completes with `last`.
    fn completed(&mut self, last: &Observation) {
        self.waited_behind_others(last.time);
        self.first_round_trip(last);
    }

    /// The half of the handshake between the capture and the far end took longer than the empty
    /// path takes, while the path carried other connections of the client: it waited behind them.
    fn waited_behind_others(&mut self, now: Instant) {
        // A segment of the handshake that was lost waited for a timer.
        let (Some((_, syn, 0)), Some((syn_ack, false)), Some(host)) = (self.syn, self.syn_ack, &self.host) else {
            return;
        };
        let near = self.capture_end();
        let (begin, end) = if near == End::Client { (syn, syn_ack) } else { (syn_ack, now) };
        let neighbours = Neighbours::new(Arc::clone(host), from_far(near), true);
        wait_behind_others(begin, end, neighbours, self.host_round_trip, &mut self.timeline);
    }

    /// The handshake completes with `last`: the longer of its two halves is the round trip.
    fn first_round_trip(&mut self, last: &Observation) {
        let (Some(syn), Some((first, is_again))) = (self.syn, self.syn_ack) else { return };
        let now = last.time;
        // The answer to a SYN-ACK that was sent again is for the last copy if it echoes that.
        let echo = last.timestamps.map(|stamps| stamps.echo).filter(|_| is_again);
        let copy = self.handshake[last.from.other() as usize].filter(|(stamps, _)| Some(stamps.value) == echo);
        let syn_ack = copy.map_or(first, |(_, time)| time);
        // The answer to a SYN that was sent again may be for the first copy (Karn's rule); a round
        // trip from the last copy is at most too short.
        let (_, syn, _) = syn;
        let round_trip = syn_ack.since(syn).max(now.since(syn_ack));
        self.sender.bottleneck().path.round_trip(round_trip, 0);
        self.receiver.first_round_trip(round_trip);
        if let Some((timestamps, time)) = self.handshake[self.capture_end().other() as usize] {
            self.receiver.handshake(Some(timestamps), time);
        }
    }

    /// Infers the end of the capture: the half of the handshake on its own side takes almost no
    /// time.
    fn infer_near(&self, third: &Observation) -> Option<End> {
        let ((_, syn, _), (syn_ack, _)) = (self.syn?, self.syn_ack?);
        // In the middle of the path the halves are equal: there the view of the sender is better,
        // which mostly is the server.
        let near_server = syn_ack.since(syn) < third.time.since(syn_ack).saturating_mul(5) / 4;
        Some(if near_server { End::Server } else { End::Client })
    }
}

/// The half of a handshake between the capture and the far end took from `begin` to `end`. What the
/// empty path does not explain was a wait behind the packets of `neighbours`, if these passed.
pub(super) fn wait_behind_others(
    begin: Instant,
    end: Instant,
    mut neighbours: Neighbours,
    host_round_trip: Option<Span>,
    timeline: &mut Timeline,
) {
    neighbours.set_now(end);
    let Some(empty) = host_round_trip.into_iter().chain(neighbours.round_trip(end)).min() else { return };
    let taken = end.since(begin.min(end));
    let wait = taken.saturating_sub(empty);
    if wait <= empty / 2 {
        return;
    }
    let begin = end - wait;
    let Meanwhile::Others(silent, over) = neighbours.meanwhile(begin, end) else { return };
    if over.since(silent) > wait / 2 {
        // The path was not full.
        return;
    }
    let sharing = Label::Known(Cause::Sharing, Confidence::Medium);
    let is_set_up = |label| label == Label::Known(Cause::SetUp, Confidence::High);
    if over.since(silent) > PATIENCE && !neighbours.is_usual(silent, over) {
        timeline.relabel(begin, silent, sharing, is_set_up);
        timeline.relabel(over, end, sharing, is_set_up);
    } else {
        timeline.relabel(begin, end, sharing, is_set_up);
    }
}
