//! The settings of a proxy: the keys of the scenario table `[proxy]`.

use std::sync::Arc;

use airpath_core::{Bytes, Span};
use airpath_tcp::{Nagle, Profile, ReceiveBuffer};
use serde::{Deserialize, Serialize};

/// The settings of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Bytes that may be unacknowledged towards a mobile, over all its connections.
    #[serde(default)]
    pub budget: BudgetSource,
    /// Bytes that a mobile may send without an acknowledgement, over all its uploads: the windows
    /// that the proxy offers share it. None for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_budget: Option<Bytes>,
    /// When the connection of a client is accepted.
    #[serde(default)]
    pub accept: Accept,
    /// Which connection of a mobile sends next.
    #[serde(default)]
    pub scheduler: Discipline,
    /// Bytes that the proxy stores at most for each connection and direction. A full buffer closes
    /// the window towards the sender.
    #[serde(default = "buffer")]
    pub buffer: Bytes,
    /// The TCP of the proxy's ends.
    #[serde(default = "profile")]
    pub profile: Profile,
    /// Connections of a mobile that may be open on one side only. The SYNs of further ones pass
    /// unchanged, so a SYN flood of one mobile needs bounded memory.
    #[serde(default = "half_open")]
    pub half_open: u32,
    /// Connections in total. The SYNs of further ones pass unchanged.
    #[serde(default = "connections")]
    pub connections: u32,
    /// A connection that is not open on both sides after this time is aborted.
    #[serde(default = "open_timeout")]
    pub open_timeout: Span,
    /// A connection without a segment for this time is aborted.
    #[serde(default = "idle_timeout")]
    pub idle_timeout: Span,
    /// One queue for all packets to a mobile; without the table they leave at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<crate::fair_queue::Config>,
    /// The application level; none without the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<crate::http::Config>,
}

/// Where the budget of a mobile comes from. Written as a size, `adaptive` or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BudgetSource {
    /// A constant: the study's `C_clamp`, 10 to 15 % above maximum rate × typical round trip.
    Fixed(Bytes),
    /// It follows the delivery rate and the least round trip.
    #[default]
    Adaptive,
    /// There is no budget: each connection towards the mobile has the congestion control of the
    /// profile, as in I-TCP (Bakre and Badrinath, "I-TCP: Indirect TCP for mobile hosts", ICDCS
    /// 1995). Left out of I-TCP: the mobile's library of calls, and handover of connections to
    /// another base station.
    None,
}

const ADAPTIVE: &str = "adaptive";
const NONE: &str = "none";

impl TryFrom<String> for BudgetSource {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            ADAPTIVE => Ok(Self::Adaptive),
            NONE => Ok(Self::None),
            size => {
                let wrong = |error| {
                    format!("{error}; the other values are `{ADAPTIVE}`, `{NONE}` and, in a scenario, `bearer`")
                };
                size.parse().map(Self::Fixed).map_err(wrong)
            }
        }
    }
}

impl From<BudgetSource> for String {
    fn from(source: BudgetSource) -> Self {
        match source {
            BudgetSource::Fixed(bytes) => bytes.to_string(),
            BudgetSource::Adaptive => ADAPTIVE.to_owned(),
            BudgetSource::None => NONE.to_owned(),
        }
    }
}

/// When the connection of a client is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accept {
    /// At once, before the server has answered. If the server refuses, the client receives a reset
    /// on an open connection.
    #[default]
    Early,
    /// When the server has accepted. If it refuses, the client's connection is refused.
    Deferred,
}

/// Which connection of a mobile sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// Deficit round robin, with connections that begin to send first (RFC 8290).
    #[default]
    DeficitRoundRobin,
    /// One segment of each connection in turn.
    RoundRobin,
    /// In the order in which the data arrived.
    Fifo,
    /// The connection with the fewest bytes stored first.
    ShortestRemaining,
}

/// The settings of the TCP ends of a connection.
#[derive(Debug)]
pub struct Ends {
    /// Towards the server.
    pub server: Arc<airpath_tcp::Config>,
    /// Towards the mobile.
    pub mobile: Arc<airpath_tcp::Config>,
}

/// The largest send buffer of Linux by default (`net.ipv4.tcp_wmem`).
const fn buffer() -> Bytes {
    Bytes::new(4_194_304)
}

/// The window that a sender is offered first. It grows towards [`Config::buffer`] as the other end
/// takes what is stored.
const FIRST_WINDOW: Bytes = Bytes::new(256_000);

const fn profile() -> Profile {
    Profile::Linux6
}

/// More than a browser opens at a time.
const fn half_open() -> u32 {
    256
}

const fn connections() -> u32 {
    200_000
}

const fn open_timeout() -> Span {
    Span::from_secs(60)
}

/// 2 h 4 min: the least for a middlebox with state (RFC 5382 REQ-5).
const fn idle_timeout() -> Span {
    Span::from_secs(7440)
}

impl Config {
    /// A proxy with this constant budget, and defaults.
    pub const fn new(budget: Bytes) -> Self {
        Self {
            budget: BudgetSource::Fixed(budget),
            upload_budget: None,
            accept: Accept::Early,
            scheduler: Discipline::DeficitRoundRobin,
            buffer: buffer(),
            profile: profile(),
            half_open: half_open(),
            connections: connections(),
            open_timeout: open_timeout(),
            idle_timeout: idle_timeout(),
            queue: None,
            http: None,
        }
    }

    /// Whether there is no budget: connections are only split.
    pub fn splits_only(&self) -> bool {
        self.budget == BudgetSource::None
    }

    /// The settings of the ends of a connection whose client uses ECN or does not.
    pub(crate) fn ends(&self, ecn: bool) -> Ends {
        Ends { server: self.server_end(ecn), mobile: self.mobile_end(ecn) }
    }

    /// The settings of the ends towards the servers: those of the profile. Small writes are not
    /// delayed: the sender has decided on the segments.
    fn server_end(&self, ecn: bool) -> Arc<airpath_tcp::Config> {
        let mut config = self.profile.config();
        config.ecn = ecn;
        config.nagle = Nagle::Off;
        let initial = FIRST_WINDOW.min(self.buffer);
        config.receive_buffer = ReceiveBuffer { initial, maximum: self.buffer, ..config.receive_buffer };
        Arc::new(config)
    }

    /// The settings of the ends towards the mobiles. The window is the mobile's budget
    /// ([`BudgetWindow`](crate::budget::BudgetWindow)). Without a budget they are those towards the
    /// servers.
    fn mobile_end(&self, ecn: bool) -> Arc<airpath_tcp::Config> {
        if self.budget == BudgetSource::None {
            return self.server_end(ecn);
        }
        let mut config = airpath_tcp::Config::clone(&self.server_end(ecn));
        config.recovery.proportional_reduction = false;
        Arc::new(config)
    }
}
