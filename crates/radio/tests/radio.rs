//! What a bearer reports of its transmissions, and that users do not disturb each other's draws.

use crate::common::{cell, cell_abc, dch, dch_384, hs_dsch_384, saturate};
use airpath_core::{Direction, Instant, RadioEvent, RadioTotals, Span, UserId};
use airpath_link::Bearer;
use airpath_link::testing::{Polling, Traffic, drive};

const HORIZON: Instant = Instant::from_nanos(1_000_000_000_000);

fn sum<'a>(events: impl Iterator<Item = &'a RadioEvent>) -> RadioTotals {
    let mut totals = RadioTotals::default();
    events.for_each(|event| totals.add(event));
    totals
}

#[test]
fn totals_are_the_sum_of_the_events() {
    let mut bearer = dch(&dch_384("bler = 0.1"), 3);
    let radio = saturate(&mut bearer, 3, Span::from_secs(20)).radio;
    for user in (0..3).map(|user: u16| UserId::new(user.into())) {
        let events = radio.iter().map(|(_, event)| event).filter(|event| event.user == user);
        assert_eq!(bearer.radio_totals(Direction::Down, user), Some(sum(events)));
        assert_eq!(bearer.radio_totals(Direction::Up, user), None, "a plain link is no radio");
    }
    assert_eq!(bearer.radio_totals(Direction::Down, UserId::new(3)), None);
}

#[test]
fn one_user_in_a_tti_and_no_more_than_it_carries() {
    let classes = [Some("a"), Some("b"), Some("c")];
    let mut bearer = cell(&cell_abc("bler = 0.1"), &classes);
    let radio = saturate(&mut bearer, 3, Span::from_secs(20)).radio;
    assert!(radio.len() > 9_900, "every TTI is used");
    for pair in radio.windows(2) {
        assert_eq!(pair[1].0.since(pair[0].0), Span::from_millis(2));
    }
    for (time, event) in &radio {
        assert_eq!(*time, time.round_up_to(event.duration));
        // Three users' 120, 240, 360, 480 and 640 kbit/s in PDUs of 30 bytes; a repeated block
        // keeps its level.
        let carries = [0, 3, 6, 9, 12, 16][usize::from(event.level)];
        assert_eq!((event.pdus, event.bytes), (carries, u32::from(carries) * 30));
        assert!(event.repeated == 0 || event.repeated == event.pdus, "a repeated block has the TTI to itself");
        assert!(event.errored == 0 || event.errored == event.pdus, "the whole TTI is in error");
    }
    for user in (0..3).map(|user: u16| UserId::new(user.into())) {
        let events = radio.iter().map(|(_, event)| event).filter(|event| event.user == user);
        assert_eq!(bearer.radio_totals(Direction::Down, user), Some(sum(events)));
    }
}

#[test]
fn a_block_in_error_comes_again_after_six_ttis_before_anything_new() {
    let mut bearer = cell(&hs_dsch_384("bler = 0.2"), &[None; 3]);
    let radio = saturate(&mut bearer, 3, Span::from_secs(20)).radio;
    let mut repeats = 0;
    for (index, (time, event)) in radio.iter().enumerate() {
        let Some((later, again)) = radio.get(index + 6) else { break };
        assert_eq!(later.since(*time), Span::from_millis(12));
        assert_eq!(again.repeated > 0, event.errored > 0, "at {time}");
        if event.errored > 0 {
            assert_eq!((again.user, again.pdus), (event.user, event.pdus));
            repeats += 1;
        }
    }
    assert!(repeats > 1000);
}

#[test]
fn pdus_of_a_dch_fail_by_themselves_and_share_ttis_with_new_ones() {
    let mut bearer = dch(&dch_384("bler = 0.1"), 1);
    let radio = saturate(&mut bearer, 1, Span::from_secs(100)).radio;
    for pair in radio.windows(11) {
        assert_eq!(pair[0].1.pdus, 12);
        assert_eq!(pair[10].1.repeated, pair[0].1.errored, "ten TTIs later");
    }
    let mixed = radio.iter().filter(|(_, event)| (1..12).contains(&event.errored)).count();
    assert!(mixed > radio.len() / 2);
}

#[test]
fn the_pdus_of_a_tti_fail_together_if_they_are_one_unit() {
    let mut bearer = dch(&dch_384("bler = 0.1\nerror_unit = \"tti\""), 1);
    let radio = saturate(&mut bearer, 1, Span::from_secs(100)).radio;
    assert!(radio.iter().all(|(_, event)| event.errored == 0 || event.errored == event.pdus));
    assert!(radio.iter().any(|(_, event)| event.errored > 0));
}

/// When user 0's packets leave, each way.
fn of_user_0(mut bearer: impl Bearer, users: u16) -> Vec<(Direction, u64, Instant)> {
    let traffic = |users| Traffic {
        packets: 400,
        gap: Span::from_millis(40),
        users,
        directions: &Direction::BOTH,
        ..Traffic::default()
    };
    // User 0 has the same packets at the same times, whatever the others have.
    let mut arrivals = traffic(1).arrivals(1);
    if users > 1 {
        let others = traffic(users).arrivals(2).into_iter().filter(|arrival| arrival.packet.user > UserId::new(0));
        arrivals.extend(others);
        arrivals.sort_by_key(|arrival| arrival.at);
    }
    // The checks count packets by their index; where user 0's are among them is kept in the slot.
    for (index, arrival) in arrivals.iter_mut().enumerate() {
        arrival.packet.id = index as u64;
    }
    let departures = drive(&mut bearer, &arrivals, Polling::OnTime, HORIZON).departures;
    departures
        .into_iter()
        .filter(|(_, departure)| departure.packet.user == UserId::new(0))
        .map(|(direction, departure)| (direction, u64::from(departure.packet.slot.0), departure.due))
        .collect()
}

#[test]
fn more_users_do_not_change_a_users_draws() {
    let config = dch_384("bler = 0.2");
    let alone = of_user_0(dch(&config, 1), 1);
    assert_eq!(alone.len(), 400);
    assert_eq!(alone, of_user_0(dch(&config, 5), 5));
    // In a cell they share the time; but while the others are idle they leave no trace.
    let config = cell_abc(
        "bler = 0.2\nlevels.rate_share = \"cell\"\nlevels.rates = [\"360 kbit/s\", \"720 kbit/s\"]\nlevels.classes = { a = [1, 1] }",
    );
    let alone = of_user_0(cell(&config, &[Some("a")]), 1);
    assert_eq!(alone, of_user_0(cell(&config, &[Some("a"); 50]), 1));
}
