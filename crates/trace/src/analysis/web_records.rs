//! The rows of the tables of application data: HTTP exchanges, timelines, pages; and QUIC flows.

use airpath_core::Instant;

use super::records::{CAUSE_SECONDS, end, number, time};
use super::table::{Fields, Record, Table, table};
use crate::causes::{Account, Cause};
use airpath_observe::flows::FlowNumber;
use airpath_web::{Application, Exchange, Exchanges, Mark, Page, Quic, Spin, Timeline};

/// The tables of application data, without those that have no row.
pub fn tables(web: &Exchanges) -> impl Iterator<Item = (&'static str, Table)> {
    let timelines = web.timelines.iter().map(|(flow, timeline)| TimelineRow { flow: *flow, timeline });
    let exchanges = web.timelines.iter().flat_map(|(flow, timeline)| {
        let exchanges = timeline.exchanges().iter().zip(1..);
        exchanges.map(|(exchange, number)| ExchangeRow { flow: *flow, number, exchange })
    });
    let tables = [
        ("exchanges", table(exchanges)),
        ("timelines", table(timelines)),
        ("pages", table(web.pages.iter().map(PageRow))),
    ];
    tables.into_iter().filter_map(|(name, table)| table.map(|table| (name, table)))
}

/// A row of `exchanges`.
struct ExchangeRow<'a> {
    flow: FlowNumber,
    /// Its number in its connection, from 1.
    number: i64,
    exchange: &'a Exchange,
}

impl Record for ExchangeRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let (request, response) = (self.exchange.request.as_ref(), self.exchange.response.as_ref());
        fields.connection(self.flow);
        fields.whole("exchange", Some(self.number));
        fields.text("method", request.map(|request| &*request.method));
        fields.text("url", request.map(|request| request.url()).as_deref());
        fields.whole("status", response.and_then(|response| response.status).map(i64::from));
        fields.text("content_type", response.and_then(|response| response.content_type()));
        mark(fields, ["request_first", "request_first_frame"], request.map(|request| request.first));
        mark(fields, ["request_last", "request_last_frame"], request.map(|request| request.last));
        mark(fields, ["response_first", "response_first_frame"], response.map(|response| response.first));
        mark(fields, ["response_last", "response_last_frame"], response.map(|response| response.last));
        time(
            fields,
            "response_acknowledged",
            response.and_then(|response| response.acknowledged).map(|mark| mark.time),
        );
        let bytes = |size: airpath_web::Size| (size.head + size.body) as i64;
        fields.whole("request_bytes", request.map(|request| bytes(request.size)));
        fields.whole("response_bytes", response.map(|response| bytes(response.size)));
        fields.whole("content_bytes", response.map(|response| response.size.content as i64));
        fields.flag("complete", response.map(|response| response.size.complete));
    }
}

/// A row of `timelines`.
struct TimelineRow<'a> {
    flow: FlowNumber,
    timeline: &'a Timeline,
}

impl Record for TimelineRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { flow, timeline } = self;
        let (application, tls) = match &timeline.application {
            Application::Silent => ("none", None),
            Application::Http(_) => ("http", None),
            Application::Tls(tls) => ("tls", Some(tls)),
            Application::Other => ("other", None),
        };
        let pipelining = timeline.pipelining();
        let when = |mark: Option<Mark>| mark.map(|mark| mark.time);
        fields.connection(*flow);
        fields.text("application", Some(application));
        time(fields, "first", Some(timeline.first.time));
        time(fields, "opened", when(timeline.opened));
        time(fields, "accepted", when(timeline.accepted));
        time(fields, "established", when(timeline.established));
        time(fields, "closed", when(timeline.closed));
        fields.flag("reset", Some(timeline.reset));
        fields.whole("requests", pipelining.map(|pipelining| pipelining.requests as i64));
        fields.real("pipeline_factor", pipelining.map(|pipelining| pipelining.factor()));
        fields.real("most_pipeline_factor", pipelining.map(|pipelining| pipelining.maximum()));
        fields.text("server_name", tls.and_then(|tls| tls.server_name.as_deref()));
        fields.whole("tls_version", tls.and_then(|tls| tls.version).map(i64::from));
        time(fields, "client_hello", tls.and_then(|tls| when(tls.client_hello)));
        time(fields, "server_hello", tls.and_then(|tls| when(tls.server_hello)));
        time(fields, "tls_established", tls.and_then(|tls| when(tls.established)));
        fields.whole("bursts", tls.map(|tls| tls.bursts.len() as i64));
    }
}

