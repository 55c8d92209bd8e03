//! The settings of the application level: the keys of the scenario table `[proxy.http]`.

use std::net::SocketAddr;
use std::num::NonZeroU8;

use airpath_core::Bytes;
use serde::{Deserialize, Serialize};

/// The settings of the application level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Ports of servers to which mobiles speak HTTP/1.x in clear text.
    #[serde(default = "ports")]
    pub ports: Vec<u16>,
    /// Requests of a client connection that are fetched at the same time, each over a server
    /// connection of its own. With 1, all are sent over one in the order in which they come.
    #[serde(default = "one")]
    pub pipelining: NonZeroU8,
    /// Whether responses are compressed for clients that accept it.
    #[serde(default)]
    pub compression: bool,
    /// Quality of recoded JPEG images, 1 to 100; without the key no image is recoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_quality: Option<NonZeroU8>,
    /// Server connections that stay open for the next connection of a mobile, for each server.
    #[serde(default)]
    pub server_pool: u8,
    /// Bytes of the cache that all mobiles share; none without the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Bytes>,
    /// Objects of a page that are fetched into the cache before the client requests them.
    #[serde(default)]
    pub prefetch: u8,
    /// Bytes of the dictionaries with which responses are coded for clients that have them; none
    /// without the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dictionaries: Option<Bytes>,
    /// Address and port at which mobiles reach it as an explicit proxy; none without the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// Resolver that an explicit proxy queries for the addresses of servers, by DNS over TCP.
    /// Without the key, requests name servers by their address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<SocketAddr>,
    /// Ports to which an explicit proxy permits `CONNECT`.
    #[serde(default = "connect_ports")]
    pub connect_ports: Vec<u16>,
}

fn ports() -> Vec<u16> {
    vec![80]
}

fn connect_ports() -> Vec<u16> {
    vec![443]
}

const fn one() -> NonZeroU8 {
    NonZeroU8::MIN
}

impl Default for Config {
    /// No capability is switched on.
    fn default() -> Self {
        Self {
            ports: ports(),
            pipelining: one(),
            compression: false,
            image_quality: None,
            server_pool: 0,
            cache: None,
            prefetch: 0,
            dictionaries: None,
            address: None,
            resolver: None,
            connect_ports: connect_ports(),
        }
    }
}
