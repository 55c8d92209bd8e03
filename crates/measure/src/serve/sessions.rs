//! The sessions of the responder, and their limits.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use airpath_app::arrivals::Arrival;
use airpath_app::datagrams::Receiver;
use airpath_app::streaming::Sent;
use airpath_app::web::Urls;
use airpath_core::Instant;

use crate::protocol::{FlowReport, Report, TestRequest};
use crate::work::{MOST_PAGE_CONNECTIONS, PageLoad, Work};

/// Limit of simultaneous connections of all clients.
const MOST_CONNECTIONS: usize = 512;
/// Limit of simultaneous connections of one address: those of the largest browser, and the control
/// connections of all sessions.
const MOST_CONNECTIONS_OF_ONE: usize = MOST_PAGE_CONNECTIONS as usize + MOST_SESSIONS_OF_ONE;
/// Limit of simultaneous connections that receive the reason why they are refused; others are
/// closed without one.
const MOST_REFUSED: usize = 64;
/// Limit of simultaneous sessions of all clients.
const MOST_SESSIONS: usize = 128;
/// Limit of simultaneous sessions of one address.
const MOST_SESSIONS_OF_ONE: usize = 32;

/// All sessions.
#[derive(Default)]
pub struct Sessions {
    sessions: Mutex<BTreeMap<u64, Arc<Session>>>,
    connections: Mutex<Connections>,
    refused: AtomicUsize,
}

/// Numbers of open connections.
#[derive(Default)]
struct Connections {
    all: usize,
    /// By the client's address.
    of: BTreeMap<IpAddr, usize>,
}

/// A session: a test request in progress.
pub struct Session {
    /// Its number.
    pub number: u64,
    /// Address of the client, the only one that it sends to and receives from.
    pub client: IpAddr,
    /// The test request.
    pub request: TestRequest,
    /// Whether its control connection has ended.
    pub cancelled: AtomicBool,
    running: AtomicUsize,
    reports: Mutex<Vec<FlowReport>>,
    /// Arrivals of a stream from the client.
    receiver: Mutex<Receiver>,
    /// Datagrams sent of a stream to the client.
    sent: AtomicU32,
    video: Mutex<VideoRecord>,
    streaming: AtomicBool,
    urls: OnceLock<Option<Arc<Urls>>>,
}

/// What was sent of a video.
#[derive(Default)]
pub struct VideoRecord {
    /// The counters.
    pub sent: Sent,
    /// When each packet was sent first, in the order of sending.
    pub first: Vec<Instant>,
}

/// A slot of the connection limits; freed when dropped.
pub struct ConnectionSlot<'a> {
    sessions: &'a Sessions,
    client: IpAddr,
}

impl Drop for ConnectionSlot<'_> {
    fn drop(&mut self) {
        let mut connections = self.sessions.connections();
        connections.all -= 1;
        if let Some(count) = connections.of.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                connections.of.remove(&self.client);
            }
        }
    }
}

/// A slot of the limit of refused connections; freed when dropped.
pub struct RefusalSlot<'a>(&'a AtomicUsize);

