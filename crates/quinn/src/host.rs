//! A host: the environment of an application of quinn.

use std::io;
use std::mem;
use std::net::{IpAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as QuinnInstant;

use airpath_core::{Direction, FlowId, Seed};
use airpath_path::Side;
use airpath_quic::Identity;
use quinn::{AsyncTimer, AsyncUdpSocket, Endpoint, Runtime, ServerConfig};

use crate::executor::Task;
use crate::sockets::{Sockets, address_of};
use crate::timers::Timers;

/// Largest UDP payload that an end point of [`Host::endpoint`] accepts: the default of quinn.
const LARGEST_DATAGRAM: u32 = 1472;

/// One of the two hosts of a simulation: an address with UDP sockets, and quinn's runtime in
/// virtual time.
#[derive(Debug)]
pub struct Host {
    side: Side,
    seed: Seed,
    /// Number of identities that were given out.
    identities: AtomicU64,
    shared: Arc<Shared>,
}

/// What both hosts share with the simulation.
#[derive(Debug)]
pub(crate) struct Shared {
    pub timers: Arc<Timers>,
    pub sockets: Arc<Sockets>,
    spawned: Spawned,
}

/// Tasks that were spawned and that the executor does not have yet.
#[derive(Default)]
struct Spawned(Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl std::fmt::Debug for Spawned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spawned").finish_non_exhaustive()
    }
}

impl Shared {
    pub fn new() -> Self {
        Self { timers: Arc::new(Timers::new()), sockets: Arc::default(), spawned: Spawned::default() }
    }

    /// Takes the tasks that were spawned since the last call.
    pub fn take_spawned(&self) -> impl Iterator<Item = Task> {
        let spawned = mem::take(&mut *self.spawned.0.lock().unwrap_or_else(PoisonError::into_inner));
        spawned.into_iter().map(|task| task as Task)
    }
}

impl Host {
    pub(crate) const fn new(side: Side, seed: Seed, shared: Arc<Shared>) -> Self {
        Self { side, seed, identities: AtomicU64::new(0), shared }
    }

    /// The address of this host.
    pub const fn address(&self) -> IpAddr {
        IpAddr::V4(address_of(self.side))
    }

    /// The address of the other host.
    pub const fn peer(&self) -> IpAddr {
        IpAddr::V4(address_of(self.side.opposite()))
    }

    /// Binds a UDP socket to `port`; 0 selects a free dynamic port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if the port is in use.
    pub fn bind(&self, port: u16) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(self.shared.sockets.bind(self.side, port)?))
    }

    /// A new end point on a socket with `port`, which accepts connections if `server` is given. Its
    /// random numbers are those of a new [`Self::identity`].
    ///
    /// # Errors
    /// Those of [`Self::bind`].
    pub fn endpoint(self: &Arc<Self>, port: u16, server: Option<ServerConfig>) -> io::Result<Endpoint> {
        let config = self.identity().endpoint_config(LARGEST_DATAGRAM);
        Endpoint::new_with_abstract_socket(config, server, self.bind(port)?, Arc::clone(self) as Arc<dyn Runtime>)
    }

    /// The next identity of this host: a source of configurations of quinn whose random numbers
    /// come from the seed of the scenario, from the streams `quinn/server/N/…` or
    /// `quinn/mobile/N/…`, N counts the identities of the host.
    pub fn identity(&self) -> Identity {
        let number = self.identities.fetch_add(1, Ordering::Relaxed);
        let (name, direction) = match self.side {
            Side::Server => ("server", Direction::Down),
            Side::Mobile => ("mobile", Direction::Up),
        };
        Identity::new(FlowId(0), direction, |part| self.seed.stream(&format!("quinn/{name}/{number}/{part}")))
    }
}

impl Runtime for Host {
    fn new_timer(&self, deadline: QuinnInstant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(self.shared.timers.timer(deadline))
    }

    /// Adds a task. A panic of the task ends the simulation with this panic.
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.shared.spawned.0.lock().unwrap_or_else(PoisonError::into_inner).push(future);
    }

    /// A virtual socket with the port of `socket`, which is closed.
    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.bind(socket.local_addr()?.port())
    }

    fn now(&self) -> QuinnInstant {
        self.shared.timers.now()
    }
}
