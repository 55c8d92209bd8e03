//! Runs two applications in virtual time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use airpath_core::{Instant, Seed, Span, earliest};
use airpath_path::Side;
use airpath_scenario::{Scenario, ScenarioError, Users};

use crate::executor::Executor;
use crate::host::{Host, Shared};
use crate::network::Network;

/// Most polls of tasks at one instant. An application that needs more waits actively.
const MOST_POLLS: u64 = 1_000_000;

/// A simulation in which the application of the mobile has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<T> {
    /// The output of that application.
    pub output: T,
    /// The virtual time until it ended.
    pub duration: Span,
    /// IP packets that both hosts have sent.
    pub packets: u64,
    /// Packets of these that the path has dropped.
    pub dropped: u64,
}

/// Why a simulation ended before the application of the mobile.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The path of the scenario cannot be built.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has a second bearer.
    #[error("second_bearer: the applications have one address each, so they cannot use it; remove the table")]
    SecondBearer,
    /// All tasks wait, no timer runs, and no packet is on the path.
    #[error(
        "the applications wait forever at {0}: no task is ready, no timer runs, and no packet is on the path; \
         look for a task that waits for an event that no other task causes"
    )]
    Deadlock(Instant),
    /// The tasks stay ready, so that time does not advance.
    #[error(
        "the applications do not let time advance at {0}: tasks were polled {MOST_POLLS} times; \
         look for a loop that waits actively, and let it wait for a timer"
    )]
    Busy(Instant),
    /// The scenario's `duration` is over.
    #[error("the application of the mobile has not ended within {0}, the `duration` of the scenario; raise it")]
    TimeLimit(Span),
}

/// Runs `server` at the server and `client` at the mobile of `scenario` in virtual time, until
/// `client` ends. Its tasks and those of `server` are then dropped.
///
/// The path is that of `airpath link`: the hops of the scenario for its first mobile, with its
/// changes of conditions and its seed. Flows of the scenario are ignored. At the same time, packets
/// arrive first, then timers expire, and then tasks run in the order in which they were woken.
///
/// # Errors
/// If the path cannot be built or has a second bearer, or the application does not end.
///
/// # Panics
/// With the panic of a task.
pub fn simulate<T, S, C>(
    scenario: &Scenario,
    server: impl FnOnce(Arc<Host>) -> S,
    client: impl FnOnce(Arc<Host>) -> C,
) -> Result<Finished<T>, SimulationError>
where
    T: 'static,
    S: Future<Output = ()> + 'static,
    C: Future<Output = T> + 'static,
{
    if scenario.second_bearer.is_some() {
        return Err(SimulationError::SecondBearer);
    }
    let seed = Seed::new(scenario.seed);
    let mut network = Network::new(scenario.build_path(seed, Users::First)?);
    let shared = Arc::new(Shared::new());
    let host = |side| Arc::new(Host::new(side, seed, Arc::clone(&shared)));
    let output = Rc::new(Cell::new(None));
    let mut executor = Executor::default();
    executor.spawn(Box::pin(server(host(Side::Server))));
    let (client, result) = (client(host(Side::Mobile)), Rc::clone(&output));
    executor.spawn(Box::pin(async move { result.set(Some(client.await)) }));

    let ended = run(&mut executor, &mut network, &shared, scenario.duration, || output.take());
    drop(executor);
    // Tasks that others spawned while they were dropped: they own the hosts, which own them.
    drop(shared.take_spawned());
    let (output, at) = ended?;
    let (packets, dropped) = network.counts();
    Ok(Finished { output, duration: at.since(Instant::ZERO), packets, dropped })
}

/// Runs tasks and the network until `output` returns something; returns it with its time.
fn run<T>(
    executor: &mut Executor,
    network: &mut Network,
    shared: &Shared,
    duration: Span,
    output: impl Fn() -> Option<T>,
) -> Result<(T, Instant), SimulationError> {
    let (mut now, mut polls) = (Instant::ZERO, 0);
    loop {
        while executor.poll_next() {
            shared.take_spawned().for_each(|task| executor.spawn(task));
            shared.sockets.take_sent().into_iter().for_each(|datagram| network.send(now, datagram));
            if let Some(output) = output() {
                return Ok((output, now));
            }
            polls += 1;
            if polls == MOST_POLLS {
                return Err(SimulationError::Busy(now));
            }
        }
        let next = earliest([network.next_wakeup(), shared.timers.next_wakeup()]);
        let next = next.ok_or(SimulationError::Deadlock(now))?;
        if next > Instant::ZERO + duration {
            return Err(SimulationError::TimeLimit(duration));
        }
        if next > now {
            (now, polls) = (next, 0);
        }
        while let Some(datagram) = network.receive(now) {
            shared.sockets.deliver(datagram);
        }
        shared.timers.advance(now);
    }
}
