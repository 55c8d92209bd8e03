//! A live proxy: the proxy between the mobiles of a router and their servers.
//!
//! The router routes the packets of the listed mobiles through a TUN interface ([`rules`]). The
//! path of a packet is the proxy only, and the session, the packet observers and the result are
//! those of every link. When the process ends, for whatever reason, the interface is gone, and the
//! router forwards the packets past the proxy.
//!
//! | module | contents |
//! | --- | --- |
//! | [`router`] | which packets belong to a mobile, and in which direction they go |
//! | [`rules`], [`keeper`] | routing rules, and the process that installs, restores and removes them |
//! | [`operator`] | signals, requests, changes of the configuration |
//! | [`takeover`] | a new process continues the connections of a running one |
//! | [`state`], [`metrics`] | the state, and its form for Prometheus |

pub mod keeper;
pub mod metrics;
pub mod operator;
pub mod router;
pub mod rules;
pub mod state;
pub mod takeover;

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use airpath_core::{RandomStream, Seed, Sink, Span};
use airpath_path::middlebox::MiddleboxHop;
use airpath_path::{Hop, Path as HopPath, PolledPath, Route, Topology};
use airpath_proxy::Proxy;
use airpath_result::Summary;
use airpath_result::summary::Ended;
use airpath_scenario::{LiveConfig, Log};
use nix::unistd::{User, setgid, setgroups, setuid};
use serde_json::json;

use crate::clock::{Clock, time_of_day};
use crate::control::ControlSocket;
use crate::forwarder::Forwarder;
use crate::lateness::LatenessRow;
use crate::link::{self, Wanted};
use crate::message::message;
use crate::namespace::{self, capability};
use crate::nat::Forwarding;
use crate::netlink::Netlink;
use crate::observe::MOST_FLOWS;
use crate::port::Port;
use crate::session::{Session, Signals, Waiting, cores};
use crate::testbed::{QUEUE_LENGTH, silence_ipv6};
use crate::{LinkError, sys};
use keeper::Keeper;
use metrics::MetricsServer;
use operator::RouterOperator;
use router::Router;
use rules::RulePlan;

/// How to run a live proxy.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file of the configuration, which is read again on request.
    pub file: PathBuf,
    /// The result folder.
    pub out: Option<PathBuf>,
    /// Whether to write the event log.
    pub log: bool,
    /// Whether to capture packets on both sides of the proxy.
    pub capture: bool,
    /// Whether to take over from the proxy that runs on the interface of the configuration.
    pub take_over: bool,
}

/// How a live proxy ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The summary, if there is a result folder.
    pub summary: Summary,
    /// How late packets left.
    pub lateness: LatenessRow,
}

