//! Version 2 of the profiles (RFC 5225): losses, packets that arrive late, sizes, repair, and
//! hostile input.

use crate::common;
use std::time::Duration;

use crate::common::{Channel, Flow, Ids, Kind, Outcome, Random, check_request};
use airpath_rohc::{Compressor, Config, Decompressor, Mode, Profile, Profiles, ReorderRatio, Version};
use proptest::prelude::*;

const RATIOS: [ReorderRatio; 4] =
    [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];
const IDS: [Ids; 4] = [Ids::Sequential, Ids::Swapped, Ids::Random, Ids::Zero];
const KINDS: [Kind; 5] = [Kind::Voice, Kind::Video, Kind::Datagrams, Kind::Tcp, Kind::Odd];

/// Without the profile of TCP, so that a TCP header belongs to the payload of profile 0x0104.
fn config(mode: Mode, reorder_ratio: ReorderRatio) -> Config {
    let profiles = [Profile::Rtp, Profile::Udp, Profile::Ip].into_iter().fold(Profiles::NONE, Profiles::with);
    Config { mode, version: Version::Two, reorder_ratio, profiles, ..Config::default() }
}

fn flows() -> Vec<Flow> {
    let mut flows = Vec::new();
    for (index, kind) in KINDS.into_iter().enumerate() {
        flows.push(Flow::new(kind, true, Ids::Zero, 100 + index as u8));
        for (number, ids) in IDS.into_iter().enumerate() {
            let has_checksum = number % 2 == 1;
            flows.push(Flow { has_checksum, ..Flow::new(kind, false, ids, (index * 4 + number) as u8) });
        }
    }
    flows
}

/// Cases of `make test`; `make soak` sets twenty times as many.
fn scale() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}

/// What a link does to one packet in `every`.
#[derive(Clone, Copy, Debug)]
struct Link {
    every: u32,
    /// Most packets that are lost in a row.
    burst: u32,
    /// Most packets by which one is late.
    late: u32,
    /// Packets that would arrive behind a larger gap, or later, are lost: the gap and the delay are
    /// within the reorder ratio.
    is_bounded: bool,
}

/// Sends `packets` of a flow over a link, and 60 more that arrive in order.
fn run(config: &Config, flow: &Flow, seed: u64, packets: u32, link: Link) -> Outcome {
    let (mut channel, mut random, mut flow) = (Channel::new(config), Random(seed), flow.clone());
    let (ratio, mut outcome, mut lost) = (config.reorder_ratio, Outcome::default(), 0);
    let mut waiting: Vec<(u32, u32, Vec<u8>, Vec<u8>)> = Vec::new();
    // The latest packet that has arrived.
    let mut latest = 0;
    for number in 1..=packets + 60 {
        let packet = flow.next(&mut random);
        channel.compress(&packet);
        let is_disturbed = number <= packets && number > 1;
        if lost == 0 && is_disturbed && random.one_in(link.every) {
            lost = random.below(link.burst + 1);
        }
        // A gap that grows beyond the ratio ends here.
        let is_needed = link.is_bounded && number - latest >= ratio.repeats();
        let is_lost = lost > 0 && is_disturbed && !is_needed;
        lost = lost.saturating_sub(1);
        let is_late = is_disturbed && !is_needed && link.late > 0 && random.one_in(link.every);
        let delay = if is_late { 1 + random.below(link.late) } else { 0 };
        if !is_lost {
            let place = waiting.partition_point(|(due, ..)| *due <= number + delay);
            waiting.insert(place, (number + delay, number, channel.compressed.clone(), packet));
        }
        let due = waiting.partition_point(|(due, ..)| *due <= number);
        for (_, sent, compressed, original) in waiting.drain(..due) {
            let is_beyond = sent < latest && latest - sent > ratio.late() || sent > latest + ratio.repeats();
            if link.is_bounded && is_beyond {
                continue;
            }
            latest = latest.max(sent);
            outcome.count(&channel.decompress(&compressed), &original);
        }
    }
    outcome
}

