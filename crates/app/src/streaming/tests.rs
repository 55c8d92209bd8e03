//! A server and a client over a path of chosen delays and losses.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_core::{Bitrate, Direction, Seed};
use proptest::prelude::*;

use super::player::LEVEL_INTERVAL;
use super::*;

/// A datagram on the path: its number in its direction, counted from zero by channel.
struct Sending {
    channel: Channel,
    number: u32,
    sent: Instant,
    /// Bytes of the IP packet.
    size: u32,
}

fn session(settings: Settings, video: Generated) -> Arc<Session> {
    let video = video.video().expect("a valid video");
    Arc::new(Session::new(settings, Arc::new(video), &mut Seed::new(1).stream("session")))
}

fn second(second: u64) -> Instant {
    Instant::ZERO + Span::from_secs(second)
}

/// Runs both ends until both are over; `path` gives the delay of each datagram, or `None` to lose
/// it.
fn run(session: &Arc<Session>, mut path: impl FnMut(&Sending) -> Option<Span>) -> (Server, Client) {
    let random = |name| Seed::new(1).stream(name);
    let mut server = Server::new(Arc::clone(session), Instant::ZERO, random("server"));
    let mut client = Client::new(Arc::clone(session), Instant::ZERO, random("client"));
    let mut queue: BTreeMap<(Instant, u32), (Direction, Channel, Vec<u8>)> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    let mut total = 0;
    let mut now = Instant::ZERO;
    loop {
        let due = queue.keys().next().map(|(time, _)| *time);
        let Some(next) = due.into_iter().chain(server.next_wakeup()).chain(client.next_wakeup()).min() else { break };
        assert!(next >= now, "time goes on: {now:?} {next:?}");
        now = next;
        while let Some(entry) = queue.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                (Direction::Down, channel, bytes) => {
                    client.receive(now, channel, &bytes);
                }
                (Direction::Up, _, bytes) => server.receive(now, &bytes),
            }
        }
        let mut send = |direction, datagram: Datagram<'_>| {
            let number = numbers.entry((direction == Direction::Up, datagram.channel)).or_insert(0);
            let size = datagram.head.len() as u32 + datagram.media + 28;
            let sending = Sending { channel: datagram.channel, number: *number, sent: now, size };
            *number += 1;
            total += 1;
            if let Some(delay) = path(&sending) {
                queue.insert((now + delay, total), (direction, datagram.channel, datagram.head.to_vec()));
            }
        };
        while let Some(datagram) = server.poll(now) {
            send(Direction::Down, datagram);
        }
        while let Some(datagram) = client.poll(now) {
            send(Direction::Up, datagram);
        }
    }
    assert!(server.is_over() && client.is_over());
    (server, client)
}

const DELAY: Span = Span::from_millis(100);

#[test]
fn without_loss_all_frames_are_displayed_and_playback_starts_with_a_full_buffer() {
    let session = session(Settings::default(), Generated::default());
    let (server, client) = run(&session, |_| Some(DELAY));
    let player = client.player();
    assert!(player.displayed().len() == 900 && player.displayed().iter().all(|complete| *complete));
    // The frame of 5 s is complete after as long, and the delay.
    assert_eq!(player.first_frame(), Some(second(5) + DELAY));
    assert_eq!(player.finished(), Some(second(65) + DELAY));
    assert_eq!((player.stalls().count(), client.timed_out()), (0, false));
    assert_eq!(server.sent().packets, u64::from(session.packets()));
    assert_eq!(server.sent().bytes, 148_000 / 8 * 60);
    assert_eq!(client.received().packets, server.sent().packets);
    // One every 5 s in 60 and 65 s, at random within half of it, and BYE.
    assert!((10..=18).contains(&server.sent().reports), "{:?}", server.sent());
    assert!((11..=19).contains(&client.received().reports), "{:?}", client.received());
}

#[test]
fn the_buffer_fills_before_the_start_and_empties_at_the_end() {
    let (_, client) = run(&session(Settings::default(), Generated::default()), |_| Some(DELAY));
    let levels = client.player().levels();
    assert_eq!(levels.len(), 66, "at 0 to 65 s; playback ends after 65.1 s");
    assert_eq!((levels[0].media, levels[3].playing), (Span::ZERO, false));
    assert!(levels[3].media.abs_diff(Span::from_millis(2_867)) < Span::from_millis(1), "{:?}", levels[3]);
    // Frames are 1/15 s apart.
    assert!(levels[30].playing && levels[30].media.abs_diff(Span::from_secs(5)) < Span::from_millis(70));
    assert!(levels[65].media < Span::from_millis(100), "{:?}", levels[65]);
    assert_eq!(LEVEL_INTERVAL, Span::from_secs(1));
}

