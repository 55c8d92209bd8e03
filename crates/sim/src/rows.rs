//! The rows of the summary, from the state of a simulation.

use std::sync::Arc;

use airpath_app::exchanges::Plan;
use airpath_core::{Direction, Instant, Span, UserId};
use airpath_path::{Hop, Route, Side};
use airpath_result::summary::{
    AdaptiveRow, BufferRow, CallRow, Ended, ExchangesRow, FlowRow, FtpRow, LinkRow, MiddleboxRow, MobileRow, ObjectRow,
    PageRow, PlaybackRow, ProbesRow, RadioRow, Repetition, Rows, ScriptRow, SegmentRow, SessionRow, StreamRow,
    TransactionsRow, TransferRow, quic_settings,
};
use airpath_scenario::page::Transport;
use airpath_scenario::proxy::Proxy;
use airpath_scenario::tcp::Settings;
use airpath_tcp::Negotiated;
use serde::Serialize;

use crate::flow::{DatagramsFlow, Flow, PageFlow, PingFlow, QuicTransferFlow, Scripted, TransferFlow};
use crate::simulation::Simulation;

/// The rows of repetition `number`.
pub fn of(simulation: &Simulation<'_>, number: u64, ended: Ended, mobiles: &[String]) -> Rows {
    let now = simulation.now();
    let repetition = Repetition {
        repetition: number,
        simulated_s: now.as_secs_f64(),
        ended,
        packets: simulation.packets(),
        events: simulation.events(),
    };
    let proxy = simulation.hops().find_map(|(_, hop)| match hop {
        Hop::Middlebox(middlebox) => middlebox.downcast_ref::<Proxy>(),
        Hop::Bearer(_) => None,
    });
    let mut settings = SharedSettings::default();
    let flows = simulation.flows().iter().map(|each| flow(each, proxy, number, now, mobiles, &mut settings)).collect();
    let HopRows { links, radio, mobiles } = of_hops(simulation.hops(), simulation.route(), mobiles, number);
    let sessions = || {
        simulation.flows().iter().filter_map(|flow| match flow {
            Flow::Page(flow) => Some(&**flow),
            _ => None,
        })
    };
    let pages = |flow: &PageFlow| PageRow::of(&flow.session, &flow.browser, flow.identity.id.0, number);
    let objects = |flow: &PageFlow| ObjectRow::of(&flow.session, &flow.browser, flow.identity.id.0, number);
    let (pages, objects) = (sessions().flat_map(pages).collect(), sessions().flat_map(objects).collect());
    let buffers = simulation.flows().iter().flat_map(|flow| match flow {
        Flow::Stream(flow) => BufferRow::of(flow.client.player().levels(), flow.identity.id.0, number),
        Flow::Adaptive(flow) => {
            let end = flow.aborted_at().unwrap_or(now);
            BufferRow::of(flow.client.player_at(end).levels(), flow.identity.id.0, number)
        }
        _ => Vec::new(),
    });
    let buffers = buffers.collect();
    let segments = simulation.flows().iter().flat_map(|flow| match flow {
        Flow::Adaptive(flow) => SegmentRow::of(&flow.client, flow.identity.start, flow.identity.id.0, number),
        _ => Vec::new(),
    });
    let segments = segments.collect();
    let counters = simulation.hops().flat_map(|(name, hop)| hop.statistics().into_iter().map(move |each| (name, each)));
    let middleboxes = counters.map(|(name, (counter, value))| MiddleboxRow {
        repetition: number,
        component: name.to_owned(),
        counter,
        value,
    });
    let scripts = simulation.flows().iter().filter_map(|flow| match flow {
        Flow::Exchanges(flow) => Some(ScriptRow::of(flow.client.client.script(), flow.identity.id.0, number)),
        _ => None,
    });
    let scripts = scripts.flatten().collect();
    Rows {
        repetition,
        flows,
        links,
        radio,
        mobiles,
        pages,
        objects,
        buffers,
        segments,
        scripts,
        middleboxes: middleboxes.collect(),
    }
}

/// The rows of the hops, with their names, in repetition `number` of a run whose packets take
/// `route`; `names` are those of the users.
pub fn of_hops<'a>(
    hops: impl Iterator<Item = (&'a str, &'a Hop)>,
    route: &Route,
    names: &[String],
    number: u64,
) -> HopRows {
    let HopRows { mut links, mut radio, mut mobiles } = HopRows::default();
    let users = (0..route.users()).map(|user| UserId::new(user as u32));
    for (index, (name, hop)) in hops.enumerate() {
        links.extend(Direction::BOTH.map(|direction| LinkRow::of(name, direction, number, &hop.counters(direction))));
        for direction in Direction::BOTH {
            // Ends at the first user that the hop does not have: most of a large run have none.
            let rows = users.clone().map_while(|user| {
                let totals = hop.radio_totals(direction, user)?;
                Some((user, RadioRow::of(name, direction, user, number, &totals)))
            });
            // The second bearer of mobiles has the users of the first, without packets.
            let own = rows.filter(|(user, _)| route.cell_of(*user) == Some(index));
            radio.extend(own.map(|(_, row)| row));
        }
        let rows = users.clone().map_while(|user| Some((user, hop.connection_totals(user)?)));
        let own = rows.filter(|(user, _)| route.cell_of(*user) == Some(index));
        mobiles.extend(own.map(|(user, totals)| MobileRow::of(name, user, &names[user.index()], number, &totals)));
    }
    HopRows { links, radio, mobiles }
}

