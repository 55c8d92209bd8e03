//! Captures with HTTP in them, read from end to end.

use std::fs::File;
use std::path::Path;

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;
use airpath_observe::flows::Flows;
use airpath_web::{Exchange, Exchanges, Web};

/// Runs `check` on what is in a capture of the shared ones, if they are there.
fn with(name: &str, check: impl FnOnce(&Exchanges)) {
    if let Some(folder) = airpath_testing::shared_captures() {
        check(&read(&folder.join(name)));
    }
}

fn read(path: &Path) -> Exchanges {
    let mut reader = Reader::new(File::open(path).expect("the capture opens")).expect("it is a capture");
    let (mut decoder, mut flows, mut web) = (Decoder::default(), Flows::default(), Web::default());
    while let Some(record) = reader.next_record() {
        if let Decoded::Segment(segment) = decoder.decode(&record) {
            flows.segment(&segment, &mut web);
        }
    }
    flows.finish(&mut web);
    web.finish()
}

fn exchanges(exchanges: &Exchanges) -> Vec<&Exchange> {
    exchanges.timelines.iter().flat_map(|(_, timeline)| timeline.exchanges()).collect()
}

/// Factor, efficiency over all connections and over those used again, and seconds.
fn figures(web: &Exchanges) -> (Vec<f64>, f64, Option<f64>, f64) {
    let [page] = &web.pages[..] else { panic!("one client fetched one page") };
    let factors = web.timelines.iter().filter_map(|(_, timeline)| timeline.pipelining()).map(|it| it.factor());
    (factors.collect(), page.efficiency.unwrap_or(0.0), page.efficiency_of_reused, page.time().as_secs_f64())
}

/// Eight objects of 1 to 8 kB: on a connection each, one after the other on one, and all but the
/// first at once.
#[test]
fn the_same_objects_separately_persistently_and_pipelined() {
    // One request first, then seven at once: β is 1, and then 1 to 7.
    let pipelined = 29.0 / 8.0;
    for (name, connections, factor, efficiency, of_reused) in [
        ("http-separate", 8, 1.0, 1.0, None),
        ("http-persistent", 1, 1.0, 1.0 / 4.5, Some(1.0 / 4.5)),
        ("http-pipelined", 1, pipelined, pipelined / 4.5, Some(pipelined / 4.5)),
        ("http-ipv6", 1, 1.0, 1.0 / 4.5, Some(1.0 / 4.5)),
    ] {
        let web = read(&airpath_testing::captures().join(format!("{name}.pcapng")));
        let (factors, over_all, over_reused, _) = figures(&web);
        assert_eq!(factors, vec![factor; connections], "{name}");
        assert_eq!((over_all, over_reused), (efficiency, of_reused), "{name}");
        let sizes: Vec<u64> =
            exchanges(&web).iter().map(|exchange| exchange.response.as_ref().unwrap().size.content).collect();
        assert_eq!(sizes, (1..=8).map(|number| number * 1000).collect::<Vec<_>>(), "{name}");
    }
}

/// Twelve objects over 40/10 kbit/s and 600 ms, with one request pending at a time or many: the
/// requests are known exactly.
#[test]
fn the_same_page_without_persistence_with_it_and_pipelined() {
    // One request first, then eleven at once: β is 1, and then 1 to 11.
    let pipelined = 67.0 / 12.0;
    for (name, connections, factor, efficiency, of_reused, client_time) in [
        ("own/http_http10.pcap", 12, 1.0, 1.0, None, 30.7),
        ("own/http_persist.pcap", 1, 1.0, 1.0 / 6.5, Some(1.0 / 6.5), 22.3),
        ("own/http_pipe.pcap", 1, pipelined, pipelined / 6.5, Some(pipelined / 6.5), 15.4),
    ] {
        with(name, |web| {
            let (factors, over_all, over_reused, seconds) = figures(web);
            assert_eq!(factors, vec![factor; connections], "{name}");
            assert_eq!((over_all, over_reused), (efficiency, of_reused), "{name}");
            // The client's own time begins before its first SYN and ends after its last close.
            assert!(
                seconds <= client_time + 0.05 && seconds > client_time - 1.0,
                "{name}: {seconds} s of {client_time} s"
            );
            assert_eq!(exchanges(web).len(), 12);
            for exchange in exchanges(web) {
                let (request, response) = (exchange.request.as_ref().unwrap(), exchange.response.as_ref().unwrap());
                assert_eq!((&*request.method, response.status), ("GET", Some(200)), "{name}");
                assert!(response.size.complete && response.size.exact, "{name}: {}", request.target);
                assert!(request.last <= response.first && response.first <= response.last);
            }
        });
    }
}

#[test]
fn a_browser_of_1997_on_57_connections() {
    with("tcptrace__http.dmp", |web| {
        assert_eq!(web.timelines.iter().filter(|(_, timeline)| timeline.pipelining().is_some()).count(), 57);
        let exchanges = exchanges(web);
        assert_eq!(exchanges.iter().filter(|exchange| exchange.request.is_some()).count(), 106);
        for response in exchanges.iter().map(|exchange| exchange.response.as_ref().expect("all are answered")) {
            assert!(response.size.complete, "frame {}", response.first.frame);
        }
        assert_eq!(web.pages.iter().map(|page| page.connections).collect::<Vec<_>>(), [22, 35]);
    });
}

/// Eight requests in three segments: tshark 4.0 sees two of them.
#[test]
fn a_pipelined_connection_whose_first_segment_came_out_of_order() {
    with("tcptrace__first_seg_ooo.dmp", |web| {
        let sizes: Vec<_> =
            exchanges(web).iter().map(|exchange| exchange.response.as_ref().unwrap().size.content).collect();
        assert_eq!(sizes, [6832, 4524, 7382, 27373, 4994, 6719, 2335, 1084]);
        assert_eq!(web.timelines[0].1.pipelining().unwrap().outstanding, 32);
    });
}

#[test]
fn interim_responses_ranges_and_old_versions() {
    with("zeek__http_100-continue.pcap", |web| {
        let [exchange] = exchanges(web)[..] else { panic!("one exchange") };
        assert_eq!((exchange.interim_responses, exchange.request.as_ref().unwrap().size.body), (1, 2001));
        assert_eq!(exchange.response.as_ref().unwrap().size.content, 60_731);
    });
    for (name, ranges) in [
        ("zeek__http_206_example_b.pcap", vec![816_896, 206_024, 206_024]),
        ("zeek__http_concurrent-range-requests.pcap", vec![10_001; 3]),
    ] {
        with(name, |web| {
            let responses = exchanges(web).into_iter().map(|exchange| exchange.response.as_ref().unwrap());
            let responses: Vec<_> = responses.map(|response| (response.status, response.size.content)).collect();
            assert_eq!(responses, ranges.iter().map(|bytes| (Some(206), *bytes)).collect::<Vec<_>>(), "{name}");
        });
    }
    with("zeek__http_http_09.pcap", |web| {
        let exchange = exchanges(web)[0];
        assert_eq!(exchange.response.as_ref().unwrap().size.content, 51);
    });
}

/// 49 connections with one request each; 18 have a valid request line.
#[test]
fn malformed_requests_are_answered() {
    with("zeek__http_methods.pcap", |web| {
        let exchanges = exchanges(web);
        let answered = exchanges.iter().filter(|exchange| exchange.response.is_some()).count();
        let proper = exchanges.iter().filter(|exchange| exchange.request.is_some()).count();
        assert_eq!((answered, proper), (49, 18));
    });
}
