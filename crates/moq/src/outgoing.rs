//! The objects that a publisher has to send on a connection: the next one, and delivery timeouts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_core::{Instant, Span};
use bytes::{Buf, Bytes};
use quinn::{Connection, SendStream};
use tokio::sync::Notify;

use crate::clock::{Either, SharedClock, either};
use crate::media::Track;
use crate::message::{GroupOrder, Parameters};
use crate::session::{DELIVERY_TIMEOUT, SessionError};

/// Bytes beyond the congestion window that are passed to QUIC: ten datagrams, so that QUIC always
/// has data to send. More could not time out, and would be sent before a newer group
/// (draft-ietf-moq-transport-19 §8).
const UNSENT: u64 = 12_000;

/// A subgroup in the order of sending (§7.2): by the priorities of subscriber and publisher, by the
/// order of the groups. Other subscriptions with the same priorities follow in the order of their
/// aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubgroupKey {
    priority: Reverse<i32>,
    track_alias: u64,
}

impl SubgroupKey {
    /// The place of a subgroup that is a group.
    pub fn new(track_alias: u64, group: u64, parameters: &Parameters, publisher_priority: u8) -> Self {
        let latest = Track::MOST_GROUPS;
        let rank = match parameters.group_order {
            GroupOrder::Descending => group.min(latest),
            GroupOrder::Ascending => latest - group.min(latest),
        };
        let [subscriber, publisher] = [parameters.priority, publisher_priority].map(|number| u8::MAX - number);
        let priority = i32::from(subscriber) << 23 | i32::from(publisher) << 15 | rank as i32;
        Self { priority: Reverse(priority), track_alias }
    }
}

/// What became of the objects of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Objects that were published.
    pub objects: u64,
    /// Objects of them that were not passed to QUIC as a whole.
    pub dropped: u64,
    /// Streams that were opened.
    pub streams: u64,
    /// Groups that were not delivered as a whole, because a delivery timeout was over.
    pub timed_out: Vec<u64>,
}

/// The objects of all subscriptions of a connection.
#[derive(Debug)]
pub struct Outgoing {
    connection: Connection,
    clock: SharedClock,
    /// Upper bound of the bytes that QUIC buffers.
    largest_window: u64,
    queue: Mutex<Queue>,
    /// Objects were added.
    added: Notify,
    /// A subgroup is no longer in the queue.
    removed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    subgroups: BTreeMap<SubgroupKey, Subgroup>,
    tracks: BTreeMap<u64, Sent>,
    send_window: u64,
}

/// A subgroup, until all of it was passed to QUIC.
#[derive(Debug)]
struct Subgroup {
    group: u64,
    object_timeout: Option<Span>,
    subgroup_timeout: Option<Span>,
    /// Header of the stream, before the first object is there.
    header: Vec<u8>,
    objects: VecDeque<QueuedObject>,
    /// When the last object was published.
    ended: Option<Instant>,
    stream: Option<SendStream>,
}

#[derive(Debug)]
struct QueuedObject {
    captured: Instant,
    /// What was not passed to QUIC.
    bytes: Bytes,
    /// Whether some of it was.
    is_begun: bool,
}

impl Subgroup {
    /// When it is reset if it is still here.
    fn expiry(&self) -> Option<Instant> {
        let first = self.objects.front().filter(|object| !object.is_begun);
        let object = first.zip(self.object_timeout).map(|(object, timeout)| object.captured + timeout);
        [object, self.deadline()].into_iter().flatten().min()
    }

    /// When all of it has to be acknowledged.
    fn deadline(&self) -> Option<Instant> {
        self.ended.zip(self.subgroup_timeout).map(|(ended, timeout)| ended + timeout)
    }

    fn is_ready(&self) -> bool {
        !self.objects.is_empty() || self.ended.is_some()
    }
}

/// The next thing to do.
enum Next {
    /// Pass these bytes to QUIC.
    Write(SubgroupKey, Option<SendStream>, Bytes),
    /// All of the subgroup was passed.
    Finish(SubgroupKey),
}

