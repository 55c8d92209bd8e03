//! Two threads that share the connections.
//!
//! The one reads and decodes, and puts the segments into parcels, one for each of the [`SHARDS`] of the connections; a parcel of each is a round.
//! The other takes up the parcels, and so does the one that reads, when it is rounds ahead: that keeps both busy, whatever
//! reading costs against the rest. A share is looked after by one thread at a time, and its parcels come in order, so that what it tells does not
//! depend on who looked after it. When all shares have told of a round, what they told is put in order ([`Numbers`]): connections are numbered by
//! their first frames, and lines follow each other by the frames at which connections ended. Rows of tables bear such frames, too, and are
//! put in order at the end ([`merged`](super::sheet::merged)).
//!
//! A capture with few connections fills few of the shares: with one, the one thread reads and decodes, and the other does the rest.

use std::array;
use std::collections::VecDeque;
use std::iter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::collect::{Collector, END_OF_CAPTURE};
use super::numbers::{Numbers, Told};
use super::reading::{Packet, Reading, captured};
use super::{Options, TraceError};
use airpath_observe::flows::{Ending, FlowNumber, Limits, Listener, SHARDS, Shard, hash, shard_of};
use airpath_observe::{Connection, Observation};
use airpath_wire::segment::Segment;

/// Segments of a parcel, at most: when one is full, the round is. Of a share they are looked at one after the other, so that what is known of its
/// connections stays in the cache of the processor core meanwhile.
const SEGMENTS: usize = 1 << 10;

/// Connections that end with the capture are told of so many at a time.
const CONNECTIONS: usize = 1 << 10;

/// Rounds that are read and not told of, at most.
const ROUNDS_AHEAD: usize = 4;

/// What the two threads made of captures.
pub struct Shared<'a> {
    /// How they were read.
    pub reading: Reading,
    /// What was collected of each share.
    pub collectors: Vec<Collector<'a>>,
    /// The numbers of the connections.
    pub numbers: Numbers,
}

/// Analyses captures. When `line` says `false`, it gets no more, and nothing more is read; likewise when `stop` is set.
///
/// # Errors
/// As those of [`captured`].
pub fn share<'a>(
    files: &[PathBuf],
    options: &Options,
    stop: &AtomicBool,
    line: &mut dyn FnMut(&str) -> bool,
) -> Result<Shared<'a>, TraceError> {
    let desk = Desk::new(options);
    let mut numbers = Numbers::new(!options.stream);
    let reading = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _leaving = Leaving(&desk);
            desk.read(files, stop)
        });
        let _leaving = Leaving(&desk);
        let mut goes_on = true;
        let mut open = None;
        loop {
            match desk.next(Side::Telling) {
                Next::Work(work) => desk.done(work.done()),
                Next::Told(told) => {
                    numbers.round(&told, |text| goes_on = goes_on && line(text));
                    desk.told(told, goes_on);
                }
                Next::Finish if goes_on => {
                    let open = open.get_or_insert_with(|| numbers.open().into_iter());
                    desk.finish(open.by_ref().take(CONNECTIONS).map(|(_, share)| share));
                }
                Next::Finish => desk.finish(iter::empty()),
                Next::Read | Next::Nothing => break,
            }
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let shares = desk.state.into_inner().unwrap_or_else(PoisonError::into_inner).shares;
    let owners = shares.into_iter().map(|place| place.owner.expect("nobody is at work any more"));
    Ok(Shared { reading, collectors: owners.map(|owner| owner.collector).collect(), numbers })
}

/// Where parcels, and who looks after a share, wait for a thread.
struct Desk<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
}

struct State<'a> {
    shares: [Place<'a>; SHARDS],
    /// Those that are read and not told of.
    rounds: VecDeque<Round>,
    /// Rounds before them.
    told: u64,
    /// Parcels for further rounds, and what is told of them.
    empty: Vec<Parcel>,
    untold: Vec<Told>,
    stage: Stage,
    /// Nobody wants to know more.
    unwanted: bool,
    /// A thread broke down: what it was at will not come back.
    broken: bool,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// All is read: what is open still has to end.
    Finishing,
    /// There will be no more rounds.
    Over,
}

/// A share's place on the desk.
struct Place<'a> {
    /// Away while a thread is at work with it.
    owner: Option<Box<Owner<'a>>>,
    /// What waits for it, and of which round each is.
    parcels: VecDeque<(u64, Parcel)>,
}

