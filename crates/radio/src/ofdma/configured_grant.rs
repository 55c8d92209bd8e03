//! Configured grants of type 1 (TS 38.321 §5.8.2): with the connection, a mobile has resource
//! blocks in one slot of each period, and uses them without a request and without an assignment.
//!
//! They are reserved whether the mobile sends in them or not.

use airpath_core::Instant;

use super::error::ConfigError;
use super::grid::Grid;
use super::transport_format::{Estimate, TransportFormat};
use crate::common::slots::{Occasions, SYMBOLS, SlotPattern};
use crate::error::range;

/// The parameters of the grants of each mobile.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// Slots from one to the next.
    pub period: u64,
    /// The first slot of all mobiles; without it, each has one of its own.
    pub offset: Option<u64>,
    /// Bytes of a block.
    pub bytes: u64,
    /// Bits of a resource element, by the scheme of the blocks.
    pub efficiency: f64,
}

impl Parameters {
    /// The slots of a period in which a grant can be.
    pub fn slots<'a>(&'a self, pattern: &'a SlotPattern) -> impl Iterator<Item = u64> + Clone + 'a {
        let is_chosen = |slot: &u64| self.offset.is_none_or(|offset| offset == *slot);
        (0..self.period).filter(is_chosen).filter(|slot| Occasions::new(self.period, *slot).fit(pattern))
    }
}

/// The grants of the mobiles of a cell.
#[derive(Clone, Debug)]
pub struct ConfiguredGrants {
    pub format: TransportFormat,
    /// Resource blocks that are reserved, by the slot of the period.
    reserved: Box<[u32]>,
}

impl ConfiguredGrants {
    /// Grants of no mobile yet, in the resource blocks of the uplink.
    pub(crate) fn new(parameters: &Parameters, uplink: &Grid) -> Result<Self, ConfigError> {
        let estimate = Estimate::of(parameters.efficiency);
        let format = uplink.allocate(estimate, parameters.bytes, uplink.total, SYMBOLS);
        let format = format.filter(|format| u64::from(format.bits / 8) >= parameters.bytes);
        let expected = "at most what the band carries in a slot with this `mcs`";
        let format = format.ok_or_else(|| range("uplink.configured_grant", "bytes", expected))?;
        Ok(Self { format, reserved: vec![0; parameters.period as usize].into() })
    }

    /// Reserves the resource blocks of a mobile in a slot of the period, of `total` in all.
    pub fn reserve(&mut self, slot: u64, total: u32) -> Result<(), ConfigError> {
        let period = self.reserved.len() as u64;
        let reserved = &mut self.reserved[(slot % period) as usize];
        *reserved += self.format.blocks;
        if *reserved <= total {
            return Ok(());
        }
        let expected = "longer, or fewer mobiles: all resource blocks of a slot are reserved";
        Err(range("uplink.configured_grant", "period", expected).into())
    }

    /// Refuses reservations that leave no slot of the uplink with resource blocks, of `total`, for
    /// a block that is sent again.
    pub fn check_room(&self, slots: &SlotPattern, total: u32) -> Result<(), ConfigError> {
        let has_room = |slot: u64| total - self.reserved(slot) >= self.format.blocks;
        let mut all = (0..self.reserved.len() as u64 * slots.period()).filter(|slot| slots.carries_uplink(*slot));
        if all.any(has_room) {
            return Ok(());
        }
        let expected = "longer, or fewer mobiles: no slot has resource blocks for a block that is sent again";
        Err(range("uplink.configured_grant", "period", expected).into())
    }

    /// Resource blocks that are reserved in a slot.
    #[inline]
    pub fn reserved(&self, slot: u64) -> u32 {
        self.reserved[(slot % self.reserved.len() as u64) as usize]
    }
}

/// The grants of one mobile.
#[derive(Clone, Debug)]
pub struct OfMobile {
    occasions: Occasions,
    /// The slot of the period.
    pub slot: u64,
    /// The next one, while something waits to be sent.
    pub next: Option<Instant>,
}

impl OfMobile {
    /// One in each period, in a slot of it.
    pub fn new(period: u64, slot: u64) -> Self {
        Self { occasions: Occasions::new(period, slot), slot, next: None }
    }

    /// The first one in a slot that begins after `now`, and not before `from`.
    pub fn after(&self, now: Instant, from: Instant, slots: &SlotPattern) -> Instant {
        let first = (slots.slot_at(now) + 1).max(slots.slot_from(from));
        slots.start(self.occasions.at_or_after(first))
    }
}
