//! Applications of the crate [`quinn`] in virtual time: the same code as on real sockets, over a
//! bearer of airpath.
//!
//! An application of quinn receives a [`quinn::Runtime`] and an [`quinn::Endpoint`]. With those of
//! tokio it runs in real time; with those of a [`Host`] it runs in virtual time. [`simulate`] runs
//! one at the server and one at the mobile of a scenario. The path is that of `airpath link`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`simulation`] | [`simulate`]: runs both applications until that of the mobile ends |
//! | [`host`] | the [`Host`]: a [`quinn::Runtime`] with sockets and identities |
//! | `executor` | tasks, polled in the order in which they were woken |
//! | `timers` | virtual time and its timers |
//! | `sockets` | UDP sockets |
//! | `network` | datagrams on the path of the scenario |
//!
//! # Example
//! A request over a GPRS bearer. [`NullCrypto`](airpath_quic::null_crypto::NullCrypto) has the
//! messages and sizes of TLS 1.3 and needs no certificate; configurations of rustls work as well.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use airpath_quic::null_crypto::NullCrypto;
//! use airpath_quinn::{Host, simulate};
//! use airpath_scenario::Scenario;
//!
//! async fn server(host: Arc<Host>) {
//!     let config = host.identity().server_config(Arc::new(NullCrypto::default()));
//!     let endpoint = host.endpoint(4433, Some(config)).unwrap();
//!     let connection = endpoint.accept().await.unwrap().await.unwrap();
//!     let (mut send, mut receive) = connection.accept_bi().await.unwrap();
//!     receive.read_to_end(100).await.unwrap();
//!     send.write_all(&[0; 10_000]).await.unwrap();
//!     send.finish().unwrap();
//!     connection.closed().await;
//! }
//!
//! async fn client(host: Arc<Host>) -> usize {
//!     let config = host.identity().client_config(Arc::new(NullCrypto::default()));
//!     let endpoint = host.endpoint(0, None).unwrap();
//!     let server = (host.peer(), 4433).into();
//!     let connection = endpoint.connect_with(config, server, "server").unwrap().await.unwrap();
//!     let (mut send, mut receive) = connection.open_bi().await.unwrap();
//!     send.write_all(b"request").await.unwrap();
//!     send.finish().unwrap();
//!     receive.read_to_end(1 << 20).await.unwrap().len()
//! }
//!
//! let text = "format = 1\n[bearer]\npreset = \"gprs\"";
//! let scenario = Scenario::read(text, "gprs.toml", Path::new(""), &[])?;
//! let finished = simulate(&scenario, server, client)?;
//! assert_eq!(finished.output, 10_000);
//! println!("{} of virtual time", finished.duration);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Determinism
//! Two runs of the same application have the same times if it uses no other source of randomness,
//! time or I/O than its host. [`Host::identity`] has the seeds of quinn. TLS is deterministic in
//! time with a certificate whose signatures have a fixed length, such as Ed25519.
//!
//! # Limits
//! Functions of tokio that need its runtime (`tokio::time`, `tokio::net`, `tokio::spawn`) panic;
//! its channels, locks and `select!` work. All tasks share one thread, and computing takes no
//! virtual time.

mod executor;
pub mod host;
mod network;
pub mod simulation;
mod sockets;
mod timers;

pub use host::Host;
pub use simulation::{Finished, SimulationError, simulate};
