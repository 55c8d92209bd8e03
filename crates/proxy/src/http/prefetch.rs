//! Prefetching: what a page names is fetched into the cache before the client requests it.
//!
//! Only `GET` requests to the server of the page are made, without credentials, and only responses
//! that the cache may store are read to their end.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

use crate::http::cache::Key;
use crate::http::exchange::Exchange;
use crate::http::page::Page;
use crate::http::target::Origin;

/// Server connections of a client connection for prefetching: a browser has six for all.
pub const SERVERS: usize = 2;

/// A request does not wait longer for an object if nothing of it arrives.
pub const MOST_PAUSE: Span = Span::from_secs(5);

/// The prefetching of a client connection.
#[derive(Debug)]
pub struct Prefetcher {
    /// Most objects of a page.
    pub most: usize,
    /// Heads of requests, with the server if the client has named it.
    pub waiting: VecDeque<(Option<Origin>, Vec<u8>)>,
}

/// An object that is being fetched.
#[derive(Debug)]
pub struct Prefetch {
    pub key: Key,
    pub exchange: Exchange,
    /// When bytes of it arrived last.
    pub active: Instant,
}

impl Prefetcher {
    /// Fetches at most `most` objects of each page.
    pub fn new(most: u8) -> Self {
        Self { most: most.into(), waiting: VecDeque::new() }
    }

    /// Adds the requests for the objects of a page, in the place of those of an earlier one.
    pub fn add(&mut self, page: &Page, origin: Option<&Origin>) {
        let requests = page.requests();
        if !requests.is_empty() {
            self.waiting = requests.into_iter().map(|request| (origin.cloned(), request)).collect();
        }
    }
}