#[test]
fn without_loss_every_packet_is_restored() {
    let link = Link { every: u32::MAX, burst: 0, late: 0, is_bounded: false };
    for ratio in RATIOS {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            for large_cids in [false, true] {
                let config = Config { large_cids, contexts: 12, ..config(mode, ratio) };
                for flow in flows() {
                    let outcome = run(&config, &flow, 7, 1500, link);
                    assert_eq!((outcome.discarded, outcome.wrong), (0, 0), "{config:?} {flow:?}: {outcome:?}");
                }
            }
        }
    }
}

/// Within the reorder ratio, losses and late packets damage nothing: every packet that arrives is
/// restored, and none is wrong.
#[test]
fn losses_and_late_packets_within_the_ratio_damage_nothing() {
    let mut total = Outcome::default();
    for ratio in RATIOS {
        let link = Link { every: 6, burst: ratio.repeats() - 1, late: ratio.late(), is_bounded: true };
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            for flow in flows() {
                // `Kind::Odd` alternates between two flows, and each has other gaps.
                if flow.kind == Kind::Odd {
                    continue;
                }
                let outcome = run(&config(mode, ratio), &flow, 11, 40 * scale(), link);
                assert_eq!((outcome.discarded, outcome.wrong), (0, 0), "{ratio:?} {mode:?} {flow:?}: {outcome:?}");
                total.add(&outcome);
            }
        }
    }
    println!("{total:?}");
    assert!(total.delivered > 3000 * u64::from(scale()), "{total:?}");
}

/// Beyond the ratio contexts are damaged, and the CRC detects it. A wrong header passes a CRC of
/// three bits with a probability of 1/8.
#[test]
fn what_is_beyond_the_ratio_is_detected_by_the_crc() {
    for (name, link) in [
        ("losses", Link { every: 100, burst: 60, late: 0, is_bounded: false }),
        ("late", Link { every: 50, burst: 1, late: 20, is_bounded: false }),
    ] {
        for ratio in RATIOS {
            let mut total = Outcome::default();
            for mode in [Mode::Unidirectional, Mode::Optimistic] {
                for flow in flows() {
                    total.add(&run(&config(mode, ratio), &flow, 13, 8 * scale(), link));
                }
            }
            println!("{name} {ratio:?}: {total:?}");
            assert!(total.delivered > 2 * total.discarded && total.wrong * 100 < total.delivered, "{total:?}");
        }
    }
}

fn voice(is_v6: bool, ids: Ids) -> Flow {
    Flow { is_calm: true, sequence: 1000, timestamp: 160_000, ..Flow::new(Kind::Voice, is_v6, ids, 1) }
}

/// RFC 5225 §6.8.2.4: `pt_0_crc3` has one octet; a checksum of UDP and a random IP-ID add two each,
/// an IP-ID that is always zero adds none.
#[test]
fn a_voice_header_has_one_to_four_octets() {
    let cases = [
        (voice(false, Ids::Sequential), 1),
        (voice(false, Ids::Swapped), 1),
        (voice(false, Ids::Zero), 1),
        (voice(false, Ids::Random), 3),
        (voice(true, Ids::Zero), 3),
        (Flow { has_checksum: true, ..voice(false, Ids::Sequential) }, 3),
    ];
    for ratio in RATIOS {
        for (flow, octets) in &cases {
            let mut channel = Channel::new(&config(Mode::Optimistic, ratio));
            let (mut random, mut flow) = (Random(1), flow.clone());
            for number in 0..2000 {
                let packet = flow.next(&mut random);
                let (header, restored) = channel.pass(&packet);
                assert_eq!(restored.as_ref(), Ok(&packet));
                assert!(header == *octets || number < 20, "{ratio:?} {flow:?}: {number} has {header}");
            }
        }
    }
}

