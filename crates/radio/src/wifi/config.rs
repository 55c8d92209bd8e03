//! The parameters of an access point and its stations, as a scenario has them.

use airpath_core::{Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tables::{BLOCK_ACK_WINDOW, Bandwidth, GuardInterval, Standard, data_bits_per_symbol};
use crate::error::{ValueError, check_queue, range, within_an_hour};

/// An access point with its stations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The channel, and how all stations use it.
    pub channel: Channel,
    /// What one exchange carries.
    pub aggregation: Aggregation,
    /// Stations that share the channel and always have something to send, beside those of the
    /// scenario. Without it, there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherStations>,
    /// After an `outage`: the time of scanning, authentication, association and the key handshake,
    /// until the first frame.
    pub association: Span,
    /// From the access point to where the bearer ends, one way.
    pub delay: Span,
    /// Towards the mobiles.
    pub downlink: Direction,
    /// From the mobiles.
    pub uplink: Direction,
}

/// The channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// The amendment of IEEE 802.11.
    pub standard: Standard,
    /// Its bandwidth; `80 MHz` and `160 MHz` with `802.11ac` only.
    pub bandwidth: Bandwidth,
    /// Spatial streams, 1 to 4.
    pub streams: u8,
    /// Modulation and coding scheme of one stream: 0 to 7 with `802.11n` (whose numbers above 7
    /// are those of more streams), 0 to 9 with `802.11ac`.
    pub mcs: u8,
    /// Guard interval of a symbol.
    pub guard_interval: GuardInterval,
    /// How often a frame is sent before its packet is given up.
    pub max_transmissions: u32,
}

/// A-MPDUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregation {
    /// Frames in an A-MPDU at most, 1 to 64. The standard also limits the bytes: 65,535 with
    /// `802.11n`, 1,048,575 with `802.11ac`.
    pub frames: u32,
    /// The longest time of an A-MPDU: at most 10 ms with `802.11n` and 5.484 ms with `802.11ac`. A
    /// single frame may take longer.
    pub time: Span,
}

/// Other stations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherStations {
    /// Their number.
    pub stations: u32,
    /// The time of one of their exchanges, with its acknowledgement.
    pub airtime: Span,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// The probability that a frame is in error, at each transmission, independently of all others.
    pub bler: Probability,
    /// Bound and discipline of the packets of a mobile that have not been sent yet. Without it, any
    /// number may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

impl Config {
    /// Refuses what the standard does not have, and what makes no sense.
    pub(super) fn check(&self) -> Result<(), ValueError> {
        let Channel { standard, bandwidth, streams, mcs, max_transmissions, .. } = self.channel;
        if bandwidth > standard.widest() {
            return Err(range("channel", "bandwidth", "20 MHz or 40 MHz with 802.11n"));
        }
        if !(1..=4).contains(&streams) {
            return Err(range("channel", "streams", "1 to 4"));
        }
        if mcs > standard.highest_mcs() {
            return Err(range("channel", "mcs", "0 to 7 with 802.11n, 0 to 9 with 802.11ac"));
        }
        if data_bits_per_symbol(bandwidth, streams, mcs).is_none() {
            let expected = "an MCS that IEEE 802.11-2020 clause 21.5 has for this bandwidth and these streams; MCS 9 \
                            in 20 MHz needs three streams";
            return Err(range("channel", "mcs", expected));
        }
        if !(1..=1000).contains(&max_transmissions) {
            return Err(range("channel", "max_transmissions", "1 to 1000"));
        }
        if !(1..=BLOCK_ACK_WINDOW as u32).contains(&self.aggregation.frames) {
            return Err(range("aggregation", "frames", "1 to 64, the frames of a Block Ack"));
        }
        let (longest, expected) = standard.longest_ppdu();
        if self.aggregation.time.is_zero() || self.aggregation.time > longest {
            return Err(range("aggregation", "time", expected));
        }
        if let Some(OtherStations { stations, airtime }) = self.others {
            if !(1..=1000).contains(&stations) {
                return Err(range("others", "stations", "1 to 1000; without others, leave out the table"));
            }
            if airtime.is_zero() || airtime > Span::from_millis(10) {
                return Err(range("others", "airtime", "above 0 and at most 10 ms"));
            }
        }
        for (span, key) in [(self.association, "association"), (self.delay, "delay")] {
            within_an_hour(span, "", key).map_err(|_| ValueError::TooLong { key: key.to_owned() })?;
        }
        check_queue(self.downlink.queue.as_ref(), "downlink")?;
        check_queue(self.uplink.queue.as_ref(), "uplink").map(drop)
    }
}
