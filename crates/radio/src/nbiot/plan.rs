//! What all mobiles of a carrier have in common: the blocks that each coverage level can have, and
//! the resources of the carrier that are taken.

use airpath_core::{Decibel, Direction, Instant, Probability, Span};

use super::calendar::Calendar;
use super::config::{Config, Operation, ReleaseAssistance};
use super::tables::{self, Block, Choice, Tones, choices};
use super::timeline;
use crate::common::link_adaptation::{self, Coding, Combining, Decoder, Modulation, SoftBuffer};
use crate::ofdma::repetition::control_repetitions;
use crate::ofdma::{rlc, rlc_am};

/// A preamble of NPRACH: four symbol groups of 1.4 ms (TS 36.211 §10.1.6.1, format 0).
pub const PREAMBLE: Span = Span::from_micros(5600);
/// From the end of the preamble to the response: 4 subframes, 41 with 64 repetitions or more
/// (TS 36.321 §5.1.4).
const RESPONSE: u64 = 4;
const LATE_RESPONSE: u64 = 41;
const MANY_REPETITIONS: u64 = 64;
/// Bytes of a random access response with its subheader (TS 36.321 §6.1.5, §6.2.3a), and of the
/// first message of the mobile: 88 bits (TS 36.213 §16.3.3).
pub const ACCESS_RESPONSE: u32 = 7;
pub const FIRST_MESSAGE: u32 = 11;
/// The largest I_TBS of NPDSCH in a carrier of LTE (TS 36.213 §16.4.1.5.1).
const LARGEST_IN_BAND: u8 = 10;
/// Resource elements of a subframe of NPDSCH with two antenna ports: without the reference signals
/// of NB-IoT, in-band also without three control symbols and the reference signals of LTE
/// (TS 36.211 §10.2.3.4).
const ELEMENTS: u32 = 152;
const IN_BAND_ELEMENTS: u32 = 104;
/// Tones of 15 kHz of a carrier (TS 36.211 §10.1.2.1).
pub const TONES: usize = 12;
/// A subframe.
pub const SUBFRAME: Span = Span::from_millis(1);

/// Coverage levels of a cell at most (TS 36.331, NPRACH-ParametersList-NB).
pub const LEVELS: usize = 3;

/// How a block is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Format {
    /// The coverage level whose repetitions and tones it has: the DCI has them for each block (TS
    /// 36.212 §6.4.3.1, §6.4.3.2).
    pub level: u8,
    pub i_tbs: u8,
    /// Subframes or resource units.
    pub units: u32,
    pub bits: u32,
    /// Symbols of one transmission, its repetitions not counted.
    symbols: u32,
}

/// A block with the SINR that it needs.
#[derive(Clone, Debug)]
struct Candidate {
    format: Format,
    required: f64,
}

/// What a coverage level has.
#[derive(Clone, Debug)]
pub struct Level {
    lowest: f64,
    /// R_max of NPDCCH, which RRC configures for a connection.
    control_repetitions: u64,
    downlink_repetitions: u64,
    uplink_repetitions: u64,
    tones: Tones,
    access_period: Span,
    preamble: Span,
    response_after: Span,
    /// By how many decibels repetitions raise the SINR: downlink, uplink.
    gain: [f64; 2],
    /// By how many decibels fewer tones raise the SINR of the uplink.
    tone_gain: f64,
    candidates: [Vec<Candidate>; 2],
}

/// The parameters of a carrier, prepared, and its resources.
#[derive(Clone, Debug)]
pub struct Plan {
    pub levels: Vec<Level>,
    decoder: Decoder,
    pub processing: Span,
    pub mobile_processing: Span,
    pub delay: Span,
    pub below_downlink: f64,
    pub max_transmissions: u8,
    pub setup: Vec<u32>,
    pub inactivity: Span,
    pub release_assistance: ReleaseAssistance,
    pub release: Span,
    pub rlc: rlc::Parameters,
    /// NPDCCH and NPDSCH.
    down: Calendar,
    /// The tones of NPUSCH.
    up: Vec<Calendar>,
    /// By [`shape`], a time before which no transfer of this shape can begin: nothing that is taken
    /// is given back, so a search need not look there again.
    busy_until: Vec<Instant>,
    now: Instant,
}

/// The place of a shape of transfers: the coverage levels of the connection and of the transfer,
/// its direction, acknowledged or not, and its subframes or resource units.
const fn shape(connection: usize, format: &Format, direction: Direction, is_acknowledged: bool) -> usize {
    let kind = match (direction, is_acknowledged) {
        (Direction::Up, _) => 0,
        (Direction::Down, false) => 1,
        (Direction::Down, true) => 2,
    };
    ((connection * LEVELS + format.level as usize) * KINDS + kind) * UNITS + format.units as usize
}

