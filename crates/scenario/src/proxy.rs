//! The `[proxy]` table: the transport-level proxy at the border of fixed network and radio access.

use std::net::SocketAddr;
use std::path::Path;

use airpath_core::Bytes;
use airpath_proxy::is_unicast;
pub use airpath_proxy::{BudgetSource, Config as ProxyConfig, HttpConfig, Proxy, QueueConfig};

use crate::document::Node;
use crate::error::{Origin, ScenarioError};
use crate::preset::{self, Kind, Preset};

/// A buffer for less than two full segments would stall on delayed acknowledgements.
const LEAST_BUFFER: Bytes = Bytes::new(3000);

/// The largest packet: where it does not fit, it is dropped always.
const LEAST_QUEUE: Bytes = Bytes::new(65_535);

/// An object has at most an eighth of the cache: less would store nearly nothing.
const LEAST_CACHE: Bytes = Bytes::new(100_000);

/// A budget or a rate that is measured on the bearer of the scenario.
const OF_BEARER: &str = "bearer";

/// A `[proxy]` table.
pub(crate) struct ProxyTable {
    /// Its settings; if the budget is that of the bearer, with another one.
    pub config: ProxyConfig,
    /// The origin of a budget that is measured on the bearer.
    pub budget_of_bearer: Option<Origin>,
    /// The origin of a rate of the queue that is measured on the bearer.
    pub rate_of_bearer: Option<Origin>,
}

/// Lays a `[proxy]` table over the one that its `preset` names: a shipped preset, or a file with a
/// `[proxy]` table, such as a scenario or the configuration of a router. Relative paths start from
/// `folder`.
pub(crate) fn resolve(mut node: Node, folder: &Path) -> Result<Node, ScenarioError> {
    const FIELD: &str = "proxy.preset";
    let Some(key) = node.take("preset") else { return Ok(node) };
    let name: String = key.read(FIELD)?;
    let at_key = |mut error: ScenarioError| {
        error.field.get_or_insert_with(|| FIELD.to_owned());
        error
    };
    let mut base = if preset::is_path(&name) {
        let text = preset::read_file(Kind::Proxy, &name, folder, key.origin()).map_err(at_key)?;
        let table = Node::parse(&text, &name)?.take("proxy").ok_or_else(|| {
            ScenarioError::new("this table is missing", Origin::File(name), "proxy")
                .help("add `[proxy]`; its keys are those of a scenario")
        })?;
        if let Some(path) = table.get("preset").and_then(Node::as_str).filter(|name| preset::is_path(name)) {
            let message = format!("`{path}` is another file");
            let error = ScenarioError::new(message, table.origin_of("preset").clone(), FIELD);
            return Err(error.help("a file that is used as a preset can name a shipped preset only"));
        }
        resolve(table, folder)?
    } else {
        Preset::load_kind(Kind::Proxy, &name, folder, key.origin()).map_err(at_key)?.content
    };
    base.overlay(node);
    Ok(base)
}

