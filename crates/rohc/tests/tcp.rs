//! Profile 0x0006 (RFC 6846): what comes out is what went in, or nothing; sizes; repair.

use std::time::Duration;

use crate::common::tcp::{Connection, Role, SEGMENT, connections};
use crate::common::{Channel, Ids, Outcome, Random, check_request, restored_after};
use airpath_rohc::{Compressor, Config, DecompressError, Decompressor, Mode, Profile, Profiles};
use proptest::prelude::*;

fn configs() -> [Config; 3] {
    let optimistic = Config::default();
    let unidirectional = Config { mode: Mode::Unidirectional, ..optimistic };
    [optimistic, unidirectional, Config { large_cids: true, contexts: 300, ..optimistic }]
}

/// Cases of `make test`; `make soak` sets twenty times as many.
fn scale() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}

/// How a channel loses and reorders: one packet in `loss` begins a loss of up to `burst`, and one
/// in `late` arrives after up to `depth` later ones.
#[derive(Clone, Copy, Debug)]
struct Disturbance {
    loss: u32,
    burst: u32,
    late: u32,
    depth: u32,
}

impl Disturbance {
    const NONE: Self = Self { loss: u32::MAX, burst: 1, late: u32::MAX, depth: 1 };
}

/// Sends `packets` of a connection, then `after` without disturbance; returns how many of the last
/// hundred of these are restored, too.
fn run(
    config: &Config,
    connection: &Connection,
    seed: u64,
    packets: u32,
    by: Disturbance,
    after: u32,
) -> (Outcome, u32) {
    let (mut channel, mut random, mut connection) = (Channel::new(config), Random(seed), connection.clone());
    let (mut outcome, mut restored, mut lost, mut is_last_lost) = (Outcome::default(), 0, 0, false);
    let mut waiting: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
    for number in 0..packets + after {
        let packet = connection.next(&mut random);
        channel.compress(&packet);
        let is_disturbed = number < packets;
        if is_disturbed && lost == 0 && !is_last_lost && random.one_in(by.loss) {
            lost = 1 + random.below(by.burst);
        }
        is_last_lost = lost > 0;
        if is_last_lost {
            lost -= 1;
            continue;
        }
        let delay = if is_disturbed && random.one_in(by.late) { 1 + random.below(by.depth) } else { 0 };
        let place = waiting.partition_point(|(due, ..)| *due <= number + delay);
        waiting.insert(place, (number + delay, channel.compressed.clone(), packet));
        let due = waiting.partition_point(|(due, ..)| *due <= number);
        for (_, compressed, original) in waiting.drain(..due) {
            let is_restored = outcome.count(&channel.decompress(&compressed), &original);
            restored += u32::from(is_restored && number >= packets + after - 100);
        }
    }
    (outcome, restored)
}

#[test]
fn without_loss_every_packet_is_restored() {
    for config in configs() {
        for connection in connections() {
            let (outcome, _) = run(&config, &connection, 7, 3000, Disturbance::NONE, 0);
            assert_eq!((outcome.delivered, outcome.wrong), (3000, 0), "{connection:?}");
        }
    }
}

/// Fewer losses in a row than the repetitions of each change: nothing is ever discarded.
#[test]
fn short_losses_damage_no_context() {
    let by = Disturbance { loss: 10, burst: 3, ..Disturbance::NONE };
    let mut total = Outcome::default();
    for config in configs() {
        for connection in connections() {
            let (outcome, _) = run(&config, &connection, 11, 3000, by, 0);
            assert_eq!((outcome.discarded, outcome.wrong), (0, 0), "{connection:?}: {outcome:?}");
            total.add(&outcome);
        }
    }
    println!("{total:?}");
}

/// Longer ones damage contexts. Each header has a CRC of three bits at least (RFC 6846 §8.1).
#[test]
fn long_losses_are_detected_by_the_crc() {
    let by = Disturbance { loss: 100, burst: 60, ..Disturbance::NONE };
    let mut total = Outcome::default();
    for config in configs() {
        for connection in connections() {
            let (outcome, restored) = run(&config, &connection, 13, 40 * scale(), by, 1200);
            assert_eq!(restored, 100, "{connection:?}: {outcome:?}");
            total.add(&outcome);
        }
    }
    println!("{total:?}");
    assert!(total.wrong * 500 < total.delivered, "{total:?}");
}

