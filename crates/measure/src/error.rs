//! Why a measurement fails.

use std::io;
use std::net::SocketAddr;

use airpath_result::FolderError;

use crate::protocol::VERSION;

/// Why a measurement was not made, or a responder does not run.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The order makes no sense.
    #[error("{0}")]
    Order(String),
    /// The name of the host leads nowhere.
    #[error("cannot find the host {host}: {source}; check the name, or give its address")]
    Unknown {
        /// As given.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing answers.
    #[error("cannot reach a responder at {peer}: {source}; start `airpath measure serve` there, and check the port")]
    Unreachable {
        /// Where.
        peer: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Something else answers.
    #[error("what answers at {peer} is no airpath responder; check the port, or start `airpath measure serve` there")]
    NotAResponder {
        /// Where.
        peer: SocketAddr,
    },
    /// The responder is of another version.
    #[error(
        "the responder at {peer} speaks version {theirs} of the protocol, this airpath version {VERSION}; \
         update airpath {there}",
        there = if *theirs < VERSION { "there" } else { "here" }
    )]
    Version {
        /// Where.
        peer: SocketAddr,
        /// Its version.
        theirs: u32,
    },
    /// The responder does not want to.
    #[error("the responder at {peer} refuses: {why}")]
    Refused {
        /// Where.
        peer: SocketAddr,
        /// Its words.
        why: String,
    },
    /// The responder was there and is so no longer.
    #[error("lost the responder at {peer}: {source}")]
    Lost {
        /// Where.
        peer: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A socket cannot be made or set.
    #[error("{what}: {source}")]
    Socket {
        /// What was to be done.
        what: String,
        /// Why it was not.
        source: io::Error,
    },
    /// This process may have no socket for echo requests.
    #[error(
        "echo requests are not allowed to this user: {source}; allow them to all groups by \
         `sysctl -w net.ipv4.ping_group_range='0 2147483647'` as root, or leave out `--icmp` and start \
         `airpath measure serve` at the other end"
    )]
    NoEcho {
        /// What the kernel says.
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; another program may have this port, `--listen ADDR:PORT` takes another"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The result cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl MeasureError {
    /// For `map_err`: the error of a socket when doing `what`.
    pub(crate) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Socket { what: what.into(), source }
    }
}