/// Sizes and first octets of the packets of a flow, after `change` of the packet behind 30.
fn after(flow: &Flow, change: impl FnOnce(&mut Flow)) -> (u8, usize) {
    let mut channel = Channel::new(&config(Mode::Optimistic, ReorderRatio::None));
    let (mut random, mut flow) = (Random(1), flow.clone());
    for _ in 0..30 {
        let packet = flow.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
    }
    change(&mut flow);
    let packet = flow.next(&mut random);
    let (header, restored) = channel.pass(&packet);
    assert_eq!(restored, Ok(packet));
    (channel.compressed[0], header)
}

/// The packet types of RFC 5225 §6.8.2.4, with their discriminators and sizes.
#[test]
fn each_change_has_the_smallest_packet() {
    let sequential = voice(false, Ids::Sequential);
    let (zero, v6) = (voice(false, Ids::Zero), voice(true, Ids::Zero));
    let check = |flow: &Flow, change: fn(&mut Flow), first: u8, mask: u8, octets: usize| {
        let (octet, header) = after(flow, change);
        assert_eq!((octet & mask, header), (first, octets), "{flow:?}");
    };
    // pt_0_crc3 and pt_0_crc7, by how many sequence numbers are missing.
    let skip = |flow: &mut Flow, count: u16| {
        flow.sequence += count;
        flow.timestamp += 160 * u32::from(count);
        flow.id += count;
    };
    check(&sequential, |_| {}, 0, 0x80, 1);
    assert_eq!(after(&sequential, |flow| skip(flow, 12)), (0x80 | (19_u8) >> 1, 2));
    // pt_1_seq_id, pt_1_seq_ts, pt_1_rnd.
    check(&sequential, |flow| flow.id += 5, 0x90, 0xf0, 2);
    check(&sequential, |flow| flow.timestamp += 160 * 10, 0xa0, 0xe0, 2);
    check(&zero, |flow| flow.timestamp += 160 * 10, 0xa0, 0xe0, 2);
    // pt_2_seq_id, pt_2_seq_ts, pt_2_seq_both, pt_2_rnd.
    check(&sequential, |flow| flow.id += 20, 0xc0, 0xf8, 3);
    assert_eq!(after(&sequential, |flow| skip(flow, 80)).1, 3);
    let skip_and_pause = |flow: &mut Flow| {
        flow.sequence += 80;
        flow.id += 80;
        flow.timestamp += 160 * 20;
    };
    assert_eq!(after(&sequential, skip_and_pause), (0xd0 | (87_u8) >> 3, 3));
    check(
        &sequential,
        |flow| {
            flow.id += 5;
            flow.timestamp += 160 * 10;
        },
        0xc8,
        0xf8,
        4,
    );
    check(&zero, |flow| flow.timestamp += 160 * 40, 0xc0, 0xe0, 3);
    // co_common: discriminator, two octets of CRCs and indicators, flags, TTL, sequence number,
    // offset of the IP-ID, timestamp; with IPv6 no IP-ID, but the checksum of UDP.
    check(&sequential, |flow| flow.ttl = 3, 0xfa, 0xff, 8);
    check(&v6, |flow| flow.ttl = 3, 0xfa, 0xff, 7 + 2);
    // Without RTP: the flags have the TTL already, and there is no timestamp.
    let datagrams = Flow { is_calm: true, ..Flow::new(Kind::Datagrams, false, Ids::Sequential, 1) };
    check(&datagrams, |_| {}, 0, 0x80, 1);
    check(&datagrams, |flow| flow.id += 5, 0xa0, 0xe0, 2);
    check(&datagrams, |flow| flow.id += 40, 0xc0, 0xe0, 3);
    check(&datagrams, |flow| flow.ttl = 3, 0xfa, 0xff, 6);
    // co_repair: two octets of CRCs, and the dynamic chain of 5 + 5 octets.
    check(&datagrams, |flow| flow.has_checksum = true, 0xfb, 0xff, 3 + 10);
}

