//! The columns of FTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_app::ftp::Client;
use airpath_core::Span;
use serde::Serialize;

use super::LatencyRow;

/// The columns of FTP in a flow's row. Times are from the start of the flow.
#[derive(Clone, Debug, Serialize)]
pub struct FtpRow {
    /// TCP settings, as for a transfer.
    pub tcp: Arc<serde_json::Value>,
    /// Which end opens the data connections.
    pub mode: &'static str,
    /// Files of the session.
    pub files: u64,
    /// Those that are complete.
    pub files_complete: u64,
    /// Bytes of these.
    pub delivered_bytes: u64,
    /// Until the control connection was open.
    pub connect_s: Option<f64>,
    /// Until the first file was complete.
    pub first_file_s: Option<f64>,
    /// Until the last reply.
    pub duration_s: Option<f64>,
    /// Bytes of the complete files over the times from their commands to their last replies.
    pub throughput_bps: Option<f64>,
    /// Latencies of commands by kind.
    pub exchange: BTreeMap<String, LatencyRow>,
}

impl FtpRow {
    /// The row of `client`.
    pub fn of(client: &Client, tcp: Arc<serde_json::Value>) -> Self {
        let settings = client.settings();
        let delivered_bytes = u64::from(client.files()) * settings.file.get();
        let seconds = client.transfer_time().as_secs_f64();
        Self {
            tcp,
            mode: settings.mode.name(),
            files: settings.files.into(),
            files_complete: client.files().into(),
            delivered_bytes,
            connect_s: client.connect().map(Span::as_secs_f64),
            first_file_s: client.first_file().map(Span::as_secs_f64),
            duration_s: client.duration().map(Span::as_secs_f64),
            throughput_bps: (seconds > 0.0).then(|| delivered_bytes as f64 * 8.0 / seconds),
            exchange: client.latencies().iter().map(|(kind, all)| ((*kind).to_owned(), LatencyRow::of(all))).collect(),
        }
    }
}
