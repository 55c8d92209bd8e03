//! The state of a live proxy, for metrics and the control socket.

use std::collections::BTreeMap;

use airpath_path::{Hop, Middlebox as _};
use airpath_proxy::{MobileState, PassCause, Proxy, Totals};
use airpath_scenario::Prefix;
use serde_json::{Value, json};

use super::router::{BypassCause, RefusalCause};
use crate::forwarder::Forwarder;

/// The state of a live proxy.
#[derive(Clone, Debug)]
pub struct State {
    /// Connections that are relayed.
    pub connections: usize,
    /// What the proxy has done so far.
    pub totals: Totals,
    /// The state of each mobile.
    pub mobiles: Vec<(Prefix, MobileState)>,
    /// Counters of the application level by name, if there is one.
    pub http: Vec<(&'static str, u64)>,
    /// Packets that entered the proxy, in the order of
    /// [`Direction::BOTH`](airpath_core::Direction::BOTH).
    pub offered_packets: [u64; 2],
    /// In the order of [`BypassCause::ALL`].
    pub bypassed: [u64; BypassCause::ALL.len()],
    /// In the order of [`RefusalCause::ALL`].
    pub refused: [u64; RefusalCause::ALL.len()],
    /// Acknowledgements that were not sent, because a later one left at once with them.
    pub merged_acknowledgements: u64,
    /// Packets that are missing in outputs that could not be written any more, by output.
    pub unwritten: BTreeMap<&'static str, u64>,
    /// Other drops before the entry or after the exit, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl State {
    /// The present state; `None` without a proxy.
    pub fn of(forwarder: &Forwarder<'_>) -> Option<Self> {
        let (_, hop) = forwarder.path().hops().next()?;
        let Hop::Middlebox(middlebox) = hop else { return None };
        let proxy: &Proxy = middlebox.downcast_ref()?;
        let router = forwarder.router()?;
        let mobiles = proxy.mobile_states().into_iter();
        let addressed = |mobile: MobileState| Some((*router.mobiles().get(mobile.user.index())?, mobile));
        Some(Self {
            connections: proxy.connections(),
            totals: *proxy.totals(),
            mobiles: mobiles.filter_map(addressed).collect(),
            http: proxy.statistics(),
            offered_packets: forwarder.entered,
            bypassed: router.bypassed,
            refused: router.refused,
            merged_acknowledgements: forwarder.merged_acknowledgements,
            unwritten: forwarder.unwritten_packets(),
            dropped: forwarder.dropped.by_cause(),
        })
    }

    /// The state as JSON.
    pub fn to_json(&self) -> Value {
        let by_cause = |names: &[&'static str], counts: &[u64]| -> BTreeMap<&'static str, u64> {
            names.iter().copied().zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
        };
        let mut passed = by_cause(&PassCause::ALL.map(PassCause::name), &self.totals.passed);
        passed.extend(by_cause(&BypassCause::ALL.map(BypassCause::name), &self.bypassed));
        let mut dropped = by_cause(&RefusalCause::ALL.map(RefusalCause::name), &self.refused);
        dropped.extend(&self.dropped);
        let mobile = |(address, state): &(Prefix, MobileState)| {
            json!({
                "mobile": address.to_string(),
                "connections": state.connections,
                "half_open": state.half_open,
                "budget_bytes": state.budget,
                "outstanding_bytes": state.unacknowledged,
                "queued_bytes": state.queued,
            })
        };
        json!({
            "connections": self.connections,
            "opened": self.totals.opened,
            "payload_bytes": { "down": self.totals.relayed_bytes[0], "up": self.totals.relayed_bytes[1] },
            "urgent_segments": self.totals.urgent,
            "path_mtus": self.totals.path_mtus,
            "unreachable": self.totals.unreachable,
            "merged_acknowledgements": self.merged_acknowledgements,
            "unwritten_packets": self.unwritten,
            "http": self.http.iter().copied().collect::<BTreeMap<_, _>>(),
            "passed": passed,
            "dropped": dropped,
            "mobiles": self.mobiles.iter().map(mobile).collect::<Vec<_>>(),
        })
    }
}
