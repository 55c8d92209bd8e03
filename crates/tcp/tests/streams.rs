//! Whole transfers: long, interrupted, with late timers, and repeated.

use airpath_core::{Bitrate, Bytes, ComponentId, Event, Instant, Memory, Span, TcpEvent, TcpTrigger};
use airpath_tcp::testing::{Hop, Pair, Pipe, Side};
use airpath_tcp::{Config, Outcome, Profile, State, Statistics, TimedOut};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// 10 Mbit/s, 20 ms each way, 50 packets of queue.
fn pipe() -> Pipe {
    Pipe::of(vec![Hop::new(Some(Bitrate::from_bps(10_000_000)), Span::from_millis(20), 50)])
}

/// Profiles that open and close.
fn stacks() -> impl Iterator<Item = Profile> {
    Profile::ALL.into_iter().filter(|profile| profile.config().handshake)
}

/// Moves `bytes` from the client to the server, closes, and returns the time of completion.
fn upload(pair: &mut Pair, bytes: u64) -> Instant {
    pair.verifies = true;
    pair.connection(Side::Client).write(bytes);
    pair.connection(Side::Client).close();
    let end = pair.now() + Span::from_secs(10_000);
    assert!(pair.run_until(end, |pair| pair.look(Side::Server).peer_closed()), "{:?}", pair.look(Side::Client));
    assert_eq!(pair.look(Side::Server).received(), bytes);
    pair.now()
}

/// The settings of a stack with a receive window that covers the path: those of the 1990s do not.
fn with_window(profile: Profile) -> Config {
    let mut config = profile.config();
    let buffer = &mut config.receive_buffer;
    buffer.initial = buffer.initial.max(Bytes::new(65_535));
    buffer.maximum = buffer.maximum.max(buffer.initial);
    config
}

#[test]
fn all_stacks_fill_a_clean_path() {
    for profile in stacks() {
        let config = with_window(profile);
        let mut pair = Pair::new(&config, pipe(), pipe());
        let over = upload(&mut pair, 5_000_000);
        // 10 Mbit/s less 52 bytes of headers in 1500 give 4.14 s for 5 MB; slow start and its end
        // add the remaining time.
        let seconds = over.as_secs_f64();
        assert!((4.1..5.0).contains(&seconds), "{profile}: {seconds} s, {:?}", pair.look(Side::Client).statistics());
    }
}

#[test]
fn streams_may_be_longer_than_sequence_numbers() {
    let mut config = Profile::Linux6.config();
    config.maximum_segment_size = 60_000;
    config.receive_buffer.maximum = Bytes::new(16 << 20);
    let pipe = Pipe::new(Span::from_millis(1)).chance(1, 0.0005, 0.0, 0.0005, Span::from_millis(2));
    let mut pair = Pair::with([&config, &config], [u32::MAX - 10, 1], pipe.clone(), pipe);
    pair.connection(Side::Client).write(5_000_000_000);
    pair.connection(Side::Client).close();
    assert!(pair.run_until(at(100_000), |pair| pair.look(Side::Server).peer_closed()));
    assert_eq!(pair.look(Side::Server).received(), 5_000_000_000);
    assert!(pair.look(Side::Client).statistics().retransmitted_segments > 0);
}

#[test]
fn the_smallest_receive_windows_carry_a_stream() {
    for (size, first) in
        [1460, 9000, u16::MAX].into_iter().flat_map(|size| [1, 1000, 1460, 1500, 2900, 3000].map(|first| (size, first)))
    {
        let mut config = Profile::Linux6.config();
        config.maximum_segment_size = size;
        config.receive_buffer.initial = Bytes::new(first);
        let mut pair = Pair::new(&config, pipe(), pipe());
        let over = upload(&mut pair, 400_000).as_secs_f64();
        assert!(over < 30.0, "segments of {size} bytes, a window of {first} bytes: {over} s");
    }
}

#[test]
fn an_outage_is_survived() {
    for profile in stacks() {
        for seconds in [1, 5, 30] {
            let broken = || pipe().outage(at(500), at(500 + 1000 * seconds));
            let mut config = with_window(profile);
            // Windows XP would abort within 20 s.
            config.retransmission_timeout.retries = 15;
            let mut pair = Pair::new(&config, broken(), broken());
            let over = upload(&mut pair, 2_000_000).as_secs_f64();
            // The timer doubles: it expires at the latest one outage duration after the outage.
            let latest = 0.5 + 2.0 * seconds as f64 + 4.0 + 3.0;
            assert!(over < latest, "{profile}, {seconds} s: {over} s");
        }
    }
}

#[test]
fn an_outage_without_end_times_out() {
    for profile in stacks() {
        let broken = || pipe().outage(at(500), at(100_000_000));
        let mut pair = Pair::new(&profile.config(), broken(), broken());
        pair.connection(Side::Client).write(2_000_000);
        pair.run(Span::from_secs(10_000));
        let retries = profile.config().retransmission_timeout.retries;
        let outcome = pair.look(Side::Client).outcome();
        assert!(
            matches!(outcome, Some(Outcome::TimedOut(TimedOut::Data { attempts, .. })) if attempts == retries + 1),
            "{profile}: {outcome:?}"
        );
    }
}

