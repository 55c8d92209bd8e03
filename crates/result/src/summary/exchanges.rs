//! The columns of remote terminals and of mail.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_app::Samples;
use airpath_app::exchanges::{Client, Plan, Script, mail};
use airpath_core::Span;
use serde::Serialize;

/// The columns of exchanges in a flow's row. Times are from the start of the flow.
#[derive(Clone, Debug, Serialize)]
pub struct ExchangesRow {
    /// TCP settings, as for a transfer.
    pub tcp: Arc<serde_json::Value>,
    /// Protocol of mail; `None` of a terminal.
    pub protocol: Option<&'static str>,
    /// Until the connection was open.
    pub connect_s: Option<f64>,
    /// Until the last response.
    pub duration_s: Option<f64>,
    /// Mail: until the first message could be read, or was accepted for delivery.
    pub first_message_s: Option<f64>,
    /// Mail: until the last message could be read, or was accepted.
    pub last_message_s: Option<f64>,
    /// Latencies by kind.
    pub exchange: BTreeMap<String, LatencyRow>,
}

/// Latencies of the exchanges of a kind.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyRow {
    /// Exchanges with a complete response.
    pub count: u64,
    /// Mean latency.
    pub mean_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// 90th percentile.
    pub p90_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// Consecutive exchanges with the same kind.
#[derive(Clone, Debug, Serialize)]
pub struct ScriptRow {
    /// The repetition.
    pub repetition: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Number of the first exchange.
    pub first: u64,
    /// Number of exchanges.
    pub count: u64,
    /// Their kind.
    pub kind: String,
}

impl ScriptRow {
    /// The rows of `script` in flow `flow`.
    pub fn of(script: &Script, flow: u32, repetition: u64) -> Vec<Self> {
        let mut first = 0;
        let runs = script.exchanges.chunk_by(|a, b| a.kind == b.kind);
        runs.map(|run| {
            let count = run.len() as u64;
            let row = Self { repetition, flow, first, count, kind: script.kinds[run[0].kind].clone() };
            first += count;
            row
        })
        .collect()
    }
}

impl ExchangesRow {
    /// The row of `client`, which works on `script`.
    pub fn of(plan: &Plan, script: &Script, client: &Client, tcp: Arc<serde_json::Value>) -> Self {
        let message = script.kinds.iter().position(|kind| kind == mail::MESSAGE);
        let protocol = match plan {
            Plan::Mail(mail) => Some(mail.protocol.name()),
            Plan::Terminal(_) | Plan::Recorded(_) => None,
        };
        let messages = protocol.and(message).and_then(|kind| client.completed(kind));
        let messages = messages.map(|times| times.map(Span::as_secs_f64));
        let latencies = script.kinds.iter().cloned().zip(client.latencies().iter().map(LatencyRow::of));
        Self {
            tcp,
            protocol,
            connect_s: client.connect().map(Span::as_secs_f64),
            duration_s: client.duration().filter(|_| client.is_complete()).map(Span::as_secs_f64),
            first_message_s: messages.map(|[first, _]| first),
            last_message_s: messages.map(|[_, last]| last),
            exchange: latencies.collect(),
        }
    }
}

impl LatencyRow {
    pub(super) fn of(latencies: &Samples) -> Self {
        let quantile = |quantile| latencies.quantile(quantile).map(Span::as_secs_f64);
        Self {
            count: latencies.count(),
            mean_s: latencies.mean_s(),
            p50_s: quantile(0.5),
            p90_s: quantile(0.9),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: quantile(1.0),
        }
    }
}
