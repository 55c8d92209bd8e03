//! The result of a measurement: the summary in the schema of a simulated one, and the table of the
//! applications' steps.

use std::fmt::Display;

use airpath_app::Datagrams;
use airpath_app::exchanges::{Application, Plan};
use airpath_app::ping::Pinger;
use airpath_app::streaming;
use airpath_core::{AppEvent, Classes, ComponentId, Direction, Event, Instant, Sink};
use airpath_result::summary::{
    AdaptiveRow, BufferRow, CallRow, Ended, ExchangesRow, FlowRow, ObjectRow, PageRow, PlaybackRow, ProbesRow,
    Repetition, Rows, ScriptRow, SegmentRow, SessionRow, StreamRow, TransactionsRow, TransferRow,
};
use airpath_result::{Folder, Summary};
use serde_json::{Value, json};

use crate::adaptive::Played;
use crate::bulk::Transferred;
use crate::datagrams::Streamed;
use crate::error::MeasureError;
use crate::offset::Offset;
use crate::page::Loaded;
use crate::ping::Carrier;
use crate::protocol::{FlowReport, Ready, Report};
use crate::record::Record;
use crate::tcp_info::kernel_name;
use crate::terminal::Interacted;
use crate::transactions::Transacted;
use crate::video::Watched;
use crate::voice::Called;
use crate::work::{Bulk, Exchange, Terminal};
use crate::{Request, plain_rtp, since};

/// The components of a measurement: its two ends.
const COMPONENTS: [&str; 2] = ["responder", "client"];

/// A result under construction.
pub struct Outcome {
    name: String,
    measurement: Value,
    flows: Vec<FlowRow>,
    scripts: Vec<ScriptRow>,
    pages: Vec<PageRow>,
    objects: Vec<ObjectRow>,
    buffers: Vec<BufferRow>,
    segments: Vec<SegmentRow>,
    steps: Vec<(Instant, AppEvent)>,
    packets: u64,
    stopped: Option<String>,
}

impl Outcome {
    /// An empty result of a measurement against the host at `address`.
    pub fn new(request: &Request, address: &impl Display) -> Self {
        Self {
            name: request.name(),
            measurement: json!({ "host": request.host, "address": address.to_string(), "kernel": kernel_name() }),
            flows: Vec::new(),
            scripts: Vec::new(),
            pages: Vec::new(),
            objects: Vec::new(),
            buffers: Vec::new(),
            segments: Vec::new(),
            steps: Vec::new(),
            packets: 0,
            stopped: None,
        }
    }

    /// Adds the responder's information on itself, and the clock offset.
    pub fn begin(&mut self, ready: &Ready, offset: Offset) {
        self.measurement["responder"] = json!({ "airpath": ready.airpath, "kernel": ready.kernel });
        self.set_clocks(offset);
    }

    fn set_clocks(&mut self, offset: Offset) {
        self.measurement["clocks"] = offset.to_json();
    }

    /// Adds the kind of socket of the echo requests.
    pub fn begin_by_icmp(&mut self, carrier: Carrier) {
        self.measurement["icmp"] = json!({ "socket": carrier.name() });
    }

    /// Adds `facts` of a stream of plain RTP, an object.
    pub fn begin_rtp(&mut self, facts: &Value) {
        for (name, fact) in facts.as_object().into_iter().flatten() {
            self.measurement["rtp"][name] = fact.clone();
        }
    }

