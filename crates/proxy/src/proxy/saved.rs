//! The serialised state of a proxy, with which another process continues its connections.
//!
//! Left out are the settings, which the other process has, the source of initial sequence numbers,
//! which are random, and the application level: its connections are reset, with all those to
//! servers, and its cache, its dictionaries and the addresses of servers begin empty.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_core::{FlowId, Instant, RandomStream, UserId};
use airpath_path::Side;
use airpath_tcp::Connection;
use serde::{Deserialize, Serialize};

use super::{Entry, Proxy, Timer};
use crate::budget::BudgetWindow;
use crate::config::Config;
use crate::http::{HttpRelay, Statistics};
use crate::mobile::Mobile;
use crate::relay::{HeldSyn, Relay, Stream};
use crate::relayed::Relayed;
use crate::statistics::Totals;

/// The state of a proxy: `C` is a connection, `S` both streams between its ends, and `M` a mobile.
#[derive(Serialize, Deserialize)]
struct Saved<C, S, M> {
    /// Settings of the ends, as JSON.
    settings: Vec<String>,
    /// By number.
    relays: Vec<Option<SavedRelay<C, S>>>,
    /// Other server connections of the application level.
    servers: Vec<SavedServer<C>>,
    free: Vec<u32>,
    mobiles: BTreeMap<UserId, M>,
    /// When the next segments of paced bursts may leave.
    bursts: Vec<(Instant, UserId)>,
    /// Servers may still have connections with the ports before it.
    next_port: u16,
    statistics: Statistics,
    totals: Totals,
}

#[derive(Serialize, Deserialize)]
struct SavedServer<C> {
    flow: FlowId,
    user: UserId,
    end: C,
    /// The index of its settings.
    settings: u32,
}

#[derive(Serialize, Deserialize)]
struct SavedRelay<C, S> {
    flow: FlowId,
    user: UserId,
    ends: [C; 2],
    /// The state of [`BudgetWindow`].
    window: Option<u64>,
    /// The index of the settings of each end.
    settings: [u32; 2],
    /// None at the application level.
    streams: Option<S>,
    client: Side,
    held_syn: HeldSyn,
    opened: Instant,
    active: Instant,
    unacknowledged: u64,
    queued: u64,
    delivered: u64,
    is_upload: bool,
    is_half_open: bool,
}

/// Distinct settings of ends. Many ends share one.
#[derive(Default)]
struct SettingsTable(Vec<Arc<airpath_tcp::Config>>);

impl SettingsTable {
    fn index_of(&mut self, end: &Connection) -> u32 {
        let found = self.0.iter().position(|known| Arc::ptr_eq(known, end.config()));
        let index = found.unwrap_or_else(|| {
            self.0.push(Arc::clone(end.config()));
            self.0.len() - 1
        });
        index as u32
    }
}

impl Proxy {
    /// The serialised state. All packets that have left must have been popped before, and
    /// those in queues with [`Self::release_queues`].
    pub fn save(&self) -> Vec<u8> {
        // Each field is named, so that a new one is not forgotten here.
        let Self {
            config: _,
            ends: _,
            initial_sequences: _,
            relays,
            free,
            flows: _,
            mobiles,
            timers,
            left: _,
            created: _,
            application,
            totals,
            round_trips: _,
        } = self;
        let mut settings = SettingsTable::default();
        let relays = relays.iter().map(|entry| entry.as_ref().map(|entry| SavedRelay::of(entry, &mut settings)));
        let relays: Vec<Option<SavedRelay<&Connection, &[Stream; 2]>>> = relays.collect();
        let servers = self.servers().map(|(flow, user, end)| {
            let settings = settings.index_of(end);
            SavedServer { flow, user, end, settings }
        });
        let servers = servers.collect();
        let bursts = timers.iter().filter_map(|(time, timer)| match timer {
            Timer::Burst(user) => Some((*time, *user)),
            Timer::Connection(_) | Timer::Queue(_) | Timer::Abort(_) => None,
        });
        let json = |settings: &Arc<_>| serde_json::to_string(settings).expect("settings are text and numbers");
        let saved = Saved {
            settings: settings.0.iter().map(json).collect(),
            relays,
            servers,
            free: free.clone(),
            mobiles: mobiles.iter().map(|(user, mobile)| (*user, mobile)).collect(),
            bursts: bursts.collect(),
            next_port: application.next_port(),
            statistics: self.http_statistics(),
            totals: *totals,
        };
        postcard::to_stdvec(&saved).expect("the state has no part that cannot be serialised")
    }

