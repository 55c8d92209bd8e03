//! What all mobiles of a cell have in common: its resource blocks, its timeline, and the parameters
//! of hybrid ARQ and grants.

use airpath_core::{Direction, Instant, Probability, Seed, Span};

use super::background::Background;
use super::channels::Template;
use super::configured_grant::ConfiguredGrants;
use super::error::ConfigError;
use super::grid::Grid;
use super::power_limit::PowerLimit;
use super::repetition::{Coverage, Narrowband, Slots};
use super::transport_block::Sent;
use super::transport_format::{Estimate, TransportFormat};
use super::{Parameters, UplinkHarq};
use crate::common::buffer_sizes::BufferSizes;
use crate::common::link_adaptation::{Combining, Decoder, FirstErrors, SoftBuffer};
use crate::common::slots::{SlotPattern, Timeline};

/// The parameters of a cell, prepared, and the resource blocks of the uplink that are promised.
#[derive(Clone, Debug)]
pub struct Plan {
    timeline: Timeline,
    /// The resource blocks of the downlink.
    pub down: Grid,
    /// Those of the uplink.
    pub up: Grid,
    /// The power of mobiles in these, but for those of a narrowband.
    pub power: Option<PowerLimit>,
    decoder: Decoder,
    combining: Combining,
    /// Of both directions.
    first_errors: FirstErrors,
    /// Carriers of the downlink.
    pub carriers: usize,
    pub users_per_slot: usize,
    /// From the end of what the base station heard to what it sends about it.
    pub processing: Span,
    pub mobile_processing: Span,
    pub max_transmissions: u8,
    pub nack_to_ack: Probability,
    /// Hybrid ARQ of the uplink.
    pub uplink_harq: UplinkHarq,
    pub dtx_missed: Probability,
    /// Bytes of a grant for a request.
    pub first_grant: u64,
    /// Interval and bytes of grants without a request.
    pub prescheduling: Option<(Span, u64)>,
    /// Grants that mobiles have with the connection.
    pub configured: Option<ConfiguredGrants>,
    pub buffer_sizes: &'static BufferSizes,
    /// Which packets use the voice bearer.
    pub voice: Option<Template>,
    /// Load by other users, and the resource blocks that they take in the current slot.
    background: Option<Background>,
    taken: [u32; 2],
    /// A narrowband whose transfers are repeated.
    pub narrowband: Option<Narrowband>,
    /// Resource blocks of the uplink that are promised, with the numbers of their slots.
    promised: [(u64, u32); PROMISED],
}

/// The times of a downlink transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownlinkTimes {
    /// The mobile has received the block.
    pub received: Instant,
    /// The mobile begins to send the feedback.
    pub feedback: Instant,
    /// The base station can use the feedback.
    pub heard: Instant,
    /// The process can be used again.
    pub next_attempt: Instant,
}

/// The times of an uplink transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkTimes {
    /// The base station has received the block.
    pub received: Instant,
    /// A grant can be sent that depends on it.
    pub next_grant: Instant,
}

/// The slots for which resource blocks of the uplink can be promised at a time: a power of two
/// above the longest time from an uplink block to its next attempt, which is less than K2, the
/// base station's processing and two periods of the pattern.
pub const PROMISED: usize = 256;

