//! The `[proxy]` table: the transport-level proxy at the border of fixed network and radio access.

use airpath_core::Bytes;
use airpath_proxy::BudgetSource;
pub use airpath_proxy::Config as ProxyConfig;

use crate::document::Node;
use crate::error::ScenarioError;

/// A buffer for less than two full segments would stall on delayed acknowledgements.
const LEAST_BUFFER: Bytes = Bytes::new(3000);

pub(crate) fn read(node: Node) -> Result<ProxyConfig, ScenarioError> {
    let wrong = |key: &str, message: &str, help: &str| {
        Err(ScenarioError::new(message, node.origin_of(key).clone(), format!("proxy.{key}")).help(help))
    };
    let config: ProxyConfig = node.read("proxy")?;
    if config.budget == BudgetSource::Fixed(Bytes::ZERO) {
        let help = "write 1.1 to 1.15 × maximum rate × typical round trip, or `adaptive`";
        return wrong("budget", "a budget of zero permits no data", help);
    }
    if config.upload_budget.is_some_and(|budget| budget < LEAST_BUFFER) {
        return wrong("upload_budget", "this must be at least 3 kB", "remove it for no limit");
    }
    if config.buffer < LEAST_BUFFER {
        return wrong("buffer", "this must be at least 3 kB", "the default is 256 kB; at least twice the budget");
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
    Ok(config)
}
