//! HTTP through the application level, over TCP that loses and reorders.

use std::num::NonZeroU8;

use airpath_core::{Bytes, Instant};
use airpath_path::{Middlebox, Side};
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

pub fn network_with(
    sizes: &[usize],
    http: HttpConfig,
    most: usize,
    wired: [Line; 2],
    radio: [Line; 2],
) -> Network<'static> {
    let config = Config { http: Some(http), ..Config::new(Bytes::new(20_000)) };
    network_through(Box::new(proxy(config)), sizes, most, wired, radio)
}

pub fn network_through(
    proxy: Box<dyn Middlebox>,
    sizes: &[usize],
    most: usize,
    wired: [Line; 2],
    radio: [Line; 2],
) -> Network<'static> {
    let talk = Talk::download(Instant::ZERO, 0);
    let mut network = Network::new(Some(proxy), vec![talk], wired, radio, None);
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

#[test]
fn a_mobile_may_use_the_port_of_a_server_connection_that_is_kept() {
    let http = HttpConfig { server_pool: 1, ..HttpConfig::default() };
    let mut network = network_with(&[3000], http, usize::MAX, lines(20), lines(100));
    network.run(at(20_000));
    assert_eq!((network.ends.len(), network.outcomes(1)[Side::Server as usize]), (2, None), "it is kept");
    network.open_again(1, client(&[2000]));
    network.run(at(25_000));
    assert!(network.ends[1][Side::Mobile as usize].received == response(0, 2000));
    assert_eq!(network.outcomes(1)[Side::Server as usize], Some(Outcome::Reset), "the server learns of it");
    network.run(at(1_000_000));
    assert_eq!(network.packets_inside(), 0);
}

/// The address that [`Network`] gives to every server, and one of a server that it does not have.
const PROXY: ([u8; 4], u16) = ([192, 0, 2, 1], 80);
const RESOLVER: ([u8; 4], u16) = ([192, 0, 2, 53], 53);

/// A client of an explicit proxy that sends requests one after the other, and closes when it has
/// the expected number of bytes.
fn explicit_client(requests: &'static [&'static str], expected: usize) -> Speaker {
    let mut next = 0;
    Box::new(move |received| {
        // Each response ends with the text of an answer or the last byte of an object.
        let answered = received.windows(9).filter(|part| part.starts_with(b"HTTP/1.1 ")).count();
        let sends = if answered == next && next < requests.len() {
            next += 1;
            requests[next - 1].as_bytes().to_vec()
        } else {
            Vec::new()
        };
        (sends, received.len() >= expected)
    })
}

fn explicit(requests: &'static [&'static str], pool: u8, expected: usize) -> Network<'static> {
    let (address, resolver) = (Some(PROXY.into()), Some(RESOLVER.into()));
    let http = HttpConfig { address, resolver, server_pool: pool, ..HttpConfig::default() };
    let mut network = network_with(&[], http, usize::MAX, lines(20), lines(100));
    network.ends[0][Side::Mobile as usize].speaker = Some(explicit_client(requests, expected));
    network
}

fn received(network: &Network<'_>) -> String {
    String::from_utf8_lossy(&network.ends[0][Side::Mobile as usize].received).into_owned()
}

#[test]
fn one_connection_to_an_explicit_proxy_carries_requests_to_several_servers() {
    let requests = &[
        "GET http://192.0.2.2/1/10 HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n",
        "GET http://192.0.2.3:81/2/10 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://192.0.2.2/3/10 HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n",
    ];
    for (pool, servers) in [(0, 3), (2, 2)] {
        let mut network = explicit(requests, pool, usize::MAX);
        network.run(at(30_000));
        let text = received(&network);
        assert_eq!(text.matches("Via: 1.1 192.0.2.1:80\r\n").count(), 3, "{text}");
        let numbers: Vec<&str> = text.split("X-Number: ").skip(1).map(|part| &part[..1]).collect();
        assert_eq!(numbers, ["1", "2", "3"]);
        let opened = network.opened();
        assert_eq!((opened[0], opened[1]), (([192, 0, 2, 2], 80).into(), ([192, 0, 2, 3], 81).into()));
        assert_eq!(opened.len(), servers, "an idle server connection is used again");
        let to_proxy = &network.ends[0][Side::Server as usize];
        assert_eq!(to_proxy.connection.received(), 0, "nothing is sent to the proxy's own address");
    }
}