/// The source of the router's own ICMP errors about packets on the TUN interface: the IPv4 dummy
/// address of a node without another one (RFC 7600 §4.8). Source validation (RFC 3704 §2.4) rejects
/// all packets of an interface without address.
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Runs a live proxy until SIGINT or SIGTERM, or until another process takes over. The process has
/// no privileges afterwards.
///
/// # Errors
/// If the host does not permit it, or the result cannot be written. Nothing of the host has changed
/// then.
///
/// # Panics
/// If the process has more than one thread.
pub fn run(config: LiveConfig, options: &Options) -> Result<Outcome, LinkError> {
    let plan = RulePlan::of(&config);
    let acquired = if options.take_over { None } else { Some(Host::set_up(&config, &plan)?) };
    drop_privileges(config.user.as_deref())?;
    let control = ControlSocket::open()?;

    let signals = Signals::take()?;
    let components = component_names(&config);
    let folder = link::create_folder_of(options.out.as_deref(), NAME, &config.to_toml(), &[], (0, &components))?;
    let mut log = match &folder {
        Some(folder) if options.log => Some(folder.event_log(0, &components, Log::default().classes())?),
        _ => None,
    };
    let (host, taken) = match acquired {
        Some(host) => (host, None),
        // From here on the other process waits for this one.
        None => takeover::request(&config).map(|(host, taken)| (host, Some(taken)))?,
    };
    let Host { port, keeper, metrics, started, clock } = host;
    let mut taps = link::open_taps(&Wanted {
        folder: folder.as_ref(),
        started,
        capture: options.capture,
        record: false,
        observe: folder.is_some(),
        headers: false,
    })?;
    let (router, proxy) = match &taken {
        Some(taken) => taken.restore(&config, initial_sequences()?, (FIRST_CONNECTION, &mut taps))?,
        None => {
            let proxy = Proxy::new(config.proxy.clone(), initial_sequences()?);
            (Router::new(&config, FIRST_CONNECTION), MiddleboxHop::new(Box::new(proxy)))
        }
    };
    let path = HopPath::new(topology(&config, proxy), log.as_mut().map(|log| log as &mut dyn Sink));
    let mut forwarder = Forwarder::of_router(PolledPath::new(path, Vec::new()), clock, taps, &port, router);
    forwarder.set_time_of_day(started);
    if cores() > 1 {
        forwarder.start_writer().map_err(LinkError::host("no thread can be started"))?;
    }
    let file = options.file.clone();
    let mut operator = RouterOperator::new(file, config, keeper, metrics, started)?;
    let predecessor = taken.as_ref().map(|taken| taken.process);
    match taken {
        Some(taken) => {
            taken.confirm(&mut forwarder)?;
            operator.keeper.adopt();
            if let Err(error) = operator.keeper.install(&plan) {
                message(format_args!("airpath: the routing rules stay as they were: {error}"));
            }
        }
        None => operator.keeper.install(&plan).map_err(LinkError::Rules)?,
    }
    let mut session = Session::new(forwarder, operator, control, signals, Waiting::Sleeping, None)?;
    message(format_args!("airpath: the proxy runs as process {}", std::process::id()));
    let mut ended = session.run();
    let Session { mut forwarder, operator, .. } = session;
    let RouterOperator { keeper, config, is_taken_over, .. } = operator;
    if is_taken_over {
        keeper.release();
    } else {
        let now = forwarder.clock.now();
        if let Some(proxy) = forwarder.proxy_mut(now) {
            proxy.abort_connections(now);
        }
        let reset = forwarder.deliver().and_then(|_| {
            // Resets may wait in queues.
            let now = forwarder.clock.now();
            forwarder.proxy_mut(now).into_iter().for_each(|proxy| proxy.release_queues(now));
            forwarder.deliver()?;
            forwarder.flush()
        });
        // From here on packets go past the proxy.
        let removed = keeper.finish();
        ended = ended.and(reset.map_err(LinkError::host("connections cannot be reset"))).and(removed);
    }

    let seen = forwarder.router().map_or(0, |router| router.mobiles().len());
    let used = &components[..components.len() - usize::from(config.most_mobiles) + seen];
    let mut summary = Summary::new(NAME, 0, used);
    let end = if ended.is_ok() { Ended::Finished } else { Ended::Interrupted };
    summary.add(link::rows(&forwarder, end));
    let lateness = forwarder.lateness.row(LATENESS, 0);
    summary.emulation = Some(json!({
        "process": std::process::id(),
        "predecessor": predecessor,
        "started_s": started.as_secs_f64(),
        "configuration": options.file,
        "device": "tun",
        "mtu": config.mtu,
        "lateness": lateness,
        "refused": forwarder.dropped.by_cause(),
        "proxy": state::State::of(&forwarder).map(|state| state.to_json()),
    }));
    if let Err(error) = &ended {
        summary.unfinished(&error.to_string());
    }
    let taps = forwarder.into_taps();
    let written = link::finish(folder.as_ref(), log, taps, None);
    if let Err(error) = &written {
        summary.unfinished(&error.to_string());
    }
    folder.as_ref().map_or(Ok(()), |folder| folder.save(&summary))?;
    ended?;
    written?;
    Ok(Outcome { summary, lateness })
}

/// What a proxy uses of its host.
#[derive(Debug)]
pub struct Host {
    /// The TUN interface.
    pub port: Port,
    /// Installs the routing rules.
    pub keeper: Keeper,
    /// Serves metrics.
    pub metrics: MetricsServer,
    /// The clock.
    pub clock: Clock,
    /// Time of day when the clock was zero.
    pub started: Span,
}

impl Host {
    /// Creates all of it. Packets go to the interface only when the keeper installs the rules.
    fn set_up(config: &LiveConfig, plan: &RulePlan) -> Result<Self, LinkError> {
        require(config)?;
        // Started first: a copy of the descriptor of the interface would keep that alive.
        let keeper = Keeper::start()?;
        let port = open_interface(config, plan)?;
        let metrics = MetricsServer::open(config.metrics).map_err(|source| LinkError::Address {
            address: config.metrics.map_or_else(String::new, |address| address.to_string()),
            source,
        })?;
        Ok(Self { port, keeper, metrics, clock: Clock::start(), started: time_of_day() })
    }
}

/// Connections that the observer does not number have numbers from here on.
const FIRST_CONNECTION: u32 = MOST_FLOWS as u32 + 1;

/// Name of the run and of its only hop.
const NAME: &str = "proxy";

/// A proxy has no schedule to keep: packets leave as soon as possible.
const LATENESS: Span = Span::from_millis(2);

