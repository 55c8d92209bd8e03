//! A transport block between its first transmission and its end.

use super::rlc::Block;
use super::transport_format::TransportFormat;
use crate::common::link_adaptation::SoftBuffer;

/// A block that is on the air, or waits to be sent again.
#[derive(Clone, Debug)]
pub struct Sent {
    /// What it carries.
    pub block: Block,
    /// How it is sent.
    pub format: TransportFormat,
    /// How often it was sent.
    pub attempts: u8,
    /// How many of these the receiver has.
    pub receptions: u8,
    /// The mobile has got an assignment for it (downlink only).
    pub is_known: bool,
    /// What the receiver has of it.
    pub soft: SoftBuffer,
}

impl Sent {
    /// A block that was not sent yet.
    pub const fn new(block: Block, format: TransportFormat, soft: SoftBuffer) -> Self {
        Self { block, format, attempts: 0, receptions: 0, is_known: false, soft }
    }
}
