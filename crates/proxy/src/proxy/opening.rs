//! How a SYN opens a connection.

use std::sync::Arc;

use airpath_core::{Instant, Packet};
use airpath_path::{MiddleboxContext, Side};
use airpath_tcp::{Connection, Identity, Segment};
use airpath_wire::tcp::Flags;

use super::{Entry, Proxy};
use crate::budget::BudgetWindow;
use crate::config::Accept;
use crate::mobile::Mobile;
use crate::relay::Relay;
use crate::relayed::Relayed;
use crate::statistics::PassCause;

impl Proxy {
    /// The connection of a packet: an old one, or a new one if this is a SYN.
    pub(super) fn connection_of(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        segment: &Segment,
        cx: &MiddleboxContext<'_>,
    ) -> Result<u32, PassCause> {
        let opens = opens(segment);
        if let Some(number) = self.flows.connection_of(packet.flow) {
            let entry = self.relays[number as usize].as_ref();
            if !opens || entry.is_some_and(|entry| !entry.relay.is_finished()) {
                return Ok(number);
            }
            // The client uses the port again, and so may an end in TIME-WAIT (RFC 9293 §3.6.1).
            self.remove(number);
        }
        if !opens {
            return Err(PassCause::Unknown);
        }
        if self.flows.len() >= self.config.connections as usize {
            return Err(PassCause::Connections);
        }
        if self.mobiles.get(&packet.user).is_some_and(|mobile| mobile.half_open >= self.config.half_open) {
            return Err(PassCause::HalfOpen);
        }
        Ok(self.open(now, side, packet, segment, cx))
    }

    /// Begins to relay the connection that a SYN from `client` opens.
    fn open(&mut self, now: Instant, client: Side, packet: &Packet, syn: &Segment, cx: &MiddleboxContext<'_>) -> u32 {
        let Packet { flow, user, .. } = *packet;
        let config = &self.config;
        let mobile = self.mobiles.entry(user).or_insert_with(|| Mobile::new(config));
        mobile.connections += 1;
        mobile.half_open += 1;
        self.totals.opened += 1;
        let (client_port, server_port) = (syn.header.source_port, syn.header.destination_port);
        let towards_client = Identity {
            flow,
            direction: client.sends().opposite(),
            local_port: server_port,
            remote_port: client_port,
            // Truncation to the width of a sequence number.
            initial_sequence: self.initial_sequences.bits() as u32,
        };
        // With the client's sequence numbers, the client accepts ICMP errors about segments of the
        // proxy as errors about its own.
        let towards_server = Identity {
            flow,
            direction: client.sends(),
            local_port: client_port,
            remote_port: server_port,
            initial_sequence: syn.header.sequence,
        };
        // The proxy offers ECN to the server if the client has offered it (RFC 3168 §6.1.1).
        let uses_ecn = syn.header.flags.contains(Flags::ECE) && syn.header.flags.contains(Flags::CWR);
        let ends = &self.ends[usize::from(uses_ecn)];
        let (client_end, server_end) = match client {
            Side::Mobile => (&ends.mobile, &ends.server),
            Side::Server => (&ends.server, &ends.mobile),
        };
        let server = cx.server_address(flow);
        let http = config.http.as_ref().filter(|_| client == Side::Mobile);
        let is_explicit = http.and_then(|http| http.address).is_some_and(|address| server == Some(address));
        let mut listening = Connection::listen(Arc::clone(client_end), towards_client);
        let mut connecting = if is_explicit {
            // There is no server behind the proxy's own address.
            Connection::listen(Arc::clone(server_end), towards_server)
        } else {
            Connection::connect(Arc::clone(server_end), towards_server, now)
        };
        let towards_mobile = if client == Side::Mobile { &mut listening } else { &mut connecting };
        if !config.splits_only() {
            towards_mobile.set_congestion_control(Box::new(BudgetWindow::new(mobile.budget.clone())));
        }
        let defers = config.accept == Accept::Deferred && !is_explicit;
        let relay = Relay::new((flow, user), client, *syn, (listening, connecting), defers, now);
        let mut relay = match http.filter(|http| is_explicit || http.ports.contains(&server_port)) {
            Some(http) => {
                Relayed::Application(Box::new(self.application.relay(relay, (server, server_port), (config, http))))
            }
            None => Relayed::Transport(relay),
        };
        if let Some(budget) = config.upload_budget {
            relay.bound_upload(mobile.upload_window(budget.get()));
        }
        let entry = Some(Box::new(Entry {
            relay,
            wakeup: None,
            unacknowledged: 0,
            queued: 0,
            delivered: 0,
            is_upload: false,
            is_half_open: true,
        }));
        let number = match self.free.pop() {
            Some(number) => {
                self.relays[number as usize] = entry;
                number
            }
            None => {
                self.relays.push(entry);
                self.relays.len() as u32 - 1
            }
        };
        self.flows.assign(flow, number);
        number
    }
}

/// Whether a segment begins a connection.
pub(super) fn opens(segment: &Segment) -> bool {
    let flags = segment.header.flags;
    flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) && !flags.contains(Flags::RST)
}
