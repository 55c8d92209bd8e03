//! The columns of transactions.

use std::sync::Arc;

use airpath_app::transactions::{Client, Transactions};
use airpath_core::Instant;
use serde::Serialize;

/// The columns of transactions in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct TransactionsRow {
    /// TCP settings, as for a transfer.
    pub tcp: Arc<serde_json::Value>,
    /// `one` for all, or one for `each`.
    pub connections: &'static str,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// Mean time of a connection from its start until it was open.
    pub connect_mean_s: Option<f64>,
    /// From the start to the last response.
    pub duration_s: Option<f64>,
    /// Responses over that time.
    pub transactions_per_s: Option<f64>,
}

impl TransactionsRow {
    /// The row of `client` for `work` that started at `start`.
    pub fn of(work: &Transactions, client: &Client, start: Instant, tcp: Arc<serde_json::Value>) -> Self {
        let duration = client.last().map(|last| last.since(start).as_secs_f64());
        Self {
            tcp,
            connections: work.connections.name(),
            request_bytes: work.request.get(),
            response_bytes: work.response.get(),
            connect_mean_s: client.connects().mean_s(),
            duration_s: duration,
            transactions_per_s: duration
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| client.latencies().count() as f64 / seconds),
        }
    }
}
