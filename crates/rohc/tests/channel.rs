//! What comes out of a channel is what went in, or nothing, under losses and hostile input.

use std::time::Duration;

use crate::common::{Channel, Flow, Ids, Kind, Outcome, Random, restored_after};
use airpath_rohc::{Compressor, Config, Decompressor, Mode};
use proptest::prelude::*;

fn flows() -> Vec<Flow> {
    let ids = [Ids::Sequential, Ids::Swapped, Ids::Random, Ids::Zero];
    let kinds = [Kind::Voice, Kind::Video, Kind::Datagrams, Kind::Tcp, Kind::Odd];
    let mut flows = Vec::new();
    for (index, kind) in kinds.into_iter().enumerate() {
        flows.push(Flow::new(kind, true, Ids::Zero, 100 + index as u8));
        for (number, ids) in ids.into_iter().enumerate() {
            flows.push(Flow::new(kind, false, ids, (index * 4 + number) as u8));
        }
    }
    flows
}

/// Sends `packets` of each flow. One packet in `loss` begins a loss of up to `burst` packets.
fn run(config: &Config, flow: &Flow, seed: u64, packets: u32, loss: u32, burst: u32) -> Outcome {
    let (mut channel, mut random, mut flow) = (Channel::new(config), Random(seed), flow.clone());
    let (mut outcome, mut lost, mut is_last_lost) = (Outcome::default(), 0, false);
    for _ in 0..packets {
        let packet = flow.next(&mut random);
        channel.compress(&packet);
        if lost == 0 && !is_last_lost && random.one_in(loss) {
            lost = 1 + random.below(burst);
        }
        is_last_lost = lost > 0;
        if is_last_lost {
            lost -= 1;
            continue;
        }
        let compressed = std::mem::take(&mut channel.compressed);
        outcome.count(&channel.decompress(&compressed), &packet);
        channel.compressed = compressed;
    }
    outcome
}

fn configs() -> [Config; 4] {
    let optimistic = Config::default();
    let [unidirectional, reliable] = [Mode::Unidirectional, Mode::Reliable].map(|mode| Config { mode, ..optimistic });
    [optimistic, unidirectional, reliable, Config { large_cids: true, contexts: 300, ..optimistic }]
}

/// Cases of `make test`; `make soak` sets twenty times as many.
fn scale() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}

#[test]
fn without_loss_every_packet_is_restored() {
    for config in configs() {
        for flow in flows() {
            let outcome = run(&config, &flow, 7, 3000, u32::MAX, 1);
            assert_eq!((outcome.delivered, outcome.wrong), (3000, 0), "{flow:?}");
        }
    }
}

/// Fewer losses in a row than the repetitions of each change: nothing is ever discarded.
#[test]
fn short_losses_damage_no_context() {
    for config in configs() {
        for flow in flows() {
            let outcome = run(&config, &flow, 11, 3000, 10, 3);
            assert_eq!((outcome.discarded, outcome.wrong), (0, 0), "{flow:?}: {outcome:?}");
        }
    }
}

/// Longer ones damage contexts. A wrong header passes a CRC of three bits with a probability of
/// 1/8, so some wrong packets are delivered, as with every implementation of RFC 3095.
#[test]
fn long_losses_are_detected_by_the_crc() {
    let mut total = Outcome::default();
    for config in configs() {
        for flow in flows() {
            let outcome = run(&config, &flow, 13, 40 * scale(), 100, 60);
            // A quarter is lost. A context is repaired a round trip later, or by the next IR
            // packet.
            let repairs = if config.mode == Mode::Unidirectional { 0 } else { outcome.discarded };
            assert!(outcome.delivered > repairs, "{flow:?}: {outcome:?}");
            total.delivered += outcome.delivered;
            total.discarded += outcome.discarded;
            total.wrong += outcome.wrong;
        }
    }
    println!("{total:?}");
    assert!(total.wrong * 500 < total.delivered, "{total:?}");
}

/// In reliable mode losses of any length, of packets and of feedback, damage no context: only what
/// was acknowledged is referred to.
#[test]
fn no_loss_damages_a_context_in_reliable_mode() {
    for large_cids in [false, true] {
        let config = Config { mode: Mode::Reliable, large_cids, ..Config::default() };
        let (mut total, mut octets) = (Outcome::default(), 0);
        for flow in flows().into_iter().filter(|flow| !matches!(flow.kind, Kind::Tcp | Kind::Odd)) {
            let (mut channel, mut random, mut flow) = (Channel::new(&config), Random(23), flow);
            let (mut outcome, mut lost) = (Outcome::default(), 0);
            for number in 0..40 * scale() {
                let packet = flow.next(&mut random);
                octets += channel.compress(&packet);
                // The mode is established first.
                channel.loses_feedback = number > 60;
                if lost == 0 && number > 60 && random.one_in(100) {
                    let most = if random.one_in(10) { 400 } else { 60 };
                    lost = 1 + random.below(most);
                }
                if lost > 0 {
                    lost -= 1;
                    continue;
                }
                let compressed = std::mem::take(&mut channel.compressed);
                outcome.count(&channel.decompress(&compressed), &packet);
                channel.compressed = compressed;
            }
            assert_eq!((outcome.discarded, outcome.wrong), (0, 0), "{flow:?}: {outcome:?}");
            total.delivered += outcome.delivered;
        }
        println!("{total:?}, {octets} octets of headers");
    }
}