/// The master sequence number has bits for packets that are up to four late (RFC 6846 §8.1).
#[test]
fn packets_that_are_a_little_late_are_restored() {
    let by = Disturbance { late: 20, depth: 3, ..Disturbance::NONE };
    let mut total = Outcome::default();
    for config in configs() {
        for connection in connections() {
            let (outcome, _) = run(&config, &connection, 19, 3000, by, 0);
            total.add(&outcome);
        }
    }
    println!("{total:?}");
    assert_eq!(total.wrong, 0, "{total:?}");
    assert!(total.discarded < 20, "{total:?}");
}

#[test]
fn reordered_packets_are_restored_or_detected() {
    let by = Disturbance { loss: 50, burst: 1, late: 50, depth: 20 };
    let mut total = Outcome::default();
    for config in configs() {
        for connection in connections() {
            let (outcome, restored) = run(&config, &connection, 17, 50 * scale(), by, 1200);
            assert_eq!(restored, 100, "{connection:?}: {outcome:?}");
            total.add(&outcome);
        }
    }
    println!("{total:?}");
    assert!(total.delivered > 1_000_000 * u64::from(scale()) / 256, "{total:?}");
    assert!(total.wrong * 500 < total.delivered, "{total:?}");
}

/// Header sizes of a connection, after its first packets.
fn steady(connection: &Connection) -> Vec<usize> {
    let mut channel = Channel::new(&Config::default());
    let (mut random, mut connection) = (Random(1), connection.clone());
    let mut sizes = Vec::new();
    for _ in 0..2000 {
        let packet = connection.next(&mut random);
        let (header, restored) = channel.pass(&packet);
        assert_eq!(restored.as_ref(), Ok(&packet));
        sizes.push(header);
    }
    sizes.split_off(60)
}

fn mean(sizes: &[usize]) -> f64 {
    sizes.iter().sum::<usize>() as f64 / sizes.len() as f64
}

/// RFC 6846 §4.4: the header of a bulk transfer shrinks to about a tenth.
#[test]
fn sizes_in_steady_state() {
    let calm = |role, is_v6, ids, has_timestamps| Connection {
        is_calm: true,
        has_timestamps,
        ..Connection::new(role, is_v6, ids, 1)
    };
    let mut rows = Vec::new();
    for has_timestamps in [true, false] {
        for (name, is_v6, ids) in [
            ("IPv4, sequential IP-ID", false, Ids::Sequential),
            ("IPv4, random IP-ID", false, Ids::Random),
            ("IPv4, IP-ID 0", false, Ids::Zero),
            ("IPv6", true, Ids::Zero),
        ] {
            let [data, acks] =
                [Role::Download, Role::Acks].map(|role| mean(&steady(&calm(role, is_v6, ids, has_timestamps))));
            println!("{name}, timestamps {has_timestamps}: data {data:.2}, acknowledgments {acks:.2}");
            rows.push((has_timestamps, ids, is_v6, data, acks));
        }
    }
    for (has_timestamps, ids, is_v6, data, acks) in rows {
        // Base header, checksum, and the IP-ID if it is random.
        let id = f64::from(u8::from(ids == Ids::Random)) * 2.0;
        let base = if ids == Ids::Sequential && !is_v6 { 3.0 } else { 2.0 };
        if has_timestamps {
            assert!((base + 2.0 + id..base + 8.0 + id).contains(&data), "{ids:?}: {data}");
            assert!((4.0 + id..8.0 + id).contains(&acks), "{ids:?}: {acks}");
        } else {
            // Residues change when the numbers wrap, which happens once.
            assert!((base + 2.0 + id..base + 2.1 + id).contains(&data), "{ids:?}: {data}");
            assert!((4.0 + id..4.1 + id).contains(&acks), "{ids:?}: {acks}");
        }
    }
}