    /// Adds a ping.
    pub fn ping(&mut self, origin: Instant, pinger: &Pinger, record: Record<'_>) {
        let (sent, round_trips) = (u64::from(pinger.sent()), pinger.round_trips());
        let over = pinger.is_over(crate::clock::now());
        self.packets += sent;
        let probes = ProbesRow::of(sent, round_trips.count(), round_trips);
        let outcome = if over { "finished" } else { "unfinished" };
        self.flows.push(FlowRow { probes: Some(probes), outcome, ..row(0, "ping", "ping".into()) });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds a stream of datagrams.
    ///
    /// # Errors
    /// The one that ended it early.
    pub fn datagrams(
        &mut self,
        origin: Instant,
        work: &Datagrams,
        streamed: Streamed,
        record: Record<'_>,
    ) -> Result<(), MeasureError> {
        let Streamed { start, sent, receiver, duplicates, over, offset, ended } = streamed;
        self.packets += u64::from(sent);
        self.set_clocks(offset);
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome: if over { "finished" } else { "unfinished" },
            probes: receiver.as_ref().map(|receiver| {
                // More can have arrived than the responder had counted as sent at the request.
                let sent = sent.max(receiver.received());
                ProbesRow::of(sent.into(), receiver.received().into(), &receiver.delays())
            }),
            stream: receiver.map(|receiver| StreamRow { duplicates, ..StreamRow::of(&receiver, work.late) }),
            ..row(0, "datagrams", "datagrams".into())
        });
        self.add_steps(origin, record.into_steps());
        ended
    }

    /// Adds transactions.
    pub fn transactions(&mut self, origin: Instant, exchange: &Exchange, all: Transacted, record: Record<'_>) {
        let Transacted { start, client, tcp, cause, over } = all;
        let outcome = match (&cause, over) {
            (Some(_), _) => "aborted",
            (None, true) => "finished",
            (None, false) => "unfinished",
        };
        self.packets += u64::from(client.requests());
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome,
            cause,
            probes: Some(ProbesRow::of(client.requests().into(), client.latencies().count(), client.latencies())),
            transactions: Some(TransactionsRow::of(&exchange.transactions, &client, start, tcp.into())),
            ..row(0, "transactions", "transactions".into())
        });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds a session of a remote terminal.
    pub fn terminal(&mut self, origin: Instant, terminal: &Terminal, all: Interacted, record: Record<'_>) {
        let Interacted { start, script, client, tcp, cause } = all;
        let outcome = match (&cause, client.is_complete()) {
            (_, true) => "finished",
            (Some(_), false) => "aborted",
            (None, false) => "unfinished",
        };
        let latencies = client.all_latencies();
        self.packets += client.requests();
        self.scripts = ScriptRow::of(&script, 0, 0);
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome,
            cause,
            probes: Some(ProbesRow::of(client.requests(), latencies.count(), &latencies)),
            exchanges: Some(ExchangesRow::of(&Plan::Terminal(terminal.session), &script, &client, tcp.into())),
            ..row(0, "terminal", "terminal".into())
        });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds a video in segments.
    pub fn adaptive(&mut self, origin: Instant, played: Played, record: Record<'_>) {
        let Played { start, end, client, tcp, cause } = played;
        let row_of_video = AdaptiveRow::of(&client, start, end, tcp.into());
        self.packets += client.exchanges().requests();
        self.buffers = BufferRow::of(client.player_at(end).levels(), 0, 0);
        self.segments = SegmentRow::of(&client, start, 0, 0);
        let outcome = match (&cause, row_of_video.duration_s) {
            (_, Some(_)) => "finished",
            (Some(_), None) => "aborted",
            (None, None) => "unfinished",
        };
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome,
            cause,
            adaptive: Some(row_of_video),
            ..row(0, "adaptive", "adaptive".into())
        });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds web pages.
    pub fn page(&mut self, origin: Instant, loaded: Loaded, record: Record<'_>) {
        let Loaded { session, browser, tcp, cause } = loaded;
        let row_of_session = SessionRow::of(&session, &browser, Instant::ZERO, tcp.into());
        self.pages = PageRow::of(&session, &browser, 0, 0);
        self.objects = ObjectRow::of(&session, &browser, 0, 0);
        self.packets += self.pages.iter().map(|page| page.requests).sum::<u64>();
        let outcome = match (&cause, row_of_session.duration_s) {
            (_, Some(_)) => "finished",
            (Some(_), None) => "aborted",
            (None, None) => "unfinished",
        };
        self.flows.push(FlowRow { outcome, cause, session: Some(row_of_session), ..row(0, "page", "page".into()) });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds a call.
    ///
    /// # Errors
    /// The one that ended it early.
    pub fn call(&mut self, origin: Instant, called: Called, record: Record<'_>) -> Result<(), MeasureError> {
        let Called { start, session, ends, has_uplink, over, offset, ended } = called;
        let [theirs, mine] = &ends;
        self.packets += u64::from(theirs.sent().packets + mine.sent().packets);
        self.set_clocks(offset);
        let row_of_call = CallRow::of(&session, [theirs, mine]);
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome: if over { "finished" } else { "unfinished" },
            call: Some(if has_uplink { row_of_call } else { row_of_call.without_uplink() }),
            ..row(0, "voice", "voice".into())
        });
        self.add_steps(origin, record.into_steps());
        ended
    }

    /// Adds a video over RTP.
    ///
    /// # Errors
    /// The one that ended it early.
    pub fn stream(&mut self, origin: Instant, watched: Watched, record: Record<'_>) -> Result<(), MeasureError> {
        let Watched { start, end, session, client, sent, offset, ended } = watched;
        self.set_clocks(offset);
        self.packets += sent.packets + sent.retransmitted_packets + sent.reports + client.received().reports;
        self.buffers = BufferRow::of(client.player().levels(), 0, 0);
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome: match (client.timed_out(), client.is_over()) {
                (true, _) => "aborted",
                (false, true) => "finished",
                (false, false) => "unfinished",
            },
            cause: client.cause(),
            playback: Some(PlaybackRow::of(&session, &sent, &client, start, end)),
            ..row(0, "stream", "stream".into())
        });
        self.add_steps(origin, record.into_steps());
        ended
    }

    /// Adds a video over RTP of another program.
    pub fn rtp_received(&mut self, origin: Instant, received: plain_rtp::Received, record: Record<'_>) {
        let plain_rtp::Received { watched, end, reports, cause } = received;
        let streaming::live::Watched { session, client, sent, start, .. } = watched;
        self.packets += sent.packets + reports;
        self.buffers = BufferRow::of(client.player().levels(), 0, 0);
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome: match cause {
                Some(_) => "aborted",
                None if client.is_over() => "finished",
                None => "unfinished",
            },
            cause,
            playback: Some(PlaybackRow { reports, ..PlaybackRow::of(&session, &sent, &client, start, end) }),
            ..row(0, "stream", "stream".into())
        });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds a video over RTP to another program.
    pub fn rtp_sent(&mut self, origin: Instant, streamed: plain_rtp::Streamed, record: Record<'_>) {
        let plain_rtp::Streamed { start, end, session, sent, report, reports, is_complete, cause } = streamed;
        self.packets += sent.packets + sent.reports;
        let outcome = match (is_complete, &cause) {
            (true, _) => "finished",
            (false, Some(_)) => "aborted",
            (false, None) => "unfinished",
        };
        let duration = is_complete.then(|| end.since(start));
        // Duplicates make the count negative.
        let lost = report.as_ref().map(|report| report.lost.max(0) as u64);
        let jitter = report.as_ref().map(streaming::jitter);
        let reports = sent.reports + reports;
        self.flows.push(FlowRow {
            start_s: since(origin, start).as_secs_f64(),
            outcome,
            cause,
            playback: Some(PlaybackRow { reports, ..PlaybackRow::of_sender(&session, &sent, lost, jitter, duration) }),
            ..row(0, "stream", "stream".into())
        });
        self.add_steps(origin, record.into_steps());
    }

    /// Adds bulk transfers: the observations of this end, and the responder's `report`.
    pub fn bulk(&mut self, origin: Instant, bulk: &Bulk, flows: Vec<Transferred>, report: &Report, offset: Offset) {
        let several = flows.len() > 1;
        let kind = match bulk.transfer.direction {
            Direction::Down => "download",
            Direction::Up => "upload",
        };
        let nothing = FlowReport::default();
        for (index, mut flow) in flows.into_iter().enumerate() {
            let theirs = report.flows.iter().find(|each| each.flow as usize == index).unwrap_or(&nothing);
            complete(&mut flow, bulk.transfer.direction, theirs, offset);
            let name = if several { format!("{kind}-{index}") } else { kind.to_owned() };
            let (sender, receiver) = match bulk.transfer.direction {
                Direction::Down => (theirs.tcp.as_ref(), flow.tcp.as_ref()),
                Direction::Up => (flow.tcp.as_ref(), theirs.tcp.as_ref()),
            };
            let mut transfer =
                TransferRow::of(&bulk.transfer, &flow.milestones, flow.start, flow.end, flow.settings.clone().into());
            if let Some(sent) = sender {
                transfer = sent.fill(transfer);
            }
            let (sent, received) = match bulk.transfer.direction {
                Direction::Down => (theirs.quic, flow.quic),
                Direction::Up => (flow.quic, theirs.quic),
            };
            if let (Some(sent), Some(received)) = (sent, received) {
                transfer = transfer.with_quic(&sent, &received);
                self.packets += sent.datagrams + received.datagrams;
            }
            self.packets += [sender, receiver].into_iter().flatten().map(|end| end.data_packets).sum::<u64>();
            self.flows.push(FlowRow {
                start_s: since(origin, flow.start).as_secs_f64(),
                outcome: flow.milestones.outcome(),
                cause: flow.milestones.aborted.and(flow.cause),
                transfer: Some(transfer),
                ..row(index, kind, name)
            });
            self.add_steps(origin, flow.steps);
        }
    }

    /// The measurement was stopped.
    pub fn stopped(&mut self) {
        self.stopped.get_or_insert_with(|| "interrupted".into());
    }

    /// The measurement ended early by this error.
    pub fn failed(&mut self, error: &MeasureError) {
        self.stopped.get_or_insert_with(|| error.to_string());
    }

    /// Writes the summary that stays if the process is killed from here on.
    pub fn save_so_far(&self, folder: Option<&Folder>) -> Result<(), MeasureError> {
        let Some(folder) = folder else { return Ok(()) };
        let mut summary = self.summary();
        summary.unfinished("ended from outside before the measurement was done");
        Ok(folder.save(&summary)?)
    }

    /// The result of a measurement that was stopped before it began.
    pub fn interrupted(mut self, folder: Option<&Folder>) -> Result<Summary, MeasureError> {
        self.stopped();
        let now = crate::clock::now();
        self.finish(now, now, folder)
    }

    /// The complete result of a measurement from `origin` to `end`; writes it to `folder`.
    pub fn finish(mut self, origin: Instant, end: Instant, folder: Option<&Folder>) -> Result<Summary, MeasureError> {
        let mut summary = self.summary();
        let repetition = Repetition {
            repetition: 0,
            simulated_s: end.since(origin).as_secs_f64(),
            ended: match self.stopped {
                Some(_) => Ended::Interrupted,
                None if self.flows.iter().all(|flow| flow.outcome != "unfinished") => Ended::Finished,
                None => Ended::Duration,
            },
            packets: self.packets,
            events: self.steps.len() as u64,
        };
        let flows = std::mem::take(&mut self.flows);
        summary.add(Rows {
            repetition,
            flows,
            links: Vec::new(),
            radio: Vec::new(),
            mobiles: Vec::new(),
            pages: std::mem::take(&mut self.pages),
            objects: std::mem::take(&mut self.objects),
            buffers: std::mem::take(&mut self.buffers),
            segments: std::mem::take(&mut self.segments),
            scripts: std::mem::take(&mut self.scripts),
            middleboxes: Vec::new(),
        });
        if let Some(why) = &self.stopped {
            summary.unfinished(why);
        }
        if let Some(folder) = folder {
            self.write_steps(folder)?;
            folder.save(&summary)?;
        }
        Ok(summary)
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::new(&self.name, 0, &COMPONENTS.map(str::to_owned));
        summary.measurement = Some(self.measurement.clone());
        summary
    }

    fn add_steps(&mut self, origin: Instant, steps: Vec<(Instant, AppEvent)>) {
        self.steps.extend(steps.into_iter().map(|(time, event)| (since(origin, time), event)));
    }

    fn write_steps(&mut self, folder: &Folder) -> Result<(), MeasureError> {
        self.steps.sort_by_key(|(time, _)| *time);
        let mut log = folder.event_log(0, &COMPONENTS.map(str::to_owned), Classes::APP)?;
        for (time, event) in &self.steps {
            log.record(*time, ComponentId(1), &Event::App(*event));
        }
        log.finish().map_err(|source| folder.error("events", source))?;
        Ok(())
    }
}