#[test]
fn an_explicit_proxy_refuses_what_it_must_not_fetch() {
    let requests = &[
        "GET http://127.0.0.1/1/10 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://192.0.2.1/1/10 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://169.254.169.254/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT 192.0.2.2:22 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /1/10 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://192.0.2.2/1/10 HTTP/1.1\r\nHost: x\r\nVia: 1.1 192.0.2.1:80\r\n\r\n",
        "GET http://[2001:db8::1]/1/10 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://192.0.2.2/1/10 HTTP/1.1\r\nHost: x\r\n\r\n",
        "not HTTP\r\n\r\n",
    ];
    let mut network = explicit(requests, 0, usize::MAX);
    network.run(at(60_000));
    let text = received(&network);
    let codes: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(codes, ["403", "403", "403", "403", "400", "502", "502", "200", "400"], "{text}");
    assert_eq!(network.opened().len(), 1);
    assert_eq!(network.outcomes(0)[Side::Mobile as usize], Some(Outcome::Closed), "after a malformed request");
    network.run(at(1_000_000));
    assert_eq!(network.packets_inside(), 0);
}

#[test]
fn a_name_without_an_answer_of_the_resolver_is_an_error() {
    let requests = &["GET http://example.com/1/10 HTTP/1.1\r\nHost: x\r\n\r\n"];
    // An HTTP server is no resolver.
    let wrong = "HTTP/1.1 400 Bad Request\r\n\r\n";
    for (sends_first, closes, code) in [(wrong, true, 502), ("", true, 502), ("", false, 504)] {
        let mut network = explicit(requests, 0, 1);
        network.servers = Some(Box::new(move || {
            let mut sends_first = sends_first.as_bytes().to_vec();
            Box::new(move |_| (std::mem::take(&mut sends_first), closes))
        }));
        network.run(at(60_000));
        assert!(received(&network).starts_with(&format!("HTTP/1.1 {code} ")), "{}", received(&network));
        assert_eq!(network.opened(), [RESOLVER.into()]);
    }
}

/// A resolver's answer to `query`: the address 192.0.2.2.
fn address_of(query: &[u8]) -> Vec<u8> {
    let mut answer = [&query[2..4], &b"\x81\x80\0\0\0\x01\0\0\0\0"[..]].concat();
    answer.extend(b"\0\0\x01\0\x01\0\0\0\x3C\0\x04\xC0\0\x02\x02");
    [&(answer.len() as u16).to_be_bytes()[..], &answer].concat()
}

/// A resolver that answers the first query of its first connection with `first`, and closes that
/// one at the second query; and servers that answer any request.
fn resolver(first: fn(&[u8]) -> Vec<u8>) -> Box<dyn Fn() -> Speaker> {
    let connections = std::rc::Rc::new(std::cell::Cell::new(0));
    Box::new(move || {
        let connections = std::rc::Rc::clone(&connections);
        let (mut own, mut done) = (None, 0);
        Box::new(move |received: &[u8]| {
            let new = &received[done..];
            if new.starts_with(b"GET ") {
                done = received.len();
                return (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), false);
            }
            if new.is_empty() {
                return (Vec::new(), false);
            }
            let number = *own.get_or_insert_with(|| connections.replace(connections.get() + 1));
            let is_first = std::mem::replace(&mut done, received.len()) == 0;
            match (number, is_first) {
                (0, true) => (first(new), false),
                (0, false) => (Vec::new(), true),
                _ => (address_of(new), false),
            }
        })
    })
}

#[test]
fn a_query_goes_over_a_new_connection_to_the_resolver() {
    let requests =
        &["GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b.example/ HTTP/1.1\r\nHost: b\r\n\r\n"];
    let malformed: fn(&[u8]) -> Vec<u8> = |_| b"\0\x0C\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for (first, expected) in [(malformed, ["502", "200"]), (address_of, ["200", "200"])] {
        let mut network = explicit(requests, 0, usize::MAX);
        network.servers = Some(resolver(first));
        network.run(at(60_000));
        let text = received(&network);
        let codes: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
        assert_eq!(codes, expected, "{text}");
        let resolver = std::net::SocketAddr::from(RESOLVER);
        let to_resolver = network.opened().iter().filter(|server| **server == resolver).count();
        assert_eq!(to_resolver, 2);
    }
}

#[test]
fn a_tunnel_carries_one_direction_after_the_end_of_the_other() {
    let mut network = explicit(&[], 0, usize::MAX);
    let mut steps = 0;
    network.ends[0][Side::Mobile as usize].speaker = Some(Box::new(move |received| {
        let sends: &[u8] = match steps {
            0 => b"CONNECT 192.0.2.2:443 HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n",
            1 if received.ends_with(b"bye") => b"late",
            _ => b"",
        };
        steps += usize::from(!sends.is_empty());
        (sends.to_vec(), steps == 2)
    }));
    let heard = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let hears = std::rc::Rc::clone(&heard);
    network.servers = Some(Box::new(move || {
        let (hears, mut sends) = (std::rc::Rc::clone(&hears), b"bye".to_vec());
        Box::new(move |received: &[u8]| {
            *hears.borrow_mut() = received.to_vec();
            (std::mem::take(&mut sends), true)
        })
    }));
    network.run(at(60_000));
    assert_eq!(String::from_utf8_lossy(&heard.borrow()), "late");
}
