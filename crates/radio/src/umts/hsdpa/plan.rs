//! What all mobiles of a cell have in common, worked out once, and which block suits a mobile.

use airpath_core::{Probability, Span};

use super::buffer::Packing;
use super::config::{Config, TTI};
use super::link_quality::{LinkQuality, block_of_codes};
use super::transport_block::{CqiTable, TransportBlock};
use crate::common::link_adaptation::Combining;
use crate::common::shared_channel::harq::MAX_CQI;
use crate::umts::ConfigError;

/// The parameters of a cell as the TTIs need them.
#[derive(Debug)]
pub struct Plan {
    pub codes: u8,
    pub carriers: u8,
    /// On each carrier.
    pub users_per_tti: u8,
    /// Payload of a PDU, in bytes; of the largest where their size is flexible.
    pub pdu: u32,
    pub packing: Packing,
    pub quality: LinkQuality,
    /// The blocks, in the order of what they hold.
    formats: Vec<Format>,
    /// The first CQI whose block holds anything.
    lowest: u8,
    /// The last CQI of the category.
    highest: u8,
    /// Share of the power that a block needs of what the reported CQI stands for, by that and the
    /// CQI of the block.
    shares: Box<[[f64; MAX_CQI as usize + 1]; MAX_CQI as usize + 1]>,
    /// TTIs from a block to the next of the same mobile.
    pub interval: u64,
    pub cqi: Option<u8>,
    pub combining: Combining,
    pub max_transmissions: u32,
    pub round_trip: Span,
    pub radio_delay: Span,
}

/// A block that can be sent where a CQI was reported.
#[derive(Clone, Copy, Debug)]
struct Format {
    cqi: u8,
    air: TransportBlock,
    /// What it holds: PDUs, or octets with the headers of MAC-ehs.
    size: u32,
}

/// A block that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub cqi: u8,
    pub air: TransportBlock,
    /// Of the power of the cell.
    pub share: f64,
    /// What is in it: PDUs, or octets with the headers of MAC-ehs.
    pub amount: u32,
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
    pub fn has(&self, block: TransportBlock, share: f64) -> bool {
        block.codes <= self.codes && share <= self.power + ROUNDING
    }

    /// Takes what a block needs.
    pub fn take(&mut self, block: TransportBlock, share: f64) {
        self.codes -= block.codes;
        self.power -= share;
    }
}

impl Plan {
    /// That of a checked configuration.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let downlink = &config.downlink;
        let pdu = downlink.pdu.get() as u32;
        let category = config.category()?;
        let packing = downlink.mac.packing();
        let format = |cqi, air| Format { cqi, air, size: packing.amount(air, pdu) };
        let mut formats: Vec<Format> = (1..=MAX_CQI).map(|cqi| format(cqi, category.table.block(cqi))).collect();
        if category.table == CqiTable::G && downlink.cqi.is_none() {
            let largest = category.table.block(category.highest).bits;
            let blocks = (1..=MAX_CQI).filter_map(|cqi| Some((cqi, block_of_codes(cqi, config.cell.codes)?)));
            formats.extend(blocks.filter(|(_, air)| air.bits <= largest).map(|(cqi, air)| format(cqi, air)));
        }
        formats.retain(|format| format.size > 0);
        formats.sort_by_key(|format| format.size);
        let quality = LinkQuality::new(category.table);
        let lowest = formats.first().expect("it was checked that a block holds a PDU").cqi;
        Ok(Self {
            codes: config.cell.codes,
            carriers: config.cell.carriers,
            users_per_tti: config.cell.users_per_tti,
            pdu,
            packing,
            quality,
            formats,
            lowest,
            highest: category.highest,
            shares: Box::new(std::array::from_fn(|reported| {
                std::array::from_fn(|cqi| quality.share(reported as u8, cqi as u8))
            })),
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
        let usable = |format: &&Format| format.cqi <= highest;
        for &Format { cqi, air, size } in self.formats.iter().rev().filter(usable) {
            let share = self.share(reported, cqi, air);
            if !left.has(air, share) {
                continue;
            }
            if chosen.is_some() && size < waiting {
                break;
            }
            chosen = Some(Choice { cqi, air, share, amount: size.min(waiting) });
            if self.cqi.is_some() {
                break;
            }
        }
        chosen
    }

    /// Whether any block fits for a mobile that reported at most this CQI.
    pub fn has_room(&self, reported: u8, left: &Left) -> bool {
        let Format { cqi, air, .. } = self.formats[0];
        left.has(air, self.share(reported, cqi, air))
    }

    /// The share of the cell's power that a block needs; with a given CQI that of its codes.
    fn share(&self, reported: u8, cqi: u8, air: TransportBlock) -> f64 {
        match self.cqi {
            Some(_) => f64::from(air.codes) / f64::from(self.codes),
            None => self.shares[usize::from(reported)][usize::from(cqi)],
        }
    }

    /// The C/I of a block, as a ratio: what a given error rate stands for, or what it is received
    /// with.
    pub fn ratio_of(&self, bler: Option<Probability>, cqi: u8, received: f64) -> f64 {
        bler.map_or(received, |bler| self.quality.ratio_of(bler, cqi))
    }
}
