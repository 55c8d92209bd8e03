//! Wi-Fi (IEEE 802.11n and 802.11ac): one access point whose stations share one channel.
//!
//! One station at a time has the channel, for one exchange: an A-MPDU with several packets to one
//! receiver, and the Block Ack. All that have something to send win the next exchange with the same
//! probability, as with the DCF in the long run. The access point is one of them, however many
//! mobiles it sends to; other stations, with traffic that is not simulated, are further ones. The
//! time before an exchange is the mean of the smallest of their backoffs.
//!
//! Frames in error are sent again in the next A-MPDU. The receiver delivers in order, so packets
//! wait for frames before them.
//!
//! Left out: collisions and the contention window that they double, hidden stations, RTS/CTS, rate
//! adaptation (the MCS is constant), access categories other than best effort, A-MSDU, airtime
//! fairness, power saving, and interference. docs/wifi.md describes the consequences.
//!
//! | module | what |
//! | --- | --- |
//! | [`tables`] | data rates |
//! | `timing` | the time of an exchange, and of the contention before it |
//! | `station` | the frames of one mobile in one direction |
//! | `channel` | the channel and its stations: the bearer |

mod channel;
mod config;
mod station;
pub mod tables;
mod timing;

use airpath_core::Seed;
use airpath_link::Bearer;

pub use channel::Wifi;
pub use config::{Aggregation, Channel, Config, Direction, OtherStations};

use crate::error::ValueError;
use crate::model::Model;

impl Model for Config {
    const NAME: &'static str = "wifi";
    const TITLE: &'static str = "a Wi-Fi access point (802.11n, 802.11ac) whose channel all stations share";

    type Error = ValueError;

    fn build(&self, classes: &[Option<String>], seed: Seed, name: &str) -> Result<Box<dyn Bearer>, ValueError> {
        Ok(Box::new(Wifi::new(self, classes.len(), seed, name)?))
    }
}
