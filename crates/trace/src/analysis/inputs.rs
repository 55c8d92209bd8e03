//! What the causes of a flow are inferred from, beside its own packets.

use std::net::IpAddr;
use std::sync::Arc;

use super::Options;
use crate::radio::RadioLog;
use crate::shared_path::{HostLog, SharedPaths};
use airpath_core::{Instant, Span};
use airpath_observe::End;
use airpath_wire::segment::Route;

/// The radio logs, and the packets of all connections of each host.
pub struct Inputs {
    radio: Vec<(Option<IpAddr>, Arc<RadioLog>)>,
    paths: Arc<SharedPaths>,
}

impl Inputs {
    /// The radio logs of `options`; `paths` has hosts with [`Options::causes`].
    pub fn new(options: &Options, paths: Arc<SharedPaths>) -> Self {
        Self { radio: options.radio.clone(), paths }
    }

    /// The radio log of the mobile of a flow, whose client is the source of `route`, and the end
    /// that is the mobile.
    pub fn radio(&self, route: &Route) -> Option<(Arc<RadioLog>, End)> {
        let ends = [(route.source, End::Client), (route.destination, End::Server)];
        self.radio.iter().find_map(|(address, log)| {
            let end = match address {
                Some(address) => ends.iter().find(|(end, _)| end.address == *address).map(|(_, end)| *end),
                None => Some(End::Client),
            };
            end.map(|end| (Arc::clone(log), end))
        })
    }

    /// The packets of the client of a flow that begins `now`, and the shortest round trip of its
    /// handshakes with the same server.
    pub fn host(&self, route: &Route, now: Instant) -> Option<(Arc<HostLog>, Option<Span>)> {
        let host = self.paths.host(route.source.address)?;
        let round_trip = host.round_trip(route.destination.address, now);
        Some((host, round_trip))
    }
}
