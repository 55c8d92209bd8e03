//! The sizes of compressed headers, and how a damaged context recovers.

use std::time::Duration;

use crate::common::{Channel, Flow, Ids, Kind, Random, check_request};
use airpath_rohc::{Config, DecompressError, Mode, split_feedback};

fn voice(is_v6: bool, ids: Ids) -> Flow {
    Flow { is_calm: true, ..Flow::new(Kind::Voice, is_v6, ids, 1) }
}

/// Header sizes of a flow, after its first packets.
fn steady(flow: &Flow) -> Vec<usize> {
    let mut channel = Channel::new(&Config::default());
    let (mut random, mut flow) = (Random(1), flow.clone());
    let mut sizes = Vec::new();
    for _ in 0..2000 {
        let packet = flow.next(&mut random);
        let (header, restored) = channel.pass(&packet);
        assert_eq!(restored.as_ref(), Ok(&packet));
        sizes.push(header);
    }
    sizes.split_off(20)
}

#[test]
fn a_voice_header_has_one_to_four_octets() {
    // RFC 3095 §5.7: UO-0 is one octet; a checksum of UDP and a random IP-ID add two each. The
    // timestamp wraps once, which takes IR-DYN packets.
    let cases = [
        (voice(false, Ids::Sequential), 1),
        (voice(false, Ids::Swapped), 1),
        (voice(false, Ids::Zero), 3),
        (voice(false, Ids::Random), 3),
        (voice(true, Ids::Zero), 3),
        (Flow { has_checksum: true, ..voice(false, Ids::Sequential) }, 3),
    ];
    for (flow, octets) in cases {
        let sizes = steady(&flow);
        let others = sizes.iter().filter(|size| **size != octets).count();
        assert!(others <= 8, "{flow:?}: {others} of {} are not {octets}", sizes.len());
    }
}

/// In reliable mode the smallest packet, R-0, has one octet; updates with a CRC have two.
#[test]
fn a_voice_header_has_one_octet_in_reliable_mode() {
    let config = Config { mode: Mode::Reliable, ..Config::default() };
    let (mut channel, mut random, mut flow) = (Channel::new(&config), Random(1), voice(false, Ids::Sequential));
    let mut sizes = Vec::new();
    for _ in 0..2000 {
        let packet = flow.next(&mut random);
        let (header, restored) = channel.pass(&packet);
        assert_eq!(restored.as_ref(), Ok(&packet));
        sizes.push(header);
    }
    // The timestamp wraps once, which takes IR-DYN packets for a round trip.
    let (sizes, feedback) = (sizes.split_off(60), channel.feedback_octets);
    let octets = |octets| sizes.iter().filter(|size| **size == octets).count();
    println!(
        "{} of one octet, {} of two, {} others; {feedback} octets of feedback",
        octets(1),
        octets(2),
        sizes.len() - octets(1) - octets(2)
    );
    assert!(octets(1) > 1700 && octets(1) + octets(2) > 1920);
}

/// Timestamps that jitter for a while shorten the stride. It grows again afterwards.
#[test]
fn the_stride_recovers_from_irregular_timestamps() {
    let (mut channel, mut random) = (Channel::new(&Config::default()), Random(1));
    let mut flow = voice(false, Ids::Sequential);
    let mut sizes = Vec::new();
    for number in 0..300 {
        if (100..110).contains(&number) {
            flow.timestamp = flow.timestamp.wrapping_add(number);
        }
        let packet = flow.next(&mut random);
        let (header, restored) = channel.pass(&packet);
        assert_eq!(restored.as_ref(), Ok(&packet));
        sizes.push(header);
    }
    assert!(sizes[115..130].iter().all(|size| *size > 1), "{sizes:?}");
    // The timestamp wraps once.
    assert!(sizes[175..].iter().filter(|size| **size > 1).count() <= 4, "{sizes:?}");
}

#[test]
fn pauses_and_changes_cost_little() {
    let sizes = steady(&Flow::new(Kind::Voice, false, Ids::Sequential, 1));
    let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
    assert!((1.0..4.0).contains(&mean), "{mean}");
}

#[test]
fn an_ir_packet_has_the_size_of_its_chains() {
    let mut channel = Channel::new(&Config::default());
    let mut flow = voice(false, Ids::Sequential);
    let packet = flow.next(&mut Random(1));
    // Type, profile, CRC; static 10 + 4 + 4; dynamic 6 + 2 + 10.
    assert_eq!(channel.compress(&packet), 3 + 18 + 18);
    assert_eq!(channel.compressed[..2], [0xfd, 0x01]);
}

