//! Fragments, whole and cut, in any order.

use super::*;

/// The results of successive packets.
fn decode_all(packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, Cause>> {
    let mut decoder = Decoder::default();
    packets
        .iter()
        .map(|bytes| {
            let found = decode_cut(&mut decoder, Instant::ZERO, LinkType::RAW, bytes, bytes.len());
            found.map(|(segment, payload)| {
                assert_eq!((segment.checksum, segment.length as usize), (Some(true), payload.len()));
                payload
            })
        })
        .collect()
}

/// A packet of IPv6 that holds one fragment.
fn fragment_6(payload: &[u8], offset: usize, more: bool) -> Vec<u8> {
    let place = (offset as u16 | u16::from(more)).to_be_bytes();
    let header = [6, 0, place[0], place[1], 0, 0, 0, 9];
    ipv6(Protocol(44), &[&header[..], payload].concat())
}

#[test]
fn in_any_order_and_twice() {
    let whole = segment(b"hello, fragments");
    let parts = [
        fragment(Protocol::TCP, &whole[..16], 0, true),
        fragment(Protocol::TCP, &whole[16..40], 16, true),
        fragment(Protocol::TCP, &whole[40..], 40, false),
    ];
    let text = Ok(b"hello, fragments".to_vec());
    let waits = Err(Cause::Fragment);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let packets = order.map(|part| parts[part].clone());
        assert_eq!(decode_all(&packets), [waits.clone(), waits.clone(), text.clone()], "{order:?}");
    }
    let packets = [&parts[0], &parts[0], &parts[2], &parts[2], &parts[1]].map(Clone::clone);
    assert_eq!(decode_all(&packets)[4], text);
}

#[test]
fn over_ipv6() {
    let whole = segment_6(b"hello, fragments");
    let packets = [fragment_6(&whole[32..], 32, false), fragment_6(&whole[..32], 0, true)];
    assert_eq!(decode_all(&packets), [Err(Cause::Fragment), Ok(b"hello, fragments".to_vec())]);
    let atomic = fragment_6(&whole, 0, false);
    assert_eq!(decode_all(&[atomic]), [Ok(b"hello, fragments".to_vec())]);
}

#[test]
fn within_a_tunnel_s_fragments() {
    let whole = segment(b"hello, fragments");
    let outer =
        |inner: &[u8]| [fragment(Protocol(4), &inner[..24], 0, true), fragment(Protocol(4), &inner[24..], 24, false)];
    let first = outer(&fragment(Protocol::TCP, &whole[..40], 0, true));
    let second = outer(&fragment(Protocol::TCP, &whole[40..], 40, false));
    let found = decode_all(&[first, second].concat());
    assert_eq!(found[3], Ok(b"hello, fragments".to_vec()));
}

#[test]
fn overlaps_discard_the_packet() {
    let whole = segment(b"hello, fragments");
    let packets = [
        fragment(Protocol::TCP, &whole[..24], 0, true),
        fragment(Protocol::TCP, &whole[16..], 16, false),
        fragment(Protocol::TCP, &whole[24..], 24, false),
    ];
    let found = [Err(Cause::Fragment), Err(Cause::Incomplete), Err(Cause::Fragment)];
    assert_eq!(decode_all(&packets), found, "a later fragment begins another packet");
    let packets = [fragment(Protocol::TCP, &whole[..24], 24, false), fragment(Protocol::TCP, &whole[..24], 48, true)];
    assert_eq!(decode_all(&packets)[1], Err(Cause::Incomplete), "beyond the end");
    let packets = [fragment(Protocol::TCP, &whole[..24], 48, true), fragment(Protocol::TCP, &whole[..24], 24, false)];
    assert_eq!(decode_all(&packets)[1], Err(Cause::Incomplete), "an end before what has come");
    assert_eq!(decode_all(&[fragment(Protocol::TCP, &whole[..13], 0, true)]), [Err(Cause::Malformed)]);
    assert_eq!(decode_all(&[fragment(Protocol::TCP, &whole, 65_528, false)]), [Err(Cause::Malformed)]);
}

#[test]
fn a_snap_length_cuts_the_payload_at_the_first_fragment() {
    let whole = segment(b"hello, fragments");
    let mut decoder = Decoder::default();
    let first = fragment(Protocol::TCP, &whole[..40], 0, true);
    let cut = decode_cut(&mut decoder, Instant::ZERO, LinkType::RAW, &first[..56], first.len());
    assert_eq!(cut, Err(Cause::Fragment));
    let second = fragment(Protocol::TCP, &whole[40..], 40, false);
    let found = decode_cut(&mut decoder, Instant::ZERO, LinkType::RAW, &second, second.len());
    let (segment, payload) = found.expect("it is a segment");
    assert_eq!((segment.length, &payload[..], segment.checksum), (16, &b"hell"[..], None));
}

#[test]
fn what_never_comes_is_given_up() {
    let mut decoder = Decoder::default();
    let mut add = |time: Instant, identification: u8| {
        let mut bytes = fragment(Protocol::TCP, &segment(b"")[..24], 0, true);
        bytes[5] = identification;
        let cut = decode_cut(&mut decoder, time, LinkType::RAW, &bytes, bytes.len());
        assert_eq!(cut, Err(Cause::Fragment));
        (decoder.incomplete(), decoder.skipped().of(Cause::Incomplete))
    };
    for identification in 0..64 {
        add(Instant::ZERO, identification);
    }
    assert_eq!(add(Instant::ZERO, 64), (64, 1), "the oldest gives way");
    let later = Instant::ZERO + Span::from_secs(61);
    assert_eq!(add(later, 65), (1, 65), "the others waited for too long");
}
