//! Compares tshark's results for every frame with ours: its 18 events and its values. For each
//! difference `differences.toml` names the correct one, and the rule; its condition is verified
//! against the frames before.
//!
//! The captures are those of the repository, the shared ones, and one that is generated here for
//! the cases that they lack.

mod differences;
mod fields;
mod made;
mod passed;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use airpath_observe::{Connection, End, Events, Observation};
use differences::{Differences, Pair};
use fields::{Frame, VALUES, Value, events, frames, is_installed};
use passed::Passed;
use support::{Seen, captures, seen, shared_captures};

#[test]
fn tshark_agrees_on_the_repositorys_captures_where_it_is_right() {
    if is_installed() {
        compare(captures(), false);
    }
}

#[test]
fn tshark_agrees_on_the_shared_captures_where_it_is_right() {
    let Some(shared) = shared_captures() else { return };
    if is_installed() {
        compare([shared, vec![made::capture()]].concat(), true);
    }
}

/// Compares these captures. `all`: they include the proof of every known difference.
fn compare(captures: Vec<PathBuf>, all: bool) {
    let mut comparison = Comparison::default();
    for path in captures {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let theirs = frames(&path);
        let ours = seen(&path);
        let segments: usize = ours.iter().map(|seen| seen.observations.len()).sum();
        if segments != theirs.len() {
            comparison.unexplained.push(format!("{name}: {segments} segments here, {} there", theirs.len()));
        }
        for seen in &ours {
            comparison.connection(&name, seen, &theirs);
        }
    }
    comparison.assert_known(all);
}

/// Compared frames, and their known differences.
struct Comparison {
    known: Differences,
    /// Number of occurrences of each difference, and whether it occurred in its proof frame.
    events: Vec<(u32, bool)>,
    values: Vec<(u32, bool)>,
    /// Number of equal events and values.
    same: BTreeMap<String, u32>,
    unexplained: Vec<String>,
}

impl Default for Comparison {
    fn default() -> Self {
        let known = Differences::known();
        let (events, values) = (vec![(0, false); known.event.len()], vec![(0, false); known.value.len()]);
        Self { known, events, values, same: BTreeMap::new(), unexplained: Vec::new() }
    }
}

impl Comparison {
    fn connection(&mut self, name: &str, connection: &Seen, theirs: &BTreeMap<u64, Frame>) {
        let mut passed = Passed::default();
        for seen in &connection.observations {
            let Some(frame) = theirs.get(&seen.frame) else {
                self.unexplained.push(format!("{name}: tshark has no segment in frame {}", seen.frame));
                continue;
            };
            self.frame(name, seen, frame, &passed);
            for (value, _) in VALUES.into_iter().filter(|(value, _)| *value != Value::HandshakeRoundTrip) {
                let pair = Pair { value, ours: our_value(value, seen), theirs: frame.values.get(&value).copied() };
                self.value(name, seen, frame, &passed, pair);
            }
            let more = frame.events.contains(Events::DUPLICATE_ACK) && !seen.events.contains(Events::DUPLICATE_ACK);
            passed.pass(seen, more);
        }
        self.handshake(name, connection, theirs, &passed);
    }

    fn frame(&mut self, name: &str, seen: &Observation, theirs: &Frame, passed: &Passed) {
        let in_both = |events: Events| seen.events.0 & theirs.events.0 & events.0 != 0;
        for (event, event_name) in events() {
            *self.same.entry((*event_name).to_owned()).or_default() += u32::from(in_both(*event));
        }
        let all = events().iter().fold(0, |all, (event, _)| all | event.0);
        let ours = Events(seen.events.0 & all & !theirs.events.0);
        let theirs = Events(theirs.events.0 & !seen.events.0);
        if ours.is_empty() && theirs.is_empty() {
            return;
        }
        match self.known.event.iter().position(|known| known.explains([ours, theirs], seen, passed)) {
            Some(index) => {
                let (count, proven) = &mut self.events[index];
                *count += 1;
                *proven |= self.known.event[index].proof == (name.to_owned(), seen.frame);
            }
            None => self.unexplained.push(format!(
                "{name}: frame {}: only we {ours:?}, only tshark {theirs:?}; all of ours {:?}",
                seen.frame, seen.events
            )),
        }
    }