/// The kinds of transfers that [`shape`] distinguishes.
const KINDS: usize = 3;
/// More than the subframes or resource units of a block (TS 36.213 Tables 16.4.1.3-1, 16.5.1.1-2).
const UNITS: usize = 16;

impl Plan {
    /// A carrier that is free. The parameters were checked.
    pub fn new(config: &Config) -> Self {
        let decoder = Decoder { coding: Coding::Turbo, gap: config.harq.gap };
        let levels: Vec<_> =
            (0..config.coverage.lowest.len()).map(|index| Level::new(config, index, &decoder)).collect();
        Self {
            busy_until: vec![Instant::ZERO; LEVELS * LEVELS * KINDS * UNITS],
            now: Instant::ZERO,
            levels,
            decoder,
            processing: config.carrier.processing,
            mobile_processing: config.mobile.processing,
            delay: config.carrier.delay,
            below_downlink: config.uplink.below_downlink.get(),
            max_transmissions: config.harq.max_transmissions,
            setup: config.rrc.setup.iter().map(|bytes| bytes.get() as u32).collect(),
            inactivity: config.rrc.inactivity,
            release_assistance: config.rrc.release_assistance,
            release: config.rrc.release,
            rlc: rlc::Parameters {
                framing: rlc::Framing::LTE,
                mode: rlc::ModeParameters::Acknowledged(rlc_am::Parameters {
                    t_poll_retransmit: config.rlc.t_poll_retransmit,
                    poll_pdu: None,
                    poll_byte: None,
                    max_retx: config.rlc.max_retx,
                    // One process: what is missing is reported at once (enableStatusReportSN-Gap).
                    t_reordering: SUBFRAME,
                    t_status_prohibit: Span::ZERO,
                    window: WINDOW,
                    status: rlc_am::StatusFormat::LTE,
                }),
            },
            down: Calendar::default(),
            up: vec![Calendar::default(); TONES],
        }
    }

    /// The coverage level of a mobile with this SINR downwards.
    pub fn level(&self, sinr: f64) -> usize {
        let fits = self.levels.iter().position(|level| level.lowest <= sinr);
        fits.unwrap_or(self.levels.len() - 1)
    }

    /// The coverage level whose repetitions a transfer has at this SINR downwards: at most that of
    /// the connection.
    pub fn level_in(&self, connection: usize, sinr: f64) -> &Level {
        &self.levels[self.level(sinr).min(connection)]
    }

    /// The coverage level of a block.
    pub fn level_of(&self, format: &Format) -> &Level {
        &self.levels[usize::from(format.level)]
    }

    /// The receiver's memory of a block.
    pub fn soft_buffer(&self, format: &Format) -> SoftBuffer {
        SoftBuffer::new(self.decoder, Combining::Chase, format.block())
    }

    /// The SINR in decibels at which a block that is sent once is in error with this probability.
    pub fn sinr_of(&self, format: &Format, errors: Probability) -> f64 {
        self.decoder.required(&format.block(), errors).get()
    }

    /// Where the search for resources of a shape begins that can begin at `from` at the earliest.
    fn search_from(&self, from: Instant, shape: usize) -> Instant {
        from.round_up_to(SUBFRAME).max(self.busy_until[shape])
    }

    /// A search for a shape from `from` on has found the time `at`.
    fn found(&mut self, from: Instant, shape: usize, at: Instant) {
        let busy_until = &mut self.busy_until[shape];
        if from.round_up_to(SUBFRAME) <= (*busy_until).max(self.now.round_up_to(SUBFRAME)) {
            *busy_until = at;
        }
    }