impl Plan {
    /// The plan of a cell.
    ///
    /// # Errors
    /// If a configured grant does not fit into the band.
    pub fn new(parameters: &Parameters, seed: Seed, name: &str) -> Result<Self, ConfigError> {
        let Parameters { cell, harq, uplink, .. } = parameters;
        let prescheduling = uplink.prescheduling.as_ref();
        let limit = |up| PowerLimit::new(up, &parameters.decoder, harq.max_transmissions);
        let mut plan = Self {
            timeline: parameters.timeline.clone(),
            down: parameters.down.clone(),
            up: parameters.up.clone(),
            power: parameters.repetition.is_none().then(|| limit(&parameters.up)),
            decoder: parameters.decoder,
            combining: harq.combining,
            first_errors: FirstErrors::default(),
            carriers: cell.carriers.into(),
            users_per_slot: cell.users_per_slot.into(),
            processing: cell.processing,
            mobile_processing: parameters.mobile.processing,
            max_transmissions: harq.max_transmissions,
            nack_to_ack: harq.nack_to_ack,
            uplink_harq: parameters.uplink_harq,
            dtx_missed: harq.dtx_missed,
            first_grant: uplink.first_grant.get(),
            prescheduling: prescheduling.map(|it| (it.interval, it.bytes.get())),
            configured: None,
            buffer_sizes: parameters.buffer_sizes,
            voice: parameters.voice.as_ref().map(|voice| voice.template.clone()),
            background: cell.background.as_ref().map(|background| Background::new(background, seed, name)),
            taken: [0; 2],
            narrowband: parameters
                .repetition
                .as_ref()
                .map(|repetition| Narrowband::new(repetition, [parameters.down.total, parameters.up.total])),
            promised: [(0, 0); PROMISED],
        };
        if let Some(grant) = &parameters.configured_grant {
            plan.configured = Some(ConfiguredGrants::new(grant, &plan.up)?);
        }
        Ok(plan)
    }

    /// Reserves the configured grants of mobiles, each in a slot of their period.
    pub fn reserve_configured(&mut self, slots: impl Iterator<Item = u64>) -> Result<(), ConfigError> {
        let total = self.up.total;
        let Some(configured) = &mut self.configured else { return Ok(()) };
        for slot in slots {
            configured.reserve(slot, total)?;
        }
        configured.check_room(self.timeline.pattern(), total)
    }

    /// The timeline of the slots.
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    const fn slots(&self) -> &SlotPattern {
        self.timeline.pattern()
    }

    /// The duration of a slot.
    #[inline]
    pub const fn slot(&self) -> Span {
        self.slots().duration()
    }

    /// The number of the slot that begins at `at`.
    #[inline]
    pub fn number(&self, at: Instant) -> u64 {
        self.slots().slot_at(at)
    }

    /// When a slot begins.
    #[inline]
    pub fn start(&self, slot: u64) -> Instant {
        self.slots().start(slot)
    }

    /// The beginning of the first slot after `now`.
    #[inline]
    pub fn next_slot(&self, now: Instant) -> Instant {
        self.slots().end(self.slots().slot_at(now))
    }

    /// The beginning of the first slot from `from` on in which the base station can send data or
    /// grants.
    #[inline]
    pub fn control_from(&self, from: Instant) -> Instant {
        self.start(self.timeline.control_from(self.slots().slot_from(from)))
    }

    /// Whether the slot that begins at `at` carries downlink data.
    #[inline]
    pub fn carries_downlink(&self, at: Instant) -> bool {
        self.slots().carries_downlink(self.number(at))
    }

    /// The beginning of the first slot from `from` on in which mobiles can send.
    #[inline]
    pub fn uplink_from(&self, from: Instant) -> Instant {
        self.start(self.slots().uplink_from(self.slots().slot_from(from)))
    }

    /// The symbols for a direction of the slot that begins at `at`.
    #[inline]
    fn symbols(&self, direction: Direction, at: Instant) -> u8 {
        let slot = self.slots().symbols(self.number(at));
        match direction {
            Direction::Down => slot.downlink,
            Direction::Up => slot.uplink,
        }
    }

