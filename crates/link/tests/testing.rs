//! The checks of `airpath_link::testing` find planted faults: each test breaks one contract of a
//! link that otherwise keeps them all.

use std::collections::VecDeque;

use airpath_core::{Context, DropCause, Instant, Packet, PacketCounters, PacketStep, Span};
use airpath_link::testing::{Commands, OneWay, Script, Traffic, contracts, idle_sleeps, order_kept};
use airpath_link::{Admission, Change, CommandError, Departure, Link};

/// A link of 20 ms with unlimited capacity, and its fault.
#[derive(Default)]
struct Wire {
    flying: VecDeque<Departure>,
    counters: PacketCounters,
    fault: Fault,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    /// `due` is the time of the poll.
    DueWhenPolled,
    /// Wakes up a millisecond after the departure.
    WakesLate,
    /// Always wakes up immediately.
    NeverSleeps,
    /// Does not count deliveries.
    CountsWrong,
    /// Delays packets of odd id.
    Reorders,
    /// Loses a packet without a report.
    LosesSilently,
    /// Delivers without an event.
    DeliversWithoutEvent,
    /// Delivers every tenth packet twice.
    Duplicates,
    /// Reports a drop with a time that is not the push's.
    DropsLater,
    /// Applies commands that its check refuses.
    AppliesRefusedCommands,
}

const DELAY: Span = Span::from_millis(20);

impl Link for Wire {
    fn push(&mut self, now: Instant, packet: Packet, cx: &mut Context<'_>) -> Admission {
        self.counters.offer(&packet);
        if self.fault == Fault::DropsLater && packet.id == 7 {
            self.counters.lose(&packet, DropCause::Loss);
            cx.drop_packet(now + DELAY, packet, DropCause::Loss);
            return Admission::Dropped(DropCause::Loss);
        }
        cx.packet(now, packet, || PacketStep::Queued { backlog_packets: 1, backlog_bytes: packet.size.into() });
        let delay = match self.fault {
            Fault::Reorders if packet.id % 2 == 1 => DELAY + DELAY,
            _ => DELAY,
        };
        let departure = Departure { due: now + delay, packet };
        let index = self.flying.partition_point(|other| other.due <= departure.due);
        match self.fault {
            Fault::LosesSilently if packet.id == 7 => {}
            Fault::Duplicates if packet.id.is_multiple_of(10) => {
                self.flying.insert(index, departure);
                self.flying.insert(index, departure);
            }
            _ => self.flying.insert(index, departure),
        }
        Admission::Queued
    }

    fn pop(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Departure> {
        self.flying.front().filter(|departure| departure.due <= now)?;
        let mut departure = self.flying.pop_front()?;
        if self.fault == Fault::DueWhenPolled {
            departure.due = now;
        }
        if self.fault != Fault::CountsWrong {
            self.counters.deliver(&departure.packet);
        }
        if self.fault != Fault::DeliversWithoutEvent {
            cx.packet(departure.due, departure.packet, || PacketStep::Delivered);
        }
        Some(departure)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let due = self.flying.front().map(|departure| departure.due);
        match self.fault {
            Fault::WakesLate => due.map(|due| due + Span::from_millis(1)),
            Fault::NeverSleeps => Some(Instant::ZERO),
            _ => due,
        }
    }

    fn counters(&self) -> PacketCounters {
        self.counters
    }

    fn check(&self, change: &Change) -> Result<(), CommandError> {
        Err(CommandError::Foreign { key: change.kind().name(), what: "a wire", help: "it cannot be changed" })
    }

    fn command(&mut self, now: Instant, change: &Change, _: &mut Context<'_>) -> Result<(), CommandError> {
        if self.fault == Fault::AppliesRefusedCommands {
            self.flying.iter_mut().for_each(|departure| departure.due = departure.due.max(now + DELAY));
            return Ok(());
        }
        self.check(change)
    }
}

const HORIZON: Instant = Instant::from_nanos(100_000_000_000);

fn make(fault: Fault) -> impl Fn() -> OneWay<Wire> {
    move || OneWay(Wire { fault, ..Wire::default() })
}

fn check(fault: Fault) {
    let arrivals = Traffic::default().arrivals(1);
    let until = arrivals.last().expect("there is traffic").at;
    let commands = Commands { commands: 5, until, users: 1, classes: &[], reorder: false }.draw(1);
    contracts(make(fault), Script { arrivals: &arrivals, commands: &commands }, HORIZON);
}

#[test]
fn a_sound_link_passes() {
    check(Fault::None);
    order_kept(make(Fault::None), &Traffic::default().arrivals(1), HORIZON);
    idle_sleeps(make(Fault::None), &Traffic::default().arrivals(1), HORIZON);
    check(Fault::Reorders);
}

#[test]
#[should_panic(expected = "polled ")]
fn a_due_that_depends_on_the_poll_is_found() {
    check(Fault::DueWhenPolled);
}

#[test]
#[should_panic(expected = "left earlier")]
fn a_late_wakeup_is_found() {
    check(Fault::WakesLate);
}

#[test]
#[should_panic(expected = "has a wake-up")]
fn a_wakeup_that_does_not_advance_is_found() {
    check(Fault::NeverSleeps);
}

#[test]
#[should_panic(expected = "do not match the packets")]
fn wrong_counters_are_found() {
    check(Fault::CountsWrong);
}

#[test]
#[should_panic(expected = "was not reported as delivered")]
fn a_missing_event_is_found() {
    check(Fault::DeliversWithoutEvent);
}

#[test]
#[should_panic(expected = "reported twice")]
fn a_duplicate_is_found() {
    check(Fault::Duplicates);
}

#[test]
#[should_panic(expected = "did not go to the context")]
fn a_loss_with_the_wrong_time_is_found() {
    check(Fault::DropsLater);
}

#[test]
#[should_panic(expected = "gave another result")]
fn a_check_that_disagrees_with_the_command_is_found() {
    check(Fault::AppliesRefusedCommands);
}

#[test]
#[should_panic(expected = "horizon comes too early")]
fn a_packet_that_vanished_is_found() {
    idle_sleeps(make(Fault::LosesSilently), &Traffic::default().arrivals(1), HORIZON);
}

#[test]
#[should_panic(expected = "out of order")]
fn reordering_is_found() {
    order_kept(make(Fault::Reorders), &Traffic::default().arrivals(1), HORIZON);
}