/// A context that was damaged on purpose: the decompressor reports it, and has it again a round
/// trip later.
#[test]
fn feedback_repairs_a_damaged_context() {
    let config = Config { mode: Mode::Optimistic, ..Config::default() };
    let (mut channel, mut random) = (Channel::new(&config), Random(3));
    let mut flow = voice(false, Ids::Sequential);
    for _ in 0..50 {
        let packet = flow.next(&mut random);
        assert_eq!(channel.pass(&packet).1, Ok(packet));
    }
    // The decompressor misses 40 packets, which is more than its interval for the sequence number.
    for _ in 0..40 {
        let packet = flow.next(&mut random);
        channel.compress(&packet);
    }
    let mut discarded = 0;
    for _ in 0..30 {
        let packet = flow.next(&mut random);
        discarded += u32::from(channel.pass(&packet).1 != Ok(packet));
    }
    assert!((1..=15).contains(&discarded), "{discarded} discarded: the feedback takes 8 packets");
    let packet = flow.next(&mut random);
    assert_eq!(channel.pass(&packet).1, Ok(packet));
}

/// RFC 3095 §5.3.2.2.4: by the time that has passed, the decompressor finds how often the sequence
/// number has wrapped. Two packets are discarded until the third one confirms that.
#[test]
fn the_clock_corrects_a_wrapped_sequence_number() {
    // Without feedback, nothing else repairs the context for 256 packets. One in eight first
    // headers passes the CRC although it is wrong; not these.
    let config = Config { mode: Mode::Unidirectional, ..Config::default() };
    for lost in [20, 40, 100, 150] {
        let (mut channel, mut random) = (Channel::new(&config), Random(3));
        let mut flow = voice(false, Ids::Sequential);
        flow.sequence = 1000;
        let mut discarded = 0;
        for number in 0..25 + lost + 20 {
            channel.now += Duration::from_millis(20);
            let packet = flow.next(&mut random);
            channel.compress(&packet);
            if !(25..25 + lost).contains(&number) {
                discarded += u32::from(channel.decompress(&channel.compressed.clone()) != Ok(packet));
            }
        }
        assert_eq!(discarded, 2, "{lost} lost");
    }
}

/// Without its IR packets, nothing is known of a flow: the decompressor requests the static part.
#[test]
fn an_unknown_context_is_requested() {
    let (mut channel, mut random) = (Channel::new(&Config::default()), Random(3));
    let mut flow = voice(false, Ids::Sequential);
    check_request(&mut channel, || flow.next(&mut random));
}

#[test]
fn without_feedback_the_context_is_repeated() {
    let config = Config { mode: Mode::Unidirectional, ..Config::default() };
    let (mut channel, mut random) = (Channel::new(&config), Random(3));
    let mut flow = voice(false, Ids::Sequential);
    let mut late = Channel::new(&config);
    let mut restored = 0;
    for _ in 0..1200 {
        let packet = flow.next(&mut random);
        channel.compress(&packet);
        // A decompressor that joins late.
        if channel.sent > 20 {
            restored += u32::from(late.decompress(&channel.compressed.clone()) == Ok(packet));
        }
    }
    assert!(restored > 100, "{restored}");
}

#[test]
fn what_is_left_out_is_refused_with_a_reason() {
    let mut channel = Channel::new(&Config::default());
    assert_eq!(channel.decompress(&[0xfe, 0]), Err(DecompressError::Segment));
    assert_eq!(channel.decompress(&[]), Err(DecompressError::NoPacket));
    assert_eq!(channel.decompress(&[0xf1, 0x20]), Err(DecompressError::NoPacket));
    assert_eq!(channel.decompress(&[0xfd, 0x07, 0]), Err(DecompressError::Profile { profile: 7 }));
    let (feedback, rest) = split_feedback(&[0xe0, 0xf1, 0x20, 0x45, 0]).expect("feedback, then a packet");
    assert_eq!((feedback, rest), (&[0xe0, 0xf1, 0x20][..], &[0x45, 0][..]));
}

/// A late IR packet of an earlier flow can replace a context: its static part is then requested.
#[test]
fn a_context_of_another_profile_is_replaced_by_feedback() {
    let mut random = Random(3);
    let (mut voice, mut datagrams) = (voice(false, Ids::Sequential), Flow::new(Kind::Datagrams, false, Ids::Zero, 2));
    let [mut channel, mut other] = [Channel::new(&Config::default()), Channel::new(&Config::default())];
    for _ in 0..20 {
        assert!(channel.pass(&voice.next(&mut random)).1.is_ok());
        assert!(other.pass(&datagrams.next(&mut random)).1.is_ok());
    }
    channel.decompressor = other.decompressor;
    let restored = (0..120).filter(|_| {
        let packet = voice.next(&mut random);
        channel.pass(&packet).1 == Ok(packet)
    });
    assert!(restored.count() >= 40);
}
