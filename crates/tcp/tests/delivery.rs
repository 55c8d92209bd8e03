//! Every byte arrives once and in order, under any impairment of the path.

use airpath_core::{Bitrate, Instant, Seed, Span};
use airpath_tcp::testing::{Hop, Pair, Pipe, Side};
use airpath_tcp::{Algorithm, Config, Nagle, Outcome, Profile, State};
use proptest::prelude::*;

/// Impairments of the path.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    seed: u64,
    loss: f64,
    duplication: f64,
    reordering: f64,
    lateness: u64,
    /// Milliseconds; none if empty.
    outage: (u64, u64),
    queue: usize,
    rate: u64,
    delay: u64,
    /// Every packet with a multiple of this number is CE marked; none if zero.
    mark: u64,
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let chances = (any::<u64>(), 0.0..0.3, 0.0..0.2, 0.0..0.4, 1u64..300);
    let marks = prop_oneof![Just(0u64), 1u64..40];
    let path = ((0u64..3000, prop_oneof![Just(0u64), 0u64..5000]), 1usize..60, 64u64..20_000, 0u64..300);
    (chances, path, marks).prop_map(
        |((seed, loss, duplication, reordering, lateness), (outage, queue, rate, delay), mark)| Impairments {
            seed,
            loss,
            duplication,
            reordering,
            lateness,
            outage,
            queue,
            rate,
            delay,
            mark,
        },
    )
}

impl Impairments {
    fn pipe(&self, which: u64) -> Pipe {
        let (from, length) = self.outage;
        let rate = Some(Bitrate::from_bps(self.rate * 1000));
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        Pipe::of(vec![Hop::new(rate, Span::from_millis(self.delay), self.queue)])
            .chance(self.seed ^ which, self.loss, self.duplication, self.reordering, Span::from_millis(self.lateness))
            .outage(at(from), at(from + length))
            .mark(self.mark)
    }
}

/// A profile with random changes.
fn config() -> impl Strategy<Value = Config> {
    let profile = prop::sample::select(Profile::ALL.to_vec());
    let buffer = prop_oneof![Just(None), (1_500u64..60_000).prop_map(Some)];
    let nagle = prop::sample::select(vec![Nagle::Off, Nagle::Rfc896, Nagle::Minshall]);
    (profile, buffer, any::<[bool; 8]>(), nagle, 64u16..1461).prop_map(|(profile, buffer, flips, nagle, size)| {
        let mut config = profile.config();
        if let Some(bytes) = buffer.filter(|_| config.handshake) {
            config.receive_buffer.initial = airpath_core::Bytes::new(bytes);
            config.receive_buffer.maximum = config.receive_buffer.initial;
        }
        if flips[0] && config.handshake {
            config.selective_acknowledgement ^= flips[1];
            config.timestamps ^= flips[2];
            config.window_scaling ^= flips[3];
            config.recovery.rack ^= flips[4];
            config.ecn ^= flips[5];
            config.pacing ^= flips[6];
            if flips[7] {
                config.congestion.algorithm = Algorithm::Bbr;
            }
            config.nagle = nagle;
            config.maximum_segment_size = size;
        }
        // These paths lose so much that a real connection would be aborted.
        config.retransmission_timeout.retries = 1000;
        config.opening_retries = 1000;
        // The peer must not leave TIME-WAIT while its last acknowledgements are lost repeatedly.
        config.time_wait = Span::from_secs(3_600 * 24 * 10);
        config
    })
}

/// Reads and writes random amounts at random times, verified after each step.
fn exchange(config: &Config, impairments: &Impairments, up: u64, down: u64) -> Pair {
    let mut pair =
        Pair::with([config, config], [u32::MAX - 3000, u32::MAX - 3000], impairments.pipe(1), impairments.pipe(2));
    pair.verifies = true;
    pair.reads = [false; 2];
    let mut chance = Seed::new(impairments.seed).stream("application");
    let mut left = [up, down];
    let mut read = [0; 2];
    let wanted = if config.whole_segments { [0, 0] } else { [down, up] };
    let end = Instant::ZERO + Span::from_secs(3_600 * 24 * 30);
    pair.touch(Side::Client);
    pair.touch(Side::Server);
    let mut steps = 0u64;
    loop {
        for side in [Side::Client, Side::Server] {
            let connection = pair.connection(side);
            if left[side as usize] > 0 && chance.below(4) == 0 {
                let bytes = (1 + chance.below(20_000)).min(left[side as usize]);
                left[side as usize] -= bytes;
                connection.write(bytes);
                if left[side as usize] == 0 {
                    connection.close();
                }
            } else if left[side as usize] == 0 {
                connection.close();
            }
            let readable = connection.readable();
            if readable > 0 && chance.below(3) == 0 {
                let bytes = 1 + chance.below(readable);
                connection.read(bytes);
                read[side as usize] += bytes;
            }
            assert_eq!(read[side as usize] + connection.readable(), connection.received(), "each byte once");
            pair.touch(side);
        }
        steps += 1;
        assert!(steps < 3_000_000, "no end");
        let done = [Side::Client, Side::Server].iter().all(|side| {
            let ours = pair.look(*side);
            read[*side as usize] >= wanted[*side as usize]
                && ours.readable() == 0
                && left[*side as usize] == 0
                && (!config.handshake || ours.peer_closed())
                && (config.handshake || ours.acknowledged() >= [up, down][*side as usize])
        });
        if done {
            break;
        }
        if !pair.step(end)
            && left == [0, 0]
            && [Side::Client, Side::Server].iter().all(|s| pair.look(*s).readable() == 0)
        {
            panic!("stuck at {}: {:#?} {:#?}", pair.now(), pair.look(Side::Client), pair.look(Side::Server));
        }
    }
    if config.handshake {
        assert_eq!(read, [down, up]);
    }
    pair
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

    #[test]
    fn every_byte_once_and_in_order(
        config in config(),
        impairments in impairments(),
        up in 0u64..30_000,
        down in 1u64..200_000,
    ) {
        let mut pair = exchange(&config, &impairments, up, down);
        if config.handshake {
            // The last acknowledgements may take long, too.
            pair.run(Span::from_secs(3_600 * 24 * 30));
            for side in [Side::Client, Side::Server] {
                let ours = pair.look(side);
                prop_assert_eq!(ours.state(), State::Closed);
                prop_assert_eq!(ours.outcome(), Some(Outcome::Closed));
            }
        }
    }
}