#[test]
fn an_ir_packet_has_the_size_of_its_chains() {
    let first = |mut flow: Flow| {
        let mut channel = Channel::new(&config(Mode::Optimistic, ReorderRatio::Half));
        let packet = flow.next(&mut Random(1));
        (channel.compress(&packet), channel.compressed[..2].to_vec())
    };
    // Type, profile, CRC. Static: IPv4 10, IPv6 36 with a flow label, UDP 4, RTP 4. Dynamic: IPv4 5
    // or 3 without IP-ID, IPv6 2, UDP 2 or 5 with the sequence number, RTP 8.
    assert_eq!(first(voice(false, Ids::Sequential)), (3 + 18 + 15, vec![0xfd, 0x01]));
    assert_eq!(first(voice(false, Ids::Zero)), (3 + 18 + 13, vec![0xfd, 0x01]));
    assert_eq!(first(voice(true, Ids::Zero)), (3 + 44 + 12, vec![0xfd, 0x01]));
    assert_eq!(first(Flow::new(Kind::Datagrams, false, Ids::Random, 1)), (3 + 14 + 10, vec![0xfd, 0x02]));
    // With IP alone its dynamic chain has the sequence number.
    assert_eq!(first(Flow::new(Kind::Tcp, true, Ids::Zero, 1)), (3 + 36 + 5, vec![0xfd, 0x04]));
}

/// A context that was damaged on purpose: the decompressor reports it, and has it again a round
/// trip later.
#[test]
fn feedback_repairs_a_damaged_context() {
    for ratio in RATIOS {
        for flow in [voice(false, Ids::Sequential), Flow::new(Kind::Datagrams, false, Ids::Random, 2)] {
            let (mut channel, mut random) = (Channel::new(&config(Mode::Optimistic, ratio)), Random(3));
            let mut flow = Flow { is_calm: true, ..flow };
            for _ in 0..50 {
                let packet = flow.next(&mut random);
                assert_eq!(channel.pass(&packet).1, Ok(packet));
            }
            // The decompressor misses a new time to live, and the packets that repeat it.
            flow.ttl = 7;
            for _ in 0..40 {
                let packet = flow.next(&mut random);
                channel.compress(&packet);
            }
            let mut discarded = 0;
            for _ in 0..30 {
                let packet = flow.next(&mut random);
                discarded += u32::from(channel.pass(&packet).1 != Ok(packet));
            }
            assert!((1..=18).contains(&discarded), "{ratio:?}: {discarded} discarded: the feedback takes 8 packets");
            for _ in 0..30 {
                let packet = flow.next(&mut random);
                assert_eq!(channel.pass(&packet).1, Ok(packet));
            }
        }
    }
}

/// A sender whose own packets are out of order, or that begins again.
#[test]
fn a_sender_may_be_out_of_order() {
    for ratio in RATIOS {
        for ids in IDS {
            let (mut channel, mut random) = (Channel::new(&config(Mode::Optimistic, ratio)), Random(3));
            let mut flow = voice(false, ids);
            for number in 0..2000 {
                if random.one_in(10) {
                    let step = random.below(300) as u16;
                    flow.sequence = if random.one_in(2) {
                        flow.sequence.wrapping_sub(step)
                    } else {
                        flow.sequence.wrapping_add(step)
                    };
                }
                flow.has_checksum ^= random.one_in(20);
                let packet = flow.next(&mut random);
                assert_eq!(channel.pass(&packet).1, Ok(packet), "{ratio:?} {ids:?} {number}");
            }
        }
    }
}

/// Without its IR packets, nothing is known of a flow: the decompressor requests the static part.
#[test]
fn an_unknown_context_is_requested() {
    let (mut channel, mut random) = (Channel::new(&config(Mode::Optimistic, ReorderRatio::Quarter)), Random(3));
    let mut flow = voice(false, Ids::Sequential);
    check_request(&mut channel, || flow.next(&mut random));
}

