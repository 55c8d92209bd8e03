//! A request and its response, whose content may pass through an encoder.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::http::body::{Body, Framing, Malformed};
use crate::http::cache::{Arriving, Reuse};
use crate::http::compression::{Coding, Encoder};
use crate::http::dictionary::{Available, Learning};
use crate::http::message::Method;
use crate::http::page::Page;
use crate::http::recode::{Recoder, Recoding};
use crate::http::statistics::{Bypass, Statistics};
use crate::http::target::Origin;

/// Bytes of stored content that are appended at a time.
const PART: usize = 16 << 10;

/// How the stream to the client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In order: all that the server has sent was passed on, and it has closed.
    Close,
    /// With a reset: something is missing, and the client could not see it otherwise.
    Abort,
}

/// A request and its response.
#[derive(Debug)]
pub struct Exchange {
    pub method: Method,
    /// The head of the request, until the response begins: it may be sent again.
    pub head: Vec<u8>,
    /// The content of the request that is still to come.
    pub body: Body,
    /// Whether it waits for all before it.
    pub is_barrier: bool,
    /// The server that the client has named to an explicit proxy.
    pub origin: Option<Origin>,
    /// The server connection that fetches it.
    pub server: Option<usize>,
    pub retried: bool,
    /// Bytes of the response that wait for the client.
    pub response: VecDeque<u8>,
    /// The coding that the client accepts, and the encoder of the response.
    pub coding: Option<Coding>,
    pub encoder: Option<Encoder>,
    /// A dictionary that the client has, and the coding with it.
    pub dictionary: Option<Available>,
    /// How the response becomes a dictionary.
    pub learning: Option<Learning>,
    /// The page whose objects are prefetched.
    pub page: Option<Page>,
    /// How an image is recoded, and the one that arrives.
    pub recoding: Option<Recoding>,
    recoder: Option<Recoder>,
    pub has_response: bool,
    pub is_complete: bool,
    /// How the stream to the client ends after it.
    pub end: Option<End>,
    pub bypass: Option<Bypass>,
    /// What the cache does for it.
    pub reuse: Reuse,
    /// The response, while it arrives and will be stored.
    pub arriving: Option<Arriving>,
    /// Stored content that is the response, and how much of it was appended.
    source: Option<(Arc<[u8]>, usize)>,
}

impl Exchange {
    pub fn new(method: Method, head: Vec<u8>, framing: Framing) -> Self {
        Self {
            method,
            head,
            body: Body::new(framing),
            is_barrier: !matches!(method, Method::Safe | Method::Head),
            origin: None,
            server: None,
            retried: false,
            response: VecDeque::new(),
            coding: None,
            encoder: None,
            dictionary: None,
            learning: None,
            page: None,
            recoding: None,
            recoder: None,
            has_response: false,
            is_complete: false,
            end: None,
            bypass: None,
            reuse: Reuse::None,
            arriving: None,
            source: None,
        }
    }

    /// All bytes of both sides from here on.
    pub fn tunnel(reason: Bypass) -> Self {
        let exchange = Self::new(Method::Other, Vec::new(), Framing::UntilClose);
        Self { bypass: Some(reason), ..exchange }
    }

    /// The head of a response arrives. Its content is compressed if the client accepts that.
    pub fn append_head(&mut self, origin: &[u8], statistics: &mut Statistics) {
        self.has_response = true;
        self.head = Vec::new();
        self.page.iter_mut().for_each(|page| page.begin(origin));
        self.recoder = self.recoding.and_then(|recoding| recoding.begin(origin));
        if self.recoder.is_some() {
            return;
        }
        let field = self.learning.as_mut().and_then(|learning| learning.begin(origin)).unwrap_or_default();
        let end = origin.len().saturating_sub(b"\r\n".len());
        let origin = [&origin[..end], field.as_bytes(), &origin[end..]].concat();
        // An interim response may come before the one that is coded.
        let known = self.dictionary.as_ref();
        let delta = known.and_then(|known| Some((known.rewrite(&origin)?, known.encoder()?)));
        statistics.delta_responses += u64::from(delta.is_some());
        let coding = self.coding;
        let compressed = || coding.and_then(|coding| coding.rewrite(&origin).zip(Encoder::new(coding)));
        match delta.or_else(compressed) {
            Some((rewritten, encoder)) => {
                self.response.extend(rewritten);
                self.encoder = Some(encoder);
            }
            None => self.response.extend(origin),
        }
    }