/// The rows of hops.
#[derive(Default)]
pub struct HopRows {
    /// Packets of each hop and direction.
    pub links: Vec<LinkRow>,
    /// Transmissions of each user.
    pub radio: Vec<RadioRow>,
    /// The radio connection of each user.
    pub mobiles: Vec<MobileRow>,
}

fn flow(
    flow: &Flow,
    proxy: Option<&Proxy>,
    repetition: u64,
    now: Instant,
    mobiles: &[String],
    settings: &mut SharedSettings,
) -> FlowRow {
    let identity = flow.identity();
    let row = |kind, outcome| {
        let (name, mobile) = (identity.name.clone(), mobiles[identity.user.index()].clone());
        let row = FlowRow::unfinished(identity.id.0, name, kind, mobile, identity.start.as_secs_f64());
        FlowRow { repetition, outcome, ..row }
    };
    let over = if flow.is_over() { "finished" } else { "unfinished" };
    match flow {
        Flow::Transfer(flow) => FlowRow {
            cause: flow.cause(),
            transfer: Some(transfer(flow, proxy, now, settings.of(&flow.tcp, negotiated(flow)))),
            ..row(
                match flow.transfer.direction {
                    Direction::Down => "download",
                    Direction::Up => "upload",
                },
                flow.milestones.outcome(),
            )
        },
        Flow::QuicTransfer(flow) => FlowRow {
            cause: flow.cause(),
            transfer: Some(quic_transfer(flow, now)),
            ..row(
                match flow.transfer.direction {
                    Direction::Down => "download",
                    Direction::Up => "upload",
                },
                flow.milestones.outcome(),
            )
        },
        Flow::QuicTransactions(flow) => FlowRow {
            cause: flow.cause().map(str::to_owned),
            probes: Some(ProbesRow::of(
                flow.client.requests().into(),
                flow.client.latencies().count(),
                flow.client.latencies(),
            )),
            transactions: Some(TransactionsRow::of(
                &flow.work,
                &flow.client,
                flow.identity.start,
                quic_settings(&flow.quic.config).into(),
            )),
            ..row("transactions", if flow.cause().is_some() { "aborted" } else { over })
        },
        Flow::Ping(flow) => FlowRow { probes: Some(ping(flow)), ..row("ping", over) },
        Flow::Datagrams(flow) => FlowRow {
            probes: Some(datagrams(flow)),
            stream: Some(StreamRow::of(&flow.receiver, flow.datagrams.late)),
            // The run may end while it waits for the time-out of datagrams that have all arrived.
            ..row("datagrams", if flow.is_complete() { "finished" } else { "unfinished" })
        },
        Flow::Transactions(flow) => FlowRow {
            cause: flow.cause().map(str::to_owned),
            probes: Some(ProbesRow::of(
                flow.client.requests().into(),
                flow.client.latencies().count(),
                flow.client.latencies(),
            )),
            transactions: Some(TransactionsRow::of(
                &flow.work,
                &flow.client,
                flow.identity.start,
                settings.of(&flow.tcp, flow.negotiated),
            )),
            ..row("transactions", if flow.cause().is_some() { "aborted" } else { over })
        },
        Flow::Stream(flow) => FlowRow {
            playback: Some(PlaybackRow {
                tcp: flow.tcp.as_ref().map(|tcp| settings.of(&tcp.tcp, tcp.negotiated)),
                ..PlaybackRow::of(
                    &flow.session,
                    &flow.server.sent(),
                    &flow.client,
                    flow.identity.start,
                    flow.lost_at().unwrap_or(now),
                )
            }),
            cause: flow.cause(),
            ..row("stream", if flow.cause().is_some() { "aborted" } else { over })
        },
        Flow::Adaptive(flow) => FlowRow {
            cause: flow.cause().map(str::to_owned),
            adaptive: Some(AdaptiveRow::of(
                &flow.client,
                flow.identity.start,
                flow.aborted_at().unwrap_or(now),
                settings.of(&flow.tcp, flow.negotiated),
            )),
            ..row("adaptive", if flow.cause().is_some() { "aborted" } else { over })
        },
        Flow::Voice(flow) => FlowRow {
            call: Some(CallRow::of(&flow.session, Direction::BOTH.map(|direction| flow.end(direction)))),
            ..row("voice", over)
        },
        Flow::Exchanges(flow) => {
            let Scripted { plan, client } = &flow.client;
            let latencies = client.all_latencies();
            FlowRow {
                cause: flow.cause().map(str::to_owned),
                probes: Some(ProbesRow::of(client.requests(), latencies.count(), &latencies)),
                exchanges: Some(ExchangesRow::of(
                    plan,
                    client.script(),
                    client,
                    settings.of(&flow.tcp, flow.negotiated),
                )),
                ..row(
                    match plan {
                        Plan::Mail(_) => "mail",
                        Plan::Terminal(_) | Plan::Recorded(_) => "terminal",
                    },
                    if flow.cause().is_some() { "aborted" } else { over },
                )
            }
        }
        Flow::Ftp(flow) => FlowRow {
            cause: flow.cause().map(str::to_owned),
            probes: Some(ProbesRow::of(
                flow.client.requested().into(),
                flow.client.files().into(),
                &flow.client.times(),
            )),
            ftp: Some(FtpRow::of(&flow.client, settings.of(&flow.tcp, flow.negotiated))),
            ..row("ftp", if flow.cause().is_some() { "aborted" } else { over })
        },
        Flow::Page(flow) => FlowRow {
            cause: flow.cause().map(str::to_owned),
            session: Some(SessionRow::of(
                &flow.session,
                &flow.browser,
                flow.identity.start,
                match &flow.transport {
                    Transport::Tcp(tcp) => settings.of(tcp, flow.negotiated),
                    Transport::Quic(quic) => quic_settings(&quic.config).into(),
                },
            )),
            ..row("page", if flow.cause().is_some() { "aborted" } else { over })
        },
    }
}

