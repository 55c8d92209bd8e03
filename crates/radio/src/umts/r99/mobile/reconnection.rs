//! A handover that fails: the connection is lost, and the mobile comes back by itself.
//!
//! ```text
//!   T313           cell_selection      rrc_setup               registration
//!   Failing ─────► Selecting ────────► Connecting ───────────► Registering ──────► connected
//!                  ▲  no cell: again   │ no answer: after T300 │ failure: after T3311,
//!                  └───────────────────┘ N300 times            └ or T3302 after `attempts` failures
//! ```
//!
//! Meanwhile coverage can come and go: messages are not answered without it, and the failure of the
//! radio link by lost coverage (`mobile/movement.rs`) is disabled. The traffic that waits does not
//! start a second RRC connection either.

use airpath_core::{Context, DropCause, Instant, LinkState, ModeState, RandomStream, Seed, Span};

use super::Mobile;
use crate::umts::r99::config;
use crate::umts::r99::errors::TtiErrors;

/// The C/I below what the common channels need that makes the odds of an error ten times as high:
/// the default of a dedicated channel.
const CI_PER_DECADE: f64 = 2.0;

/// The share of messages that are lost at a sufficient C/I: that for which TS 25.101 §8.6 specifies
/// the broadcast channel (recalled, not verified).
const LOST: f64 = 0.01;

/// What a mobile does to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The radio link is about to fail: T313.
    Failing,
    /// A cell is selected.
    Selecting,
    /// The last RRC CONNECTION REQUEST may be answered. The number of requests sent.
    Connecting(u32),
    /// T300 runs after a request without an answer. The number of requests sent.
    ConnectingAgain(u32),
    /// The last ROUTING AREA UPDATE REQUEST may be answered. The number of requests sent.
    Registering(u32),
    /// T3311 or T3302 runs after a failed attempt. The number of requests sent.
    RegisteringAgain(u32),
}

/// The lost connection of a mobile, if it has lost one.
#[derive(Debug)]
pub struct Reconnection {
    config: config::Reconnection,
    failures: RandomStream,
    errors: TtiErrors,
    /// The step, and when it ends.
    running: Option<(Instant, Step)>,
}

impl Reconnection {
    /// A connection that is not lost, with streams below `path`.
    pub fn new(config: config::Reconnection, seed: Seed, path: &str) -> Self {
        let lost = airpath_core::Probability::new(LOST).expect("a share");
        let errors = TtiErrors::new(lost, None, CI_PER_DECADE, seed.stream(&format!("{path}/reconnection/errors")));
        Self { config, failures: seed.stream(&format!("{path}/reconnection/failures")), errors, running: None }
    }

    /// Whether the mobile has no connection.
    #[inline]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// When the present step ends.
    #[inline]
    pub fn next_change(&self) -> Option<Instant> {
        self.running.map(|(at, _)| at)
    }

    /// Whether the handover that begins now fails; `None` without a connection.
    pub fn draw(&mut self) -> Option<bool> {
        (!self.is_running()).then(|| self.failures.uniform() < self.config.failures.get())
    }

    /// Whether a message on the common channels is answered, at this C/I and in coverage.
    fn is_answered(&mut self, now: Instant, span: Span, ratio: f64, covered: bool) -> bool {
        let errored = self.errors.is_errored(now, span, ratio, Some(self.config.needs.get()));
        covered && !errored
    }

    /// The step after `step`, which ends at `now`, and the duration of the next; `None`: connected.
    fn next(&self, step: Step, answered: bool) -> Option<(Span, Step)> {
        let config = &self.config;
        let request = |count| (config.rrc_setup, Step::Connecting(count));
        let register = |count| (config.registration, Step::Registering(count));
        Some(match (step, answered) {
            (Step::Failing, _) | (Step::Selecting, false) => (config.cell_selection, Step::Selecting),
            (Step::Selecting, true) => request(1),
            (Step::Connecting(_), true) => register(1),
            // V300 counts the requests: at most N300 repetitions.
            (Step::Connecting(count), false) if count <= config.n300 => {
                (config.t300 - config.rrc_setup, Step::ConnectingAgain(count))
            }
            (Step::Connecting(_), false) => (config.cell_selection, Step::Selecting),
            (Step::ConnectingAgain(count), _) => request(count + 1),
            (Step::Registering(_), true) => return None,
            (Step::Registering(count), false) => {
                let again = if count % config.attempts == 0 { config.t3302 } else { config.t3311 };
                (again, Step::RegisteringAgain(count))
            }
            (Step::RegisteringAgain(count), _) => register(count + 1),
        })
    }
}