/// Who looks after a share.
struct Owner<'a> {
    flows: Shard,
    begun: u64,
    /// What is open at the end of the capture and did not end yet, in order.
    open: Option<std::vec::IntoIter<(FlowNumber, u32)>>,
    collector: Collector<'a>,
}

/// Segments of a share in the order of the capture, each with the hash of its route; and after the last, connections.
#[derive(Default)]
struct Parcel {
    segments: Vec<(u32, Segment<'static>)>,
    /// How many of those that are open at the end of the capture are to end, in the order of their numbers.
    ending: usize,
}

struct Round {
    /// Parcels that are not done.
    left: usize,
    told: Box<[Told; SHARDS]>,
}

/// A parcel, and who is to look at it; and once that is done, what it told.
struct Work<'a> {
    share: usize,
    round: u64,
    owner: Box<Owner<'a>>,
    parcel: Parcel,
    told: Told,
}

/// Which of the two threads asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Reading,
    Telling,
}

/// What a thread is to do next.
enum Next<'a> {
    /// To read a round.
    Read,
    /// To look at a parcel.
    Work(Work<'a>),
    /// To put in order what was told of a round.
    Told(Box<[Told; SHARDS]>),
    /// To let connections end with the capture.
    Finish,
    /// There is no more.
    Nothing,
}

