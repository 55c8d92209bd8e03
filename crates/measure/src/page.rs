//! Web pages over real sockets: the browser of [`airpath_app::web`], with HTTP/1.x as
//! text. Its servers are in `serve/page.rs`.
//!
//! All hosts of a page are at the responder's address. Instants of the browser count from the start
//! of the measurement.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use airpath_app::web::{Action, Browser, ClientText, Session, Urls, View};
use airpath_core::{AppStep, Instant};
use nix::poll::PollFd;
use serde_json::{Value, json};
use socket2::Domain;

use crate::clock::{now, wait_for_any};
use crate::error::MeasureError;
use crate::record::Record;
use crate::since;
use crate::tcp_info::TcpInfo;
use crate::tcp_settings::{in_force, tcp_socket};
use crate::text_stream::TextStream;
use crate::work::PageLoad;

/// Pages that were loaded.
pub struct Loaded {
    /// Settings and pages.
    pub session: Arc<Session>,
    /// The browser.
    pub browser: Browser,
    /// TCP at this end of the first connection.
    pub tcp: Value,
    /// Error that ended the session, if any.
    pub cause: Option<String>,
}

/// One connection of the browser.
struct Connection {
    number: u32,
    stream: TextStream,
    client: ClientText,
}

/// Loads the pages, from `origin` on, until all views are over or the record stops.
///
/// # Errors
/// The pages are not valid.
pub fn browse(
    load: &PageLoad,
    peer: SocketAddr,
    number: u64,
    origin: Instant,
    record: &mut Record<'_>,
) -> Result<Loaded, MeasureError> {
    let session = Arc::new(load.session().map_err(MeasureError::InvalidRequest)?);
    let urls = PageLoad::urls(&session, number)
        .ok_or_else(|| MeasureError::InvalidRequest("the pages use HTTP/1.x in clear text".into()))?;
    record.note(origin, AppStep::Started, 0);
    let mut window = Window {
        load,
        peer,
        origin,
        urls: Arc::new(urls),
        browser: Browser::new(Arc::clone(&session), Instant::ZERO),
        connections: Vec::new(),
        tcp: json!({}),
        reported: 0,
        reported_objects: 0,
        objects: (0..session.settings.views).map(|view| session.pages[session.page_of(view)].objects.len()).sum(),
    };
    let ended = window.run(record);
    if ended.is_err() {
        record.note(now(), AppStep::Aborted, 0);
    } else if window.browser.is_over() {
        record.note(now(), AppStep::Finished, 0);
    }
    let cause = ended.err().map(|error| error.to_string());
    Ok(Loaded { session, browser: window.browser, tcp: window.tcp, cause })
}

/// A browser and its connections.
struct Window<'a> {
    load: &'a PageLoad,
    peer: SocketAddr,
    origin: Instant,
    urls: Arc<Urls>,
    browser: Browser,
    connections: Vec<Connection>,
    tcp: Value,
    /// Views whose end was recorded.
    reported: u32,
    /// Objects of these views.
    reported_objects: usize,
    /// Objects of all views.
    objects: usize,
}

impl Window<'_> {
    fn now(&self) -> Instant {
        since(self.origin, now())
    }

    fn run(&mut self, record: &mut Record<'_>) -> io::Result<()> {
        while !record.is_stopped() {
            let mut acted = self.browse()?;
            for at in 0..self.connections.len() {
                acted |= self.exchange(at)?;
            }
            self.report(record);
            self.connections.retain(|connection| !connection.stream.is_over());
            if self.browser.is_over() {
                // What the browser closed is sent; the kernel completes the connections.
                return Ok(());
            }
            if !acted {
                self.wait();
            }
        }
        Ok(())
    }

    /// Lets the browser open what it needs. Returns whether it did.
    fn browse(&mut self) -> io::Result<bool> {
        let mut acted = false;
        while let Some(action) = self.browser.poll(self.now()) {
            match action {
                Action::Open(number) => self.open(number)?,
                Action::Resolve(origin) => self.browser.resolved(self.now(), origin),
            }
            acted = true;
        }
        Ok(acted)
    }

    fn open(&mut self, number: u32) -> io::Result<()> {
        let socket = tcp_socket(Domain::for_address(self.peer), &self.load.tcp)?;
        if number == 0 {
            self.tcp = in_force(&socket);
        }
        let stream = TextStream::connect(socket, self.peer)?;
        self.connections.push(Connection { number, stream, client: ClientText::new(Arc::clone(&self.urls), number) });
        Ok(())
    }

    /// Transfers data of a connection, and lets the browser act on it. Returns whether anything
    /// has changed.
    fn exchange(&mut self, at: usize) -> io::Result<bool> {
        let now = self.now();
        let Connection { number, stream, client } = &mut self.connections[at];
        let unexpected = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut moved = false;
        if let Some(received) = stream.receive()? {
            moved = true;
            client.receive(received).map_err(unexpected)?;
        }
        if !stream.is_established() {
            return Ok(moved);
        }
        client.establish();
        let acted = client.step(now, &mut self.browser, stream.outgoing());
        if client.is_closed() {
            stream.close();
        } else if stream.has_ended() {
            client.end().map_err(unexpected)?;
        }
        moved |= stream.send()?;
        if *number == 0
            && moved
            && let Some(info) = TcpInfo::of(stream.socket())
        {
            info.add_settings(&mut self.tcp);
        }
        Ok(moved || acted)
    }

    /// Records the views that are loaded, and the progress.
    fn report(&mut self, record: &mut Record<'_>) {
        let views = self.browser.views();
        // All but the last are loaded, and so reported here once.
        let loaded = views.iter().enumerate().skip(self.reported as usize);
        let loaded: Vec<_> =
            loaded.filter_map(|(number, view)| Some((number as u32, view.loaded?, view.time()?))).collect();
        for (sequence, time, delay) in loaded {
            let time = self.origin + time.since(Instant::ZERO);
            record.note(time, AppStep::Arrived { sequence, delay }, 0);
            self.reported = sequence + 1;
            self.reported_objects += views[sequence as usize].complete_objects();
        }
        let views = &views[self.reported as usize..];
        let complete = self.reported_objects + views.iter().map(View::complete_objects).sum::<usize>();
        record.progress(complete as u64, self.objects as u64);
    }

    fn wait(&self) {
        let until = self.browser.next_wakeup().map(|wakeup| self.origin + wakeup.since(Instant::ZERO));
        let mut sockets: Vec<PollFd<'_>> =
            self.connections.iter().map(|connection| connection.stream.events(true)).collect();
        wait_for_any(&mut sockets, until);
    }
}
