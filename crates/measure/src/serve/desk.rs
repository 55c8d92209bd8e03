//! The orders that the responder works for, and how much of everything there may be.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_app::datagrams::Receiver;

use crate::order::Work;
use crate::protocol::{FlowReport, Order, Report};

/// Connections of all clients at a time.
const MOST_CONNECTIONS: usize = 512;
/// Orders of all clients at a time.
const MOST_ORDERS: usize = 128;
/// Orders of one address at a time.
const MOST_ORDERS_OF_ONE: usize = 32;

/// All orders.
#[derive(Default)]
pub struct Desk {
    orders: Mutex<BTreeMap<u64, Arc<Job>>>,
    connections: AtomicUsize,
}

/// An order that is worked for.
pub struct Job {
    /// Its number.
    pub number: u64,
    /// Who ordered: the only address that it sends to and hears from.
    pub client: IpAddr,
    /// What was ordered.
    pub order: Order,
    /// Whether its control connection has ended.
    pub cancelled: AtomicBool,
    running: AtomicUsize,
    reports: Mutex<Vec<FlowReport>>,
    /// What arrived of a stream from the client.
    receiver: Mutex<Receiver>,
    /// Datagrams of a stream to the client that were sent.
    sent: AtomicU32,
    streaming: AtomicBool,
}

/// One of the connections that there may be; given back when dropped.
pub struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    /// A place for a connection, if one is free.
    pub fn place(&self) -> Option<Place<'_>> {
        let place = Place(&self.connections);
        (self.connections.fetch_add(1, Ordering::Relaxed) < MOST_CONNECTIONS).then_some(place)
    }

    /// Takes an order of `client`.
    ///
    /// # Errors
    /// Why not, in words for the client.
    pub fn take(&self, client: IpAddr, order: Order) -> Result<Arc<Job>, String> {
        order.work.check()?;
        let mut orders = self.orders();
        if orders.len() >= MOST_ORDERS {
            return Err(format!("it works for {MOST_ORDERS} orders already; try again later"));
        }
        if orders.values().filter(|job| job.client == client).count() >= MOST_ORDERS_OF_ONE {
            return Err(format!("it works for {MOST_ORDERS_OF_ONE} orders of {client} already; wait for one to end"));
        }
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| format!("its kernel gives no random number: {error}"))?;
        let job = Arc::new(Job {
            number: u64::from_be_bytes(number),
            client,
            order,
            cancelled: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            reports: Mutex::default(),
            receiver: Mutex::default(),
            sent: AtomicU32::new(0),
            streaming: AtomicBool::new(false),
        });
        orders.insert(job.number, Arc::clone(&job));
        Ok(job)
    }

    /// Forgets an order.
    pub fn end(&self, job: &Job) {
        job.cancelled.store(true, Ordering::Relaxed);
        self.orders().remove(&job.number);
    }

    /// The order of this number, if it is of `client`.
    pub fn find(&self, number: u64, client: IpAddr) -> Option<Arc<Job>> {
        self.orders().get(&number).filter(|job| job.client == client).map(Arc::clone)
    }

    /// The order, and the number of its flow, that said beforehand that it will come from `peer`.
    pub fn expected(&self, peer: SocketAddr) -> Option<(Arc<Job>, u32)> {
        self.orders().values().find_map(|job| {
            let flow = job.order.ports.iter().position(|port| *port == peer.port())?;
            (job.client == peer.ip()).then(|| (Arc::clone(job), flow as u32))
        })
    }

    fn orders(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Whether to give up.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Runs one of its flows, and keeps what it reports.
    pub fn flow(&self, run: impl FnOnce() -> FlowReport) {
        self.running.fetch_add(1, Ordering::Relaxed);
        let report = run();
        self.reports().push(report);
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all its flows have come and ended.
    pub fn is_over(&self) -> bool {
        let expected = match &self.order.work {
            Work::Bulk(bulk) => bulk.flows as usize,
            Work::Ping(_) | Work::Datagrams(_) | Work::Transactions(_) => 0,
        };
        self.running.load(Ordering::Relaxed) == 0 && self.reports().len() >= expected
    }

    /// What it has to report.
    pub fn report(&self) -> Report {
        let mut flows = self.reports().clone();
        flows.sort_by_key(|report| report.flow);
        let receiver = self.receiver();
        let (received, duplicates) = (receiver.received(), receiver.duplicates());
        Report { flows, sent: self.sent.load(Ordering::Relaxed), received, duplicates }
    }

    /// What arrived of a stream from the client.
    pub fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its stream to the client is to begin now; once.
    pub fn begins_to_stream(&self) -> bool {
        !self.streaming.swap(true, Ordering::Relaxed)
    }

    /// Takes note that so many datagrams of its stream were sent.
    pub fn has_sent(&self, datagrams: u32) {
        self.sent.store(datagrams, Ordering::Relaxed);
    }

    fn reports(&self) -> MutexGuard<'_, Vec<FlowReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