#[test]
fn a_lost_packet_costs_its_frame_and_those_that_refer_to_it() {
    let session = session(Settings::default(), Generated::default());
    let lost = session.first_packets[70];
    let (_, client) =
        run(&session, |packet| (packet.channel != Channel::Media || packet.number != lost).then_some(DELAY));
    let displayed = client.player().displayed();
    assert_eq!(displayed.iter().filter(|complete| !**complete).count(), 1);
    let decodable = session.video.decodable(displayed);
    let wrong: Vec<usize> = (0..900).filter(|frame| !decodable[*frame]).collect();
    assert_eq!(wrong, (70..120).collect::<Vec<_>>(), "up to the next I frame");
    assert_eq!((client.player().stalls().count(), client.received().late), (0, 0));
}

#[test]
fn a_gap_longer_than_the_buffer_stalls_playback() {
    let session = session(Settings::default(), Generated::default());
    // Nothing arrives from 20 s to 30 s; then everything does.
    let (_, client) = run(&session, |packet| {
        let waits = packet.sent >= second(20) && packet.sent < second(30);
        Some(if waits { second(30).since(packet.sent) + DELAY } else { DELAY })
    });
    let player = client.player();
    assert_eq!(player.displayed().iter().filter(|complete| **complete).count(), 900);
    let length = player.stalls().quantile(1.0).expect("a stall");
    // The frame of 20 s is due at 25.1 s, and arrives at 30.1 s with those that follow.
    assert_eq!((player.stalls().count(), length.abs_diff(Span::from_secs(5)) < Span::from_millis(1)), (1, true));
    assert_eq!(player.finished(), Some(second(65) + DELAY + length));
}

#[test]
fn packets_that_come_after_their_frame_was_due_are_late() {
    let session = session(Settings::default(), Generated::default());
    let (_, client) = run(&session, |packet| {
        let slow = packet.channel == Channel::Media && (400..410).contains(&packet.number);
        Some(if slow { Span::from_secs(8) } else { DELAY })
    });
    assert_eq!((client.received().late, client.received().duplicates), (10, 0));
    assert_eq!(client.received().packets, u64::from(session.packets()));
    assert!(client.player().displayed().iter().any(|complete| !complete));
}

#[test]
fn a_client_without_packets_gives_up() {
    let session = session(Settings::default(), Generated::default());
    let (server, client) = run(&session, |packet| (packet.sent < second(20)).then_some(DELAY));
    assert!(client.timed_out());
    assert_eq!(server.sent().packets, u64::from(session.packets()), "its BYE was lost");
    let left = client.left().expect("it left").since(Instant::ZERO).as_secs_f64();
    assert!((50.0..50.2).contains(&left), "30 s after the last packet: {left}");
    assert!(client.player().stalled(second(50)).is_some());
    let (_, client) = run(&session, |_| None);
    assert!(client.timed_out() && client.player().first_frame().is_none());
}

#[test]
fn a_lost_end_is_no_reason_to_give_up() {
    let session = session(Settings::default(), Generated::default());
    let (_, client) = run(&session, |packet| (packet.sent < second(58)).then_some(DELAY));
    assert!(!client.timed_out());
    assert_eq!(client.player().displayed().len(), 900);
}

#[test]
fn reports_describe_the_reception() {
    let session = session(Settings::default(), Generated::default());
    let mut reception = Vec::new();
    // Every tenth packet is lost.
    let random = Seed::new(2).stream("client");
    let mut client = Client::new(Arc::clone(&session), Instant::ZERO, random);
    for number in (0..session.packets()).filter(|number| number % 10 != 9) {
        let place = session.place_of(number);
        let now = Instant::ZERO + session.video.send_time(place) + DELAY;
        client.receive(now, Channel::Media, &session.header(number, place).to_bytes());
        while let Some(datagram) = client.poll(now) {
            reception.extend(airpath_wire::rtcp::packets(datagram.head).filter_map(|packet| match packet {
                Ok(airpath_wire::rtcp::Packet::Block(block)) => Some(block),
                _ => None,
            }));
        }
    }
    let last = reception.last().expect("reports");
    assert!(reception.len() > 5 && last.fraction_lost.abs_diff(25) <= 3, "{last:?}");
    assert!((i64::from(last.lost) * 10 - i64::from(last.highest - u32::from(session.sequence))).abs() < 20);
    assert_eq!(client.jitter(), Span::ZERO, "the path has no jitter");
}