impl Mobile {
    /// Whether the connection was lost in a handover, and is not set up again.
    #[inline]
    pub(super) fn has_lost_connection(&self) -> bool {
        self.reconnection.as_ref().is_some_and(Reconnection::is_running)
    }

    /// The connection is lost in a handover that began at `at`.
    pub(super) fn lose_connection(&mut self, at: Instant, cx: &mut Context<'_>) {
        let Some(reconnection) = &mut self.reconnection else { return };
        reconnection.running = Some((at + self.mobility.link_failure, Step::Failing));
        self.resets.forget(None);
        self.tracks.mode(at, ModeState::Handover, None, cx);
        self.links.iter_mut().for_each(|link| link.tti_at = None);
    }

    /// A step of a lost connection ends at `now`.
    pub(super) fn reconnect(&mut self, now: Instant, cx: &mut Context<'_>) {
        let sample = self.look_around(now, cx);
        let covered = self.coverage.is_covered();
        let Some(reconnection) = &mut self.reconnection else { return };
        let Some((at, step)) = reconnection.running.filter(|(at, _)| *at <= now) else { return };
        let is_message = matches!(step, Step::Selecting | Step::Connecting(_) | Step::Registering(_));
        let span = reconnection.config.rrc_setup;
        let answered = is_message && reconnection.is_answered(now, span, sample.carrier_to_interference, covered);
        let next = reconnection.next(step, answered);
        reconnection.running = next.map(|(span, step)| (at + span, step));
        if step == Step::Failing {
            self.discard(now, DropCause::Handover, cx);
            self.rrc.lose(now);
            self.tracks.totals.link_failures += 1;
            self.tracks.link(now, LinkState::Failed, cx);
            if covered {
                self.tracks.mode(now, ModeState::ReEstablishment, None, cx);
            }
            self.report_state(now, cx);
        }
        if next.is_none() {
            self.rrc.connect(now);
            self.tracks.totals.set_ups += 1;
            self.enter_state(now, cx);
            self.tracks.mode(now, ModeState::Connected, None, cx);
            self.tracks.link(now, LinkState::Connected, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{
        Aspect, ComponentId, Direction, Ecn, Event, FlowId, Memory, Packet, RrcState, Slot, StateValue, UserId,
    };

    use super::*;
    use crate::common::multiplexing::members::Member;
    use crate::conditions::Transition;

    fn config() -> config::Reconnection {
        toml::from_str(
            r#"
            failures = 1.0
            needs = "-1 dB"
            cell_selection = "1.44 s"
            rrc_setup = "500 ms"
            t300 = "1 s"
            n300 = 3
            registration = "2 s"
            t3311 = "15 s"
            attempts = 2
            t3302 = "720 s"
            "#,
        )
        .expect("parameters")
    }

    /// The seconds until the mobile is connected, if these of its messages are answered: of cell
    /// selections, requests and updates in their order, and all later ones.
    fn seconds(answers: &[bool]) -> f64 {
        let reconnection = Reconnection::new(config(), Seed::new(1), "a");
        let (mut step, mut spent, mut answers) = (Step::Failing, Span::from_secs(3), answers.iter());
        loop {
            let is_message = matches!(step, Step::Selecting | Step::Connecting(_) | Step::Registering(_));
            let answered = is_message && *answers.next().unwrap_or(&true);
            let Some((span, next)) = reconnection.next(step, answered) else { return spent.as_secs_f64() };
            spent += span;
            step = next;
        }
    }

    #[test]
    fn each_step_takes_its_time() {
        // T313, cell selection, RRC connection, registration.
        assert!((seconds(&[]) - (3.0 + 1.44 + 0.5 + 2.0)).abs() < 1e-9);
    }

    #[test]
    fn messages_without_an_answer_are_repeated_by_their_timers() {
        let none = seconds(&[]);
        // The second request follows after T300.
        assert!((seconds(&[true, false]) - none - 1.0).abs() < 1e-9);
        // After N300 repetitions without an answer, a cell is selected again: three times T300, and
        // what the fourth request took.
        let selected_again = seconds(&[true, false, false, false, false]);
        assert!((selected_again - none - (3.0 + 0.5 + 1.44)).abs() < 1e-9, "{selected_again}");
        assert!((seconds(&[false]) - none - 1.44).abs() < 1e-9);
        // T3311; after the second attempt T3302. Each attempt takes its time.
        assert!((seconds(&[true, true, false]) - none - (2.0 + 15.0)).abs() < 1e-9);
        assert!((seconds(&[true, true, false, false]) - none - (2.0 + 15.0 + 2.0 + 720.0)).abs() < 1e-9);
    }

    #[test]
    fn answers_depend_on_the_radio_and_on_coverage() {
        let mut reconnection = Reconnection::new(config(), Seed::new(1), "a");
        let mut answered = |ratio: f64, covered: bool| {
            let answers = (0..1000).filter(|second| {
                reconnection.is_answered(Instant::ZERO + Span::from_secs(*second), Span::from_secs(1), ratio, covered)
            });
            answers.count()
        };
        assert_eq!(answered(10.0, false), 0);
        assert!(answered(10.0, true) > 970);
        // Ten times the odds for each 2 dB: 1 in 2 some 4 dB below.
        assert!((400..600).contains(&answered(-5.0, true)));
        assert!(answered(-15.0, true) < 10);
    }

    /// A mobile of a preset at 20 dB. Each of its handovers fails.
    fn mobile(preset: &str) -> Mobile {
        let file = format!("{}/../../presets/{preset}.toml", env!("CARGO_MANIFEST_DIR"));
        let preset: toml::Table = std::fs::read_to_string(file).expect("a preset").parse().expect("a table");
        let mut bearer = preset["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        bearer.insert("conditions".into(), toml::Table::from_iter([("ci".into(), "20 dB".into())]).into());
        let mut bearer: config::Config = bearer.try_into().expect("parameters");
        bearer.mobility.reconnection = Some(config());
        Mobile::new(&bearer, 0, Seed::new(1), "a").expect("parameters")
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Span::from_secs_f64(seconds)
    }

    fn packet() -> Packet {
        Packet { id: 0, size: 1000, flow: FlowId(0), user: UserId::new(0), ecn: Ecn::NotEct, slot: Slot(0) }
    }

    /// Works off what happens up to a time. Returns when packets leave.
    fn advance(mobile: &mut Mobile, until: Instant, cx: &mut Context<'_>) -> Vec<Instant> {
        let mut left = Vec::new();
        while let Some(now) = mobile.next_wakeup().filter(|now| *now <= until) {
            while mobile.pop(now, cx).is_some() {
                left.push(now);
            }
        }
        mobile.pop(until, cx);
        left
    }

    #[test]
    fn coverage_that_is_lost_meanwhile_starts_no_second_recovery() {
        let (mut log, mut lost) = (Memory::default(), Vec::new());
        let mut cx = Context::new(Some(&mut log), &mut lost, ComponentId(0));
        let mut mobile = mobile("umts-r99-384");
        let pass = |mobile: &mut Mobile, seconds, transition, cx: &mut Context<'_>| {
            advance(mobile, at(seconds), cx);
            mobile.pass(at(seconds), at(seconds), transition, cx);
        };
        pass(&mut mobile, 1.0, Transition::Handover { to: 1, gap: Span::from_millis(100) }, &mut cx);
        pass(&mut mobile, 2.0, Transition::CoverageLost, &mut cx);
        // After T313 of the handover, and within T313 of the coverage.
        advance(&mut mobile, at(4.5), &mut cx);
        mobile.push(at(4.5), Direction::Down, packet(), &mut cx);
        advance(&mut mobile, at(30.0), &mut cx);
        assert!(mobile.has_lost_connection() && !mobile.coverage.is_released());
        mobile.push(at(30.0), Direction::Down, packet(), &mut cx);
        pass(&mut mobile, 31.0, Transition::CoverageBack { to: 1 }, &mut cx);
        // A cell is selected at most 1.44 s later, then RRC connection and registration.
        let left = advance(&mut mobile, at(60.0), &mut cx);
        assert_eq!(left.len(), 2, "what came after T313 waits and is carried");
        assert!((33.5..36.5).contains(&left[0].since(Instant::ZERO).as_secs_f64()), "{left:?}");
        assert!(lost.is_empty());
        let value = |aspect| {
            let values = log.events.iter().filter_map(|(_, _, event)| match event {
                Event::State(state) if state.aspect == aspect => Some(state.value),
                _ => None,
            });
            values.collect::<Vec<_>>()
        };
        let names = |names: &[&'static str]| names.iter().map(|name| StateValue::Name(name)).collect::<Vec<_>>();
        assert_eq!(value(Aspect::Link), names(&["failed", "connected"]));
        let modes = ["handover", "no-coverage", "re-establishment", "connected"];
        assert_eq!(value(Aspect::Mode), names(&modes));
    }

    #[test]
    fn an_rlc_reset_under_way_ends_with_the_connection() {
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        let mut mobile = mobile("umts-r99-384");
        advance(&mut mobile, at(1.0), &mut cx);
        mobile.begin_reset(at(1.0), Direction::Down, &mut cx);
        mobile.lose_connection(at(1.0), &mut cx);
        assert_eq!(mobile.resets.next_timer(), None);
        mobile.push(at(10.0), Direction::Down, packet(), &mut cx);
        assert_eq!(advance(&mut mobile, at(20.0), &mut cx).len(), 1, "the RLC is not stopped");
    }

    #[test]
    fn waiting_packets_set_up_no_second_rrc_connection() {
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        let mut mobile = mobile("umts-r99-states");
        mobile.push(at(0.0), Direction::Down, packet(), &mut cx);
        while mobile.rrc.state() != RrcState::CellDch {
            let now = mobile.next_wakeup().expect("a connection is set up");
            advance(&mut mobile, now, &mut cx);
        }
        let now = mobile.clock;
        mobile.pass(now, now, Transition::Handover { to: 1, gap: Span::ZERO }, &mut cx);
        assert!(mobile.has_lost_connection());
        let failed = now + mobile.mobility.link_failure;
        advance(&mut mobile, failed, &mut cx);
        assert_eq!(mobile.rrc.state(), RrcState::Idle);
        mobile.push(failed, Direction::Up, packet(), &mut cx);
        assert!(!mobile.rrc.is_promoted());
        // Cell selection, RRC connection, registration; then the state of `connects_to`.
        let connected = failed + Span::from_secs_f64(1.44 + 0.5 + 2.0);
        advance(&mut mobile, connected - Span::from_nanos(1), &mut cx);
        assert_eq!((mobile.rrc.state(), mobile.rrc.is_promoted()), (RrcState::Idle, false));
        advance(&mut mobile, connected, &mut cx);
        assert_eq!((mobile.rrc.state(), mobile.has_lost_connection()), (RrcState::CellDch, false));
        let left = advance(&mut mobile, connected + Span::from_secs(5), &mut cx);
        assert!(left.len() == 1 && left[0] < connected + Span::from_secs(2), "{left:?}");
    }

    #[test]
    fn an_idle_mobile_has_no_connection_to_lose() {
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        let mut mobile = mobile("umts-r99-states");
        mobile.pass(at(1.0), at(1.0), Transition::Handover { to: 1, gap: Span::ZERO }, &mut cx);
        assert!(!mobile.has_lost_connection());
    }

    #[test]
    fn a_reselection_of_an_idle_mobile_is_not_counted() {
        let mut lost = Vec::new();
        let mut cx = Context::new(None, &mut lost, ComponentId(0));
        for (preset, handovers) in [("umts-r99-states", 0), ("umts-r99-384", 1)] {
            let mut mobile = mobile(preset);
            mobile.pass(at(1.0), at(1.0), Transition::Reselection { to: 1, gap: Span::ZERO }, &mut cx);
            assert_eq!(mobile.connection_totals().handovers, handovers, "{preset}");
        }
    }
}