/// Adds the responder's observations of a transfer to those of this end.
fn complete(flow: &mut Transferred, direction: Direction, theirs: &FlowReport, offset: Offset) {
    use airpath_core::AppStep::{Finished, FirstByte, Requested};
    let ours = |time: Option<u64>| time.map(|time| offset.to_ours(time));
    let id = flow.steps.first().map_or_else(Default::default, |(_, event)| event.flow);
    let mut note = |time: Option<Instant>, step, delivered| {
        let delivered = airpath_core::Bytes::new(delivered);
        flow.steps.extend(time.map(|time| (time, AppEvent { flow: id, step, delivered })));
    };
    flow.milestones.requested = ours(theirs.requested);
    note(flow.milestones.requested, Requested, 0);
    if direction == Direction::Up {
        flow.milestones.delivered = theirs.delivered;
        flow.milestones.first_byte = ours(theirs.first_byte);
        flow.milestones.finished = ours(theirs.finished);
        // A later error does not affect an upload that arrived completely.
        if flow.milestones.finished.is_some() {
            flow.milestones.aborted = None;
        }
        note(flow.milestones.first_byte, FirstByte, 0);
        note(flow.milestones.finished, Finished, theirs.delivered);
    }
    if flow.cause.is_none() {
        flow.cause = theirs.cause.clone();
    }
}

fn row(flow: usize, kind: &'static str, name: String) -> FlowRow {
    FlowRow::unfinished(flow as u32, name, kind, COMPONENTS[1].to_owned(), 0.0)
}
