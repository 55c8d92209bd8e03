//! The kinds of workloads.

use serde::Serialize;

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bytes from the server to the mobile over TCP.
    Download,
    /// Bytes from the mobile to the server over TCP.
    Upload,
    /// Echo requests from the mobile.
    Ping,
    /// Datagrams at a constant rate.
    Datagrams,
    /// Requests from the mobile and responses from the server over TCP.
    Transactions,
    /// Web pages in a browser of the mobile.
    Page,
    /// A video from the server to the mobile over RTP.
    Stream,
    /// A video over HTTP in segments of several qualities.
    Adaptive,
    /// A call between server and mobile over RTP.
    Voice,
    /// A remote terminal over TCP.
    Terminal,
    /// Mail over TCP.
    Mail,
    /// Files by FTP.
    Ftp,
}

impl Kind {
    /// All names, in the order of the variants.
    pub(crate) const NAMES: [&'static str; 12] = [
        "download",
        "upload",
        "ping",
        "datagrams",
        "transactions",
        "page",
        "stream",
        "adaptive",
        "voice",
        "terminal",
        "mail",
        "ftp",
    ];

    /// The name under which it is written.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The keys of such a flow that are taken out of its table before the others are read.
    pub(crate) const fn keys_read_apart(self) -> &'static [&'static str] {
        match self {
            Self::Download | Self::Upload | Self::Transactions => &["tcp", "transport", "quic"],
            Self::Page => &["page", "tcp", "transport", "quic"],
            Self::Stream => &["video", "tcp"],
            Self::Terminal => &["session", "tcp"],
            Self::Adaptive | Self::Mail | Self::Ftp => &["tcp"],
            Self::Ping | Self::Datagrams | Self::Voice => &[],
        }
    }
}