    /// The proxy with a state that [`Self::save`] of the same version returned. `flow` gives each
    /// connection its new number; connections of the application level are reset at `now`.
    ///
    /// # Errors
    /// If this is not such a state.
    pub fn restore(
        config: Config,
        initial_sequences: RandomStream,
        now: Instant,
        state: &[u8],
        mut flow: impl FnMut(FlowId) -> Option<FlowId>,
    ) -> Result<Self, String> {
        let saved: Saved<Connection, [Stream; 2], Mobile> =
            postcard::from_bytes(state).map_err(|error| error.to_string())?;
        let settings: Result<Vec<Arc<_>>, _> = saved.settings.iter().map(|text| serde_json::from_str(text)).collect();
        let settings = settings.map_err(|error| error.to_string())?;
        let mut proxy = Self::new(config, initial_sequences);
        proxy.mobiles = saved.mobiles;
        proxy.timers.extend(saved.bursts.into_iter().map(|(time, user)| (time, Timer::Burst(user))));
        (proxy.free, proxy.totals) = (saved.free, saved.totals);
        proxy.application.restore(saved.statistics, saved.next_port);
        let settings_of = |index: u32| settings.get(index as usize).ok_or("a connection has no settings");
        for SavedServer { flow: old, user, mut end, settings } in saved.servers {
            let flow = flow(old).ok_or("a connection has no addresses")?;
            end.restore(Arc::clone(settings_of(settings)?), flow);
            proxy.application.abort(now, (flow, user), end);
        }
        for (saved, number) in saved.relays.into_iter().zip(0..) {
            let Some(mut saved) = saved else {
                proxy.relays.push(None);
                continue;
            };
            saved.flow = flow(saved.flow).ok_or("a connection has no addresses")?;
            for (end, index) in saved.ends.iter_mut().zip(saved.settings) {
                end.restore(Arc::clone(settings_of(index)?), saved.flow);
            }
            let mobile = proxy.mobiles.get(&saved.user).ok_or("a connection has no mobile")?;
            if !proxy.config.splits_only() {
                let window = BudgetWindow::restored(mobile.budget.clone(), saved.window);
                saved.ends[Side::Mobile as usize].set_congestion_control(Box::new(window));
            }
            proxy.flows.assign(saved.flow, number);
            let is_transport = saved.streams.is_some();
            let mut entry = saved.entry();
            if is_transport {
                entry.wakeup = entry.relay.next_wakeup(&proxy.config);
                proxy.timers.extend(entry.wakeup.map(|time| (time, Timer::Connection(number))));
            } else {
                // Its times are not known, so no other timer may expire before.
                proxy.timers.insert((now, Timer::Abort(number)));
            }
            proxy.relays.push(Some(Box::new(entry)));
        }
        // What may have changed in the settings is that of a running proxy.
        proxy.reconfigure(proxy.config.clone());
        Ok(proxy)
    }

    /// The flows of the connections that [`Self::save`] includes.
    pub fn saved_flows(&self) -> impl Iterator<Item = FlowId> {
        let servers = self.servers().map(|(flow, ..)| flow);
        self.relays.iter().flatten().map(|entry| entry.relay.identity().0).chain(servers)
    }

    /// The server connections that the application level has opened.
    fn servers(&self) -> impl Iterator<Item = (FlowId, UserId, &Connection)> {
        self.http_relays().flat_map(HttpRelay::opened_ends).chain(self.application.kept())
    }
}

impl<'a> SavedRelay<&'a Connection, &'a [Stream; 2]> {
    fn of(entry: &'a Entry, settings: &mut SettingsTable) -> Self {
        let Entry { relay, wakeup: _, unacknowledged, queued, delivered, is_upload, is_half_open } = entry;
        let (flow, user) = relay.identity();
        let (ends, streams, client, held_syn, [opened, active]) = match relay {
            Relayed::Transport(relay) => {
                let Relay { flow: _, user: _, ends: [server, mobile], streams, client, held_syn, opened, active } =
                    relay;
                ([server, mobile], Some(streams), *client, *held_syn, [*opened, *active])
            }
            Relayed::Application(relay) => {
                (relay.first_ends(), None, Side::Mobile, HeldSyn::default(), [Instant::ZERO; 2])
            }
        };
        Self {
            flow,
            user,
            settings: ends.map(|end| settings.index_of(end)),
            window: ends[Side::Mobile as usize].congestion_control_state(),
            ends,
            streams,
            client,
            held_syn,
            opened,
            active,
            unacknowledged: *unacknowledged,
            queued: *queued,
            delivered: *delivered,
            is_upload: *is_upload,
            is_half_open: *is_half_open,
        }
    }
}

impl SavedRelay<Connection, [Stream; 2]> {
    fn entry(self) -> Entry {
        let Self { flow, user, ends, streams, client, held_syn, opened, active, .. } = self;
        let streams = streams.unwrap_or_default();
        Entry {
            relay: Relayed::Transport(Relay { flow, user, ends, streams, client, held_syn, opened, active }),
            wakeup: None,
            unacknowledged: self.unacknowledged,
            queued: self.queued,
            delivered: self.delivered,
            is_upload: self.is_upload,
            is_half_open: self.is_half_open,
        }
    }
}