    /// Takes the resources of a downlink transfer whose NPDCCH is sent at `from` at the earliest,
    /// with an acknowledgement or without, in a connection of this coverage level. RRC configures
    /// R_max and the repetitions of acknowledgements (TS 36.213 §16.4.2, §16.6).
    pub fn reserve_down(
        &mut self,
        from: Instant,
        connection: usize,
        format: &Format,
        is_acknowledged: bool,
    ) -> timeline::DownlinkTimes {
        let shape = shape(connection, format, Direction::Down, is_acknowledged);
        let (level, connection) = (self.level_of(format), &self.levels[connection]);
        let long = connection.control_repetitions >= LONG_SEARCH_SPACE;
        let delays = choices(if long { Choice::DownlinkDelayOfLongSearchSpace } else { Choice::DownlinkDelay });
        let control_repetitions = control_repetitions(level.control_repetitions, connection.control_repetitions);
        let control = SUBFRAME * control_repetitions;
        let repetitions = level.downlink_repetitions;
        let acknowledgement_repetitions = connection.uplink_repetitions;
        let mut at = self.search_from(from, shape);
        loop {
            at = self.down.first_free(at, control);
            for delay in delays {
                let transfer = timeline::Downlink {
                    control_repetitions,
                    delay: *delay,
                    subframes: format.units.into(),
                    repetitions,
                    acknowledgement_delay: choices(Choice::AcknowledgementDelay)[0],
                    acknowledgement_repetitions,
                };
                let times = transfer.times(at);
                if !self.down.is_free(times.data_start, times.data_end) {
                    continue;
                }
                if !is_acknowledged {
                    self.down.take(at, at + control);
                    self.down.take(times.data_start, times.data_end);
                    self.found(from, shape, at);
                    return times;
                }
                for acknowledgement_delay in choices(Choice::AcknowledgementDelay) {
                    let times =
                        timeline::Downlink { acknowledgement_delay: *acknowledgement_delay, ..transfer }.times(at);
                    let (start, end) = (times.acknowledgement_start, times.acknowledgement_end);
                    if let Some(tone) = self.up.iter_mut().find(|tone| tone.is_free(start, end)) {
                        tone.take(start, end);
                        self.down.take(at, at + control);
                        self.down.take(times.data_start, times.data_end);
                        self.found(from, shape, at);
                        return times;
                    }
                }
            }
            at += SUBFRAME;
        }
    }

    /// Takes the resources of an uplink transfer whose NPDCCH is sent at `from` at the earliest, in
    /// a connection of this coverage level.
    pub fn reserve_up(&mut self, from: Instant, connection: usize, format: &Format) -> timeline::UplinkTimes {
        let shape = shape(connection, format, Direction::Up, true);
        let (level, most) = (self.level_of(format), self.levels[connection].control_repetitions);
        let control_repetitions = control_repetitions(level.control_repetitions, most);
        let control = SUBFRAME * control_repetitions;
        let (tones, repetitions) = (level.tones, level.uplink_repetitions);
        let width = width(tones);
        let mut at = self.search_from(from, shape);
        loop {
            at = self.down.first_free(at, control);
            for delay in choices(Choice::UplinkDelay) {
                let transfer = timeline::Uplink {
                    control_repetitions,
                    delay: *delay,
                    tones,
                    resource_units: format.units.into(),
                    repetitions,
                };
                let times = transfer.times(at);
                let is_free =
                    |tones: &[Calendar]| tones.iter().all(|tone| tone.is_free(times.data_start, times.data_end));
                if let Some(tones) = self.up.chunks_mut(width).find(|tones| is_free(tones)) {
                    tones.iter_mut().for_each(|tone| tone.take(times.data_start, times.data_end));
                    self.down.take(at, at + control);
                    self.found(from, shape, at);
                    return times;
                }
            }
            at += SUBFRAME;
        }
    }

    /// Forgets what was taken before `now`.
    pub fn forget_before(&mut self, now: Instant) {
        self.now = now;
        self.down.forget_before(now);
        self.up.iter_mut().for_each(|tone| tone.forget_before(now));
    }
}

/// AM_Window_Size with sequence numbers of 10 bits (TS 36.322 §7.2).
const WINDOW: u64 = 512;
/// R_max of NPDCCH from which on NPDSCH has longer delays (TS 36.213 §16.4.1).
const LONG_SEARCH_SPACE: u64 = 128;

/// Tones of 15 kHz that an allocation takes; those of 3.75 kHz take one.
const fn width(tones: Tones) -> usize {
    match tones {
        Tones::Single3k75 | Tones::Single15k => 1,
        Tones::Three => 3,
        Tones::Six => 6,
        Tones::Twelve => TONES,
    }
}

/// Resource elements of a resource unit that carry data: six symbols of a slot (TS 36.211 §10.1.3,
/// Table 10.1.2.3-1).
const fn unit_elements(tones: Tones) -> u32 {
    match tones {
        Tones::Single3k75 | Tones::Single15k => 96,
        Tones::Three | Tones::Six | Tones::Twelve => 144,
    }
}

impl Format {
    const fn block(&self) -> link_adaptation::Block {
        link_adaptation::Block { modulation: Modulation::Qpsk, bits: self.bits, symbols: self.symbols }
    }

    /// Symbols of a transmission.
    pub const fn symbols(&self) -> u32 {
        self.symbols
    }
}