#[test]
fn datagrams_of_others_are_counted_and_ignored() {
    let session = session(Settings::default(), Generated::default());
    let mut client = Client::new(Arc::clone(&session), Instant::ZERO, Seed::new(1).stream("client"));
    let mut header = session.header(5, session.place_of(5));
    assert_eq!(client.receive(second(1), Channel::Media, &header.to_bytes()), Some(5));
    assert_eq!(client.receive(second(1), Channel::Media, &header.to_bytes()), None);
    header.sequence = header.sequence.wrapping_sub(6);
    assert_eq!(client.receive(second(1), Channel::Media, &header.to_bytes()), None, "before the first");
    header.ssrc ^= 1;
    assert_eq!(client.receive(second(1), Channel::Media, &header.to_bytes()), None);
    assert_eq!(client.receive(second(1), Channel::Media, b"no RTP"), None);
    client.receive(second(1), Channel::Reports, b"no RTCP");
    assert_eq!((client.received().foreign, client.received().duplicates), (3, 1));
}

/// Loses every 50th packet of the video.
fn loses_some(packet: &Sending) -> Option<Span> {
    (packet.channel != Channel::Media || packet.number % 50 != 7).then_some(DELAY)
}

#[test]
fn losses_are_repaired_once_with_the_next_report() {
    // Reports are 1.5 to 4.5 s apart, less than the buffer of 5 s.
    let report_interval = Span::from_secs(3);
    let session =
        session(Settings { repair: Repair::Once, report_interval, ..Settings::default() }, Generated::default());
    let lost = u64::from(session.packets().div_ceil(50));
    let (server, client) = run(&session, loses_some);
    let (sent, received) = (server.sent(), client.received());
    assert_eq!((sent.retransmitted_packets, received.repaired, received.duplicates), (lost, lost, 0));
    assert_eq!(received.packets, sent.packets);
    // With a buffer of 1 s many frames are due before, and their packets are not requested.
    let short = Settings { buffer: Span::from_secs(1), ..session.settings };
    let (server, client) = run(&self::session(short, Generated::default()), loses_some);
    assert!(server.sent().retransmitted_packets < lost * 3 / 4, "{:?}", server.sent());
    assert!(client.player().displayed().iter().any(|complete| !complete));
    let (server, client) =
        run(&session, |packet| if packet.channel == Channel::Repair { None } else { loses_some(packet) });
    assert_eq!(server.sent().retransmitted_packets, lost, "each is requested once");
    assert_eq!(client.received().packets, server.sent().packets - lost);
}

#[test]
fn nacks_repair_all_losses_in_time() {
    let session = session(Settings { repair: Repair::Nack, ..Settings::default() }, Generated::default());
    let lost = u64::from(session.packets().div_ceil(50));
    let (server, client) = run(&session, loses_some);
    let (sent, received) = (server.sent(), client.received());
    assert_eq!((sent.retransmitted_packets, received.repaired), (lost, lost));
    assert_eq!((received.late, received.duplicates), (0, 0));
    assert!(client.player().displayed().iter().all(|complete| *complete));
    // A retransmission that is lost is requested again.
    let (server, client) = run(&session, |packet| {
        if packet.channel == Channel::Repair && packet.number % 2 == 0 { None } else { loses_some(packet) }
    });
    assert!(server.sent().retransmitted_packets > lost);
    assert!(client.player().displayed().iter().all(|complete| *complete));
}

