//! HTTP Archive 1.2 (HAR), the format of browsers' developer tools.

use std::fmt::Write as _;
use std::net::IpAddr;

use airpath_core::{Instant, Span};
use serde::Serialize;

use crate::exchange::{Exchange, Field, Request, Response};
use crate::page::Page;
use crate::timeline::Timeline;
use crate::web::Exchanges;
use airpath_observe::flows::FlowNumber;

/// A HAR document, for `serde_json`.
///
/// One page for each client, one entry for each request. Times are the capture's. Values that a
/// capture does not have (caches, name look-ups) are `-1` or empty, as the format specifies. Names
/// with `_` are our extensions, which the format allows.
#[derive(Clone, Debug, Serialize)]
pub struct Har {
    log: Log,
}

impl Har {
    /// From the application data of a capture. Connections have their flow numbers.
    pub fn new(exchanges: &Exchanges) -> Self {
        let Exchanges { timelines, pages, .. } = exchanges;
        let page_of = |client: IpAddr| pages.iter().find(|page| page.client == client);
        let mut entries: Vec<(Instant, Entry)> = Vec::new();
        for (number, timeline) in timelines {
            let page = page_of(timeline.client.address).map(page_id);
            let mut first = true;
            for exchange in timeline.exchanges() {
                if let Some(request) = &exchange.request {
                    let opening = std::mem::take(&mut first).then_some(timeline);
                    entries.push(entry(exchange, request, timeline, opening, *number, page.clone()));
                }
            }
        }
        entries.sort_by_key(|(started, _)| *started);
        Self {
            log: Log {
                version: "1.2",
                creator: Creator { name: "airpath", version: env!("CARGO_PKG_VERSION") },
                pages: pages.iter().map(har_page).collect(),
                entries: entries.into_iter().map(|(_, entry)| entry).collect(),
            },
        }
    }
}

#[derive(Clone, Debug, Serialize)]
struct Log {
    version: &'static str,
    creator: Creator,
    pages: Vec<HarPage>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize)]
struct Creator {
    name: &'static str,
    version: &'static str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarPage {
    started_date_time: String,
    id: String,
    title: String,
    page_timings: PageTimings,
    #[serde(rename = "_connections")]
    connections: u64,
    #[serde(rename = "_pipeliningEfficiency")]
    efficiency: Option<f64>,
    #[serde(rename = "_pipeliningEfficiencyOfReused")]
    efficiency_of_reused: Option<f64>,
    #[serde(rename = "_withoutResponse")]
    without_response: f64,
    #[serde(rename = "_idleDownlink")]
    idle_downlink: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageTimings {
    on_content_load: f64,
    on_load: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pageref: Option<String>,
    started_date_time: String,
    time: f64,
    request: HarRequest,
    response: HarResponse,
    cache: Cache,
    timings: Timings,
    #[serde(rename = "serverIPAddress")]
    server_ip_address: String,
    connection: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    comment: &'static str,
}

/// Empty: a capture does not show caches.
#[derive(Clone, Debug, Serialize)]
struct Cache {}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    http_version: &'static str,
    cookies: [(); 0],
    headers: Vec<Pair>,
    query_string: Vec<Pair>,
    headers_size: u64,
    body_size: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarResponse {
    status: u16,
    status_text: &'static str,
    http_version: &'static str,
    cookies: [(); 0],
    headers: Vec<Pair>,
    content: HarContent,
    #[serde(rename = "redirectURL")]
    redirect_url: String,
    headers_size: i64,
    body_size: i64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HarContent {
    size: u64,
    mime_type: String,
}

#[derive(Clone, Debug, Serialize)]
struct Pair {
    name: String,
    value: String,
}

/// Milliseconds; -1 where it does not apply.
#[derive(Clone, Debug, Serialize)]
struct Timings {
    blocked: f64,
    dns: f64,
    connect: f64,
    send: f64,
    wait: f64,
    receive: f64,
    ssl: f64,
}

fn har_page(page: &Page) -> HarPage {
    HarPage {
        started_date_time: date_time(page.begin),
        id: page_id(page),
        title: format!("what {} fetched", page.client),
        page_timings: PageTimings { on_content_load: -1.0, on_load: milliseconds(page.time()) },
        connections: page.connections,
        efficiency: page.efficiency,
        efficiency_of_reused: page.efficiency_of_reused,
        without_response: milliseconds(page.without_response),
        idle_downlink: page.idle_downlink.map(|idle| milliseconds(idle.time)),
    }
}

fn page_id(page: &Page) -> String {
    format!("page_{}", page.client)
}

/// Makes the entry of an exchange; returns it with its begin. The set-up of the connection,
/// `opening`, counts for its first exchange.
fn entry(
    exchange: &Exchange,
    request: &Request,
    timeline: &Timeline,
    opening: Option<&Timeline>,
    number: FlowNumber,
    pageref: Option<String>,
) -> (Instant, Entry) {
    let (requested, sent) = (request.first.time, request.last.time);
    let set_up = opening.and_then(|timeline| Some((timeline.opened?.time, timeline.established?.time)));
    let started = set_up.map_or(requested, |(opened, _)| opened.min(requested));
    let (wait, receive) = exchange.response.as_ref().map_or((Span::ZERO, Span::ZERO), |response| {
        // A server may answer before the end of the request.
        (response.first.time.since(sent), response.last.time.since(response.first.time.max(sent)))
    });
    let timings = Timings {
        blocked: set_up.map_or(-1.0, |(_, established)| milliseconds(requested.since(established))),
        dns: -1.0,
        connect: set_up.map_or(-1.0, |(opened, established)| milliseconds(established.since(opened))),
        send: milliseconds(sent.since(requested)),
        wait: milliseconds(wait),
        receive: milliseconds(receive),
        ssl: -1.0,
    };
    let time = [timings.blocked, timings.connect, timings.send, timings.wait, timings.receive];
    let entry = Entry {
        pageref,
        started_date_time: date_time(started),
        time: time.into_iter().filter(|part| *part > 0.0).sum(),
        request: har_request(request),
        response: har_response(exchange.response.as_ref()),
        cache: Cache {},
        timings,
        server_ip_address: timeline.server.address.to_string(),
        connection: number.0.to_string(),
        comment: match &exchange.response {
            Some(response) if response.size.exact => "",
            Some(_) => "the capture does not have all of the response: its end is an estimate",
            None => "the capture has no response",
        },
    };
    (started, entry)
}

fn har_request(request: &Request) -> HarRequest {
    let url = request.url();
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query_string = query.split('&').filter(|part| !part.is_empty()).map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Pair { name: name.to_owned(), value: value.to_owned() }
    });
    HarRequest {
        query_string: query_string.collect(),
        method: request.method.to_string(),
        http_version: request.version.name(),
        cookies: [],
        headers: pairs(&request.fields),
        headers_size: request.size.head,
        body_size: request.size.body,
        url,
    }
}