    fn value(&mut self, name: &str, seen: &Observation, theirs: &Frame, passed: &Passed, pair: Pair) {
        if pair.ours == pair.theirs {
            let both = u32::from(pair.ours.is_some());
            *self.same.entry(format!("{:?}", pair.value)).or_default() += both;
            return;
        }
        match self.known.value.iter().position(|known| known.explains(name, pair, seen, theirs, passed)) {
            Some(index) => {
                let (count, proven) = &mut self.values[index];
                *count += 1;
                *proven |= self.known.value[index].proof == (name.to_owned(), seen.frame);
            }
            None => self.unexplained.push(format!("{name}: frame {}: {pair:?}; {:?}", seen.frame, seen.events)),
        }
    }

    /// The round trip of the handshake: that of the SYN, and that of its answer.
    fn handshake(&mut self, name: &str, connection: &Seen, theirs: &BTreeMap<u64, Frame>, passed: &Passed) {
        let value = Value::HandshakeRoundTrip;
        // It is in every segment after the handshake, except resets.
        let all = || connection.observations.iter().rev().filter_map(|seen| Some((seen, theirs.get(&seen.frame)?)));
        let values = all().find(|(_, frame)| frame.values.contains_key(&value));
        let Some((last, frame)) = values.or_else(|| all().next()) else { return };
        let pair = Pair { value, ours: handshake(&connection.connection), theirs: frame.values.get(&value).copied() };
        self.value(name, last, frame, passed, pair);
    }

    /// Fails for an unknown difference; if `all` captures were compared, also for a known
    /// difference that did not occur.
    fn assert_known(mut self, all: bool) {
        let events = self.known.event.iter().map(|known| (&known.reason, &known.rule, &known.proof)).zip(&self.events);
        let values = self.known.value.iter().map(|known| (&known.reason, &known.rule, &known.proof)).zip(&self.values);
        for ((reason, rule, proof), (count, proven)) in events.chain(values) {
            println!("{count:6} {reason} ({rule})");
            if (all && !proven) || reason.is_empty() || rule.is_empty() {
                self.unexplained.push(format!("frame {} of {} does not show it: {reason}", proof.1, proof.0));
            }
        }
        for (name, count) in &self.same {
            println!("{count:6} the same: {name}");
            if all && *count == 0 {
                self.unexplained.push(format!("no capture in which both have {name}"));
            }
        }
        let few = self.unexplained.iter().take(400).cloned().collect::<Vec<_>>().join("\n");
        assert!(self.unexplained.is_empty(), "{} differences are not known:\n{few}", self.unexplained.len());
    }
}

fn our_value(value: Value, seen: &Observation) -> Option<i64> {
    let again = seen.retransmission;
    match value {
        Value::RetransmissionAfter => Some(seen.time.since(again?.of_time?).as_nanos() as i64),
        Value::RetransmissionOf => Some(again?.of_frame? as i64),
        Value::Duplicate => Some(seen.duplicate?.number.into()),
        Value::DuplicateOf => Some(seen.duplicate?.of_frame as i64),
        Value::SincePush => (seen.length > 0).then_some(seen.since_push as i64),
        Value::RoundTrip => Some(seen.round_trip?.0.as_nanos() as i64),
        Value::RoundTripOf => Some(seen.round_trip?.1 as i64),
        Value::Outstanding => (seen.length > 0).then_some(seen.outstanding as i64),
        Value::HandshakeRoundTrip => None,
    }
}

/// The sum of both round trips of the handshake: a retransmitted SYN measures none.
fn handshake(connection: &Connection) -> Option<i64> {
    let [client, server] = End::BOTH.map(|end| connection.figures(end).handshake);
    Some((client?.as_nanos() + server?.as_nanos()) as i64)
}