    /// Content of the response arrives, framed as `body`. Returns how many bytes belong to it.
    ///
    /// # Errors
    /// If the framing is malformed.
    pub fn append_content(
        &mut self,
        body: &mut Body,
        bytes: &[u8],
        statistics: &mut Statistics,
    ) -> Result<usize, Malformed> {
        let Self { encoder, arriving, recoder, learning, page, .. } = self;
        let count = body.advance(bytes, |data| {
            encoder.iter_mut().for_each(|encoder| encoder.write(data));
            recoder.iter_mut().for_each(|recoder| recoder.write(data));
            learning.iter_mut().for_each(|learning| learning.append(data));
            page.iter_mut().for_each(|page| page.append(data));
            if arriving.as_mut().is_some_and(|arriving| !arriving.append(data)) {
                *arriving = None;
            }
        })?;
        match encoder {
            Some(encoder) => {
                statistics.uncompressed_bytes += count as u64;
                // Nothing is kept back while the client has nothing to receive.
                if self.response.is_empty() {
                    encoder.flush();
                }
                let chunk = encoder.take_chunk();
                statistics.compressed_bytes += chunk.len() as u64;
                self.response.extend(chunk);
            }
            // An image is sent when it is complete.
            None if self.recoder.is_some() => {}
            None => self.response.extend(&bytes[..count]),
        }
        Ok(count)
    }

    /// A stored response with this head is the response.
    pub fn serve(&mut self, head: &[u8], content: &Arc<[u8]>, statistics: &mut Statistics) {
        self.server = None;
        self.append_head(head, statistics);
        self.source = Some((Arc::clone(content), 0));
    }

    /// A response without content that the proxy has made.
    pub fn answer(&mut self, head: &[u8]) {
        self.has_response = true;
        self.head = Vec::new();
        self.response.extend(head);
        self.is_complete = true;
    }

    /// Whether the response comes from the cache.
    pub const fn is_served(&self) -> bool {
        self.source.is_some()
    }

    /// Appends stored content while fewer than `most` bytes wait for the client.
    pub fn feed(&mut self, most: usize, statistics: &mut Statistics) {
        let Some((content, mut at)) = self.source.take() else { return };
        while at < content.len() && self.response.len() < most {
            let part = &content[at..(at + PART).min(content.len())];
            let mut body = Body::new(Framing::Length(part.len() as u64));
            at += self.append_content(&mut body, part, statistics).unwrap_or(part.len());
            statistics.cached_bytes += part.len() as u64;
        }
        if at < content.len() {
            self.source = Some((content, at));
        } else {
            self.finish_content(statistics);
            self.is_complete = true;
        }
    }

    /// The content of the response is complete.
    pub fn finish_content(&mut self, statistics: &mut Statistics) {
        if let Some(encoder) = self.encoder.take() {
            let last = encoder.finish();
            statistics.compressed_bytes += last.len() as u64;
            self.response.extend(last);
        }
        if let Some(recoder) = self.recoder.take() {
            let original = recoder.length();
            match recoder.finish() {
                Ok((response, length)) => {
                    statistics.recoded_images += 1;
                    statistics.original_image_bytes += original as u64;
                    statistics.recoded_image_bytes += length as u64;
                    self.response.extend(response);
                }
                Err(origin) => self.response.extend(origin),
            }
        }
        statistics.stored_dictionaries += u64::from(self.learning.take().is_some_and(Learning::store));
        if let Some(arriving) = self.arriving.take() {
            arriving.store();
            statistics.cache_stored += 1;
        }
    }

    /// The end of the response is not known any more: it is not stored, and nothing is held back.
    pub fn release_content(&mut self) {
        (self.arriving, self.learning) = (None, None);
        self.response.extend(self.recoder.take().map(Recoder::into_origin).unwrap_or_default());
    }

    /// The rest of the response is missing; `unread` bytes of it were not read.
    pub fn cut_content(&mut self, unread: &[u8]) {
        self.release_content();
        match self.encoder.take() {
            // Without its last chunk the client sees that something is missing.
            Some(mut encoder) => {
                encoder.flush();
                self.response.extend(encoder.take_chunk());
            }
            None => self.response.extend(unread),
        }
    }

    /// Whether the request may be sent again if it is not answered (RFC 9110 §9.2.2): once, and
    /// only if it is safe and all of it is stored.
    pub const fn can_repeat(&self) -> bool {
        !self.is_barrier && !self.retried
    }
}
