//! Windows NT 4.0, from service pack 2.
//!
//! Its settings are those of [`windows_xp`](super::windows_xp) but for what differs here. Not
//! modelled: a wrong calculation of the timeout over paths with long delays, which Microsoft
//! corrected in 1999 (KB 232512).

use airpath_core::Bytes;

use super::windows_xp;
use crate::config::{Config, Limit, ReceiveBuffer, WindowClamp};

pub(super) const CONFIG: Config = Config {
    // SACK came with Windows 98 and 2000 (KB 224829).
    selective_acknowledgement: false,
    // [TcpWindowSize] 8192, rounded up to six segments of 1460 bytes (Microsoft, "TCP receive
    // window size calculation").
    receive_buffer: ReceiveBuffer {
        clamp: WindowClamp::UNLIMITED,
        initial: Bytes::new(8_760),
        first_offer: Limit::UNLIMITED,
        maximum: Bytes::new(8_760),
    },
    ..windows_xp::CONFIG
};