/// A context that was damaged on purpose: the decompressor reports it, and has it again a round
/// trip later.
#[test]
fn feedback_repairs_a_damaged_context() {
    for role in [Role::Download, Role::Acks] {
        let (mut channel, mut random) = (Channel::new(&Config::default()), Random(3));
        let mut connection = Connection { is_calm: true, ..Connection::new(role, false, Ids::Sequential, 1) };
        for _ in 0..50 {
            let packet = connection.next(&mut random);
            assert_eq!(channel.pass(&packet).1, Ok(packet));
        }
        // The decompressor misses 40 packets, which is more than its intervals cover.
        for _ in 0..40 {
            let packet = connection.next(&mut random);
            channel.compress(&packet);
        }
        let mut failed = 0;
        for _ in 0..30 {
            let packet = connection.next(&mut random);
            failed += u32::from(channel.pass(&packet).1 != Ok(packet));
        }
        assert!((1..=15).contains(&failed), "{role:?}: {failed}; the feedback takes 8 packets");
        let packet = connection.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
    }
}

/// Without its IR packets, nothing is known of a flow, not even its profile.
#[test]
fn an_unknown_context_is_requested() {
    let (mut channel, mut random) = (Channel::new(&Config::default()), Random(3));
    let mut connection = Connection::new(Role::Download, false, Ids::Sequential, 1);
    check_request(&mut channel, || connection.next(&mut random));
}

#[test]
fn an_ir_packet_has_the_size_of_its_chains() {
    let mut channel = Channel::new(&Config::default());
    let mut connection = Connection::new(Role::Download, false, Ids::Sequential, 1);
    let syn = connection.next(&mut Random(1));
    // Type, profile and CRC; static 10 + 4; dynamic 5 and 12, without an acknowledgment number;
    // the list: 1, five indexes in 3, MSS 2, timestamps 8, window scale 1.
    assert_eq!(channel.compress(&syn), 3 + 14 + 17 + 15);
    assert_eq!(channel.compressed[..2], [0xfd, 0x06]);
}

/// The packet types of a channel, by the first octet behind the context identifier.
fn packet_type(compressed: &[u8]) -> u8 {
    let is_cid = |octet: &&u8| **octet & 0xf0 == 0xe0;
    *compressed.iter().find(|octet| !is_cid(octet)).expect("a packet")
}

/// RFC 6846 §7.2: a connection between the same hosts starts from an earlier one.
#[test]
fn a_connection_is_replicated_from_an_earlier_one() {
    const IR: u8 = 0xfd;
    const IR_CR: u8 = 0xfc;
    for (name, is_v6, ids, whole, replicated) in [
        ("IPv4, sequential IP-ID", false, Ids::Sequential, 49, 39),
        ("IPv4, IP-ID 0", false, Ids::Zero, 47, 37),
        ("IPv6", true, Ids::Zero, 72, 39),
    ] {
        let mut channel = Channel::new(&Config::default());
        channel.feedback_delay = 1;
        let (mut random, mut connection) = (Random(3), Connection::new(Role::Short, is_v6, ids, 1));
        let mut syns = Vec::new();
        for number in 0..60 {
            let packet = connection.next(&mut random);
            let (header, restored) = channel.pass(&packet);
            assert_eq!(restored.as_ref(), Ok(&packet), "{name}: {number}");
            if number % 6 == 0 {
                syns.push((packet_type(&channel.compressed), header));
            }
        }
        println!("{name}: the first octet and the size of each SYN {syns:x?}");
        assert_eq!(syns[0], (IR, whole), "{name}");
        // One octet more is the context identifier.
        assert_eq!(syns[1], (IR_CR, replicated + 1), "{name}");
        assert!(syns[1..].iter().all(|(kind, _)| *kind == IR_CR), "{name}: {syns:x?}");
    }
}

/// Without feedback a compressor cannot be sure of a base context.
#[test]
fn nothing_is_replicated_without_acknowledgment() {
    let config = Config { mode: Mode::Unidirectional, ..Config::default() };
    let mut channel = Channel::new(&config);
    let (mut random, mut connection) = (Random(3), Connection::new(Role::Short, false, Ids::Sequential, 1));
    for _ in 0..60 {
        let packet = connection.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
        assert_ne!(packet_type(&channel.compressed), 0xfc);
    }
}

/// The decompressor has lost the base context: the connection begins with IR packets then.
#[test]
fn a_lost_base_context_is_reported() {
    let mut channel = Channel::new(&Config::default());
    channel.feedback_delay = 1;
    let (mut random, mut connection) = (Random(3), Connection::new(Role::Short, false, Ids::Sequential, 1));
    for _ in 0..6 {
        let packet = connection.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
    }
    channel.decompressor = Decompressor::new(&Config::default()).expect("a configuration");
    let packet = connection.next(&mut random);
    assert_eq!(channel.pass(&packet).1, Err(DecompressError::NoContext { cid: 0 }));
    assert_eq!(packet_type(&channel.compressed), 0xfc);
    for _ in 0..20 {
        let packet = connection.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
    }
}