impl Level {
    fn new(config: &Config, index: usize, decoder: &Decoder) -> Self {
        let coverage = &config.coverage;
        let tones = coverage.tones[index];
        let (down, up) = (coverage.downlink_repetitions[index], coverage.uplink_repetitions[index]);
        let in_band = config.carrier.operation == Operation::InBand;
        let elements = if in_band { IN_BAND_ELEMENTS } else { ELEMENTS };
        let candidates = |blocks: &[Block], elements: u32, largest: u8| {
            let fits = |block: &&Block| {
                let coded = block.units * elements * Modulation::Qpsk.bits();
                block.category <= config.mobile.category && block.i_tbs <= largest && block.bits + CRC <= coded
            };
            let candidate = |block: &Block| {
                let symbols = block.units * elements;
                let format =
                    Format { level: index as u8, i_tbs: block.i_tbs, units: block.units, bits: block.bits, symbols };
                Candidate { format, required: decoder.required(&format.block(), config.carrier.target_bler).get() }
            };
            blocks.iter().filter(fits).map(candidate).collect::<Vec<_>>()
        };
        let repeated = |repetitions: u64| match repetitions {
            1 => 0.0,
            repetitions => (10.0 * libm::log10(repetitions as f64) - config.harq.repetition_loss.get()).max(0.0),
        };
        let repetitions = coverage.preamble_repetitions[index];
        let response = if repetitions >= MANY_REPETITIONS { LATE_RESPONSE } else { RESPONSE };
        // A tone of 3.75 kHz has a quarter of the noise of one of 15 kHz.
        let share = match tones {
            Tones::Single3k75 => 4.0 * TONES as f64,
            tones => TONES as f64 / width(tones) as f64,
        };
        Self {
            lowest: coverage.lowest[index].get(),
            control_repetitions: coverage.control_repetitions[index],
            downlink_repetitions: down,
            uplink_repetitions: up,
            tones,
            access_period: coverage.random_access_period[index],
            preamble: PREAMBLE * repetitions,
            response_after: SUBFRAME * response,
            gain: [repeated(down), repeated(up)],
            tone_gain: 10.0 * libm::log10(share),
            candidates: [
                candidates(tables::downlink_blocks(), elements, if in_band { LARGEST_IN_BAND } else { u8::MAX }),
                candidates(tables::uplink_blocks(), unit_elements(tones), u8::MAX),
            ],
        }
    }

    /// The SINR of a transmission with its repetitions, if the mobile has `sinr` downwards.
    pub fn effective(&self, direction: usize, sinr: f64, below_downlink: f64) -> f64 {
        let of_tones = if direction == 0 { 0.0 } else { self.tone_gain - below_downlink };
        sinr + of_tones + self.gain[direction]
    }

    /// The shortest block for `bytes`, or the one that carries most; of several the most robust.
    /// `sinr` is that of a transmission with its repetitions. If none is robust enough, the most
    /// robust one.
    pub fn format(&self, direction: usize, sinr: f64, bytes: u64) -> Format {
        let all = &self.candidates[direction];
        let wanted = bytes.saturating_mul(8).min(u32::MAX.into()) as u32;
        let better = |a: &&Candidate, b: &&Candidate| a.required.total_cmp(&b.required);
        let usable = || all.iter().filter(|candidate| candidate.required <= sinr);
        let shortest = usable().filter(|candidate| candidate.format.bits >= wanted);
        let shortest = shortest.min_by(|a, b| a.format.units.cmp(&b.format.units).then(better(a, b)));
        let largest = || {
            let order = |a: &&Candidate, b: &&Candidate| {
                a.format.bits.cmp(&b.format.bits).then(b.format.units.cmp(&a.format.units))
            };
            usable().max_by(order)
        };
        let found = shortest.or_else(largest).or_else(|| all.iter().min_by(better));
        found.expect("each level has blocks").format
    }

    /// The first occasion of NPRACH after `now`, and when its response can be sent.
    pub fn access(&self, now: Instant) -> (Instant, Instant) {
        let begin = (now + Span::from_nanos(1)).round_up_to(self.access_period);
        (begin, begin + self.preamble + self.response_after)
    }
}

/// Bits of the check sum of a block (TS 36.212 §6.3.2, §6.4.2).
const CRC: u32 = 24;

/// A block error rate to which a SINR belongs: neither zero nor one.
pub fn as_sinr(bler: Probability) -> Probability {
    Probability::new(bler.get().clamp(1e-9, 1.0 - 1e-9)).expect("clamped")
}

/// A SINR as a ratio with its unit.
pub fn decibel(sinr: f64) -> Decibel {
    Decibel::new(sinr).expect("a finite ratio")
}
