//! The configuration of a live proxy on a router: mobiles, interfaces, and the `[proxy]` table.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::document::Node;
use crate::error::{Origin, ScenarioError};
use crate::proxy::{self, ProxyTable};
use crate::{Format, ProxyConfig};

/// The configuration of a live proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveConfig {
    format: u32,
    /// Addresses of the mobiles. No two prefixes overlap.
    pub mobiles: Vec<Prefix>,
    /// Interfaces towards the mobiles: only packets that arrive there come from a mobile. Empty for
    /// all interfaces.
    pub interfaces: Vec<String>,
    /// Name of the TUN interface.
    pub device: String,
    /// Number of the routing table that leads to the TUN interface.
    pub table: u32,
    /// Priority of the first routing rule; four are used.
    pub priority: u32,
    /// The largest packet of the TUN interface in bytes.
    pub mtu: u16,
    /// Length of the IPv6 prefix that is one mobile.
    pub ipv6_mobile: u8,
    /// Mobiles at a time. The packets of further mobiles pass unchanged.
    pub most_mobiles: u16,
    /// The user that the process becomes after set-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Loopback address at which metrics are served over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// The settings of the proxy.
    pub proxy: ProxyConfig,
}

/// The keys other than `[proxy]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    mobiles: Vec<Prefix>,
    #[serde(default)]
    interfaces: Vec<String>,
    #[serde(default = "device")]
    device: String,
    #[serde(default = "number")]
    table: u32,
    #[serde(default = "number")]
    priority: u32,
    #[serde(default = "mtu")]
    mtu: u16,
    #[serde(default = "ipv6_mobile")]
    ipv6_mobile: u8,
    #[serde(default = "most_mobiles")]
    most_mobiles: u16,
    user: Option<String>,
    metrics: Option<SocketAddr>,
}

const KEYS: [&str; 12] = [
    "format",
    "mobiles",
    "interfaces",
    "device",
    "table",
    "priority",
    "mtu",
    "ipv6_mobile",
    "most_mobiles",
    "user",
    "metrics",
    "proxy",
];

/// An interface name has at most this many bytes (`IFNAMSIZ` of <linux/if.h>, without the zero).
const LONGEST_NAME: usize = 15;

/// The rules use this many priorities.
pub const RULES: u32 = 4;

/// The main table's rule has this priority (ip-rule(8)); those of the proxy come before.
const MAIN_PRIORITY: u32 = 32_766;

fn device() -> String {
    "airpath0".to_owned()
}

/// Default of table and priority: the number of the RFC about performance-enhancing proxies.
const fn number() -> u32 {
    3135
}

const fn mtu() -> u16 {
    1500
}

/// The size of the prefix that a mobile gets (RFC 6459 §5.2).
const fn ipv6_mobile() -> u8 {
    64
}

const fn most_mobiles() -> u16 {
    1024
}

impl LiveConfig {
    /// Reads the configuration `text`; `file` is its name in errors.
    ///
    /// # Errors
    /// If it is not valid. Whether the host supports it is not checked.
    ///
    /// ```
    /// use airpath_scenario::LiveConfig;
    ///
    /// let text = "format = 1\nmobiles = [\"10.1.0.0/16\", \"fd00:1::/48\"]\n[proxy]\nbudget = \"16 kB\"";
    /// let config = LiveConfig::read(text, "proxy.toml")?;
    /// assert!(config.mobiles[0].contains("10.1.2.3".parse().unwrap()));
    /// let error = LiveConfig::read("format = 1\nmobils = []", "proxy.toml").unwrap_err();
    /// assert!(error.to_string().starts_with("proxy.toml:2: mobils: unknown key; did you mean `mobiles`?"));
    /// # Ok::<(), airpath_scenario::ScenarioError>(())
    /// ```
    pub fn read(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut node = Node::parse(text, file)?;
        let format = Format::check(&mut node, "configuration", file)?;
        let table = node.take("proxy").unwrap_or_else(|| Node::table(Origin::File(file.to_owned())));
        let table = proxy::resolve(table, Path::new(file).parent().unwrap_or(Path::new("")))?;
        let origin_of = ["http.address", "http.resolver"].map(|key| table.origin_of(key).clone());
        let ProxyTable { config: proxy, budget_of_bearer, rate_of_bearer } = proxy::read(table)?;
        for (measured, key, help) in [
            (budget_of_bearer, "proxy.budget", "write the budget in bytes, or `adaptive`"),
            (rate_of_bearer, "proxy.queue.rate", "write the rate, as in \"50 kbit/s\""),
        ] {
            if let Some(origin) = measured {
                return Err(ScenarioError::new("a router has no bearer to measure", origin, key).help(help));
            }
        }
        if let Some(key) = node.keys().find(|key| !KEYS.contains(key)) {
            return Err(node.unknown_key("", key, &KEYS));
        }
        let keys: Keys = node.read("").map_err(|error| match error.field.as_deref() {
            Some("mobiles") if error.help.is_none() => error.help("write `mobiles = [\"10.1.0.0/16\"]`"),
            _ => error,
        })?;
        check(&keys, &node)?;
        let Keys { mobiles, interfaces, device, table, priority, mtu, ipv6_mobile, most_mobiles, user, metrics } = keys;
        let addresses = proxy.http.as_ref().map_or([None; 2], |http| [http.address, http.resolver]);
        for (address, origin, key, help) in [
            (addresses[0], &origin_of[0], "proxy.http.address", "use an address that no host has, outside of them"),
            (addresses[1], &origin_of[1], "proxy.http.resolver", "use a resolver on the servers' side"),
        ] {
            let of_mobiles = |ip| mobiles.iter().find(|prefix| prefix.contains(ip));
            if let Some(prefix) = address.and_then(|address| of_mobiles(address.ip())) {
                let message = format!("this address belongs to the mobiles of {prefix}");
                return Err(ScenarioError::new(message, origin.clone(), key).help(help));
            }
        }
        Ok(Self {
            format,
            mobiles,
            interfaces,
            device,
            table,
            priority,
            mtu,
            ipv6_mobile,
            most_mobiles,
            user,
            metrics,
            proxy,
        })
    }

