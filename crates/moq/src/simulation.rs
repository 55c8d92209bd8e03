//! Both ends in virtual time.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use airpath_quinn::{Host, SimulationError, simulate};
use airpath_scenario::Scenario;

use crate::clock::SharedClock;
use crate::figures::Figures;
use crate::outgoing::Sent;
use crate::publisher::Publisher;
use crate::session::{PORT, SessionError, VIRTUAL_START, client_config, server_config};
use crate::settings::Settings;
use crate::subscriber::{Reception, Subscriber};

/// A session in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The figures of the subscriber.
    pub figures: Figures,
    /// What it received.
    pub reception: Reception,
    /// What became of the objects of the publisher, with the names of the tracks.
    pub sent: Vec<(&'static str, Sent)>,
    /// IP packets that both hosts have sent.
    pub packets: u64,
    /// Packets of these that the path has dropped.
    pub dropped: u64,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The simulation ended before the session.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Runs a publisher at the server and a subscriber at the mobile of `scenario`. The media start
/// when the publisher receives the subscription.
///
/// # Errors
/// If the path cannot be built, the media are longer than the `duration` of the scenario, or the
/// connection ends.
pub fn run(scenario: &Scenario, settings: &Settings) -> Result<Simulated, Error> {
    let clock = |host: &Arc<Host>| SharedClock::starting_at(VIRTUAL_START, Arc::clone(host) as _);
    let publishers = Rc::new(RefCell::new(None));
    let (publisher, subscriber) = (settings.clone(), settings.clone());
    let kept = Rc::clone(&publishers);
    let finished = simulate(
        scenario,
        |host| async move {
            let config = server_config(&publisher, &mut host.identity());
            let endpoint = host.endpoint(PORT, Some(config)).expect("the port is free");
            let publisher = Publisher::new(&publisher, clock(&host));
            kept.replace(Some(Arc::clone(&publisher)));
            publisher.serve(endpoint).await;
        },
        |host| async move {
            let config = client_config(&subscriber, &mut host.identity());
            let endpoint = host.endpoint(0, None).expect("a port is free");
            let connecting = endpoint.connect_with(config, (host.peer(), PORT).into(), "server");
            let connecting = connecting.expect("address and name are valid");
            Subscriber::receive(&subscriber, clock(&host), connecting, "server").await
        },
    )?;
    let reception = finished.output?;
    let figures = Figures::new(settings, &reception).map_err(SessionError::Violation)?;
    let sent = publishers.take().map(|publisher| publisher.sent()).unwrap_or_default();
    Ok(Simulated { figures, reception, sent, packets: finished.packets, dropped: finished.dropped })
}
