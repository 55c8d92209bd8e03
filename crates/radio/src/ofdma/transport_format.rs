//! How a transport block is sent, and what decides on it (TS 36.213 §7.1.7,
//! TS 38.214 §5.1.3).

use crate::common::link_adaptation::Modulation;

/// How a block is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportFormat {
    /// I_MCS.
    pub scheme: u8,
    /// Its modulation.
    pub modulation: Modulation,
    /// Resource blocks.
    pub blocks: u32,
    /// Layers.
    pub layers: u8,
    /// Symbols for the direction in the slot of the first transmission.
    pub symbols: u8,
    /// Bits of the transport blocks on all layers together.
    pub bits: u32,
    /// In a narrowband, the coverage mode whose repetitions the block has.
    pub mode: u8,
}

/// What can be sent to or by a mobile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bits a symbol on each layer.
    pub efficiency: f64,
    /// The SINR in decibels at which they are; of the uplink that in a tenth of the band.
    pub sinr: f64,
    /// The number of layers.
    pub layers: u8,
    /// Resource blocks at most.
    pub blocks: u32,
    /// In a narrowband, the coverage mode whose repetitions raise the SINR.
    pub mode: u8,
    /// No other modulation than QPSK.
    pub is_qpsk_only: bool,
}

impl Estimate {
    /// One layer with these bits a symbol, at any SINR.
    pub const fn of(efficiency: f64) -> Self {
        Self { efficiency, sinr: f64::INFINITY, layers: 1, blocks: u32::MAX, mode: 0, is_qpsk_only: false }
    }
}