/// The TCP settings of a flow: the profile, every setting in force, and what was negotiated with
/// the peer, which is absent before the handshake.
#[derive(Serialize)]
struct Tcp<'a> {
    #[serde(flatten)]
    settings: &'a Settings,
    negotiated: Option<Negotiated>,
}

/// The TCP settings of the flows as JSON. Those of a group have the same settings, and share them.
#[derive(Default)]
struct SharedSettings {
    made: Vec<(Settings, Option<Negotiated>, Arc<serde_json::Value>)>,
}

impl SharedSettings {
    /// Number of the last settings that are compared: flows of a group follow each other.
    const COMPARED: usize = 4;

    fn of(&mut self, settings: &Settings, negotiated: Option<Negotiated>) -> Arc<serde_json::Value> {
        let same = |(made, with, _): &&(Settings, Option<Negotiated>, _)| {
            made.profile == settings.profile && Arc::ptr_eq(&made.config, &settings.config) && *with == negotiated
        };
        if let Some((.., value)) = self.made.iter().rev().take(Self::COMPARED).find(same) {
            return Arc::clone(value);
        }
        let tcp = Tcp { settings, negotiated };
        let value = Arc::new(serde_json::to_value(tcp).expect("settings are numbers and text"));
        self.made.push((settings.clone(), negotiated, Arc::clone(&value)));
        value
    }
}

fn negotiated(flow: &TransferFlow) -> Option<Negotiated> {
    flow.milestones.connected.map(|_| flow.sender().negotiated())
}

fn transfer(flow: &TransferFlow, proxy: Option<&Proxy>, now: Instant, tcp: Arc<serde_json::Value>) -> TransferRow {
    let sent = flow.sender().statistics();
    TransferRow {
        data_packets: Some(sent.data_segments),
        data_bytes: Some(sent.data_bytes),
        unique_bytes: Some(sent.unique_bytes),
        retransmitted_packets: Some(sent.retransmitted_segments),
        retransmitted_bytes: Some(sent.retransmitted_bytes),
        ack_packets: Some(flow.receiver().statistics().pure_acks),
        timeouts: Some(sent.timeouts),
        fast_retransmits: Some(sent.fast_retransmits),
        undone: Some(sent.undos),
        marked_packets: Some(flow.receiver().statistics().marked_segments),
        ecn_reductions: Some(sent.ecn_reductions),
        rtt_min_s: sent.rtt_min.map(Span::as_secs_f64),
        rtt_mean_s: sent.rtt_mean_s(),
        rtt_max_s: sent.rtt_max.map(Span::as_secs_f64),
        rtt_samples: Some(sent.rtt_samples),
        proxy_rtt_mean_s: proxy
            .and_then(|proxy| proxy.round_trip_s(flow.identity.id, Side::at_end_of(flow.transfer.direction))),
        ..TransferRow::of(&flow.transfer, &flow.milestones, flow.identity.start, now, tcp)
    }
}

fn quic_transfer(flow: &QuicTransferFlow, now: Instant) -> TransferRow {
    let settings = quic_settings(&flow.quic.config).into();
    TransferRow::of(&flow.transfer, &flow.milestones, flow.identity.start, now, settings)
        .with_quic(&flow.sender().statistics(), &flow.receiver().statistics())
}

fn ping(flow: &PingFlow) -> ProbesRow {
    let round_trips = flow.pinger.round_trips();
    ProbesRow::of(flow.pinger.sent().into(), round_trips.count(), round_trips)
}

fn datagrams(flow: &DatagramsFlow) -> ProbesRow {
    ProbesRow::of(flow.sender.sent().into(), flow.receiver.received().into(), &flow.receiver.delays())
}
