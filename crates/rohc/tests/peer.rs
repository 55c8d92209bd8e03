//! Packets exchanged with another implementation of ROHC.
//!
//! `AIRPATH_ROHC_PEER` names a program, such as `benches/rohc_peer/peer.c`, that has both ends of a
//! channel with small context identifiers, at most 15. Its argument is the version of the profiles:
//! `1` (RFC 3095, and RFC 6846 for TCP) or `2` (RFC 5225). It reads requests from its standard
//! input: `c`, `d` or `f`, the length of the data as two octets, and the data. It answers each on
//! its standard output:
//!
//! | request | data | answer |
//! | --- | --- | --- |
//! | `c` | a packet to compress | the ROHC packet |
//! | `d` | a ROHC packet | the packet, then the feedback of the decompressor |
//! | `f` | feedback for its compressor | nothing |
//!
//! An answer is a length of two octets and the data; the length 65535 means that the request
//! failed.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::common::tcp::{Connection, connections};
use crate::common::{Flow, Ids, Kind, Random};
use airpath_rohc::{Compressor, Config, Decompressor, Profile, Profiles, ReorderRatio, Version};

/// Packets of each flow.
const PACKETS: usize = 600;
/// Packets that are in flight while feedback is.
const FEEDBACK_DELAY: usize = 8;

struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Peer {
    /// The program, or `None` after a line that the test is skipped.
    fn start(version: Version) -> Option<Self> {
        let Some(program) = std::env::var_os("AIRPATH_ROHC_PEER") else {
            airpath_testing::skip("rohc-peer", "AIRPATH_ROHC_PEER names no program");
            return None;
        };
        let version = match version {
            Version::One => "1",
            Version::Two => "2",
        };
        let mut child = Command::new(&program)
            .arg(version)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let (requests, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Some(Self { child, requests, answers })
    }

    fn request(&mut self, kind: u8, data: &[u8]) {
        self.requests.write_all(&[kind]).expect("the peer runs");
        self.requests.write_all(&(data.len() as u16).to_be_bytes()).expect("the peer runs");
        self.requests.write_all(data).expect("the peer runs");
        self.requests.flush().expect("the peer runs");
    }

    fn answer(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 2];
        self.answers.read_exact(&mut length).expect("the peer answers");
        if length == [0xff; 2] {
            return None;
        }
        let mut data = vec![0; usize::from(u16::from_be_bytes(length))];
        self.answers.read_exact(&mut data).expect("the peer answers");
        Some(data)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A source of packets.
enum Source {
    Flow(Flow),
    Connection(Connection),
}

impl Source {
    fn next(&mut self, random: &mut Random) -> Vec<u8> {
        match self {
            Self::Flow(flow) => flow.next(random),
            Self::Connection(connection) => connection.next(random),
        }
    }
}

/// Flows of all profiles, without what rohc 2.4 restores otherwise than the RFCs: timestamps of RTP
/// behind a wrap of the sequence number, and the first packet of a static generic option of TCP.
fn sources() -> Vec<(String, Source)> {
    let mut sources = Vec::new();
    for kind in [Kind::Voice, Kind::Video, Kind::Datagrams, Kind::Tcp] {
        let flow = |is_v6, ids| Source::Flow(Flow { sequence: 1000, ..Flow::new(kind, is_v6, ids, 1) });
        for ids in [Ids::Sequential, Ids::Swapped, Ids::Random] {
            sources.push((format!("{kind:?} {ids:?}"), flow(false, ids)));
        }
        sources.push((format!("{kind:?} IPv6"), flow(true, Ids::Zero)));
    }
    for connection in connections() {
        let connection = Connection { has_generic: false, ..connection };
        let Connection { role, is_v6, ids, has_timestamps, .. } = &connection;
        let name = format!("TCP {role:?} {ids:?} IPv6 {is_v6} timestamps {has_timestamps}");
        sources.push((name, Source::Connection(connection)));
    }
    sources
}

/// What went wrong with the packets of a source.
#[derive(Debug, Default)]
struct Problems {
    refused: u32,
    different: u32,
    feedback: u32,
    first: Option<String>,
}

impl Problems {
    fn is_empty(&self) -> bool {
        self.refused + self.different + self.feedback == 0
    }
}

/// Flows of version 2. Of the profile 0x0101, rohc 2.4 sends and restores only IR packets; flows
/// that are compressed here have 0x0102 and 0x0104.
fn sources_of_version_2() -> Vec<(String, Source)> {
    let mut sources = Vec::new();
    let kinds = [Kind::Voice, Kind::Datagrams].map(|kind| [(kind, false), (kind, true)]);
    for (kind, has_checksum) in kinds.into_iter().flatten().chain([(Kind::Tcp, false)]) {
        let flow = |is_v6, ids| Source::Flow(Flow { has_checksum, ..Flow::new(kind, is_v6, ids, 1) });
        for ids in [Ids::Sequential, Ids::Swapped, Ids::Random, Ids::Zero] {
            sources.push((format!("{kind:?} {ids:?} checksum {has_checksum}"), flow(false, ids)));
        }
        sources.push((format!("{kind:?} IPv6 checksum {has_checksum}"), flow(true, Ids::Zero)));
    }
    sources
}

/// A channel with version 2 of the profiles that the peer has.
fn version_2(reorder_ratio: ReorderRatio) -> Config {
    let profiles = Profiles::NONE.with(Profile::Udp).with(Profile::Ip);
    Config { version: Version::Two, profiles, reorder_ratio, ..Config::default() }
}

#[test]
fn the_peer_restores_what_is_compressed_here() {
    check_compressor(&Config::default(), sources());
}

#[test]
fn the_peer_restores_version_2() {
    for reorder_ratio in [ReorderRatio::None, ReorderRatio::Half] {
        check_compressor(&version_2(reorder_ratio), sources_of_version_2());
    }
}

/// A new compressor for each packet sends IR packets.
#[test]
fn the_peer_restores_ir_packets_of_rtp() {
    for (is_v6, ids) in [(false, Ids::Sequential), (false, Ids::Swapped), (false, Ids::Zero), (true, Ids::Zero)] {
        let Some(mut peer) = Peer::start(Version::Two) else { return };
        let (mut flow, mut random) = (Flow::new(Kind::Voice, is_v6, ids, 1), Random(5));
        for _ in 0..PACKETS {
            let packet = flow.next(&mut random);
            let config = Config { version: Version::Two, ..Config::default() };
            let mut compressed = Vec::new();
            let replaced = Compressor::new(&config).expect("valid").compress(&packet, packet.len(), &mut compressed);
            compressed.extend_from_slice(&packet[replaced..]);
            assert_eq!(compressed[..2], [0xfd, 0x01]);
            peer.request(b'd', &compressed);
            let (restored, _) = (peer.answer(), peer.answer());
            assert_eq!(restored, Some(packet));
        }
    }
}

#[test]
fn what_the_peer_compresses_is_restored_here() {
    check_decompressor(&Config::default(), sources());
}

#[test]
fn version_2_of_the_peer_is_restored_here() {
    check_decompressor(&version_2(ReorderRatio::None), sources_of_version_2());
}

fn check_compressor(config: &Config, sources: Vec<(String, Source)>) {
    let mut failed = Vec::new();
    for (name, mut source) in sources {
        let Some(mut peer) = Peer::start(config.version) else { return };
        let (mut compressor, mut random) = (Compressor::new(config).expect("valid"), Random(5));
        let (mut problems, mut before, mut after) = (Problems::default(), 0, 0);
        let mut waiting = VecDeque::new();
        for number in 0..PACKETS {
            let packet = source.next(&mut random);
            let mut compressed = Vec::new();
            let replaced = compressor.compress(&packet, packet.len(), &mut compressed);
            (before, after) = (before + replaced, after + compressed.len());
            let header = compressed.clone();
            compressed.extend_from_slice(&packet[replaced..]);
            peer.request(b'd', &compressed);
            let (restored, feedback) = (peer.answer(), peer.answer().expect("feedback, if only none"));
            let problem = match restored {
                Some(restored) if restored == packet => None,
                Some(restored) => {
                    problems.different += 1;
                    Some(format!("{number}: {header:02x?} became {:02x?} not {:02x?}", head(&restored), head(&packet)))
                }
                None => {
                    problems.refused += 1;
                    Some(format!("{number}: {header:02x?} of {:02x?}", head(&packet)))
                }
            };
            problems.first = problems.first.or(problem);
            waiting.push_back(feedback);
            if number >= FEEDBACK_DELAY {
                let feedback = waiting.pop_front().expect("an answer for each packet");
                problems.feedback += u32::from(compressor.receive_feedback(&feedback).is_err());
            }
        }
        println!("{name}: {before} octets of headers as {after}, {problems:?}");
        if !problems.is_empty() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

fn check_decompressor(config: &Config, sources: Vec<(String, Source)>) {
    let mut failed = Vec::new();
    for (name, mut source) in sources {
        let Some(mut peer) = Peer::start(config.version) else { return };
        let (mut decompressor, mut random) = (Decompressor::new(config).expect("valid"), Random(5));
        let (mut problems, mut octets) = (Problems::default(), 0);
        for number in 0..PACKETS {
            let packet = source.next(&mut random);
            peer.request(b'c', &packet);
            let compressed = peer.answer().expect("the peer compresses each packet");
            octets += compressed.len();
            let mut restored = Vec::new();
            let result = decompressor.decompress(Duration::ZERO, &compressed, compressed.len(), &mut restored);
            let problem = match result {
                Ok(read) => {
                    restored.extend_from_slice(&compressed[read..]);
                    (restored != packet).then(|| {
                        problems.different += 1;
                        format!(
                            "{number}: {:02x?} became {:02x?} not {:02x?}",
                            head(&compressed),
                            head(&restored),
                            head(&packet)
                        )
                    })
                }
                Err(error) => {
                    problems.refused += 1;
                    Some(format!("{number}: {error}: {:02x?} of {:02x?}", head(&compressed), head(&packet)))
                }
            };
            problems.first = problems.first.or(problem);
            if !decompressor.feedback().is_empty() {
                peer.request(b'f', decompressor.feedback());
                problems.feedback += u32::from(peer.answer().is_none());
                decompressor.clear_feedback();
            }
        }
        println!("{name}: {octets} octets, {problems:?}");
        if !problems.is_empty() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

fn head(packet: &[u8]) -> &[u8] {
    &packet[..packet.len().min(100)]
}
