//! Errors of a measurement.

use std::io;
use std::net::SocketAddr;

use airpath_result::FolderError;

use crate::protocol::VERSION;

/// A measurement failed, or a responder cannot run.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The request is invalid.
    #[error("{0}")]
    InvalidRequest(String),
    /// The host name cannot be resolved.
    #[error("cannot find the host {host}: {source}")]
    Unknown {
        /// The name as given.
        host: String,
        /// Cause.
        source: io::Error,
    },
    /// No answer.
    #[error("cannot reach a responder at {peer}: {source}")]
    Unreachable {
        /// Address.
        peer: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// Another service answers.
    #[error("the service at {peer} is not an airpath responder")]
    NotAResponder {
        /// Address.
        peer: SocketAddr,
    },
    /// A responder of another protocol version.
    #[error("the responder at {peer} speaks version {theirs} of the protocol, this airpath version {VERSION}")]
    Version {
        /// Address.
        peer: SocketAddr,
        /// The responder's version.
        theirs: u32,
    },
    /// The responder refuses the request.
    #[error("the responder at {peer} refuses: {why}")]
    Refused {
        /// Address.
        peer: SocketAddr,
        /// The responder's message.
        why: String,
    },
    /// The connection to the responder is lost.
    #[error("lost the responder at {peer}: {source}")]
    Lost {
        /// Address.
        peer: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// A socket cannot be created or configured.
    #[error("{what}: {source}")]
    Socket {
        /// The failed operation.
        what: String,
        /// Cause.
        source: io::Error,
    },
    /// This process may not open a socket for echo requests.
    #[error("echo requests are not allowed to this user: {source}")]
    NoEcho {
        /// The kernel's error.
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// No stream of another program was received.
    #[error("no stream was received at {address}: {why}")]
    NoStream {
        /// The address of RTP.
        address: SocketAddr,
        /// Cause.
        why: String,
        /// A command that sends a stream.
        example: String,
    },
    /// A player does not accept the connection for RTP.
    #[error("cannot connect to a player at {peer}: {source}")]
    NoPlayer {
        /// Address.
        peer: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The result cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl MeasureError {
    /// What to do about it, where that is known.
    pub fn next_step(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { .. } => "check the name, or give its address".to_owned(),
            Self::Unreachable { .. } => "start `airpath measure serve` there, and check the port".to_owned(),
            Self::NotAResponder { .. } => "check the port, or start `airpath measure serve` there".to_owned(),
            Self::Version { theirs, .. } => {
                format!("update airpath {}", if *theirs < VERSION { "there" } else { "here" })
            }
            Self::NoEcho { .. } => "allow them to all groups by `sysctl -w net.ipv4.ping_group_range='0 2147483647'` \
                                    as root, or leave out `--icmp` and start `airpath measure serve` at the other end"
                .to_owned(),
            Self::Listen { .. } => "another program may have this port, `--listen ADDR:PORT` takes another".to_owned(),
            Self::NoStream { example, .. } => format!("send H.264 there, as `{example}` does"),
            Self::NoPlayer { .. } => "start it first, or give it more time with `--lead`".to_owned(),
            Self::InvalidRequest(_)
            | Self::Refused { .. }
            | Self::Lost { .. }
            | Self::Socket { .. }
            | Self::Folder(_) => {
                return None;
            }
        })
    }

    /// For `map_err`: the error of a socket during `what`.
    pub(crate) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Socket { what: what.into(), source }
    }
}