    /// The configuration as TOML, with every default written out.
    pub fn to_toml(&self) -> String {
        let value = toml::Value::try_from(self).expect("a configuration is made of tables and values");
        toml::to_string(&value).expect("a TOML value can be written")
    }
}

fn check(keys: &Keys, node: &Node) -> Result<(), ScenarioError> {
    let wrong = |key: &str, message: String, help: &str| {
        Err(ScenarioError::new(message, node.origin_of(key).clone(), key).help(help))
    };
    if keys.mobiles.is_empty() {
        return wrong("mobiles", "no mobile is listed".to_owned(), "list their prefixes, as in [\"10.1.0.0/16\"]");
    }
    for (index, prefix) in keys.mobiles.iter().enumerate() {
        if prefix.is_reserved() {
            let message = format!("{prefix} contains addresses that no mobile can have");
            return wrong("mobiles", message, "list unicast addresses other than loopback and link-local ones");
        }
        if let Some(other) = keys.mobiles[..index].iter().find(|other| other.overlaps(*prefix)) {
            return wrong("mobiles", format!("{other} and {prefix} overlap"), "list each address once");
        }
    }
    for (key, name) in keys.interfaces.iter().map(|name| ("interfaces", name)).chain([("device", &keys.device)]) {
        let is_valid = (1..=LONGEST_NAME).contains(&name.len())
            && !matches!(name.as_str(), "." | "..")
            && !name.contains(|c: char| c.is_whitespace() || matches!(c, '/' | ':' | '%'));
        if !is_valid {
            let help = "an interface name has at most 15 bytes, without spaces and slashes";
            return wrong(key, format!("`{name}` is not a name for an interface"), help);
        }
    }
    // 253 to 255 are the kernel's own (rt_tables of iproute2); 0 is none.
    if matches!(keys.table, 0 | 253..=255) {
        return wrong("table", format!("table {} belongs to the kernel", keys.table), "the default is 3135");
    }
    if keys.priority == 0 || keys.priority > MAIN_PRIORITY - RULES {
        let message = format!("priority {} is not between those of the local and the main table", keys.priority);
        return wrong("priority", message, "use 1 to 32762; the default is 3135");
    }
    if keys.mtu < 1280 {
        return wrong("mtu", "IPv6 needs at least 1280 bytes (RFC 8200 §5)".to_owned(), "the default is 1500");
    }
    if !(1..=128).contains(&keys.ipv6_mobile) {
        return wrong("ipv6_mobile", "a prefix has 1 to 128 bits".to_owned(), "the default is 64");
    }
    if keys.most_mobiles == 0 || keys.most_mobiles > MOST_MOBILES {
        return wrong("most_mobiles", "this must be 1 to 60000".to_owned(), "the default is 1024");
    }
    if keys.metrics.is_some_and(|address| !address.ip().is_loopback()) {
        return wrong("metrics", "this is not a loopback address".to_owned(), "use one, as in \"127.0.0.1:9135\"");
    }
    Ok(())
}

/// Components are numbered with 16 bits.
const MOST_MOBILES: u16 = 60_000;

/// Addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    /// The first address.
    pub address: IpAddr,
    /// Number of common bits.
    pub length: u8,
}

impl Prefix {
    /// The prefix of `length` bits that contains `address`; all bits if it has fewer.
    pub fn around(address: IpAddr, length: u8) -> Self {
        let length = length.min(bits(address));
        Self { address: masked(address, length), length }
    }

