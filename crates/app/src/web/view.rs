//! A view of a page: which objects are known, requested and complete, and when.

use std::collections::VecDeque;

use airpath_core::{Instant, Span};
use airpath_web::Downlink;

use super::page::Page;

/// A view of a page.
#[derive(Clone, Debug)]
pub struct View {
    /// Number of the page.
    pub page: usize,
    /// When it began.
    pub start: Instant,
    /// When the page was loaded: all objects complete and processed.
    pub loaded: Option<Instant>,
    /// Its objects, in the order of the page.
    pub fetches: Vec<Fetch>,
    /// The bytes that arrived in it.
    pub downlink: Downlink,
    /// Name look-ups in it, in the order of their first queries.
    pub look_ups: Vec<LookUp>,
    /// Speculative connections that were opened in it.
    pub speculative: u32,
    /// Objects that are complete and processed.
    processed: usize,
    /// Objects that wait for the main thread or are on it, with the time of their end.
    tasks: VecDeque<(Instant, u32)>,
}

/// A name look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The number of the origin.
    pub origin: u32,
    /// When the first query was sent.
    pub queried: Instant,
    /// When the first answer arrived.
    pub resolved: Option<Instant>,
}

/// An object in a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// When it was found.
    pub found: Option<Instant>,
    /// When it was requested.
    pub requested: Option<Instant>,
    /// When the first byte of its response arrived.
    pub first_byte: Option<Instant>,
    /// When the last one did.
    pub finished: Option<Instant>,
    /// The connection.
    pub connection: Option<u32>,
    /// Bytes of its body that arrived.
    pub received: u64,
    /// Bytes of its body, and of its content, in the parts that have arrived as a whole.
    pub(super) complete_parts: (u64, u64),
    /// How it came.
    pub source: Source,
    /// Number of objects that were found by their byte in it.
    referred: usize,
}

/// How an object came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// With its body.
    #[default]
    Network,
    /// By a 304 to a conditional request.
    Revalidated,
    /// Without a request.
    Cache,
}

impl Source {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Revalidated => "revalidated",
            Self::Cache => "cache",
        }
    }
}

impl View {
    /// A view of `page`, which is number `number`, from `start` on. No object is known yet.
    pub fn new(number: usize, page: &Page, start: Instant) -> Self {
        Self {
            page: number,
            start,
            loaded: None,
            fetches: vec![Fetch::default(); page.objects.len()],
            downlink: Downlink::default(),
            look_ups: Vec::new(),
            speculative: 0,
            processed: 0,
            tasks: VecDeque::new(),
        }
    }

    /// Bytes of a response have arrived: its first one, or in all `body` bytes of the body, which
    /// stand for `content` bytes of the object. Adds the objects that are found in them to `found`.
    pub fn receive(
        &mut self,
        now: Instant,
        page: &Page,
        object: u32,
        (body, content): (u64, u64),
        found: &mut Vec<u32>,
    ) {
        let fetch = &mut self.fetches[object as usize];
        fetch.first_byte.get_or_insert(now);
        fetch.received = body;
        let description = &page.objects[object as usize];
        while let Some((_, next)) = description.at_byte.get(fetch.referred).filter(|(at, _)| *at <= content) {
            fetch.referred += 1;
            found.push(*next);
        }
    }

    /// All of `object` is there: the main thread processes it after those before it.
    pub fn complete(&mut self, now: Instant, page: &Page, object: u32, found: &mut Vec<u32>) {
        let fetch = &mut self.fetches[object as usize];
        fetch.finished = Some(now);
        let description = &page.objects[object as usize];
        found.extend(description.at_byte[fetch.referred..].iter().map(|(_, next)| *next));
        fetch.referred = description.at_byte.len();
        let free = self.tasks.back().map_or(now, |(end, _)| *end);
        self.tasks.push_back((free + description.process, object));
    }

    /// Ends the processing that is over by `now`. Adds the objects that are found by it to `found`.
    pub fn process(&mut self, now: Instant, page: &Page, found: &mut Vec<u32>) {
        while let Some((_, object)) = self.tasks.front().copied().filter(|(end, _)| *end <= now) {
            self.tasks.pop_front();
            self.processed += 1;
            found.extend(&page.objects[object as usize].at_end);
        }
        if self.processed == self.fetches.len() {
            self.loaded.get_or_insert(now);
        }
    }

    /// When the next processing is over.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.tasks.front().map(|(end, _)| *end)
    }

    /// Number of its objects that are complete.
    pub fn complete_objects(&self) -> usize {
        self.processed + self.tasks.len()
    }

    /// The time of the page; `None` if it is not loaded.
    pub fn time(&self) -> Option<Span> {
        Some(self.loaded?.since(self.start))
    }
}