/// A row of `pages`.
struct PageRow<'a>(&'a Page);

impl Record for PageRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self(page) = self;
        fields.text("client_address", Some(&page.client.to_string()));
        time(fields, "start", Some(page.begin));
        time(fields, "end", Some(page.end));
        number(fields, "connections", page.connections);
        number(fields, "requests", page.requests);
        number(fields, "responses", page.responses);
        number(fields, "bytes", page.bytes);
        fields.real("efficiency", page.efficiency);
        fields.real("efficiency_of_reused", page.efficiency_of_reused);
        fields.real("without_response_s", Some(page.without_response.as_secs_f64()));
        fields.real("idle_downlink_s", page.idle_downlink.map(|idle| idle.time.as_secs_f64()));
        fields.real("downlink_bps", page.idle_downlink.map(|idle| idle.bits_per_second));
    }
}

/// A row of `quic`.
pub(super) struct QuicRow<'a> {
    pub quic: &'a Quic,
    /// The causes of its time, if they are attributed.
    pub account: Option<&'a Account>,
}

impl Record for QuicRow<'_> {
    fn write(&self, fields: &mut impl Fields) {
        let Self { quic, account } = self;
        let when = |mark: Option<Mark>| mark.map(|mark| mark.time);
        number(fields, "quic", quic.number);
        fields.text("client", Some(&end(quic.client)));
        fields.text("server", Some(&end(quic.server)));
        fields.whole("version", Some(quic.version.into()));
        time(fields, "first", Some(quic.first.time));
        time(fields, "last", Some(quic.last.time));
        time(fields, "answered", when(quic.answered));
        time(fields, "established", when(quic.established));
        fields.flag("retried", Some(quic.retried));
        number(fields, "address_changes", quic.address_changes);
        let [from_client, from_server] = quic.datagrams;
        number(fields, "client_datagrams", from_client);
        number(fields, "server_datagrams", from_server);
        let [from_client, from_server] = quic.bytes;
        number(fields, "client_bytes", from_client);
        number(fields, "server_bytes", from_server);
        let (spin, mut round_trips) = match &quic.spin {
            Spin::Still => ("still", Vec::new()),
            Spin::Random => ("random", Vec::new()),
            Spin::Spinning(samples) => ("spinning", samples.iter().map(|sample| sample.round_trip).collect()),
        };
        round_trips.sort_unstable();
        fields.text("spin_bit", Some(spin));
        number(fields, "round_trips", round_trips.len() as u64);
        let middle = round_trips.len() / 2;
        for (name, round_trip) in [
            ("round_trip_min_ns", round_trips.first()),
            ("round_trip_p50_ns", round_trips.get(middle)),
            ("round_trip_max_ns", round_trips.last()),
        ] {
            fields.whole(name, round_trip.map(|round_trip| round_trip.as_nanos() as i64));
        }
        let Some(account) = account else { return };
        for (cause, name) in Cause::ALL.into_iter().zip(CAUSE_SECONDS) {
            fields.real(name, Some(account.of(cause).as_secs_f64()));
        }
        fields.text("main_cause", account.longest().map(Cause::name));
        fields.real("avoidable_s", Some(account.avoidable().as_secs_f64()));
    }
}

/// Time and frame of an event.
fn mark(fields: &mut impl Fields, [when, which]: [&'static str; 2], mark: Option<Mark>) {
    time(fields, when, mark.map(|mark: Mark| -> Instant { mark.time }));
    fields.whole(which, mark.map(|mark| mark.frame as i64));
}