    /// Whether `address` has these first bits.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.length) == self.address
    }

    /// Whether an address has both prefixes.
    pub fn overlaps(&self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// Whether it contains the unspecified address, loopback, link-local or multicast addresses.
    fn is_reserved(self) -> bool {
        const RESERVED: [Prefix; 8] = [
            Prefix { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), length: 8 },
            Prefix { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), length: 8 },
            Prefix { address: IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), length: 16 },
            Prefix { address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), length: 3 },
            Prefix { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 127 },
            Prefix { address: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), length: 10 },
            Prefix { address: IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), length: 8 },
            Prefix { address: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)), length: 96 },
        ];
        RESERVED.iter().any(|reserved| reserved.overlaps(self))
    }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first `length` bits of an address; the others are zero.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from(u128::from(address) & mask).into()
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an address or a prefix such as 10.1.0.0/16");
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length = length.map_or(Ok(bits(address)), |length| length.parse().map_err(|_| wrong()))?;
        if length > bits(address) {
            return Err(format!("`{text}` has a prefix longer than {} bits", bits(address)));
        }
        let prefix = Self { address, length };
        match masked(address, length) {
            first if first == address => Ok(prefix),
            first => Err(format!("`{text}` has bits after its prefix; the prefix is {first}/{length}")),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        LiveConfig::read(text, "proxy.toml").expect_err("it is not valid").to_string()
    }

    #[test]
    fn errors_name_line_and_next_step() {
        let with = |lines: &str| error(&format!("format = 1\nmobiles = [\"10.1.0.0/16\"]\n{lines}"));
        for (lines, expected) in [
            ("mtus = 5", "proxy.toml:3: mtus: unknown key; did you mean `mtu`?"),
            ("mtu = 500", "proxy.toml:3: mtu: IPv6 needs at least 1280 bytes"),
            ("table = 254", "proxy.toml:3: table: table 254 belongs to the kernel"),
            ("priority = 32766", "proxy.toml:3: priority: priority 32766 is not between"),
            ("device = \"a/b\"", "proxy.toml:3: device: `a/b` is not a name for an interface"),
            ("metrics = \"192.0.2.1:80\"", "proxy.toml:3: metrics: this is not a loopback address"),
            ("[proxy]\npreset = \"i-tpc\"", "proxy.toml:4: proxy.preset: there is no proxy preset `i-tpc`; did you"),
            ("[proxy]\npreset = \"fq-codel\"", "proxy preset fq-codel:9: proxy.queue.rate: a router has no bearer"),
            ("[proxy]\nbudjet = \"1 kB\"", "proxy.toml:4: proxy.budjet: unknown key; did you mean `budget`?"),
            ("[proxy.http]\naddress = \"10.1.0.9:80\"", "proxy.toml:4: proxy.http.address: this address belongs to"),
            (
                "[proxy.http]\naddress = \"10.99.0.1:80\"\nresolver = \"10.1.0.9:53\"",
                "proxy.toml:5: proxy.http.resolver: this address belongs to",
            ),
            ("[proxy]\nbuffer = \"1 kB\"", "proxy.toml:4: proxy.buffer: this must be at least 3 kB"),
        ] {
            let error = with(lines);
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(error("mobiles = []").contains("begin the configuration with `format = 1`"));
        assert!(error("format = 1").contains("mobiles: this key is missing; write `mobiles ="));
    }

    #[test]
    fn mobiles_are_unicast_prefixes_that_do_not_overlap() {
        let with = |mobiles: &str| error(&format!("format = 1\nmobiles = [{mobiles}]"));
        assert!(with(r#""10.0.0.0/8", "192.0.2.0/24", "10.2.0.0/16""#).contains("10.0.0.0/8 and 10.2.0.0/16 overlap"));
        assert!(with(r#""::1""#).contains("::1/128 contains addresses that no mobile can have"));
        for reserved in ["0.0.0.0/0", "127.0.0.1", "169.254.1.0/24", "224.0.0.0/4", "::/0", "fe80::/64", "ff02::1"] {
            assert!(with(&format!("{reserved:?}")).contains("no mobile can have"), "{reserved}");
        }
        assert!(with(r#""10.1.2.3/16""#).contains("the prefix is 10.1.0.0/16"));
        assert!(with(r#""10.1.0.0/33""#).contains("longer than 32 bits"));
        assert!(with(r#""mobile""#).contains("proxy.toml:2: mobiles.0: `mobile` is not an address"));
    }

    #[test]
    fn a_prefix_contains_what_has_its_bits() {
        let prefix: Prefix = "fd00:1::/48".parse().unwrap();
        assert!(prefix.contains("fd00:1:0:5::1".parse().unwrap()));
        assert!(!prefix.contains("fd00:2::1".parse().unwrap()) && !prefix.contains("10.0.0.1".parse().unwrap()));
        assert_eq!(Prefix::around("fd00:1:0:5::1".parse().unwrap(), 64).to_string(), "fd00:1:0:5::/64");
        assert_eq!(Prefix::around("10.1.2.3".parse().unwrap(), 64).to_string(), "10.1.2.3/32");
    }

    #[test]
    fn what_is_printed_reads_the_same() {
        let text = "format = 1\nmobiles = [\"10.1.0.0/16\"]\nuser = \"daemon\"\nmetrics = \"[::1]:9135\"\n";
        let config = LiveConfig::read(text, "proxy.toml").unwrap();
        assert_eq!(LiveConfig::read(&config.to_toml(), "proxy.toml").unwrap(), config);
    }
}