#[test]
fn retransmissions_have_the_format_of_their_kind() {
    for repair in [Repair::Once, Repair::Nack] {
        let session = session(Settings { repair, ..Settings::default() }, Generated::default());
        let mut server = Server::new(Arc::clone(&session), Instant::ZERO, Seed::new(1).stream("server"));
        while server.poll(second(10)).is_some() {}
        let mut nack = Vec::new();
        let lost = [session.sequence.wrapping_add(20), session.sequence.wrapping_add(30)];
        airpath_wire::rtcp::Compound::new(&mut nack).nack(1, session.server_ssrc, lost.into_iter(), 4);
        server.receive(second(10), &nack);
        let mut numbers = Vec::new();
        let mut now = second(10);
        while numbers.len() < lost.len() {
            let Some(datagram) = server.poll(now) else {
                now = server.next_wakeup().expect("a retransmission");
                continue;
            };
            if datagram.channel != Channel::Repair {
                continue;
            }
            let (header, payload) = RtpHeader::parse(datagram.head).expect("RTP");
            assert_eq!(header.ssrc, session.server_ssrc);
            match repair {
                Repair::Nack => {
                    assert_eq!((header.payload_type, payload.len()), (RETRANSMISSION_TYPE, 2));
                    numbers.push(u16::from_be_bytes([payload[0], payload[1]]));
                }
                _ => {
                    assert_eq!((header.payload_type, payload.len()), (PAYLOAD_TYPE, 0));
                    numbers.push(header.sequence);
                }
            }
        }
        assert_eq!(numbers, lost);
        // At twice the rate of the session, a packet takes at least 30 ms.
        assert!(now >= second(10) + Span::from_millis(10), "retransmissions are paced: {now:?}");
    }
}

#[test]
fn frames_have_constant_steps_of_the_clock() {
    for rate in [15, 24, 30] {
        let session = session(Settings::default(), Generated { frame_rate: rate.into(), ..Generated::default() });
        let clock = |place: usize| session.header(session.first_packets[place], place).timestamp;
        assert!((1..100).all(|place| clock(place).wrapping_sub(clock(place - 1)) == 90_000 / rate), "{rate}");
    }
}

#[test]
fn a_wait_for_a_frame_of_several_packets_is_one_stall() {
    let video = Generated { rate: Bitrate::from_bps(1_000_000), b_frames: 2, ..Generated::default() };
    let session = session(Settings { buffer: Span::from_millis(100), ..Settings::default() }, video);
    let mut player = Player::new(Arc::clone(&session), Instant::ZERO);
    // The frames 0 and 3. Frame 1 follows, which is due after 67 ms.
    (0..session.first_packets[2]).for_each(|number| {
        player.receive(Instant::ZERO, number);
    });
    let packets = session.first_packets[2]..session.first_packets[3];
    assert!(packets.len() > 2, "{packets:?}");
    for (number, time) in packets.zip(1..) {
        player.receive(Instant::ZERO + Span::from_millis(200 * time), number);
    }
    assert_eq!((player.stalls().count(), player.stalled(second(9))), (1, None));
}

#[test]
fn the_timestamp_selects_the_cycle_of_a_sequence_number() {
    let settings = Settings { packet: Bytes::new(100), ..Settings::default() };
    let session = session(settings, Generated { duration: Span::from_secs(600), ..Generated::default() });
    for (near, number) in [(10, 10), (10, 32_000), (10, 40_000), (10, 70_000), (10, 100_000), (100_000, 60_000)] {
        let header = session.header(number, session.place_of(number));
        assert_eq!(session.number_at(header.sequence, header.timestamp, near), Some(number));
        assert_eq!(session.number_at(header.sequence, header.timestamp.wrapping_add(1), near), None);
    }
}

#[test]
fn settings_out_of_range_are_rejected_with_their_key() {
    let video = Generated::default().video().expect("a valid video");
    let field = |settings: Settings| settings.check(&video).expect_err("out of range").field;
    assert_eq!(field(Settings { timeout: Span::ZERO, ..Settings::default() }), "timeout");
    assert_eq!(field(Settings { timeout: Span::MAX, ..Settings::default() }), "timeout");
    assert_eq!(field(Settings { buffer: Span::MAX, ..Settings::default() }), "buffer");
    assert_eq!(field(Settings { report_interval: Span::MAX, ..Settings::default() }), "report_interval");
    let frame = |time| Frame { kind: FrameKind::I, size: 1, time };
    let endless = Video::new(vec![frame(Span::ZERO), frame(Span::MAX)]).expect("a video");
    assert_eq!(Settings::default().check(&endless).expect_err("too long").field, "video");
}

/// A link of `bits` per second without limit of its queue.
fn link(bits: u64) -> impl FnMut(&Sending) -> Option<Span> {
    let mut free = Instant::ZERO;
    move |packet| {
        if packet.channel == Channel::Reports {
            return Some(DELAY);
        }
        free = free.max(packet.sent) + Bitrate::from_bps(bits).time_for(Bytes::new(packet.size.into()));
        Some(free.since(packet.sent) + DELAY)
    }
}

