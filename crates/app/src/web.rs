//! Web pages: a browser and its servers.
//!
//! | module | what |
//! | --- | --- |
//! | [`page`] | a page as data: its objects and their references |
//! | [`settings`] | protocol, connections, TLS, name look-ups, cache, views |
//! | [`messages`] | the contents of a stream whose bytes are counted |
//! | [`tls`] | handshakes as round trips and bytes |
//! | [`browser`] | the client |
//! | [`view`] | one load of a page: its objects and their times |
//! | [`server`] | the server's end of a TCP connection |
//! | [`http3`] | the server's end of a QUIC connection, and the streams of both ends |
//! | [`text`] | both ends where a proxy reads what they send |
//! | [`figures`] | figures of a load |

pub mod browser;
pub mod figures;
pub mod http3;
pub mod messages;
pub mod page;
pub mod server;
pub mod settings;
pub mod text;
pub mod tls;
pub mod view;

pub use browser::{Action, Browser};
pub use figures::Figures;
pub use messages::Messages;
pub use page::{Page, PageError, PageFile};
pub use server::Server;
pub use settings::{Session, Settings};
pub use text::{ClientText, LONGEST_HEAD, RequestHead, ServerText, Urls};
pub use view::{LookUp, View};