impl Outgoing {
    /// No objects yet. QUIC buffers at most `largest_window` bytes.
    pub fn new(connection: Connection, clock: SharedClock, largest_window: u64) -> Self {
        let (added, removed) = (Notify::new(), Notify::new());
        Self { connection, clock, largest_window, queue: Mutex::default(), added, removed }
    }

    /// Begins a subgroup, with the header of its stream.
    pub fn begin(&self, key: SubgroupKey, group: u64, header: Vec<u8>, parameters: &Parameters) {
        let timeout = |ms: u64| (ms > 0).then(|| Span::from_millis(ms));
        let subgroup = Subgroup {
            group,
            object_timeout: timeout(parameters.object_timeout_ms),
            subgroup_timeout: timeout(parameters.subgroup_timeout_ms),
            header,
            objects: VecDeque::new(),
            ended: None,
            stream: None,
        };
        self.queue().subgroups.insert(key, subgroup);
    }

    /// Adds an object to a subgroup, which it may end. The object is dropped if a delivery timeout
    /// of the subgroup is over.
    pub fn push(&self, key: SubgroupKey, captured: Instant, object: Vec<u8>, is_last: bool) {
        let mut queue = self.queue();
        let Queue { subgroups, tracks, .. } = &mut *queue;
        let sent = tracks.entry(key.track_alias).or_default();
        sent.objects += 1;
        let Some(subgroup) = subgroups.get_mut(&key) else {
            sent.dropped += 1;
            return;
        };
        let mut bytes = mem::take(&mut subgroup.header);
        bytes.extend_from_slice(&object);
        subgroup.objects.push_back(QueuedObject { captured, bytes: bytes.into(), is_begun: false });
        subgroup.ended = is_last.then_some(captured);
        drop(queue);
        self.added.notify_one();
    }

    /// Waits until all objects of a track were passed to QUIC, or dropped.
    pub async fn drained(&self, track_alias: u64) {
        loop {
            let removed = self.removed.notified();
            if !self.queue().subgroups.keys().any(|key| key.track_alias == track_alias) {
                return;
            }
            removed.await;
        }
    }

    /// What became of the objects of a track so far.
    pub fn sent(&self, track_alias: u64) -> Sent {
        self.queue().tracks.get(&track_alias).cloned().unwrap_or_default()
    }

    /// Sends objects until the connection ends.
    ///
    /// # Errors
    /// When the connection ends.
    pub async fn run(self: Arc<Self>) -> Result<(), SessionError> {
        loop {
            let expiry = self.reset_expired();
            match self.next() {
                None => self.added.notified().await,
                Some(Next::Finish(key)) => self.finish(key),
                Some(Next::Write(key, stream, bytes)) => {
                    let mut stream = match stream {
                        Some(stream) => stream,
                        None => self.open(key).await?,
                    };
                    self.follow_window();
                    let others = either(self.added.notified(), self.clock.sleep_until(expiry));
                    let written = match either(stream.write(&bytes), others).await {
                        Either::First(written) => written.map_err(SessionError::from),
                        // Another subgroup may be first now, or a timeout is over.
                        Either::Second(_) => Ok(0),
                    };
                    self.written(key, stream, written)?;
                }
            }
        }
    }

    /// Resets the subgroups whose timeouts are over; returns when the next one is.
    fn reset_expired(&self) -> Option<Instant> {
        let now = self.clock.now();
        let mut queue = self.queue();
        let Queue { subgroups, tracks, .. } = &mut *queue;
        let before = subgroups.len();
        let mut next = None;
        subgroups.retain(|key, subgroup| {
            let expiry = subgroup.expiry();
            if expiry.is_none_or(|expiry| expiry > now) {
                next = [next, expiry].into_iter().flatten().min();
                return true;
            }
            if let Some(mut stream) = subgroup.stream.take() {
                // It fails if the stream was acknowledged or reset, which it was not.
                let _ = stream.reset(DELIVERY_TIMEOUT);
            }
            let sent = tracks.entry(key.track_alias).or_default();
            sent.dropped += subgroup.objects.len() as u64;
            sent.timed_out.push(subgroup.group);
            false
        });
        if subgroups.len() < before {
            self.removed.notify_waiters();
        }
        next
    }