#[test]
fn a_server_ahead_of_real_time_fills_the_buffer_up_to_its_limit() {
    let ahead = Span::from_secs(20);
    let settings = Settings { speed: 4.0, ahead, ..Settings::default() };
    let session = session(settings, Generated::default());
    let (_, client) = run(&session, link(2_000_000));
    let player = client.player();
    // 5 s at four times the rate, with group of pictures that begin with a large frame.
    let start = player.first_frame().expect("it starts");
    assert!((1.2..2.0).contains(&start.as_secs_f64()), "{start:?}");
    let levels = player.levels();
    let most = levels.iter().map(|level| level.media).max().expect("levels");
    // What is sent ahead, and the wait at the start.
    let limit = ahead + start.since(Instant::ZERO);
    assert!(most <= limit && most > limit.saturating_sub(Span::from_millis(300)), "{most:?} {limit:?}");
    assert!(player.displayed().iter().all(|complete| *complete));
}

#[test]
fn three_probes_limit_the_rate_to_that_of_the_path() {
    let fast = Settings { speed: 10.0, ahead: Span::from_secs(30), ..Settings::default() };
    let mut queues = Vec::new();
    for probes in [false, true] {
        let session = session(Settings { probes, ..fast }, Generated::default());
        let (mut link, mut longest) = (link(320_000), Span::ZERO);
        let (_, client) = run(&session, |packet| {
            let delay = link(packet);
            longest = longest.max(delay.unwrap_or_default());
            delay
        });
        assert_eq!((client.received().foreign, client.player().stalls().count()), (0, 0));
        queues.push(longest);
    }
    // A packet takes 36 ms. Without the limit the queue has several seconds.
    assert!(queues[0] > Span::from_secs(5) && queues[1] < Span::from_millis(700), "{queues:?}");
}

proptest! {
    #[test]
    fn whatever_the_path_does_counters_add_up(
        seed: u64, loss in 0.0..0.5_f64, most_delay in 0..9_000_u64, b_frames in 0..3_u32, rate in 8..400_u64,
        repair in prop::sample::select(vec![Repair::None, Repair::Once, Repair::Nack]),
        (speed, ahead) in prop::sample::select(vec![(1.0, 0), (3.0, 20)]),
    ) {
        let rate = Bitrate::from_bps(rate * 1000);
        let video = Generated { rate, b_frames, gop: 12, peak_to_mean: 3.0, ..Generated::default() };
        let ahead = Span::from_secs(ahead);
        let settings = Settings { repair, speed, ahead, probes: speed > 1.0, ..Settings::default() };
        let session = session(settings, video);
        let mut random = Seed::new(seed).stream("path");
        let mut delivered = vec![false; session.packets() as usize];
        let (server, client) = run(&session, |packet| {
            let delay = Span::from_millis(random.below(most_delay + 1));
            let arrives = random.uniform() >= loss;
            if packet.channel == Channel::Media && arrives {
                delivered[packet.number as usize] = true;
            }
            arrives.then_some(delay)
        });
        let received = client.received();
        prop_assert_eq!(received.foreign, 0);
        prop_assert!(repair != Repair::None || received.duplicates + received.repaired == 0);
        // A client that has left receives no more.
        let arrived = client.player().arrived();
        let original = arrived.iter().zip(&delivered).filter(|(arrived, delivered)| **arrived && **delivered).count();
        prop_assert!(original as u64 + received.repaired >= received.packets);
        prop_assert!(received.repaired + received.late <= 2 * received.packets);
        prop_assert!(received.repaired <= server.sent().retransmitted_packets);
        prop_assert_eq!(arrived.iter().filter(|arrived| **arrived).count() as u64, received.packets);
        prop_assert!(received.packets <= server.sent().packets);
        let complete = client.player().displayed();
        let decodable = session.video.decodable(complete);
        prop_assert!(decodable.iter().zip(complete).all(|(decodable, complete)| *complete || !decodable));
        if loss == 0.0 && most_delay < 5_000 {
            prop_assert!(complete.iter().all(|complete| *complete));
        }
    }
}