/// What RFC 6846 leaves to the compressor's choice of profiles.
#[test]
fn without_the_profile_its_packets_are_ip() {
    let profiles = Profiles::NONE.with(Profile::Rtp).with(Profile::Udp).with(Profile::Ip);
    let config = Config { profiles, ..Config::default() };
    let (mut channel, mut random) = (Channel::new(&config), Random(3));
    let mut connection = Connection::new(Role::Download, false, Ids::Sequential, 1);
    for _ in 0..20 {
        let packet = connection.next(&mut random);
        channel.compress(&packet);
        assert_ne!(channel.compressed[1], 6);
    }
    let packet = connection.next(&mut random);
    // The TCP header is as it was.
    channel.compress(&packet);
    assert!(channel.compressed.ends_with(&packet[20..]));
    assert!(packet.len() > SEGMENT as usize || packet.len() > 52);
}

/// The same identifier for one flow after another: the master sequence number goes on.
#[test]
fn flows_share_one_identifier() {
    let config = Config { contexts: 1, ..Config::default() };
    let (mut channel, mut random) = (Channel::new(&config), Random(3));
    let mut connection = Connection::new(Role::Short, false, Ids::Sequential, 1);
    for _ in 0..600 {
        let packet = connection.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
    }
    assert_eq!(channel.compressor.contexts(), 1);
}

proptest! {
    /// Any TCP header: options, flags and fields of all kinds are restored, or sent as IP.
    #[test]
    fn arbitrary_headers(
        headers in prop::collection::vec((any::<[u8; 20]>(), prop::collection::vec(any::<u8>(), 0..41), 0usize..20), 1..30),
        same_ports: bool,
        tos: u8,
    ) {
        let mut channel = Channel::new(&Config::default());
        for (mut tcp, mut options, payload) in headers {
            options.truncate(options.len() / 4 * 4);
            if same_ports {
                tcp[..4].copy_from_slice(&[1, 2, 3, 4]);
            }
            tcp[12] = tcp[12] & 0x0f | (5 + options.len() as u8 / 4) << 4;
            let length = 40 + options.len() + payload;
            let mut packet = vec![0x45, tos, 0, length as u8, 0, payload as u8, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let checksum = airpath_wire::checksum::Sum::of(&packet).checksum();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            packet.extend_from_slice(&tcp);
            packet.extend_from_slice(&options);
            packet.resize(length, 0x77);
            prop_assert_eq!(channel.pass(&packet).1, Ok(packet));
        }
    }

    /// A valid packet with some octets changed: no panic, and a context that is repaired.
    #[test]
    fn damaged_packets(seed in 1u64.., odd: bool, damages in prop::collection::vec((0usize..60, any::<u8>()), 1..60)) {
        let role = if odd { Role::Odd } else { Role::Acks };
        let (mut random, mut connection) = (Random(seed), Connection::new(role, false, Ids::Sequential, 1));
        let restored = restored_after(damages, || connection.next(&mut random));
        prop_assert!(restored >= 20, "{restored} of 60");
    }

    /// Arbitrary bytes behind the first octets of each packet type of a valid context.
    #[test]
    fn arbitrary_compressed_packets(seed in 1u64.., packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 1..40)) {
        let (mut random, mut connection) = (Random(seed), Connection::new(Role::Odd, false, Ids::Sequential, 1));
        let mut channel = Channel::new(&Config::default());
        let packet = connection.next(&mut random);
        prop_assert_eq!(channel.pass(&packet).1, Ok(packet));
        let mut compressor = Compressor::new(&Config::default()).expect("a configuration");
        let mut decompressor: Decompressor = channel.decompressor;
        for packet in packets {
            let mut out = Vec::new();
            match decompressor.decompress(Duration::ZERO, &packet, packet.len(), &mut out) {
                Ok(read) => prop_assert!(read <= packet.len()),
                Err(_) => prop_assert!(out.is_empty()),
            }
            let original = connection.next(&mut random);
            out.clear();
            compressor.compress(&original, original.len(), &mut out);
            let _ = compressor.receive_feedback(&packet);
        }
    }
}