#[test]
fn without_feedback_the_context_is_repeated() {
    let config = config(Mode::Unidirectional, ReorderRatio::Half);
    let (mut channel, mut random, mut late) = (Channel::new(&config), Random(3), Channel::new(&config));
    let (mut flow, mut restored) = (voice(false, Ids::Sequential), 0);
    for _ in 0..1200 {
        let packet = flow.next(&mut random);
        channel.compress(&packet);
        if channel.sent > 20 {
            restored += u32::from(late.decompress(&channel.compressed.clone()) == Ok(packet));
        }
    }
    assert!(restored > 100, "{restored}");
}

/// A channel has one version of a profile: an end with the other one restores nothing wrongly.
#[test]
fn the_versions_do_not_mix() {
    let mut flow = voice(false, Ids::Sequential);
    let [one, two] = [Version::One, Version::Two].map(|version| Config { version, ..Config::default() });
    for (compresses, decompresses) in [(one, two), (two, one)] {
        let mut compressor = Compressor::new(&compresses).expect("a configuration");
        let mut decompressor = Decompressor::new(&decompresses).expect("a configuration");
        let packet = flow.next(&mut Random(1));
        let (mut compressed, mut out) = (Vec::new(), Vec::new());
        let replaced = compressor.compress(&packet, packet.len(), &mut compressed);
        compressed.extend_from_slice(&packet[replaced..]);
        assert!(decompressor.decompress(Duration::ZERO, &compressed, compressed.len(), &mut out).is_err());
    }
}

proptest! {
    /// Within the reorder ratio, every packet that arrives is restored.
    #[test]
    fn any_flow_survives_losses_and_late_packets(
        seed in 1u64.., kind in 0usize..4, ids in 0usize..4, is_v6: bool, ratio in 0usize..4, every in 2u32..40,
        is_optimistic: bool,
    ) {
        let ratio = RATIOS[ratio];
        let mode = if is_optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let flow = Flow::new(KINDS[kind], is_v6, IDS[ids], 1);
        let link = Link { every, burst: ratio.repeats() - 1, late: ratio.late(), is_bounded: true };
        let outcome = run(&config(mode, ratio), &flow, seed, 400, link);
        prop_assert_eq!((outcome.discarded, outcome.wrong), (0, 0), "{:?}", outcome);
    }

    /// Arbitrary bytes are rejected or accepted, alone or to a context.
    #[test]
    fn arbitrary_bytes(large_cids: bool, packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..40)) {
        let config = Config { large_cids, ..config(Mode::Optimistic, ReorderRatio::Half) };
        let mut channel = Channel::new(&config);
        let (mut random, mut flow) = (Random(5), Flow::new(Kind::Voice, false, Ids::Sequential, 1));
        for mut packet in packets {
            channel.pass(&flow.next(&mut random)).1.ok();
            if large_cids && packet.len() > 1 {
                packet[1] = 0;
            }
            let mut out = Vec::new();
            match channel.decompressor.decompress(Duration::ZERO, &packet, packet.len(), &mut out) {
                Ok(read) => prop_assert!(read <= packet.len()),
                Err(_) => prop_assert!(out.is_empty()),
            }
            let _ = channel.compressor.receive_feedback(&packet);
        }
    }

    /// A valid packet with some octets changed: no panic, and a later packet repairs everything.
    #[test]
    fn damaged_packets(seed in 1u64.., damages in prop::collection::vec((0usize..60, any::<u8>()), 1..60)) {
        let (mut random, mut flow) = (Random(seed), Flow::new(Kind::Voice, false, Ids::Sequential, 1));
        let config = config(Mode::Optimistic, ReorderRatio::Quarter);
        let restored = common::restored_after_with(&config, damages, || flow.next(&mut random));
        prop_assert!(restored >= 20, "{restored} of 60");
    }
}
