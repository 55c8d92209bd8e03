//! HTTP through the application level, over TCP that loses and reorders.

use std::num::NonZeroU8;

use airpath_core::{Bytes, Instant};
use airpath_path::Side;
use airpath_proxy::{Config, HttpConfig};
use airpath_tcp::Outcome;
use proptest::prelude::*;

use crate::conversations::{at, lines, proxy, unreliable};
use crate::support::{Line, Network, Speaker, Talk};

/// The response to request `number`.
fn response(number: usize, size: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nX-Number: {number}\r\nContent-Length: {size}\r\n\r\n");
    let data = (0..size).map(|at| (at.wrapping_mul(31) ^ at >> 8 ^ number) as u8);
    head.into_bytes().into_iter().chain(data).collect()
}

/// A server that answers `GET /NUMBER/SIZE`, and closes after `most` requests of a connection.
fn server(most: usize) -> Speaker {
    let (mut read, mut count) = (0, 0);
    Box::new(move |received| {
        let mut sends = Vec::new();
        while let Some(end) = received[read..].windows(4).position(|end| end == b"\r\n\r\n")
            && count < most
        {
            let request = String::from_utf8(received[read..read + end].to_vec()).expect("it is text");
            let path = request.split(' ').nth(1).expect("a request has a path");
            let mut numbers = path.split('/').skip(1).map(|number| number.parse().expect("it is a number"));
            let (number, size) = (numbers.next().expect("there are two"), numbers.next().expect("there are two"));
            sends.extend(response(number, size));
            (read, count) = (read + end + 4, count + 1);
        }
        (sends, count >= most)
    })
}

/// A client that sends requests for objects of these sizes at once, and closes when it has them.
fn client(sizes: &[usize]) -> Speaker {
    let get = |(number, size): (usize, &usize)| format!("GET /{number}/{size} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut requests: Vec<u8> = sizes.iter().enumerate().flat_map(|each| get(each).into_bytes()).collect();
    let expected: usize = sizes.iter().enumerate().map(|(number, size)| response(number, *size).len()).sum();
    Box::new(move |received| (std::mem::take(&mut requests), received.len() >= expected))
}

fn network(sizes: &[usize], pipelining: u8, most: usize, wired: [Line; 2], radio: [Line; 2]) -> Network<'static> {
    let pipelining = NonZeroU8::new(pipelining).expect("at least one");
    network_with(sizes, HttpConfig { pipelining, ..HttpConfig::default() }, most, wired, radio)
}

fn network_with(
    sizes: &[usize],
    http: HttpConfig,
    most: usize,
    wired: [Line; 2],
    radio: [Line; 2],
) -> Network<'static> {
    let config = Config { http: Some(http), ..Config::new(Bytes::new(20_000)) };
    let talk = Talk::download(Instant::ZERO, 0);
    let mut network = Network::new(Some(Box::new(proxy(config))), vec![talk], wired, radio, None);
    network.servers = Some(Box::new(move || server(most)));
    network.ends[0][Side::Server as usize].speaker = Some(server(most));
    network.ends[0][Side::Mobile as usize].speaker = Some(client(sizes));
    network
}

proptest! {
    #[test]
    fn pipelined_responses_arrive_in_order_and_byte_for_byte(
        sizes in proptest::collection::vec(0_usize..20_000, 1..12),
        pipelining in 1_u8..5,
        loss in prop_oneof![Just(0.0), 0.0..0.05],
        jitter in 0_u64..60,
        seed in any::<u64>(),
    ) {
        let line = |name| unreliable(loss, jitter, seed, name);
        let wired = [line("wired/down"), line("wired/up")];
        let radio = [line("radio/down"), line("radio/up")];
        let mut network = network(&sizes, pipelining, usize::MAX, wired, radio);
        network.run(at(1_000_000));
        let expected: Vec<u8> = sizes.iter().enumerate().flat_map(|(number, size)| response(number, *size)).collect();
        prop_assert!(network.ends[0][Side::Mobile as usize].received == expected);
        prop_assert_eq!(network.packets_inside(), 0);
        for flow in 0..network.ends.len() {
            let server = network.outcomes(flow)[Side::Server as usize];
            prop_assert_eq!(server, Some(Outcome::Closed), "server connection {}", flow);
        }
        prop_assert_eq!(network.outcomes(0)[Side::Mobile as usize], Some(Outcome::Closed));
        prop_assert!(network.ends.len() <= usize::from(pipelining));
        if pipelining > 1 && sizes.len() > 4 && loss == 0.0 {
            prop_assert!(network.ends.len() > 1, "requests are sent at the same time");
        }
    }
}

#[test]
fn a_client_whose_server_closes_sees_the_end() {
    for pipelining in [1, 3] {
        let sizes = [1000; 8];
        let mut network = network(&sizes, pipelining, 2, lines(20), lines(100));
        network.run(at(100_000));
        let received = &network.ends[0][Side::Mobile as usize].received;
        let whole: Vec<u8> = sizes.iter().enumerate().flat_map(|(number, size)| response(number, *size)).collect();
        assert!(whole.starts_with(received));
        let last = response(0, 1000).len();
        assert!(
            received.len() >= 2 * last && received.len().is_multiple_of(last),
            "whole responses: {}",
            received.len()
        );
        assert_eq!(network.outcomes(0), [Some(Outcome::Closed); 2]);
        assert_eq!(network.packets_inside(), 0);
    }
}

#[test]
fn server_connections_are_kept_and_closed_after_a_time() {
    let pipelining = NonZeroU8::new(3).expect("it is not zero");
    let http = HttpConfig { pipelining, server_pool: 2, ..HttpConfig::default() };
    let sizes = [3000; 6];
    let mut network = network_with(&sizes, http, usize::MAX, lines(20), lines(100));
    network.run(at(30_000));
    let expected: Vec<u8> = sizes.iter().enumerate().flat_map(|(number, size)| response(number, *size)).collect();
    assert!(network.ends[0][Side::Mobile as usize].received == expected);
    let open = |network: &Network<'_>| {
        (0..network.ends.len()).filter(|flow| network.outcomes(*flow)[Side::Server as usize].is_none()).count()
    };
    // The connection with the client's own port is never opened, and one of three is too many.
    assert_eq!((network.ends.len(), open(&network)), (4, 1 + 2));
    network.run(at(1_000_000));
    assert_eq!(open(&network), 1);
    assert_eq!(network.packets_inside(), 0);
}