impl<'a> Desk<'a> {
    fn new(options: &Options) -> Self {
        let place = |_| {
            let flows = Shard::new(Limits::default().of_a_shard());
            let owner = Owner { flows, begun: 0, open: None, collector: Collector::new(options, None) };
            Place { owner: Some(Box::new(owner)), parcels: VecDeque::new() }
        };
        let state = State {
            shares: array::from_fn(place),
            rounds: VecDeque::new(),
            told: 0,
            empty: Vec::new(),
            untold: Vec::new(),
            stage: Stage::Reading,
            unwanted: false,
            broken: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        // No state is left half changed: what can panic runs without the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all rounds, and works between them when they are too many.
    fn read(&self, files: &[PathBuf], stop: &AtomicBool) -> Result<Reading, TraceError> {
        let mut round: [Parcel; SHARDS] = Default::default();
        let reading = captured(files, |packet| {
            // Nobody here wants to know of datagrams.
            let Packet::Segment(segment) = packet else { return true };
            let hash = hash(&segment.route);
            let segments = &mut round[shard_of(hash)].segments;
            segments.push((hash, Segment { payload: &[], ..segment }));
            if segments.len() < SEGMENTS {
                return true;
            }
            self.hand_in(&mut round);
            self.work();
            !stop.load(Ordering::Relaxed) && !self.lock().unwanted
        });
        self.hand_in(&mut round);
        // What cannot be read has no end.
        self.enter(if reading.is_ok() { Stage::Finishing } else { Stage::Over });
        self.work();
        reading
    }

    fn enter(&self, stage: Stage) {
        self.lock().stage = stage;
        self.changed.notify_one();
    }

    /// Lets the next connections of these shares end; without any it is over.
    fn finish(&self, shares: impl Iterator<Item = usize>) {
        let mut round: [Parcel; SHARDS] = Default::default();
        shares.for_each(|share| round[share].ending += 1);
        if round.iter().all(|parcel| parcel.ending == 0) {
            self.enter(Stage::Over);
        } else {
            self.hand_in(&mut round);
        }
    }

    /// Puts a round on the desk, and leaves empty parcels for the next in its place.
    fn hand_in(&self, round: &mut [Parcel; SHARDS]) {
        let mut state = self.lock();
        let number = state.told + state.rounds.len() as u64;
        let mut left = 0;
        for (share, parcel) in round.iter_mut().enumerate() {
            if parcel.ending > 0 || !parcel.segments.is_empty() {
                left += 1;
                let full = std::mem::replace(parcel, state.empty.pop().unwrap_or_default());
                state.shares[share].parcels.push_back((number, full));
            }
        }
        state.rounds.push_back(Round { left, told: Box::default() });
        self.changed.notify_one();
    }

    /// Works on the side of the reader until it is time to read, or there is nothing more to do.
    fn work(&self) {
        while let Next::Work(work) = self.next(Side::Reading) {
            self.done(work.done());
        }
    }

    /// What to do next; waits until there is something.
    fn next(&self, side: Side) -> Next<'a> {
        let mut state = self.lock();
        loop {
            if state.broken {
                return Next::Nothing;
            }
            if side == Side::Telling
                && state.rounds.front().is_some_and(|round| round.left == 0)
                && let Some(round) = state.rounds.pop_front()
            {
                state.told += 1;
                self.changed.notify_one();
                return Next::Told(round.told);
            }
            if side == Side::Reading && state.stage == Stage::Reading && state.rounds.len() < ROUNDS_AHEAD {
                return Next::Read;
            }
            if let Some(work) = state.take(side) {
                return Next::Work(work);
            }
            match state.stage {
                Stage::Finishing if side == Side::Telling && state.rounds.is_empty() => return Next::Finish,
                // What is left then is in the hands of the other thread.
                Stage::Over if side == Side::Reading || state.rounds.is_empty() => return Next::Nothing,
                _ => {}
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes back what was told of a round, and whether more is wanted.
    fn told(&self, told: Box<[Told; SHARDS]>, goes_on: bool) {
        let mut state = self.lock();
        state.untold.extend((*told).into_iter().map(Told::cleared));
        state.unwanted |= !goes_on;
    }

    /// Puts back what a thread has done.
    fn done(&self, work: Work<'a>) {
        let Work { share, round, owner, parcel, told } = work;
        let mut state = self.lock();
        state.shares[share].owner = Some(owner);
        let place = (round - state.told) as usize;
        state.rounds[place].told[share] = told;
        state.rounds[place].left -= 1;
        state.empty.push(parcel);
        self.changed.notify_one();
    }
}

impl<'a> State<'a> {
    /// The work that has waited longest. Each side looks at the shares from another end: so one mostly finds those that it had before, of which
    /// its processor core remembers something.
    fn take(&mut self, side: Side) -> Option<Work<'a>> {
        let ready = |share: usize| {
            let place = &self.shares[share];
            place.owner.as_ref().and(place.parcels.front()).map(|(round, _)| (*round, share))
        };
        let (round, share) = match side {
            Side::Telling => (0..SHARDS).filter_map(ready).min_by_key(|(round, _)| *round),
            Side::Reading => (0..SHARDS).rev().filter_map(ready).min_by_key(|(round, _)| *round),
        }?;
        let place = &mut self.shares[share];
        let owner = place.owner.take()?;
        let (_, parcel) = place.parcels.pop_front()?;
        let told = self.untold.pop().unwrap_or_default();
        Some(Work { share, round, owner, parcel, told })
    }
}

impl Work<'_> {
    /// Looks at the parcel, and empties it.
    fn done(mut self) -> Self {
        let Owner { flows, begun, open, collector } = &mut *self.owner;
        let mut listener = Noting { collector, ended: &mut self.told.ended };
        for (hash, segment) in &self.parcel.segments {
            listener.collector.at(segment.frame);
            let before = *begun;
            flows.segment(*hash, segment, begun, &mut listener);
            if *begun > before {
                self.told.begun.push(segment.frame);
            }
        }
        if self.parcel.ending > 0 {
            listener.collector.at(END_OF_CAPTURE);
            let open = open.get_or_insert_with(|| flows.held().into_iter());
            for (_, place) in open.take(self.parcel.ending) {
                flows.finish_one(place, &mut listener);
            }
        }
        std::mem::swap(&mut self.told.lines, collector.lines());
        self.parcel.segments.clear();
        self.parcel.ending = 0;
        self
    }
}

/// Collects, and notes what ended.
struct Noting<'a, 'b> {
    collector: &'a mut Collector<'b>,
    ended: &'a mut Vec<FlowNumber>,
}

impl Listener for Noting<'_, '_> {
    #[inline]
    fn observed(
        &mut self,
        flow: FlowNumber,
        observation: &Observation,
        segment: &Segment<'_>,
        connection: &Connection,
    ) {
        self.collector.observed(flow, observation, segment, connection);
    }

    fn ended(&mut self, flow: FlowNumber, connection: &Connection, ending: Ending) {
        self.ended.push(flow);
        self.collector.ended(flow, connection, ending);
    }
}

/// Lets the other thread know when this one breaks down, so that it does not wait for ever.
struct Leaving<'a, 'b>(&'a Desk<'b>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            state.broken = true;
            state.unwanted = true;
            self.0.changed.notify_one();
        }
    }
}
