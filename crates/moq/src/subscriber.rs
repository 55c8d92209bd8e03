//! The subscriber: requests both tracks, and records when objects arrive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_core::Instant;
use quinn::{Connecting, Connection, RecvStream, SendStream};
use tokio::sync::Notify;

use crate::clock::{Either, SharedClock, either};
use crate::media::{NAMESPACE, Track};
use crate::message::{Message, Parameters, Subscribe};
use crate::publisher::CAPTURE_TIME;
use crate::session::{
    CONTROL_PRIORITY, Incoming, SessionError, client_options, close_on_violation, is_control, milliseconds,
    open_control, termination,
};
use crate::settings::Settings;
use crate::subgroup::{Object, Objects, Status, SubgroupHeader};
use crate::wire::Value;

/// An object that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the track.
    pub track_alias: u64,
    /// Its group.
    pub group: u64,
    /// Its number in the group.
    pub object: u64,
    /// Bytes of its payload.
    pub payload: usize,
    /// When it was captured, in whole microseconds.
    pub captured: Instant,
    /// When all of it was received.
    pub at: Instant,
}

/// What a subscriber received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// When the subscriber began to connect.
    pub started: Instant,
    /// When both subscriptions had ended, and all their streams.
    pub ended: Instant,
    /// The objects, in the order of their arrival.
    pub arrivals: Vec<Arrival>,
    /// Streams that the publisher reset.
    pub streams_reset: u64,
    /// Streams that ended, those that were reset included.
    pub streams: u64,
    /// For each track: its alias, and when it has ended, the number of its streams.
    subscriptions: [Option<Subscription>; 2],
    failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subscription {
    track_alias: u64,
    /// Number of data streams, after PUBLISH_DONE.
    streams: Option<u64>,
}

/// Why a session cannot go on, before it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    Violation(&'static str),
    Refused { track: &'static str, code: u64, reason: String },
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Violation(message) => Self::Violation(message),
            Failure::Refused { track, code, reason } => Self::Refused { track, code, reason },
        }
    }
}

impl Reception {
    /// The alias of each track.
    pub fn aliases(&self) -> [Option<u64>; 2] {
        self.subscriptions.map(|subscription| subscription.map(|each| each.track_alias))
    }

    fn is_complete(&self) -> bool {
        let streams = self.subscriptions.iter().map(|each| each.and_then(|each| each.streams));
        streams.sum::<Option<u64>>().is_some_and(|streams| streams <= self.streams)
    }
}

/// A subscriber.
#[derive(Debug)]
pub struct Subscriber {
    clock: SharedClock,
    reception: Mutex<Reception>,
    changed: Notify,
}

impl Subscriber {
    /// Receives the media of `settings` from a publisher whose name is `host`, until both tracks
    /// have ended.
    ///
    /// # Errors
    /// If the connection ends before, the publisher violates the protocol, or it refuses a track.
    pub async fn receive(
        settings: &Settings,
        clock: SharedClock,
        connecting: Connecting,
        host: &str,
    ) -> Result<Reception, SessionError> {
        let reception = Mutex::new(Reception { started: clock.now(), ..Reception::default() });
        let subscriber = Arc::new(Self { clock, reception, changed: Notify::new() });
        let connection = connecting.await?;
        let received = subscriber.session(&connection, settings, host).await;
        match &received {
            Ok(()) => connection.close(termination::NO_ERROR, b"done"),
            Err(error) => close_on_violation(&connection, error),
        }
        received?;
        let reception = std::mem::take(&mut *subscriber.reception());
        Ok(reception)
    }

    async fn session(
        self: &Arc<Self>,
        connection: &Connection,
        settings: &Settings,
        host: &str,
    ) -> Result<(), SessionError> {
        let _control = open_control(connection, client_options(host)).await?;
        for (number, track) in settings.tracks().into_iter().enumerate() {
            let (send, receive) = connection.open_bi().await?;
            self.subscribe(number, &track, settings, send, receive).await?;
        }
        loop {
            let changed = self.changed.notified();
            {
                let mut reception = self.reception();
                if let Some(failure) = reception.failure.take() {
                    return Err(failure.into());
                }
                if reception.is_complete() {
                    reception.ended = self.clock.now();
                    return Ok(());
                }
            }
            if let Either::First(stream) = either(connection.accept_uni(), changed).await {
                let (subscriber, stream) = (Arc::clone(self), stream?);
                self.spawn(async move {
                    let read = subscriber.read_stream(stream).await;
                    subscriber.note(read);
                });
            }
        }
    }