    /// The resource blocks of a direction.
    pub const fn grid(&self, direction: Direction) -> &Grid {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// The transport format for at least `bytes`, or for as many as fit into `left` resource
    /// blocks, in the slot that begins at `at`.
    #[inline]
    pub fn allocate(
        &self,
        direction: Direction,
        at: Instant,
        estimate: Estimate,
        bytes: u64,
        left: u32,
    ) -> Option<TransportFormat> {
        let symbols = self.symbols(direction, at);
        match (direction, &self.power) {
            (Direction::Up, Some(power)) => power.allocate(&self.up, estimate, bytes, left, symbols),
            _ => self.grid(direction).allocate(estimate, bytes, left, symbols),
        }
    }

    /// Whether a block for this number of `bytes` would be no larger in all resource blocks.
    pub fn is_whole(
        &self,
        direction: Direction,
        at: Instant,
        estimate: Estimate,
        bytes: u64,
        format: &TransportFormat,
    ) -> bool {
        let whole = self.allocate(direction, at, estimate, bytes, self.grid(direction).total);
        whole.is_none_or(|whole| whole.bits <= format.bits)
    }

    /// What power, and in a narrowband repetitions, add to the SINR of a block, in decibels.
    #[inline]
    pub fn gain(&self, direction: Direction, sinr: f64, format: &TransportFormat, connection: u8) -> f64 {
        match &self.narrowband {
            None => self.power_gain(direction, sinr, format.blocks),
            Some(narrowband) => {
                let coverage = Coverage { connection, transfer: format.mode };
                narrowband.repetitions(coverage).gain[direction as usize]
            }
        }
    }

    /// What the power of the sender in this number of resource blocks adds to a SINR, in decibels.
    #[inline]
    pub fn power_gain(&self, direction: Direction, sinr: f64, blocks: u32) -> f64 {
        match (direction, &self.power) {
            (Direction::Up, Some(power)) => power.gain(sinr, blocks),
            _ => 0.0,
        }
    }

    /// The receiver's memory of a block.
    pub fn soft_buffer(&self, direction: Direction, format: &TransportFormat) -> SoftBuffer {
        self.grid(direction).soft_buffer(format, self.decoder, self.combining)
    }

    /// The probability that a block cannot be decoded after one more transmission in the slot that
    /// begins at `now`, as [`Grid::block_errors`] has it.
    #[inline]
    pub fn block_errors(
        &self,
        direction: Direction,
        now: Instant,
        sent: &mut Sent,
        sinr: f64,
        bler: Option<Probability>,
    ) -> Probability {
        self.grid(direction).block_errors(
            sent,
            self.symbols(direction, now),
            sinr,
            bler,
            &self.decoder,
            &self.first_errors,
        )
    }

    /// The times of a downlink transmission that is assigned in the slot that begins at `now`.
    #[inline]
    pub fn downlink_times(&self, now: Instant, coverage: Coverage) -> DownlinkTimes {
        let number = self.number(now);
        let (data_end, feedback, next_attempt) = match &self.narrowband {
            None => {
                let feedback = self.timeline.feedback(number);
                (number + 1, Slots::new(feedback, feedback + 1), self.timeline.next_attempt(feedback))
            }
            Some(narrowband) => {
                let slots = narrowband.downlink(number, coverage);
                (slots.data.end, slots.feedback, slots.next_attempt)
            }
        };
        DownlinkTimes {
            received: self.start(data_end),
            feedback: self.start(feedback.start),
            heard: self.start(feedback.end) + self.processing,
            next_attempt: self.start(next_attempt),
        }
    }

    /// When an uplink transmission ends that begins at `now`, and when a grant can be sent that
    /// depends on it.
    #[inline]
    pub fn uplink_times(&self, now: Instant, coverage: Coverage) -> UplinkTimes {
        let number = self.number(now);
        let (data_end, next_grant) = match &self.narrowband {
            None => (number + 1, self.timeline.grant_after(number)),
            Some(narrowband) => {
                let data = Slots::new(number, number + narrowband.repetitions(coverage).uplink);
                (data.end, narrowband.next_grant(data))
            }
        };
        UplinkTimes { received: self.start(data_end), next_grant: self.start(next_grant) }
    }

    /// The first slot from the earliest possible one on in which an uplink block that was sent in
    /// the slot that begins at `now` can be sent again in `blocks` resource blocks, if `is_free`.
    pub fn next_attempt_up(&self, now: Instant, blocks: u32, is_free: impl Fn(Instant) -> bool) -> Instant {
        let mut slot = self.timeline.next_uplink_attempt(self.number(now));
        loop {
            let at = self.start(slot);
            if self.left_up(at) >= blocks && is_free(at) {
                return at;
            }
            slot = self.slots().uplink_from(slot + 1);
        }
    }

    /// Whether resource blocks of the slot that begins at `at` can be promised at `now`.
    pub fn can_promise(&self, now: Instant, at: Instant) -> bool {
        self.number(at) < self.number(now) + PROMISED as u64
    }

    /// The base station decides in the slot that begins at `now`, and others take their blocks.
    #[inline]
    pub fn begin_slot(&mut self, now: Instant) {
        if let Some(background) = &mut self.background {
            self.taken = [(Direction::Down, self.down.total), (Direction::Up, self.up.total)]
                .map(|(direction, total)| background.blocks(direction, now, total));
        }
    }

    /// Of `left` resource blocks of a direction, those for new blocks of the mobiles. Blocks that
    /// are sent again come before the others.
    #[inline]
    pub fn without_others(&self, direction: Direction, left: u32) -> u32 {
        left.saturating_sub(self.taken[direction as usize])
    }

    /// Resource blocks of the uplink that are not promised in the slot that begins at `at`.
    #[inline]
    pub fn left_up(&self, at: Instant) -> u32 {
        let number = self.number(at);
        let (promised_for, blocks) = self.promised[number as usize % PROMISED];
        let total = self.up.total - self.configured.as_ref().map_or(0, |configured| configured.reserved(number));
        if promised_for == number { total.saturating_sub(blocks) } else { total }
    }

    /// Promises resource blocks of the uplink in the slot that begins at `at`.
    #[inline]
    pub fn reserve_up(&mut self, at: Instant, blocks: u32) {
        let number = self.number(at);
        let promised = &mut self.promised[number as usize % PROMISED];
        if promised.0 == number {
            promised.1 += blocks
        } else {
            *promised = (number, blocks)
        }
        debug_assert!(promised.1 <= self.up.total, "{} of {} resource blocks", promised.1, self.up.total);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::lte;
    use crate::ofdma::Technology;

    /// The plan of `lte-10mhz` with other keys of `cell`.
    pub fn plan(more: &str) -> Plan {
        let preset: toml::Table = include_str!("../../../../presets/lte-10mhz.toml").parse().expect("TOML");
        let mut bearer = preset["bearer"].as_table().expect("a table").clone();
        bearer.remove("model");
        let more: toml::Table = more.parse().expect("TOML");
        bearer["cell"].as_table_mut().expect("a table").extend(more);
        let config: lte::Config = bearer.try_into().expect("a configuration");
        Plan::new(&config.parameters().expect("sound parameters"), Seed::new(1), "cell").expect("a plan")
    }

    #[test]
    fn a_given_block_error_rate_is_that_of_first_transmissions_and_falls_with_retransmissions() {
        let plan = plan("");
        let format = plan.down.allocate(Estimate::of(2.0), 500, 50, 14).expect("a format");
        let bler = Probability::new(0.3).expect("within range");
        let mut sent = Sent::new(Default::default(), format, plan.soft_buffer(Direction::Down, &format));
        let mut errors = || plan.block_errors(Direction::Down, Instant::ZERO, &mut sent, 0.0, Some(bler)).get();
        let (first, second, third) = (errors(), errors(), errors());
        assert_eq!(first, 0.3);
        assert!(second < 0.01 && third <= second, "{second} {third}");
    }

    #[test]
    fn resource_blocks_of_the_uplink_are_reserved_by_slot() {
        let mut plan = plan("");
        let at = Instant::ZERO + Span::from_millis(1008);
        plan.reserve_up(at, 40);
        assert_eq!((plan.left_up(at), plan.left_up(at + plan.slot())), (plan.up.total - 40, plan.up.total));
        assert_eq!(plan.left_up(at + plan.slot().saturating_mul(PROMISED as u64)), plan.up.total);
    }
}