/// Sends `packets` of each flow. One packet in `every` is lost, and one in `every` arrives after up
/// to `late` later ones. Then `after` packets arrive in order; returns how many of the last hundred
/// of these were restored, too.
fn run_reordered(config: &Config, flow: &Flow, seed: u64, packets: u32, every: u32, late: u32) -> (Outcome, u32) {
    let (mut channel, mut random, mut flow) = (Channel::new(config), Random(seed), flow.clone());
    let mut outcome = Outcome::default();
    let mut waiting: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut restored = 0;
    // In unidirectional mode the next IR packet repairs a context: after 1024 packets of its flow.
    // `Kind::Odd` alternates between two flows.
    let after = 2200;
    for number in 0..packets + after {
        let packet = flow.next(&mut random);
        channel.compress(&packet);
        let is_disturbed = number < packets;
        if is_disturbed && random.one_in(every) {
            continue;
        }
        let delay = if is_disturbed && random.one_in(every) { 1 + random.below(late) } else { 0 };
        // Those that waited come after the packet that they let pass.
        let place = waiting.partition_point(|(due, ..)| *due <= number + delay);
        waiting.insert(place, (number + delay, channel.compressed.clone(), packet));
        let due = waiting.partition_point(|(due, ..)| *due <= number);
        for (_, compressed, original) in waiting.drain(..due) {
            if outcome.count(&channel.decompress(&compressed), &original) {
                restored += u32::from(number >= packets + after - 100);
            }
        }
    }
    (outcome, restored)
}

/// RFC 3095 assumes that a channel does not reorder. If it does, the CRC detects what that damages,
/// as after losses, and the context recovers. Most packets of reliable mode have no CRC.
#[test]
fn reordered_packets_are_restored_or_detected() {
    let mut total = Outcome::default();
    for config in configs().into_iter().filter(|config| config.mode != Mode::Reliable) {
        for flow in flows() {
            let (outcome, restored) = run_reordered(&config, &flow, 17, 50 * scale(), 50, 20);
            assert_eq!(restored, 100, "{flow:?}: {outcome:?}");
            assert!(outcome.delivered > outcome.discarded, "{flow:?}: {outcome:?}");
            total.delivered += outcome.delivered;
            total.discarded += outcome.discarded;
            total.wrong += outcome.wrong;
        }
    }
    println!("{total:?}");
    assert!(total.delivered + total.discarded + total.wrong > 3900 * u64::from(scale()), "{total:?}");
    assert!(total.wrong * 500 < total.delivered, "{total:?}");
}

proptest! {
    /// Arbitrary bytes are rejected or accepted, and contexts stay bounded.
    #[test]
    fn arbitrary_bytes(large_cids: bool, packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..40)) {
        let config = Config { large_cids, contexts: 16, ..Config::default() };
        let mut decompressor = Decompressor::new(&config).expect("a configuration");
        let mut compressor = Compressor::new(&config).expect("a configuration");
        let mut channel = Channel::new(&config);
        for packet in packets {
            // As the packets of a program, they are restored.
            if !packet.is_empty() {
                prop_assert_eq!(channel.pass(&packet).1, Ok(packet.clone()));
            }
            let mut out = Vec::new();
            if let Ok(read) = decompressor.decompress(Duration::ZERO, &packet, packet.len(), &mut out) {
                prop_assert!(read <= packet.len());
            } else {
                prop_assert!(out.is_empty());
            }
            let _ = compressor.receive_feedback(&packet);
            out.clear();
            let replaced = compressor.compress(&packet, packet.len(), &mut out);
            prop_assert!(replaced <= packet.len());
        }
        prop_assert!(decompressor.contexts() <= 16 && compressor.contexts() <= 16);
    }

    /// A valid packet with some octets changed: no panic, and a later IR packet repairs everything.
    #[test]
    fn damaged_packets(seed in 1u64.., damages in prop::collection::vec((0usize..60, any::<u8>()), 1..60)) {
        let (mut random, mut flow) = (Random(seed), Flow::new(Kind::Voice, false, Ids::Sequential, 1));
        let restored = restored_after(damages, || flow.next(&mut random));
        prop_assert!(restored >= 20, "{restored} of 60");
    }
}
