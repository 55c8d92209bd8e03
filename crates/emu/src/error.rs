//! Errors of building and running a link.

use std::io;

use airpath_link::RecordingError;
use airpath_result::FolderError;
use airpath_scenario::ScenarioError;

/// An error, with the next step in its message.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The scenario is not valid for a link.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The result cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The recorded link cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// This host does not permit such a namespace.
    #[error("this host does not permit a {0} namespace: {1}; run `airpath doctor` for what it supports")]
    Namespace(&'static str, #[source] io::Error),
    /// A link to the host's network needs privileges.
    #[error(
        "a link to the outside needs root, or the capabilities to administer the network; run it as root, or use \
         `--host-port PORT` for a server of this host, or `--serve CMD` for one at the other end of the link"
    )]
    NoPrivilege,
    /// Two bearers lead to a server.
    #[error("a link with a second bearer has a server at the other end: add `--serve CMD` or `--host-port PORT`")]
    SecondBearerOutside,
    /// A second subflow without a second bearer.
    #[error("--mptcp needs a second bearer: add `--second PRESET`, or the table [second_bearer] to the scenario")]
    MptcpAlone,
    /// MPTCP cannot be configured.
    #[error(
        "MPTCP cannot be set up: `ip mptcp {command}`: {reason}; it needs Linux 5.12 with `net.mptcp.enabled`, and \
         iproute2"
    )]
    Mptcp {
        /// The arguments of `ip mptcp`.
        command: String,
        /// What it reported.
        reason: String,
    },
    /// The host does not forward packets.
    #[error(
        "this host does not forward packets, so the outside cannot be reached over a link; \
         `--host-port PORT` reaches a server of this host, `--serve CMD` starts one at the other end, \
         and `sysctl -w net.ipv4.ip_forward=1` lets the host forward"
    )]
    NoForwarding,
    /// A kernel parameter cannot be set.
    #[error("the kernel parameter `{key}` cannot be set to `{value}`: {source}")]
    Parameter {
        /// Its name.
        key: String,
        /// The requested value.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// A live proxy needs the right to administer the network.
    #[error("a live proxy needs root, or the capability CAP_NET_ADMIN; run it as root")]
    NoAdministration,
    /// The host is not a router.
    #[error("this host does not forward packets; `sysctl -w {0}=1` lets it")]
    NoRouter(&'static str),
    /// The TUN interface of a live proxy exists already.
    #[error("there is an interface `{0}` already; another proxy may be running, or change `device`")]
    InterfaceInUse(String),
    /// An address cannot be used.
    #[error("`metrics`: {address} cannot be used: {source}; another proxy may be running, or change the address")]
    Address {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The process cannot become this user.
    #[error("`user`: the proxy cannot become `{name}`: {source}; name another user, or remove the key")]
    User {
        /// The name.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// A running proxy does not hand over.
    #[error("process {process} does not hand over: {reason}; it continues as before")]
    TakeOver {
        /// The process.
        process: i32,
        /// Why not.
        reason: String,
    },
    /// There is no proxy to take over from.
    #[error("no proxy of this user runs on the interface `{0}`; start without --take-over")]
    NoProxy(String),
    /// Routing rules cannot be installed.
    #[error("the routing rules cannot be installed: {0}")]
    Rules(String),
    /// The process that removes the routing rules was killed.
    #[error(
        "the keeper of the routing rules has ended, so they stay when the proxy ends; the next start removes them, or \
         `ip rule flush protocol 165` and `ip -6 rule flush protocol 165`"
    )]
    KeeperEnded,
    /// A configuration cannot be read.
    #[error("{name}: {source}; name a file with the configuration of a proxy")]
    Configuration {
        /// Its name.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// An operation of the host failed.
    #[error("{0}: {1}")]
    Host(&'static str, #[source] io::Error),
    /// The server ended before the command began.
    #[error("the server {0} before it listened at any port; run it by itself to see why")]
    ServerEnded(String),
    /// A port of the host cannot be opened at the server's end.
    #[error("--host-port {port}: {source}; the server of this link listens there, give it another port")]
    HostPort {
        /// The port.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// A program has removed the interface.
    #[error("a program of the link has removed its interface; run the link again without that")]
    InterfaceRemoved,
    /// A program cannot be run.
    #[error("{program}: {source}")]
    NotExecuted {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The init process of the programs was killed.
    #[error("the init process of the programs was killed; run the link again")]
    InitGone,
}

impl LinkError {
    /// For `map_err` of an operation of the host, described by `what`.
    pub fn host(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Host(what, error)
    }
}
