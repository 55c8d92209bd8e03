//! Which bytes the proxy could help at this level, and which not.

use serde::{Deserialize, Serialize};

/// Why bytes towards a mobile were relayed without being interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bypass {
    /// The server's port is not among the ports of HTTP.
    OtherPort,
    /// The first bytes are those of TLS.
    Tls,
    /// The first bytes of a connection are not an HTTP/1.x request.
    NotHttp,
    /// A later request is malformed, or its framing is ambiguous.
    MalformedRequest,
    /// A response is malformed, or its framing is ambiguous.
    MalformedResponse,
    /// The connection has changed to another protocol: `Upgrade`, or `CONNECT` to another proxy.
    Upgrade,
    /// It is a tunnel of an explicit proxy (`CONNECT`), which usually carries TLS.
    Connect,
    /// The server sends without a request.
    Unsolicited,
}

impl Bypass {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::OtherPort,
        Self::Tls,
        Self::NotHttp,
        Self::MalformedRequest,
        Self::MalformedResponse,
        Self::Upgrade,
        Self::Connect,
        Self::Unsolicited,
    ];

    /// The name of its counter in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherPort => "bypassed_bytes_other_port",
            Self::Tls => "bypassed_bytes_tls",
            Self::NotHttp => "bypassed_bytes_not_http",
            Self::MalformedRequest => "bypassed_bytes_malformed_request",
            Self::MalformedResponse => "bypassed_bytes_malformed_response",
            Self::Upgrade => "bypassed_bytes_upgrade",
            Self::Connect => "bypassed_bytes_connect",
            Self::Unsolicited => "bypassed_bytes_unsolicited",
        }
    }
}

/// Counters of the application level. Bytes are those of the streams towards the mobiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Requests that were parsed.
    pub requests: u64,
    /// Those that an explicit proxy has answered with an error.
    pub refused_requests: u64,
    /// Tunnels that an explicit proxy has opened (`CONNECT`).
    pub tunnels: u64,
    /// Queries for the addresses of servers.
    pub name_queries: u64,
    /// Requests that were sent while an earlier one of the same client was not answered.
    pub parallel_requests: u64,
    /// Server connections that were used for another client connection.
    pub reused_servers: u64,
    /// Requests that were sent again, because a server closed without an answer.
    pub retries: u64,
    /// Responses that a server has cut off.
    pub truncated: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Bytes of content that was compressed, with its framing, before compression.
    pub uncompressed_bytes: u64,
    /// The same after compression.
    pub compressed_bytes: u64,
    /// Responses that were coded with a dictionary of the client; their bytes count as compressed.
    pub delta_responses: u64,
    /// Responses that were stored as dictionaries.
    pub stored_dictionaries: u64,
    /// Images that became smaller.
    pub recoded_images: u64,
    /// Their bytes as they came.
    pub original_image_bytes: u64,
    /// Their bytes as they were sent.
    pub recoded_image_bytes: u64,
    /// Requests that were answered from the cache.
    pub cache_hits: u64,
    /// Stored responses that a server has confirmed.
    pub cache_validations: u64,
    /// Responses that were stored.
    pub cache_stored: u64,
    /// Objects that were prefetched into the cache.
    pub prefetched: u64,
    /// Bytes of content that was prefetched, with its framing.
    pub prefetched_bytes: u64,
    /// Those that a client has requested afterwards.
    pub prefetched_used: u64,
    /// Requests for prefetching whose responses could not be stored.
    pub prefetches_failed: u64,
    /// Bytes of content from the cache, before compression.
    pub cached_bytes: u64,
    /// Bytes of servers without a request, which were discarded.
    pub discarded_bytes: u64,
    /// Bytes that were relayed without being interpreted, in the order of [`Bypass::ALL`].
    pub bypassed_bytes: [u64; Bypass::ALL.len()],
}

impl Statistics {
    /// Adds the counters of `other`.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.refused_requests += other.refused_requests;
        self.tunnels += other.tunnels;
        self.name_queries += other.name_queries;
        self.parallel_requests += other.parallel_requests;
        self.reused_servers += other.reused_servers;
        self.retries += other.retries;
        self.truncated += other.truncated;
        self.response_bytes += other.response_bytes;
        self.uncompressed_bytes += other.uncompressed_bytes;
        self.compressed_bytes += other.compressed_bytes;
        self.delta_responses += other.delta_responses;
        self.stored_dictionaries += other.stored_dictionaries;
        self.recoded_images += other.recoded_images;
        self.original_image_bytes += other.original_image_bytes;
        self.recoded_image_bytes += other.recoded_image_bytes;
        self.cache_hits += other.cache_hits;
        self.cache_validations += other.cache_validations;
        self.cache_stored += other.cache_stored;
        self.prefetched += other.prefetched;
        self.prefetched_bytes += other.prefetched_bytes;
        self.prefetched_used += other.prefetched_used;
        self.prefetches_failed += other.prefetches_failed;
        self.cached_bytes += other.cached_bytes;
        self.discarded_bytes += other.discarded_bytes;
        for (sum, bytes) in self.bypassed_bytes.iter_mut().zip(other.bypassed_bytes) {
            *sum += bytes;
        }
    }

    /// The counters by name.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counters = [
            ("requests", self.requests),
            ("refused_requests", self.refused_requests),
            ("tunnels", self.tunnels),
            ("name_queries", self.name_queries),
            ("parallel_requests", self.parallel_requests),
            ("reused_servers", self.reused_servers),
            ("retries", self.retries),
            ("truncated", self.truncated),
            ("response_bytes", self.response_bytes),
            ("uncompressed_bytes", self.uncompressed_bytes),
            ("compressed_bytes", self.compressed_bytes),
            ("delta_responses", self.delta_responses),
            ("stored_dictionaries", self.stored_dictionaries),
            ("recoded_images", self.recoded_images),
            ("original_image_bytes", self.original_image_bytes),
            ("recoded_image_bytes", self.recoded_image_bytes),
            ("cache_hits", self.cache_hits),
            ("cache_validations", self.cache_validations),
            ("cache_stored", self.cache_stored),
            ("prefetched", self.prefetched),
            ("prefetched_bytes", self.prefetched_bytes),
            ("prefetched_used", self.prefetched_used),
            ("prefetched_unused", self.prefetched.saturating_sub(self.prefetched_used)),
            ("prefetches_failed", self.prefetches_failed),
            ("cached_bytes", self.cached_bytes),
            ("discarded_bytes", self.discarded_bytes),
        ];
        counters.into_iter().chain(Bypass::ALL.map(Bypass::name).into_iter().zip(self.bypassed_bytes))
    }

    /// Counts bytes that were relayed without being interpreted.
    pub const fn bypass(&mut self, reason: Bypass, bytes: u64) {
        self.bypassed_bytes[reason as usize] += bytes;
    }
}