    /// Sends SUBSCRIBE for a track, and reads the responses in a task.
    async fn subscribe(
        self: &Arc<Self>,
        number: usize,
        track: &Track,
        settings: &Settings,
        mut send: SendStream,
        receive: RecvStream,
    ) -> Result<(), SessionError> {
        // It is new.
        let _ = send.set_priority(CONTROL_PRIORITY);
        let parameters = Parameters {
            object_timeout_ms: milliseconds(settings.object_timeout),
            subgroup_timeout_ms: milliseconds(settings.subgroup_timeout),
            priority: track.priority,
            group_order: settings.group_order,
        };
        // The requests of a client have even numbers (§10.1).
        let (request, name) = (2 * number as u64, track.name.as_bytes().to_vec());
        let namespace = vec![NAMESPACE.as_bytes().to_vec()];
        let subscribe = Message::Subscribe(Subscribe { request, namespace, name, parameters });
        send.write_all(&subscribe.to_bytes()).await?;
        // No update of the request follows (§3.3.2). It fails if the stream was closed.
        let _ = send.finish();
        let (subscriber, name) = (Arc::clone(self), track.name);
        self.spawn(async move {
            let read = subscriber.read_responses(number, name, Incoming::new(receive)).await;
            subscriber.note(read);
        });
        Ok(())
    }

    async fn read_responses(
        &self,
        number: usize,
        track: &'static str,
        mut responses: Incoming,
    ) -> Result<(), SessionError> {
        let track_alias = match responses.next(Message::read).await? {
            Some(Message::SubscribeOk { track_alias }) => track_alias,
            Some(Message::RequestError { code, reason, .. }) => {
                return Err(SessionError::Refused { track, code, reason });
            }
            _ => {
                return Err(SessionError::Violation(
                    "the response to SUBSCRIBE is neither SUBSCRIBE_OK nor REQUEST_ERROR",
                ));
            }
        };
        self.reception().subscriptions[number] = Some(Subscription { track_alias, streams: None });
        let Some(Message::PublishDone { streams, .. }) = responses.next(Message::read).await? else {
            return Err(SessionError::Violation("a subscription ends without PUBLISH_DONE"));
        };
        self.reception().subscriptions[number] = Some(Subscription { track_alias, streams: Some(streams) });
        self.changed.notify_one();
        Ok(())
    }

    /// Reads a stream of the publisher.
    async fn read_stream(&self, stream: RecvStream) -> Result<(), SessionError> {
        let mut stream = Incoming::new(stream);
        let read = async {
            match stream.kind().await? {
                Some(kind) if is_control(kind) => Ok(stream.read_control().await?),
                _ => self.read_subgroup(&mut stream).await,
            }
        };
        let reset = match read.await {
            Ok(()) => 0,
            Err(SessionError::Reset(_)) => 1,
            Err(error) => return Err(error),
        };
        let mut reception = self.reception();
        reception.streams += 1;
        reception.streams_reset += reset;
        drop(reception);
        self.changed.notify_one();
        Ok(())
    }

    async fn read_subgroup(&self, stream: &mut Incoming) -> Result<(), SessionError> {
        let Some(header) = stream.next(SubgroupHeader::read).await? else {
            return Err(SessionError::Violation("a stream has no type"));
        };
        let mut objects = Objects::after(&header);
        while let Some(object) = stream.next(|reader| objects.read(reader)).await? {
            let at = self.clock.now();
            let time = object.properties.iter().find(|property| property.kind == CAPTURE_TIME);
            let nanos = match time.map(|property| &property.value) {
                Some(Value::Integer(micros)) => micros.checked_mul(1000),
                _ => None,
            };
            let Some(captured) = nanos.map(Instant::from_nanos).filter(|_| object.status == Status::Normal) else {
                return Err(SessionError::Violation("an object is no frame with its time of capture"));
            };
            let Object { number, payload, .. } = object;
            let arrival =
                Arrival { track_alias: header.track_alias, group: header.group, object: number, payload, captured, at };
            self.reception().arrivals.push(arrival);
        }
        Ok(())
    }

    fn note(&self, result: Result<(), SessionError>) {
        let failure = match result {
            Err(SessionError::Violation(message)) => Failure::Violation(message),
            Err(SessionError::Refused { track, code, reason }) => Failure::Refused { track, code, reason },
            // The end of the connection is reported where streams are accepted.
            _ => return,
        };
        self.reception().failure = Some(failure);
        self.changed.notify_one();
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.clock.runtime().spawn(Box::pin(task));
    }

    fn reception(&self) -> MutexGuard<'_, Reception> {
        self.reception.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