/// Runs a session and returns the most media in the buffer, at full seconds.
fn most_in_buffer(settings: Settings, path: impl FnMut(&Sending) -> Option<Span>) -> (Server, Client, Span) {
    let (server, client) = run(&session(settings, Generated::default()), path);
    let most = client.player().levels().iter().map(|level| level.media).max().unwrap_or_default();
    (server, client, most)
}

#[test]
fn a_server_ahead_of_real_time_stops_at_the_limit_of_the_buffer() {
    let ahead = Settings { speed: 10.0, ahead: Span::from_secs(60), ..Settings::default() };
    let (_, _, without) = most_in_buffer(ahead, |_| Some(DELAY));
    assert!(without > Span::from_secs(40), "{without}");
    for most in [6, 8, 20] {
        let limited = Settings { max_buffer: Some(Span::from_secs(most)), ..ahead };
        let (server, client, level) = most_in_buffer(limited, |_| Some(DELAY));
        let interval = Span::from_millis(67);
        assert!(level <= Span::from_secs(most) + interval, "{level} of {most} s");
        assert!(level + Span::from_secs(1) > Span::from_secs(most), "{level} of {most} s");
        assert_eq!((client.received().discarded, client.player().stalls().count()), (0, 0));
        assert_eq!(client.received().packets, server.sent().packets);
        // Playback starts early, and the rest is sent in real time.
        assert!(client.player().first_frame().expect("it plays") < second(2));
        let last = server.sent().last_media.expect("it has sent");
        assert!(last + Span::from_secs(most + 2) > second(61) && last < second(61), "{last:?}");
    }
}

#[test]
fn a_fast_path_does_not_lead_to_discards() {
    let limited = Settings {
        speed: 8.0,
        ahead: Span::from_secs(60),
        buffer: Span::from_secs(1),
        max_buffer: Some(Span::from_secs(3)),
        ..Settings::default()
    };
    for delay in [Span::ZERO, Span::from_micros(50)] {
        let (server, client, _) = most_in_buffer(limited, |_| Some(delay));
        assert_eq!((client.received().discarded, client.received().packets), (0, server.sent().packets));
    }
}

#[test]
fn a_full_buffer_discards_what_an_outage_has_held() {
    // All that is sent from 20 to 28 s arrives after 28 s. Playback stalls at 25 s, and the report
    // of that is held, too: the server sends on.
    let held = |packet: &Sending| {
        let from = packet.sent.since(Instant::ZERO);
        let is_held = (20..28).contains(&(from.as_nanos() / 1_000_000_000));
        Some(if is_held { second(28).since(packet.sent) + DELAY } else { DELAY })
    };
    let limited = Settings { max_buffer: Some(Span::from_secs(6)), ..Settings::default() };
    let (server, client, level) = most_in_buffer(limited, held);
    let (received, lost) = (client.received(), server.sent().packets - client.received().packets);
    assert!(received.discarded > 0 && received.discarded == lost, "{received:?}");
    assert!(level <= Span::from_millis(6067), "{level}");
    let (_, client, level) = most_in_buffer(Settings::default(), held);
    assert!(client.received().discarded == 0 && level > Span::from_millis(6067), "{level}");
}

#[test]
fn lost_frames_at_the_limit_do_not_stop_playback_for_good() {
    // All of the last two seconds below the limit are lost, so that less than `buffer` arrives.
    let settings = Settings {
        speed: 20.0,
        ahead: Span::from_secs(30),
        max_buffer: Some(Span::from_secs(6)),
        timeout: Span::from_secs(60),
        ..Settings::default()
    };
    let session = session(settings, Generated::default());
    let [from, to] = [60, 91].map(|frame| session.first_packets[frame]);
    let (_, client) = run(&session, |packet| {
        let is_lost = packet.channel == Channel::Media && (from..to).contains(&packet.number);
        (!is_lost).then_some(DELAY)
    });
    assert!(!client.timed_out(), "{:?}", client.player().first_frame());
    assert_eq!(client.player().displayed().iter().filter(|complete| !**complete).count(), 31);
}

#[test]
fn the_limit_of_the_buffer_has_room_for_what_playback_waits_for() {
    let video = Generated::default().video().expect("valid");
    let check = |most| Settings { max_buffer: Some(most), ..Settings::default() }.check(&video);
    assert_eq!(check(Span::from_secs(6)), Ok(()));
    for most in [Span::from_secs(5), Span::MAX] {
        assert_eq!(check(most).expect_err("out of range").field, "max_buffer");
    }
}
