//! Arbitrary bytes as the datagrams of a stream of another program, as a file of H.264, and as the
//! description of a session: no reader panics, and what a file becomes has all its bytes.

#![no_main]

use airpath_app::streaming::Description;
use airpath_app::streaming::h264::clip::Clip;
use airpath_app::streaming::live::Receiver;
use airpath_core::{Instant, Seed, Span};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u16, Vec<(u8, Vec<u8>)>)| {
    let (kind, most, parts) = input;
    match kind % 3 {
        0 => stream(&parts),
        1 => file(parts.into_iter().flat_map(|(_, bytes)| bytes).collect(), most),
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

fn file(bytes: Vec<u8>, most: u16) {
    let Ok(clip) = Clip::parse(bytes) else { return };
    let Ok(packets) = clip.packets(25.0, most.into()) else { return };
    let size: usize = packets.payloads.iter().flatten().map(Vec::len).sum();
    assert_eq!(packets.video.bytes().get(), size as u64);
    assert!(packets.payloads.iter().flatten().all(|payload| payload.len() <= most.into()));
}
