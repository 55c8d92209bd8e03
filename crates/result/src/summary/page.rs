//! The rows of web pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_app::web::{Browser, Figures, LookUp, Session};
use airpath_core::{Instant, Span};
use serde::Serialize;

/// The columns of pages in a flow's row.
#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    /// TCP settings, as for a transfer.
    pub tcp: Arc<serde_json::Value>,
    /// Protocol.
    pub protocol: &'static str,
    /// Version of TLS, or `none`.
    pub tls: &'static str,
    /// Connections opened in all views.
    pub opened: u32,
    /// From the start until the last page was loaded.
    pub duration_s: Option<f64>,
}

/// A view of a page. Times are from the start of the view.
#[derive(Clone, Debug, Serialize)]
pub struct PageRow {
    /// The repetition.
    pub repetition: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Number of the view.
    pub view: u32,
    /// Name of the page.
    pub page: String,
    /// When the view began, from the start of the run.
    pub start_s: f64,
    /// Page time: until all objects were complete and processed.
    pub page_time_s: Option<f64>,
    /// Until the first byte of the document.
    pub first_byte_s: Option<f64>,
    /// Objects of the page.
    pub objects: u64,
    /// Requests.
    pub requests: u64,
    /// Responses.
    pub responses: u64,
    /// Objects from the cache without a request.
    pub cached: u64,
    /// Bytes of the bodies that arrived.
    pub bytes: u64,
    /// Connections with a request.
    pub connections: u64,
    /// Names that were looked up.
    pub look_ups: u32,
    /// The highest pipeline factor Φ of a connection.
    pub pipeline_factor: Option<f64>,
    /// Pipelining efficiency η over all connections.
    pub pipelining_efficiency: Option<f64>,
    /// η over the connections with at least two requests.
    pub pipelining_efficiency_of_reused: Option<f64>,
    /// Time in which no response was in transit.
    pub without_response_s: Option<f64>,
    /// Idle time of the downlink.
    pub idle_downlink_s: Option<f64>,
}

/// An object of a view. Times are from the start of the view.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectRow {
    /// The repetition.
    pub repetition: u64,
    /// Number of the flow.
    pub flow: u32,
    /// Number of the view.
    pub view: u32,
    /// Number of the object in its page.
    pub object: u32,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its host.
    pub origin: String,
    /// `network`, `revalidated` or `cache`.
    pub source: &'static str,
    /// Number of its connection.
    pub connection: Option<u32>,
    /// Bytes of the body that arrived.
    pub bytes: u64,
    /// Bytes of its content, without compression.
    pub content_bytes: u64,
    /// When the browser found it.
    pub found_s: Option<f64>,
    /// When the name of its host was first queried, if it was in this view.
    pub queried_s: Option<f64>,
    /// When the answer arrived.
    pub resolved_s: Option<f64>,
    /// When it was requested.
    pub requested_s: Option<f64>,
    /// When the first byte of the response arrived.
    pub first_byte_s: Option<f64>,
    /// When the last byte did.
    pub finished_s: Option<f64>,
}

impl SessionRow {
    /// The row of `browser` in a session that started at `start`.
    pub fn of(session: &Session, browser: &Browser, start: Instant, tcp: Arc<serde_json::Value>) -> Self {
        let loaded = browser.views().iter().map(|view| view.loaded).collect::<Option<Vec<_>>>();
        let complete = loaded.filter(|loaded| loaded.len() == session.settings.views as usize);
        Self {
            tcp,
            protocol: session.settings.protocol.name(),
            tls: session.settings.tls_name(),
            opened: browser.opened(),
            duration_s: complete.and_then(|loaded| loaded.last().map(|last| last.since(start).as_secs_f64())),
        }
    }
}

impl PageRow {
    /// The rows of the views of `browser` in flow `flow`.
    pub fn of(session: &Session, browser: &Browser, flow: u32, repetition: u64) -> Vec<Self> {
        let row = |(number, view): (usize, &airpath_app::web::View)| {
            let figures = Figures::of(view);
            let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
            let page = &session.pages[view.page];
            Self {
                repetition,
                flow,
                view: number as u32,
                page: page.name.clone(),
                start_s: view.start.as_secs_f64(),
                page_time_s: seconds(view.time()),
                first_byte_s: seconds(figures.first_byte),
                objects: page.objects.len() as u64,
                requests: figures.requests,
                responses: figures.responses,
                cached: figures.cached,
                bytes: figures.bytes,
                connections: figures.connections,
                look_ups: view.look_ups.len() as u32,
                pipeline_factor: figures.pipeline_factor,
                pipelining_efficiency: figures.efficiency,
                pipelining_efficiency_of_reused: figures.efficiency_of_reused,
                without_response_s: seconds(figures.without_response),
                idle_downlink_s: seconds(figures.idle_downlink),
            }
        };
        browser.views().iter().enumerate().map(row).collect()
    }
}

impl ObjectRow {
    /// The rows of the objects of all views of `browser` in flow `flow`.
    pub fn of(session: &Session, browser: &Browser, flow: u32, repetition: u64) -> Vec<Self> {
        let mut rows = Vec::new();
        for (number, view) in browser.views().iter().enumerate() {
            let since = |mark: Option<Instant>| mark.map(|mark| mark.since(view.start).as_secs_f64());
            let look_ups: BTreeMap<u32, LookUp> = view.look_ups.iter().map(|each| (each.origin, *each)).collect();
            let look_up = |object: usize| look_ups.get(&session.origin_of(view.page, object as u32));
            let objects = session.pages[view.page].objects.iter().zip(&view.fetches).enumerate();
            rows.extend(objects.map(|(index, (object, fetch))| Self {
                repetition,
                flow,
                view: number as u32,
                object: index as u32,
                name: object.name.clone(),
                kind: object.kind.name(),
                origin: object.origin.clone(),
                source: fetch.source.name(),
                connection: fetch.connection,
                bytes: fetch.received,
                content_bytes: object.size,
                found_s: since(fetch.found),
                queried_s: since(look_up(index).map(|each| each.queried)),
                resolved_s: since(look_up(index).and_then(|each| each.resolved)),
                requested_s: since(fetch.requested),
                first_byte_s: since(fetch.first_byte),
                finished_s: since(fetch.finished),
            }));
        }
        rows
    }
}
