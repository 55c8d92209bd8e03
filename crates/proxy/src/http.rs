//! The application level (AL-E): HTTP/1.x in clear text.
//!
//! | module | contents |
//! | --- | --- |
//! | `application` | what client connections share, and the server connections that are opened |
//! | `relay` | a client connection: its TCP end, those towards its server, the session between them |
//! | `session` | which server connection fetches each request, and in which order responses leave |
//! | `exchange` | a request and its response |
//! | `server` | a server connection as the session uses it |
//! | `pool` | server connections that no client uses |
//! | `ports` | ports of the connections that the proxy opens |
//! | `message` | heads of requests and responses |
//! | `body` | content, and where it ends |
//! | `compression` | compression of responses |
//! | `page` | the objects that a page names |
//! | `prefetch` | objects that are fetched before the client requests them |
//! | `dictionary` | responses that clients have, against which others are coded |
//! | `delta` | content codings with a dictionary |
//! | `prefix_brotli` | an encoder of Brotli with a dictionary |
//! | `cache` | responses that all mobiles share |
//! | `freshness` | which responses may be stored, and for how long they are fresh |
//! | `reuse` | what the cache does for a request |
//! | `fields` | fields of heads |
//! | `target` | what an explicit proxy forwards, and where to |
//! | `refusal` | what an explicit proxy does not forward |
//! | `lookup` | queries for the addresses of servers |
//! | `names` | messages of DNS, and the addresses that all mobiles share |
//! | `recode` | smaller images |
//! | `transform` | what may be changed, and the head of what was |
//! | `channel` | a TCP end with its payload |
//! | `statistics` | which bytes could be helped |
//! | `config` | the keys of the scenario table `[proxy.http]` |

mod application;
mod body;
mod cache;
mod channel;
mod compression;
mod config;
mod delta;
mod dictionary;
mod exchange;
mod fields;
mod freshness;
mod lookup;
mod message;
mod names;
mod page;
mod pool;
mod ports;
mod prefetch;
mod prefix_brotli;
mod recode;
mod refusal;
mod relay;
mod reuse;
mod server;
mod session;
mod statistics;
mod target;
mod transform;

pub use application::{Application, Opening};
pub use cache::SharedCache;
pub use config::Config;
pub use dictionary::Dictionaries;
pub use exchange::End;
pub use refusal::Refusal;
pub use relay::HttpRelay;
pub use session::Session;
pub use statistics::{Bypass, Statistics};
pub use target::{ExplicitProxy, is_unicast};