#[test]
fn a_delay_spike_is_undone_where_it_is_detected() {
    // For 100 ms, packets have 600 ms of extra delay: the timer expires, then all outstanding data
    // arrives.
    let spiky = || pipe().queue(usize::MAX).spike(at(1500), at(1600), Span::from_millis(600));
    let run = |config: &Config| -> Statistics {
        let mut pair = Pair::new(config, spiky(), pipe());
        upload(&mut pair, 4_000_000);
        *pair.look(Side::Client).statistics()
    };
    let mut config = Profile::Linux6.config();
    config.recovery.tail_loss_probe = false;
    config.receive_buffer.maximum = config.receive_buffer.initial;
    let recognised = run(&config);
    assert!(recognised.timeouts >= 1 && recognised.undos >= 1, "{recognised:?}");
    config.recovery.forward_rto = false;
    config.recovery.eifel = false;
    config.recovery.duplicate_undo = false;
    let unrecognised = run(&config);
    assert!(unrecognised.undos == 0, "{unrecognised:?}");
    assert!(
        unrecognised.retransmitted_segments > 5 * recognised.retransmitted_segments.max(1),
        "{recognised:?} {unrecognised:?}"
    );
}

#[test]
fn late_calls_keep_the_contracts() {
    for profile in stacks() {
        let lossy = || pipe().chance(3, 0.02, 0.01, 0.02, Span::from_millis(30));
        let mut pair = Pair::new(&profile.config(), lossy(), lossy());
        pair.lateness = Span::from_millis(7);
        upload(&mut pair, 1_000_000);
    }
}

#[test]
fn the_same_seed_gives_the_same_segments() {
    for profile in Profile::ALL {
        let run = || {
            let lossy = |seed| pipe().chance(seed, 0.05, 0.02, 0.05, Span::from_millis(30));
            let mut pair = Pair::new(&profile.config(), lossy(1), lossy(2));
            pair.sent = Some(Vec::new());
            pair.connection(Side::Client).write(300_000);
            pair.run(Span::from_secs(100));
            pair.sent
        };
        assert_eq!(run(), run(), "{profile}");
    }
}

#[test]
fn impairments_exercise_every_mechanism() {
    // Checks that every mechanism of the property test is exercised.
    let mut sum = Statistics::default();
    for seed in 0..240 {
        let bad = |salt: u64| pipe().chance(seed * 2 + salt, 0.1, 0.02, 0.1, Span::from_millis(40));
        let mut pair = Pair::new(&Profile::Linux6.config(), bad(0), bad(1));
        upload(&mut pair, 30_000);
        let one = pair.look(Side::Client).statistics();
        sum.fast_retransmits += one.fast_retransmits;
        sum.timeouts += one.timeouts;
        sum.undos += one.undos;
        sum.tail_probes += one.tail_probes;
        sum.duplicate_acks += one.duplicate_acks;
        sum.duplicate_segments += pair.look(Side::Server).statistics().duplicate_segments;
    }
    let happened =
        [sum.fast_retransmits, sum.timeouts, sum.undos, sum.tail_probes, sum.duplicate_acks, sum.duplicate_segments];
    assert!(happened.iter().all(|count| *count >= 3), "{sum:?}");
}

#[test]
fn marks_replace_losses() {
    let config = Config { ecn: true, ..Profile::Linux6.config() };
    let fast = || Pipe::new(Span::from_millis(20));
    let mut pair = Pair::new(&config, fast().mark(500), fast());
    upload(&mut pair, 5_000_000);
    let statistics = pair.look(Side::Client).statistics();
    assert!(statistics.ecn_reductions >= 4, "{statistics:?}");
    assert_eq!((statistics.retransmitted_segments, statistics.timeouts), (0, 0));
}

#[test]
fn events_report_the_transfer() {
    let mut pair = Pair::new(&Profile::Linux6.config(), pipe().lose(&[40, 41, 90]), pipe());
    pair.events = Some(Memory::default());
    upload(&mut pair, 500_000);
    pair.connection(Side::Server).close();
    pair.run(Span::from_secs(100));
    let events = pair.events.take().expect("they were kept").events;
    let ours = events.iter().filter(|(_, at, _)| *at == ComponentId(Side::Client as u32));
    let story: Vec<&TcpEvent> = ours
        .filter_map(|(_, _, event)| match event {
            Event::Tcp(event) => Some(event),
            _ => None,
        })
        .collect();
    let count = |trigger| story.iter().filter(|event| event.trigger == trigger).count();
    let statistics = *pair.look(Side::Client).statistics();
    assert_eq!((count(TcpTrigger::Established), count(TcpTrigger::Closed)), (1, 1));
    assert_eq!(count(TcpTrigger::FastRetransmit) as u64, statistics.fast_retransmits);
    assert_eq!(count(TcpTrigger::RecoveryEnd), count(TcpTrigger::FastRetransmit));
    assert_eq!(count(TcpTrigger::Timeout) as u64, statistics.timeouts);
    for event in &story {
        // A retransmission is counted beside the original, so twice the data at most.
        assert!(event.in_flight <= 2 * event.outstanding, "{event:?}");
        assert!(event.acknowledged <= 500_001 && event.congestion_window >= 1448, "{event:?}");
    }
    let (first, last) = (story[0], story[story.len() - 1]);
    assert_eq!((first.trigger, last.trigger), (TcpTrigger::Established, TcpTrigger::Closed));
    assert_eq!(last.acknowledged, 500_001, "the FIN, too");
    let samples = story.iter().filter(|event| event.round_trip.is_some()).count() as u64;
    assert_eq!(samples, statistics.rtt_samples - 1, "all but that of the SYN");
}

#[test]
fn both_ways_and_closed() {
    for profile in stacks() {
        let mut pair = Pair::new(&profile.config(), pipe(), pipe());
        for side in [Side::Client, Side::Server] {
            pair.connection(side).write(1_000_000);
            pair.connection(side).close();
        }
        pair.run(Span::from_secs(1000));
        for side in [Side::Client, Side::Server] {
            let end = pair.look(side);
            assert_eq!((end.received(), end.acknowledged()), (1_000_000, 1_000_000), "{profile}");
            assert_eq!((end.state(), end.outcome()), (State::Closed, Some(Outcome::Closed)), "{profile}");
        }
    }
}