    /// What to do for the first subgroup that has something to send.
    fn next(&self) -> Option<Next> {
        let mut queue = self.queue();
        let (key, subgroup) = queue.subgroups.iter_mut().find(|(_, subgroup)| subgroup.is_ready())?;
        Some(match subgroup.objects.front() {
            Some(object) => Next::Write(*key, subgroup.stream.take(), object.bytes.clone()),
            None => Next::Finish(*key),
        })
    }

    async fn open(&self, key: SubgroupKey) -> Result<SendStream, SessionError> {
        let stream = self.connection.open_uni().await?;
        // It is new.
        let _ = stream.set_priority(key.priority.0);
        self.queue().tracks.entry(key.track_alias).or_default().streams += 1;
        Ok(stream)
    }

    /// Limits what QUIC buffers to the congestion window and [`UNSENT`] bytes.
    fn follow_window(&self) {
        let window = (self.connection.stats().path.cwnd + UNSENT).min(self.largest_window);
        let before = mem::replace(&mut self.queue().send_window, window);
        if window != before {
            self.connection.set_send_window(window);
        }
    }

    /// Notes what was written to the stream of a subgroup.
    fn written(
        &self,
        key: SubgroupKey,
        stream: SendStream,
        written: Result<usize, SessionError>,
    ) -> Result<(), SessionError> {
        let mut queue = self.queue();
        let Queue { subgroups, tracks, .. } = &mut *queue;
        let subgroup = subgroups.get_mut(&key).expect("only this task removes subgroups");
        match written {
            Ok(0) => {}
            Ok(bytes) => {
                let object = subgroup.objects.front_mut().expect("it was written");
                object.is_begun = true;
                object.bytes.advance(bytes);
                if object.bytes.is_empty() {
                    subgroup.objects.pop_front();
                }
            }
            // The subscriber does not want the group any more.
            Err(SessionError::Stopped(_)) => {
                tracks.entry(key.track_alias).or_default().dropped += subgroup.objects.len() as u64;
                subgroups.remove(&key);
                self.removed.notify_waiters();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        subgroup.stream = Some(stream);
        Ok(())
    }

    /// Ends the stream of a subgroup, and resets it if it is not acknowledged in time.
    fn finish(self: &Arc<Self>, key: SubgroupKey) {
        let subgroup = self.queue().subgroups.remove(&key).expect("only this task removes subgroups");
        self.removed.notify_waiters();
        let deadline = subgroup.deadline();
        let Some(mut stream) = subgroup.stream else { return };
        // It fails if the stream was closed, which it was not.
        let _ = stream.finish();
        let outgoing = Arc::clone(self);
        self.clock.runtime().spawn(Box::pin(async move {
            let acknowledged = stream.stopped();
            if let Either::Second(()) = either(acknowledged, outgoing.clock.sleep_until(deadline)).await {
                // It fails if the stream was acknowledged at the same time.
                let _ = stream.reset(DELIVERY_TIMEOUT);
                outgoing.queue().tracks.entry(key.track_alias).or_default().timed_out.push(subgroup.group);
            }
        }));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subgroups_are_in_the_order_of_sending() {
        let descending = Parameters { group_order: GroupOrder::Descending, ..Parameters::default() };
        let ascending = Parameters { group_order: GroupOrder::Ascending, ..Parameters::default() };
        let urgent = Parameters { priority: 64, ..descending };
        let key = |alias, group, parameters| SubgroupKey::new(alias, group, parameters, 128);
        assert!(key(0, 2, &descending) < key(0, 1, &descending), "the newest group first");
        assert!(key(0, 1, &ascending) < key(0, 2, &ascending), "the oldest group first");
        assert!(key(1, 0, &urgent) < key(0, 9, &descending), "the priority of the subscriber first");
        assert!(SubgroupKey::new(0, 0, &descending, 0) < key(0, 9, &descending), "then that of the publisher");
        let least = Parameters { priority: 255, ..ascending };
        assert_eq!(SubgroupKey::new(0, Track::MOST_GROUPS, &least, 255).priority, Reverse(0));
        let most = Parameters { priority: 0, ..ascending };
        assert_eq!(SubgroupKey::new(0, 0, &most, 0).priority, Reverse(i32::MAX));
    }
}