impl Drop for RefusalSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    /// A slot for a connection of `client`.
    ///
    /// # Errors
    /// The reason, as a message for the client.
    pub fn connection_slot(&self, client: IpAddr) -> Result<ConnectionSlot<'_>, String> {
        let mut connections = self.connections();
        if connections.all >= MOST_CONNECTIONS {
            return Err(format!("it already has {MOST_CONNECTIONS} connections; try again later"));
        }
        let count = connections.of.entry(client).or_default();
        if *count >= MOST_CONNECTIONS_OF_ONE {
            let most = MOST_CONNECTIONS_OF_ONE;
            return Err(format!("it already has {most} connections of {client}; wait for some to end"));
        }
        *count += 1;
        connections.all += 1;
        Ok(ConnectionSlot { sessions: self, client })
    }

    /// A slot for a connection that is refused, if one is free.
    pub fn refusal_slot(&self) -> Option<RefusalSlot<'_>> {
        let slot = RefusalSlot(&self.refused);
        (self.refused.fetch_add(1, Ordering::Relaxed) < MOST_REFUSED).then_some(slot)
    }

    /// Opens a session for `client`.
    ///
    /// # Errors
    /// The reason, as a message for the client.
    pub fn take(&self, client: IpAddr, request: TestRequest) -> Result<Arc<Session>, String> {
        request.work.check()?;
        let mut sessions = self.lock();
        if sessions.len() >= MOST_SESSIONS {
            return Err(format!("it already has {MOST_SESSIONS} sessions; try again later"));
        }
        if sessions.values().filter(|session| session.client == client).count() >= MOST_SESSIONS_OF_ONE {
            return Err(format!("it already has {MOST_SESSIONS_OF_ONE} sessions of {client}; wait for one to end"));
        }
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| format!("its kernel gives no random number: {error}"))?;
        let session = Arc::new(Session {
            number: u64::from_be_bytes(number),
            client,
            request,
            cancelled: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            reports: Mutex::default(),
            receiver: Mutex::default(),
            sent: AtomicU32::new(0),
            video: Mutex::default(),
            streaming: AtomicBool::new(false),
            urls: OnceLock::new(),
        });
        sessions.insert(session.number, Arc::clone(&session));
        Ok(session)
    }

    /// Removes a session.
    pub fn end(&self, session: &Session) {
        session.cancelled.store(true, Ordering::Relaxed);
        self.lock().remove(&session.number);
    }

    /// The session with this number, if it belongs to `client`.
    pub fn find(&self, number: u64, client: IpAddr) -> Option<Arc<Session>> {
        self.lock().get(&number).filter(|session| session.client == client).map(Arc::clone)
    }

    /// Whether `client` has a session with web pages.
    pub fn has_pages(&self, client: IpAddr) -> bool {
        let is_page =
            |session: &Arc<Session>| session.client == client && matches!(session.request.work, Work::Page(_));
        self.lock().values().any(is_page)
    }

    /// The session and flow that announced a connection from `peer`.
    pub fn expected(&self, peer: SocketAddr) -> Option<(Arc<Session>, u32)> {
        self.lock().values().find_map(|session| {
            let flow = session.request.ports.iter().position(|port| *port == peer.port())?;
            (session.client == peer.ip()).then(|| (Arc::clone(session), flow as u32))
        })
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Whether the session was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The URLs of its web pages; `None` if it has none.
    pub fn urls(&self) -> Option<&Arc<Urls>> {
        let of = |load: &PageLoad| Some(Arc::new(Urls::of(&Arc::new(load.session().ok()?))?));
        let urls = || match &self.request.work {
            Work::Page(load) => of(load),
            _ => None,
        };
        self.urls.get_or_init(urls).as_ref()
    }

    /// Runs one of its flows, and stores the report.
    pub fn flow(&self, run: impl FnOnce() -> FlowReport) {
        self.running.fetch_add(1, Ordering::Relaxed);
        let report = run();
        self.reports().push(report);
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all flows have connected and ended.
    pub fn is_over(&self) -> bool {
        let expected = match &self.request.work {
            Work::Bulk(bulk) => bulk.flows as usize,
            Work::Ping(_)
            | Work::Datagrams(_)
            | Work::Transactions(_)
            | Work::Terminal(_)
            | Work::Adaptive(_)
            | Work::Page(_)
            | Work::Voice(_)
            | Work::Stream(_)
            | Work::SendRtp(_)
            | Work::ReceiveRtp(_) => 0,
        };
        self.running.load(Ordering::Relaxed) == 0 && self.reports().len() >= expected
    }

    /// The report of the session.
    pub fn report(&self) -> Report {
        let mut flows = self.reports().clone();
        flows.sort_by_key(|report| report.flow);
        let receiver = self.receiver();
        let (received, duplicates) = (receiver.received(), receiver.duplicates());
        let video = matches!(self.request.work, Work::Stream(_)).then(|| self.video().sent);
        Report { flows, sent: self.sent.load(Ordering::Relaxed), received, duplicates, video }
    }

    /// Arrivals of a stream from the client.
    pub fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was sent of its video.
    pub fn video(&self) -> MutexGuard<'_, VideoRecord> {
        self.video.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The arrivals that the client can request: those of a stream from it, or the first
    /// transmissions of a video.
    pub fn arrivals(&self) -> Vec<Arrival> {
        match &self.request.work {
            Work::Stream(_) => {
                let first = |(sequence, sent): (u32, &Instant)| Arrival { sequence, sent: *sent, arrived: *sent };
                (0..).zip(&self.video().first).map(first).collect()
            }
            _ => self.receiver().arrivals().to_vec(),
        }
    }

    /// Whether its stream to the client must start now; true once.
    pub fn begins_to_stream(&self) -> bool {
        !self.streaming.swap(true, Ordering::Relaxed)
    }

    /// Records the number of datagrams sent of its stream.
    pub fn has_sent(&self, datagrams: u32) {
        self.sent.store(datagrams, Ordering::Relaxed);
    }

    fn reports(&self) -> MutexGuard<'_, Vec<FlowReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn connections_of_an_address_and_of_all_are_limited() {
        let sessions = Sessions::default();
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let slot = |last| sessions.connection_slot(address(last));
        let mut first: Vec<_> = (0..MOST_CONNECTIONS_OF_ONE).map(|_| slot(1).expect("it is free")).collect();
        let why = slot(1).err().expect("the address has all its slots");
        assert!(why.contains("connections of 192.0.2.1; wait"), "{why}");
        let others = MOST_CONNECTIONS - MOST_CONNECTIONS_OF_ONE;
        let second: Vec<_> = (0..others).map(|_| slot(2).expect("it is free")).collect();
        let why = slot(3).err().expect("all slots are taken");
        assert!(why.contains("512 connections; try"), "{why}");
        first.pop();
        drop(slot(3).expect("one is free"));
        drop((slot(1).expect("one is free"), first, second));
        let connections = sessions.connections();
        assert_eq!((connections.all, connections.of.len()), (0, 0));
    }

    #[test]
    fn refused_connections_are_limited() {
        let sessions = Sessions::default();
        let mut slots: Vec<_> = (0..MOST_REFUSED).map(|_| sessions.refusal_slot().expect("it is free")).collect();
        assert!(sessions.refusal_slot().is_none());
        slots.pop();
        assert!(sessions.refusal_slot().is_some());
    }
}
