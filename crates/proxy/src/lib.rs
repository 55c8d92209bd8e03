//! A transport-level proxy at the border of fixed network and radio, without I/O.
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
//! | `stream_buffer` | payload from its arrival until its acknowledgement |
//! | `mobile` | the budget of a mobile, and the pace of a first burst |
//! | `adaptive` | a budget that follows the link |
//! | `budget` | the budget as a congestion window |
//! | `scheduler` | which connection of a mobile sends next |
//! | `statistics` | counters, and the state of the mobiles |
//! | `config` | the keys of the scenario table `[proxy]` |
//!
//! What is not TCP passes unchanged, and so do segments of connections whose SYN the proxy has not
//! received. They are the packets offered that are not absorbed in the counters of the hop.

mod adaptive;
mod budget;
mod config;
mod mobile;
mod proxy;
mod relay;
mod scheduler;
mod statistics;
mod stream_buffer;

pub use config::{Accept, BudgetSource, Config, Discipline};
pub use proxy::Proxy;
pub use statistics::{MobileState, PassCause, Totals};
