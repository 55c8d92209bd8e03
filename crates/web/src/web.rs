//! The application data of all connections of a capture.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airpath_wire::tcp::Flags;

use crate::page::{Downlink, Page, pages};
use crate::stream::{Mark, Piece};
use crate::timeline::{Application, Timeline};
use crate::watch::Watch;
use airpath_observe::flows::{Ending, FlowNumber, Listener};
use airpath_observe::{Connection, End, Observation};
use airpath_wire::segment::Segment;

/// Listener that parses the application data of all connections of a capture.
///
/// ```
/// use airpath_capture::decode::{Decoded, Decoder};
/// use airpath_capture::read::Reader;
/// use airpath_observe::flows::Flows;
/// use airpath_web::Web;
/// # let file = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
///
/// let mut reader = Reader::new(&file[..])?;
/// let (mut decoder, mut flows, mut web) = (Decoder::default(), Flows::default(), Web::default());
/// while let Some(record) = reader.next_record() {
///     if let Decoded::Segment(segment) = decoder.decode(&record) {
///         flows.segment(&segment, &mut web);
///     }
/// }
/// flows.finish(&mut web);
/// for page in web.finish().pages {
///     println!("{}: {} requests in {}", page.client, page.requests, page.time());
/// }
/// # Ok::<(), airpath_capture::read::OpenError>(())
/// ```
#[derive(Debug, Default)]
pub struct Web {
    keep_fields: bool,
    open: BTreeMap<FlowNumber, Box<Watch>>,
    ended: BTreeMap<FlowNumber, Timeline>,
    downlinks: BTreeMap<IpAddr, Downlink>,
}

/// The application data of a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchanges {
    /// The timelines of the connections with HTTP or TLS, in the order in which they began.
    pub timelines: Vec<(FlowNumber, Timeline)>,
    /// The page of each client that used HTTP.
    pub pages: Vec<Page>,
}

impl Web {
    /// Keeps all header fields of requests and responses, not only
    /// [`KEPT_FIELDS`](super::KEPT_FIELDS).
    pub fn with_all_fields() -> Self {
        Self { keep_fields: true, ..Self::default() }
    }

    /// Takes the timelines of the connections that ended since the last call. Memory then stays
    /// bounded for a capture of any length; the pages lack these connections.
    pub fn take_ended(&mut self) -> impl Iterator<Item = (FlowNumber, Timeline)> + use<> {
        std::mem::take(&mut self.ended).into_iter()
    }

    /// Returns the application data, once all connections have ended.
    pub fn finish(self) -> Exchanges {
        let pages = pages(self.ended.values(), &self.downlinks);
        Exchanges { timelines: self.ended.into_iter().collect(), pages }
    }
}

impl Listener for Web {
    fn observed(&mut self, flow: FlowNumber, seen: &Observation, segment: &Segment<'_>, connection: &Connection) {
        let mark = Mark { time: seen.time, frame: seen.frame };
        let route = connection.route();
        let watch = self.open.entry(flow);
        let watch =
            watch.or_insert_with(|| Box::new(Watch::new(route.source, route.destination, mark, self.keep_fields)));
        // A SYN occupies the offset before the first byte, and may carry data (RFC 7413).
        let offset = seen.offset + i64::from(seen.flags.contains(Flags::SYN));
        let piece =
            Piece { mark, offset, acknowledged: seen.acknowledged, length: seen.length, captured: segment.payload };
        watch.segment(seen.from, seen.flags, piece);
        if seen.from == End::Server && seen.length > 0 && watch.is_http() {
            self.downlinks.entry(route.source.address).or_default().segment(seen.time, seen.length);
        }
    }

    fn ended(&mut self, flow: FlowNumber, _: &Connection, _: Ending) {
        if let Some(watch) = self.open.remove(&flow) {
            let timeline = watch.finish();
            if timeline.application != Application::Other {
                self.ended.insert(flow, timeline);
            }
        }
    }
}
