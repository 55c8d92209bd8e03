//! What all mobiles of a cell have in common, worked out once, and which block suits a mobile.

use airpath_core::{Probability, Span};

use super::config::{Config, TTI};
use super::link_quality;
use super::transport_block::TransportBlock;
use crate::common::link_adaptation::Combining;
use crate::common::shared_channel::harq::MAX_CQI;
use crate::umts::ConfigError;

/// The parameters of a cell as the TTIs need them.
#[derive(Debug)]
pub struct Plan {
    pub codes: u8,
    pub users_per_tti: u8,
    /// Payload of a PDU, in bytes.
    pub pdu: u32,
    /// PDUs that the block of each CQI holds; none for CQI 0.
    sizes: [u32; MAX_CQI as usize + 1],
    /// The first CQI whose block holds a PDU.
    lowest: u8,
    /// The last CQI of the category.
    highest: u8,
    /// Share of the power that a block needs, by the number of steps below the reported CQI.
    shares: [f64; MAX_CQI as usize + 1],
    /// TTIs from a block to the next of the same mobile.
    pub interval: u64,
    pub cqi: Option<u8>,
    pub combining: Combining,
    pub max_transmissions: u32,
    pub round_trip: Span,
    pub radio_delay: Span,
}

/// A block that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub cqi: u8,
    /// Of the power of the cell.
    pub share: f64,
    /// PDUs in it.
    pub pdus: u32,
}

/// What is left of a TTI.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    pub codes: u8,
    pub power: f64,
}

/// What rounding may make of a power that was given away whole.
const ROUNDING: f64 = 1e-9;

impl Left {
    /// Whether a block fits.
    pub fn has(&self, cqi: u8, share: f64) -> bool {
        TransportBlock::of(cqi).codes <= self.codes && share <= self.power + ROUNDING
    }

    /// Takes what a block needs.
    pub fn take(&mut self, cqi: u8, share: f64) {
        self.codes -= TransportBlock::of(cqi).codes;
        self.power -= share;
    }
}

impl Plan {
    /// That of a checked configuration.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let downlink = &config.downlink;
        let pdu = downlink.pdu.get() as u32;
        let category = config.category()?;
        let mut sizes = [0; MAX_CQI as usize + 1];
        for cqi in 1..=MAX_CQI {
            sizes[usize::from(cqi)] = TransportBlock::of(cqi).pdus(pdu);
        }
        let lowest = sizes.iter().position(|size| *size > 0).expect("it was checked that a block holds a PDU") as u8;
        Ok(Self {
            codes: config.cell.codes,
            users_per_tti: config.cell.users_per_tti,
            pdu,
            sizes,
            lowest,
            highest: category.highest,
            shares: std::array::from_fn(|steps| link_quality::share(steps as u8, 0)),
            interval: category.interval,
            cqi: downlink.cqi,
            combining: downlink.harq.combining,
            max_transmissions: downlink.harq.max_transmissions.into(),
            round_trip: TTI * u64::from(downlink.harq.round_trip),
            radio_delay: downlink.radio_delay,
        })
    }

    /// The largest block that a mobile which reported a CQI can have of what is left, or the
    /// smallest of those that hold all that waits. A mobile that reported too little for even one
    /// PDU gets the smallest block that holds one.
    pub fn choose(&self, reported: u8, waiting: u32, left: &Left) -> Option<Choice> {
        let highest = self.cqi.unwrap_or(reported).clamp(self.lowest, self.highest);
        let mut chosen = None;
        for cqi in (self.lowest..=highest).rev() {
            let share = self.share(reported, cqi);
            if !left.has(cqi, share) {
                continue;
            }
            let size = self.sizes[usize::from(cqi)];
            if chosen.is_some() && size < waiting {
                break;
            }
            chosen = Some(Choice { cqi, share, pdus: size.min(waiting) });
            if self.cqi.is_some() {
                break;
            }
        }
        chosen
    }

    /// Whether any block fits for a mobile that reported at most this CQI.
    pub fn has_room(&self, reported: u8, left: &Left) -> bool {
        left.has(self.lowest, self.share(reported, self.lowest))
    }

    /// The share of the cell's power that a block needs; with a given CQI that of its codes.
    fn share(&self, reported: u8, cqi: u8) -> f64 {
        match self.cqi {
            Some(_) => f64::from(TransportBlock::of(cqi).codes) / f64::from(self.codes),
            None => self.shares[usize::from(reported.saturating_sub(cqi))],
        }
    }
}

/// The C/I of a block, as a ratio: what a given error rate stands for, or what it is received with.
pub fn ratio_of(bler: Option<Probability>, cqi: u8, received: f64) -> f64 {
    bler.map_or(received, |bler| link_quality::ratio_of(bler, cqi))
}
