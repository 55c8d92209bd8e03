//! Arbitrary bytes as the datagrams of a stream of another program, as a file of H.264, as the
//! description of a session, and as a TCP connection with RTP: no reader panics, what a file
//! becomes has all its bytes, and the parts of a connection do not change its packets.

#![no_main]

use airpath_app::streaming::Description;
use airpath_app::streaming::framing::{self, Frames, FramingError};
use airpath_app::streaming::h264::clip::Clip;
use airpath_app::streaming::live::Receiver;
use airpath_core::{Instant, Seed, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u16, Vec<(u8, Vec<u8>)>)| {
    let (kind, most, parts) = input;
    match kind % 4 {
        0 => stream(&parts),
        1 => file(parts.into_iter().flat_map(|(_, bytes)| bytes).collect(), most),
        2 => connection(parts.into_iter().map(|(_, bytes)| bytes).collect()),
        _ => {
            let text: Vec<u8> = parts.into_iter().flat_map(|(_, bytes)| bytes).collect();
            let _ = Description::parse(&String::from_utf8_lossy(&text));
        }
    }
});

/// Each datagram has the port and the time since the one before in its first byte.
fn stream(datagrams: &[(u8, Vec<u8>)]) {
    let interval = Span::from_secs(5);
    let random = Seed::new(1).stream("receiver");
    let mut receiver = Receiver::new(None, Span::from_secs(30), interval, Instant::ZERO, random);
    let mut now = Instant::ZERO;
    for (head, bytes) in datagrams {
        now += Span::from_millis(u64::from(head >> 1));
        if head & 1 == 1 {
            receiver.receive_report(now, bytes);
        } else {
            receiver.receive(now, bytes);
        }
        while receiver.poll(now).is_some() {}
    }
    for until in [Some(now), None] {
        if let Ok(watched) = receiver.watch(Span::from_secs(1), until) {
            let received = watched.client.received();
            assert!(received.packets <= watched.sent.packets);
            assert!(until.is_some() || watched.client.player().finished().is_some());
        }
    }
}

fn connection(parts: Vec<Vec<u8>>) {
    let (packets, error) = packets_and_error(&parts);
    assert_eq!(packets_and_error(&[parts.concat()]), (packets.clone(), error));
    let mut written = Vec::new();
    packets.iter().for_each(|packet| framing::write(packet, &mut written));
    assert_eq!(packets_and_error(&[written]), (packets, None));
}

fn packets_and_error(parts: &[Vec<u8>]) -> (Vec<Vec<u8>>, Option<FramingError>) {
    let (mut frames, mut packets) = (Frames::default(), Vec::new());
    for part in parts {
        frames.push(part);
        loop {
            match frames.next_packet() {
                Ok(Some(packet)) => packets.push(packet.to_vec()),
                Ok(None) => break,
                Err(error) => return (packets, Some(error)),
            }
        }
    }
    (packets, None)
}

fn file(bytes: Vec<u8>, most: u16) {
    let Ok(clip) = Clip::parse(bytes) else { return };
    let Ok(packets) = clip.packets(25.0, most.into()) else { return };
    let size: usize = packets.payloads.iter().flatten().map(Vec::len).sum();
    assert_eq!(packets.video.bytes().get(), size as u64);
    assert!(packets.payloads.iter().flatten().all(|payload| payload.len() <= most.into()));
}
