//! Two connections and a path between them, for tests and benchmarks (feature `testing`).
//!
//! ```
//! use airpath_core::{Bitrate, Span};
//! use airpath_tcp::Profile;
//! use airpath_tcp::testing::{Pair, Pipe, Side};
//!
//! let pipe = Pipe::new(Span::from_millis(20)).rate(Bitrate::from_bps(10_000_000));
//! let mut pair = Pair::new(&Profile::Linux6.config(), pipe.clone(), pipe);
//! pair.connection(Side::Client).write(1_000_000);
//! pair.run(Span::from_secs(10));
//! assert_eq!(pair.connection(Side::Server).received(), 1_000_000);
//! ```

mod pair;
mod pipe;

pub use pair::{Pair, Side};
pub use pipe::{Hop, Pipe};
