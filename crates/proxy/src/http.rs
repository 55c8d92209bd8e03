//! The application level (AL-E): HTTP/1.x in clear text.
//!
//! | module | contents |
//! | --- | --- |
//! | `relay` | a client connection: its TCP end, those towards its server, the session between them |
//! | `session` | which server connection fetches each request, and in which order responses leave |
//! | `exchange` | a request and its response |
//! | `server` | a server connection as the session uses it |
//! | `message` | heads of requests and responses |
//! | `body` | content, and where it ends |
//! | `compression` | compression of responses |
//! | `channel` | a TCP end with its payload |
//! | `statistics` | which bytes could be helped |
//! | `config` | the keys of the scenario table `[proxy.http]` |

mod body;
mod channel;
mod compression;
mod config;
mod exchange;
mod message;
mod relay;
mod server;
mod session;
mod statistics;

pub use config::Config;
pub use exchange::End;
pub use relay::{HttpRelay, NewServer};
pub use session::Session;
pub use statistics::{Bypass, Statistics};