/// Checks what cannot be changed here.
fn require(config: &LiveConfig) -> Result<(), LinkError> {
    if !namespace::has_capability(capability::NET_ADMIN) {
        return Err(LinkError::NoAdministration);
    }
    let forwards = Forwarding::of_host();
    for (is_on, key, is_needed) in [
        (forwards.v4, namespace::FORWARDING, config.mobiles.iter().any(|prefix| prefix.address.is_ipv4())),
        (forwards.v6, "net.ipv6.conf.all.forwarding", config.mobiles.iter().any(|prefix| prefix.address.is_ipv6())),
    ] {
        if is_needed && !is_on {
            return Err(LinkError::NoRouter(key));
        }
    }
    Ok(())
}

/// Creates the TUN interface and the routes to it. Packets go there only when rules lead to them.
fn open_interface(config: &LiveConfig, plan: &RulePlan) -> Result<Port, LinkError> {
    let failed = LinkError::host;
    let mut netlink = Netlink::open().map_err(failed("the network cannot be configured"))?;
    let conflicts = plan.conflicts(&mut netlink).map_err(failed("routing rules cannot be listed"))?;
    if let Some(conflict) = conflicts.first() {
        return Err(LinkError::Rules(format!("{conflict}; change `priority` or `table`")));
    }
    let name = config.device.as_str();
    if netlink.index_of(name).is_ok() {
        return Err(LinkError::InterfaceInUse(name.to_owned()));
    }
    let (port, name) = Port::tun(name, true).map_err(failed("no TUN interface can be made"))?;
    let has_v6 = silence_ipv6(&name);
    // The replies to packets from this interface leave through others.
    for (key, value) in [("rp_filter", "2"), ("forwarding", "1")] {
        namespace::set(&format!("net.ipv4.conf.{name}.{key}"), value)?;
    }
    let configured = (|| {
        let index = netlink.index_of(&name)?;
        netlink.set_mtu(index, config.mtu.into())?;
        netlink.set_queue_length(index, QUEUE_LENGTH)?;
        netlink.set_up(index)?;
        netlink.add_address(index, DUMMY.into(), 32)?;
        for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            if any.is_ipv4() || has_v6 {
                netlink.add_default_route_to(config.table, index, any)?;
            }
        }
        Ok(())
    })();
    configured.map_err(failed("the TUN interface cannot be configured"))?;
    Ok(port)
}

/// Becomes `user`, if one is named, and gives up all capabilities.
fn drop_privileges(user: Option<&str>) -> Result<(), LinkError> {
    if let Some(name) = user {
        let wrong = |source: std::io::Error| LinkError::User { name: name.to_owned(), source };
        let found = User::from_name(name).map_err(|error| wrong(error.into()))?;
        let user = found.ok_or_else(|| wrong(std::io::Error::other("there is no such user")))?;
        let become_user = || setgroups(&[user.gid]).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
        become_user().map_err(|error| wrong(error.into()))?;
    }
    sys::drop_capabilities(&[]).map_err(LinkError::host("the capabilities cannot be dropped"))
}

/// Initial sequence numbers, which must not be predictable (RFC 6528).
fn initial_sequences() -> Result<RandomStream, LinkError> {
    let random = || {
        let mut bytes = [[0; 8]; 2];
        let mut source = File::open("/dev/urandom")?;
        bytes.iter_mut().try_for_each(|each| source.read_exact(each))?;
        Ok(bytes.map(u64::from_ne_bytes))
    };
    let [seed, repetition] = random().map_err(LinkError::host("the host has no random numbers"))?;
    Ok(Seed { seed, repetition }.stream("proxy/initial-sequences"))
}

/// The path of all mobiles: the proxy.
fn topology(config: &LiveConfig, proxy: MiddleboxHop) -> Topology {
    Topology {
        hops: vec![(NAME.to_owned(), Hop::Middlebox(Box::new(proxy)))],
        route: Route::through_one_hop(),
        mobiles: mobile_names(config).collect(),
    }
}

fn mobile_names(config: &LiveConfig) -> impl Iterator<Item = String> {
    (0..config.most_mobiles).map(|number| format!("mobile-{number}"))
}

/// Names of all components, by their number, as [`Topology::component_names`] returns them.
fn component_names(config: &LiveConfig) -> Vec<String> {
    [NAME, "server"].map(str::to_owned).into_iter().chain(mobile_names(config)).collect()
}

/// Reads the configuration in `file`.
///
/// # Errors
/// If it cannot be read, or is not valid.
pub fn read(file: &Path) -> Result<LiveConfig, LinkError> {
    let name = file.display().to_string();
    let text =
        std::fs::read_to_string(file).map_err(|source| LinkError::Configuration { name: name.clone(), source })?;
    Ok(LiveConfig::read(&text, &name)?)
}