fn har_response(response: Option<&Response>) -> HarResponse {
    let text = |name: &str| response.and_then(|response| response.field(name)).unwrap_or_default().to_owned();
    // A size that does not fit is none.
    let size = |of: fn(&Response) -> u64| response.map_or(-1, |response| of(response).try_into().unwrap_or(-1));
    HarResponse {
        status: response.and_then(|response| response.status).unwrap_or(0),
        status_text: "",
        http_version: response.map_or("", |response| response.version.name()),
        cookies: [],
        headers: response.map_or_else(Vec::new, |response| pairs(&response.fields)),
        content: HarContent {
            size: response.map_or(0, |response| response.size.content),
            mime_type: text("content-type"),
        },
        redirect_url: text("location"),
        headers_size: size(|response| response.size.head),
        body_size: size(|response| response.size.body),
    }
}

fn pairs(fields: &[Field]) -> Vec<Pair> {
    fields.iter().map(|field| Pair { name: field.name.to_string(), value: field.value.to_string() }).collect()
}

fn milliseconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

/// ISO 8601, in UTC, to the microsecond.
fn date_time(time: Instant) -> String {
    let nanoseconds = time.as_nanos();
    let seconds = nanoseconds / 1_000_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut text = format!("{year:04}-{month:02}-{day:02}T");
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    write!(text, "{hour:02}:{minute:02}:{second:02}.{:06}Z", nanoseconds / 1_000 % 1_000_000)
        .expect("writing to a string does not fail");
    text
}

/// Year, month and day, `days` days after 1 January 1970, in the Gregorian calendar. Years are
/// counted from March, so that a leap day is a year's last; 146097 days make 400 years.
fn civil(days: u64) -> (u64, u64, u64) {
    let from_march = days + 719_468;
    let (era, of_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |seconds: u64| date_time(Instant::from_nanos(seconds * 1_000_000_000 + 123_456_789));
        assert_eq!(at(0), "1970-01-01T00:00:00.123456Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.123456Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.123456Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.123456Z");
    }
}
