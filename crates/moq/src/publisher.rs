//! The publisher: answers subscriptions with the media of the settings, from the time of the
//! subscription on.

use std::sync::{Arc, Mutex, PoisonError};

use airpath_core::Instant;
use quinn::{Connection, Endpoint, Incoming as IncomingConnection, RecvStream, SendStream};

use crate::clock::SharedClock;
use crate::media::{NAMESPACE, Track};
use crate::message::{Message, Subscribe, publish_done, request_error};
use crate::outgoing::{Outgoing, Sent, SubgroupKey};
use crate::session::{CONTROL_PRIORITY, Incoming, SessionError, close_on_violation, is_control, open_control};
use crate::settings::Settings;
use crate::subgroup::{Object, Objects, Status, SubgroupHeader};
use crate::wire::{Pair, Value};

/// Type of the property with the time of capture, in microseconds since 1970. The type is for
/// applications (draft-ietf-moq-transport-19 §2.5): TIMESTAMP of draft-ietf-moq-loc has the same
/// type as SUBGROUP_DELIVERY_TIMEOUT (§15.8).
pub const CAPTURE_TIME: u64 = 0x78;

/// A publisher.
#[derive(Debug)]
pub struct Publisher {
    tracks: [Track; 2],
    send_window: u64,
    clock: SharedClock,
    /// The subscriptions so far: name of the track, objects of its connection, alias.
    subscriptions: Mutex<Vec<(&'static str, Arc<Outgoing>, u64)>>,
}

impl Publisher {
    /// A publisher of the media of `settings`.
    pub fn new(settings: &Settings, clock: SharedClock) -> Arc<Self> {
        let send_window = settings.quic.send_window.get();
        Arc::new(Self { tracks: settings.tracks(), send_window, clock, subscriptions: Mutex::default() })
    }

    /// Serves the connections of `endpoint` until it is closed.
    pub async fn serve(self: Arc<Self>, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            let publisher = Arc::clone(&self);
            self.spawn(async move {
                // The subscriber reports how a session ended.
                let _ = publisher.session(incoming).await;
            });
        }
    }

    /// What became of the objects of each subscription so far, with the name of its track.
    pub fn sent(&self) -> Vec<(&'static str, Sent)> {
        let subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        subscriptions.iter().map(|(name, outgoing, alias)| (*name, outgoing.sent(*alias))).collect()
    }

    async fn session(self: Arc<Self>, incoming: IncomingConnection) -> Result<(), SessionError> {
        let connection = incoming.await?;
        let _control = open_control(&connection, Vec::new()).await?;
        let outgoing = Arc::new(Outgoing::new(connection.clone(), self.clock.clone(), self.send_window));
        self.spawn({
            let (outgoing, connection) = (Arc::clone(&outgoing), connection.clone());
            async move { Self::end(&connection, outgoing.run().await) }
        });
        self.spawn({
            let connection = connection.clone();
            async move { Self::end(&connection, read_controls(&connection).await) }
        });
        loop {
            let (send, receive) = connection.accept_bi().await?;
            let (publisher, outgoing) = (Arc::clone(&self), Arc::clone(&outgoing));
            let connection = connection.clone();
            self.spawn(async move {
                let answered = publisher.answer(&connection, &outgoing, send, receive).await;
                Self::end(&connection, answered);
            });
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.clock.runtime().spawn(Box::pin(task));
    }

    fn end(connection: &Connection, result: Result<(), SessionError>) {
        if let Err(error) = result {
            close_on_violation(connection, &error);
        }
    }

    /// Answers one request.
    async fn answer(
        &self,
        connection: &Connection,
        outgoing: &Arc<Outgoing>,
        mut send: SendStream,
        receive: RecvStream,
    ) -> Result<(), SessionError> {
        // It is new.
        let _ = send.set_priority(CONTROL_PRIORITY);
        let request = Incoming::new(receive).next(Message::read).await?;
        let Some(Message::Subscribe(request)) = request else {
            return Err(SessionError::Violation(
                "a request stream does not begin with a request that is supported here",
            ));
        };
        let (alias, track) = match self.track_of(&request) {
            Ok(found) => found,
            Err((code, reason)) => {
                let message = Message::RequestError { code, retry: 0, reason: reason.to_owned() };
                send.write_all(&message.to_bytes()).await?;
                // It fails if the stream was closed, which it was not.
                let _ = send.finish();
                return Ok(());
            }
        };
        send.write_all(&Message::SubscribeOk { track_alias: alias }.to_bytes()).await?;
        let subscription = (track.name, Arc::clone(outgoing), alias);
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).push(subscription);
        self.publish(connection, outgoing, track, alias, &request).await;
        outgoing.drained(alias).await;
        let streams = outgoing.sent(alias).streams;
        let done = Message::PublishDone { status: publish_done::TRACK_ENDED, streams, reason: "end".to_owned() };
        send.write_all(&done.to_bytes()).await?;
        let _ = send.finish();
        Ok(())
    }

    /// The track of a request, and its alias; or code and reason of the error.
    fn track_of(&self, request: &Subscribe) -> Result<(u64, &Track), (u64, &'static str)> {
        let is_ours = request.namespace.len() == 1 && request.namespace[0] == NAMESPACE.as_bytes();
        let track = (0..).zip(&self.tracks).find(|(_, track)| is_ours && track.name.as_bytes() == request.name);
        track.ok_or((request_error::DOES_NOT_EXIST, "the tracks are `video` and `audio` in the namespace `live`"))
    }

    /// Publishes a track from now on.
    async fn publish(
        &self,
        connection: &Connection,
        outgoing: &Outgoing,
        track: &Track,
        alias: u64,
        request: &Subscribe,
    ) {
        let start = self.clock.now();
        for group in 0..track.groups() {
            let header = SubgroupHeader::of_group(alias, group);
            let key = SubgroupKey::new(alias, group, &request.parameters, header.publisher_priority());
            let (mut objects, mut number) = (Objects::after(&header), 0);
            let frames = track.frames_of(group);
            for frame in frames {
                self.clock.sleep_until(Some(start + frame.time)).await;
                if connection.close_reason().is_some() {
                    return;
                }
                if number == 0 {
                    let mut bytes = Vec::new();
                    header.write(&mut bytes);
                    outgoing.begin(key, group, bytes, &request.parameters);
                }
                // Not the time of the timer: those of real time are late.
                let captured = self.clock.now();
                let object = object(&mut objects, number, captured, frame.size);
                number += 1;
                outgoing.push(key, captured, object, number == frames.len() as u64);
            }
        }
    }
}

/// The bytes of an object; its payload is zeros.
fn object(objects: &mut Objects, number: u64, captured: Instant, size: u32) -> Vec<u8> {
    let time = Pair { kind: CAPTURE_TIME, value: Value::Integer(captured.as_nanos() / 1000) };
    let object = Object { number, properties: vec![time], payload: size as usize, status: Status::Normal };
    let mut bytes = Vec::new();
    objects.write(&mut bytes, &object);
    bytes.resize(bytes.len() + object.payload, 0);
    bytes
}

/// Reads the streams of one direction of a subscriber: its control stream, and no other.
async fn read_controls(connection: &Connection) -> Result<(), SessionError> {
    let mut control = Incoming::new(connection.accept_uni().await?);
    if !control.kind().await?.is_some_and(is_control) {
        return Err(SessionError::Violation("the stream of a subscriber is no control stream"));
    }
    control.read_control().await
}
