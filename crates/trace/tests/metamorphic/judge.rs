//! The causes of each connection of a capture, and how far they move between two captures.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_capture::decode::Decoded;
use airpath_core::{Instant, Span};
use airpath_observe::flows::{Ending, FlowNumber, Flows, Listener};
use airpath_observe::{Connection, Observation};
use airpath_trace::causes::{Causes, Confidence, Piece};
use airpath_trace::shared_path::{Recorder, SharedPaths};
use airpath_wire::segment::{Route, Segment};

/// A connection and the causes of its time.
#[derive(Clone, Debug)]
pub struct Judged {
    pub route: Route,
    /// In order and without gaps.
    pub pieces: Vec<Piece>,
}

/// The connections of a capture with the causes of their time, in the order of their begin.
pub fn judge(packets: &[Decoded<'_>]) -> Vec<Judged> {
    let paths = Arc::new(SharedPaths::default());
    let mut recorder = Recorder::new(Arc::clone(&paths));
    let mut judge = Judge { paths, open: BTreeMap::new(), ended: BTreeMap::new() };
    let mut flows = Flows::default();
    for packet in packets {
        recorder.packet(packet);
        if let Decoded::Segment(segment) = packet {
            flows.segment(segment, &mut judge);
        }
    }
    flows.finish(&mut judge);
    judge.ended.into_values().collect()
}

struct Judge {
    paths: Arc<SharedPaths>,
    open: BTreeMap<FlowNumber, (Causes, Judged)>,
    ended: BTreeMap<FlowNumber, Judged>,
}

impl Listener for Judge {
    fn observed(&mut self, flow: FlowNumber, observation: &Observation, _: &Segment<'_>, connection: &Connection) {
        let route = *connection.route();
        let (causes, judged) = self.open.entry(flow).or_insert_with(|| {
            let causes = match self.paths.host(route.source.address) {
                Some(host) => {
                    let round_trip = host.round_trip(route.destination.address, observation.time);
                    Causes::new(None).with_host(host, round_trip)
                }
                None => Causes::new(None),
            };
            (causes, Judged { route, pieces: Vec::new() })
        });
        causes.observe(observation, &mut |piece| judged.pieces.push(*piece));
    }

    fn ended(&mut self, flow: FlowNumber, _: &Connection, _: Ending) {
        let Some((causes, mut judged)) = self.open.remove(&flow) else { return };
        causes.finish(&mut |piece| judged.pieces.push(*piece));
        self.ended.insert(flow, judged);
    }
}

/// How far the causes of a connection moved between two analyses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The time that both have.
    pub total: Span,
    /// Its part with another cause.
    pub changed: Span,
    /// The part of that whose confidence was not low, and did not fall.
    pub confident: Span,
}

impl Moved {
    /// From the pieces before and after; the times of `after` are later by `shift`.
    pub fn between(before: &[Piece], after: &[Piece], shift: Span) -> Self {
        let mut moved = Self::default();
        let mut after = after.iter().map(|piece| Piece {
            begin: earlier(piece.begin, shift),
            end: earlier(piece.end, shift),
            ..*piece
        });
        let mut other = after.next();
        for piece in before {
            while let Some(beside) = other {
                let (begin, end) = (piece.begin.max(beside.begin), piece.end.min(beside.end));
                moved.add(piece, &beside, end.since(begin.min(end)));
                if beside.end > piece.end {
                    break;
                }
                other = after.next();
            }
        }
        moved
    }

    fn add(&mut self, before: &Piece, after: &Piece, time: Span) {
        self.total += time;
        if before.cause != after.cause {
            self.changed += time;
            if after.confidence >= before.confidence && before.confidence > Confidence::Low {
                self.confident += time;
            }
        }
    }
}

fn earlier(time: Instant, by: Span) -> Instant {
    time - by.min(time.since(Instant::ZERO))
}