/// Reads a `[proxy]` table that [`resolve`] has returned.
pub(crate) fn read(mut node: Node) -> Result<ProxyTable, ScenarioError> {
    let measured = |path: &str| {
        let value = path.split('.').try_fold(&node, |node, key| node.get(key));
        (value.and_then(Node::as_str) == Some(OF_BEARER)).then(|| node.origin_of(path).clone())
    };
    let (budget_of_bearer, rate_of_bearer) = (measured("budget"), measured("queue.rate"));
    if budget_of_bearer.is_some() {
        node.take("budget");
    }
    if rate_of_bearer.is_some() {
        // Until it is measured.
        node.set("queue.rate", "\"1 bit/s\"")?;
    }
    let wrong = |key: &str, message: &str, help: &str| {
        Err(ScenarioError::new(message, node.origin_of(key).clone(), format!("proxy.{key}")).help(help))
    };
    let config: ProxyConfig = node.read("proxy")?;
    if config.budget == BudgetSource::Fixed(Bytes::ZERO) {
        let help = "write 1.1 to 1.15 × maximum rate × typical round trip, `bearer` or `adaptive`";
        return wrong("budget", "a budget of zero permits no data", help);
    }
    if config.upload_budget.is_some_and(|budget| budget < LEAST_BUFFER) {
        return wrong("upload_budget", "this must be at least 3 kB", "remove it for no limit");
    }
    if config.buffer < LEAST_BUFFER {
        return wrong("buffer", "this must be at least 3 kB", "the default is 4194304 B; at least twice the budget");
    }
    if !config.profile.config().handshake {
        return wrong("profile", "this profile opens connections without a handshake", "the default is `linux-6`");
    }
    if config.half_open == 0 {
        return wrong("half_open", "no connection could be opened", "the default is 256");
    }
    if config.connections == 0 {
        return wrong("connections", "no connection could be opened", "the default is 200000");
    }
    if config.open_timeout.is_zero() {
        return wrong("open_timeout", "no connection opens in zero time", "the default is \"60 s\"");
    }
    if config.idle_timeout.is_zero() {
        return wrong("idle_timeout", "every connection would be aborted", "the default is \"7440 s\"");
    }
    if let Some(queue) = &config.queue {
        for (key, time) in [("queue.target", queue.target), ("queue.interval", queue.interval)] {
            if time.is_zero() {
                return wrong(
                    key,
                    "this must be above zero",
                    "RFC 8289 recommends 5 ms for `target`, 100 ms for `interval`",
                );
            }
        }
        if queue.bytes < LEAST_QUEUE {
            return wrong("queue.bytes", "this must be at least 65535 B, the largest packet", "the default is 1500 kB");
        }
    }
    if let Some(http) = &config.http
        && (http.ports.is_empty() || http.ports.contains(&0))
    {
        let help = "list the ports of the servers, such as [80]; without HTTP, remove the table `proxy.http`";
        return wrong("http.ports", "these are not ports of servers", help);
    }
    if config.http.as_ref().and_then(|http| http.image_quality).is_some_and(|quality| quality.get() > 100) {
        return wrong("http.image_quality", "a quality is 1 to 100", "40 to 60 is usual on slow links");
    }
    if config.http.as_ref().and_then(|http| http.cache).is_some_and(|bytes| bytes < LEAST_CACHE) {
        return wrong("http.cache", "this must be at least 100 kB", "remove it for no cache");
    }
    if config.http.as_ref().is_some_and(|http| http.prefetch > 0 && http.cache.is_none()) {
        let help = "add `cache`, as in cache = \"10 MB\"";
        return wrong("http.prefetch", "without a cache there is no place for what is prefetched", help);
    }
    if config.http.as_ref().and_then(|http| http.dictionaries).is_some_and(|bytes| bytes < LEAST_CACHE) {
        return wrong("http.dictionaries", "this must be at least 100 kB", "remove it for no dictionaries");
    }
    if let Some(http) = &config.http {
        let is_wrong = |address: &SocketAddr| !is_unicast(address.ip()) || address.port() == 0;
        if http.address.as_ref().is_some_and(is_wrong) {
            let help = "use one that no host has and that is routed past the proxy, as in \"10.99.0.1:8080\"";
            return wrong("http.address", "this cannot be the address of a proxy", help);
        }
        if http.resolver.as_ref().is_some_and(is_wrong) {
            let help = "use a unicast address that mobiles can reach, as in \"9.9.9.9:53\"";
            return wrong("http.resolver", "this cannot be the address of a resolver", help);
        }
        if http.connect_ports.contains(&0) {
            return wrong("http.connect_ports", "0 is not a port", "list ports of servers; the default is [443]");
        }
        // A configuration that was written out has the default.
        if http.address.is_none() && http.connect_ports != HttpConfig::default().connect_ports {
            let help = "add `address`; without it `CONNECT` passes to the server";
            return wrong("http.connect_ports", "only an explicit proxy checks the ports of `CONNECT`", help);
        }
        if let Some(resolver) = http.resolver {
            let Some(address) = http.address else {
                let help = "add `address`; without it the proxy resolves no names";
                return wrong("http.resolver", "only an explicit proxy has a resolver", help);
            };
            if resolver.is_ipv4() != address.is_ipv4() || resolver.ip() == address.ip() {
                let help = "use another address of the same IP version as `address`";
                return wrong("http.resolver", "the proxy cannot reach this resolver", help);
            }
        }
    }
    Ok(ProxyTable { config, budget_of_bearer, rate_of_bearer })
}
