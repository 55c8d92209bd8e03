//! A proxy at the border of fixed network and radio, without I/O.
//!
//! The proxy ends the TCP connections of the mobiles and opens one of its own to each server (split
//! connections, RFC 3135 §3.1.2). Towards a mobile it keeps a *budget*: all connections of the
//! mobile together have at most this many bytes unacknowledged. There is no slow start and no
//! reduction on loss (TL-E of Chakravorty and Pratt, "Performance Issues with GPRS"). So short
//! transfers fill the link at once, no queue builds up at the bearer, and a scheduler, not the
//! queue, decides which connection sends next.
//!
//! [`Proxy`] is a [`Middlebox`](airpath_path::Middlebox) and runs under both clocks. Its
//! connections are those of [`airpath_tcp`], which count bytes. The payload between the two ends is
//! stored where the packet buffer has it ([`airpath_path::store`]).
//!
//! | module | contents |
//! | --- | --- |
//! | `proxy` | the middlebox: connections, timers, packets that leave |
//! | `relay` | a relayed connection: two ends, and what passes between them |
//! | `proxy/saved` | the serialised state, for a take-over by another process |
//! | `mobile` | the budget of a mobile, and the pace of a first burst |
//! | `adaptive` | a budget that follows the link |
//! | `budget` | the budget as a congestion window |
//! | `relayed` | a connection at one of the two levels |
//! | `http` | the application level |
//! | `flows` | which connection a flow belongs to |
//! | `fair_queue` | one queue for all packets to a mobile |
//! | `scheduler` | which connection of a mobile sends next |
//! | `statistics` | counters, and the state of the mobiles |
//! | `config` | the keys of the scenario table `[proxy]` |
//!
//! # The application level
//!
//! With [`Config::http`], connections of mobiles to the ports of HTTP are read as HTTP/1.x (AL-E of
//! the same study, transparent: the mobile addresses the server). Pipelined requests are fetched
//! at the same time, each over a server connection of its own. Responses may be compressed, images
//! recoded, and what may be stored is kept in a cache that all mobiles share. A message that is
//! malformed or could be read in two ways is not interpreted: from there on, its connection passes
//! byte for byte. So does TLS. [`Statistics`] counts these bytes by reason.
//!
//! The first server connection of a client has the client's own port, unless server connections
//! are kept for other client connections ([`HttpConfig::server_pool`]). Others have the mobile's
//! address and a port from 61000 on, and the packet store begins their flows
//! ([`airpath_path::PacketStore::open_flow`]). A store without addresses refuses, and then all
//! requests use the first connection. Where payload is only counted, as in the simulator, the
//! connection is relayed at transport level.
//!
//! # What is not relayed
//!
//! What is not TCP passes unchanged, and so do segments of connections whose SYN the proxy has not
//! received. They are the packets offered that are not absorbed in the counters of the hop. With
//! [`Config::queue`] they wait in one queue with the proxy's own segments.

mod adaptive;
mod budget;
mod config;
mod fair_queue;
mod flows;
mod http;
mod mobile;
mod proxy;
mod relay;
mod relayed;
mod scheduler;
mod statistics;
mod transmit;

pub use config::{Accept, BudgetSource, Config, Discipline};
pub use fair_queue::Config as QueueConfig;
pub use http::{
    Bypass, Config as HttpConfig, Dictionaries, End, ExplicitProxy, Refusal, Session, SharedCache, Statistics,
    is_unicast,
};
pub use proxy::Proxy;
pub use statistics::{MobileState, PassCause, Totals};
