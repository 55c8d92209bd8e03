//! One direction of a mobile: its RLC, and the dedicated channel that carries it.

use std::collections::{BTreeMap, VecDeque};

use airpath_core::{Context, Decibel, Direction, DropCause, Instant, Packet, RadioTotals, Seed, Span, earliest};

use super::config::{self, Fading, Format};
use super::errors::TtiErrors;
use crate::common::arq::acknowledged::Pdu;
use crate::common::arq::rlc_am::{Carried, Control, Parameters, Reports, Rlc, RlcAm};
use crate::conditions::Profile;
use crate::conditions::Sample;
use crate::umts::ConfigError;

/// One direction of a mobile.
#[derive(Debug)]
pub struct RadioLink {
    pub formats: Vec<Format>,
    /// Which of the formats is in use.
    pub format: usize,
    radio_delay: Span,
    pub errors: TtiErrors,
    /// What fast fading costs, and what C/I a decade of errors is without.
    fading: BTreeMap<Profile, Fading>,
    ci_per_decade: f64,
    /// By how much its level is below that of the serving cell.
    below_cell: Option<f64>,
    /// By how much more C/I formats need with the fading that there is.
    margin: f64,
    pub rlc: RlcAm,
    /// When the next TTI that is used begins.
    pub tti_at: Option<Instant>,
    /// Nothing is sent before.
    pub blocked_until: Instant,
    blocks: VecDeque<Block>,
    pdus: VecDeque<Pdu>,
    pub totals: RadioTotals,
}

/// The PDUs of a TTI, in flight to the receiver.
#[derive(Clone, Copy, Debug)]
struct Block {
    arrives: Instant,
    carried: Carried,
    is_errored: bool,
}

/// The content of a block at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// A message of the reset procedure.
    pub control: Option<Control>,
    /// STATUS PDUs for the sender of the opposite link.
    pub reports: Reports,
}

impl RadioLink {
    /// An idle link, with its stream of errors.
    pub fn new(
        config: &config::RadioLink,
        direction: Direction,
        opposite: &Rlc,
        seed: Seed,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let table = if direction == Direction::Down { "downlink" } else { "uplink" };
        let stream = seed.stream(&format!("{path}/{}/errors", direction.name()));
        Ok(Self {
            formats: config.formats.clone(),
            format: config.formats.len() - 1,
            radio_delay: config.radio_delay,
            errors: TtiErrors::new(config.bler, config.burst, config.ci_per_decade.get(), stream),
            fading: config.fading.clone(),
            ci_per_decade: config.ci_per_decade.get(),
            below_cell: config.below_cell.map(Decibel::get),
            margin: 0.0,
            rlc: RlcAm::new(&Parameters {
                rlc: &config.rlc,
                opposite,
                direction,
                pdu: config.pdu_size(table)?,
                flexible: false,
                pdcp_header: config.pdcp_header.get() as u32,
                delay: config.delay,
                queue: config.queue.as_ref(),
                tti: config.formats.iter().map(|format| format.tti).max().unwrap_or(Span::ZERO),
                seed,
                path,
            })?,
            tti_at: None,
            blocked_until: Instant::ZERO,
            blocks: VecDeque::new(),
            pdus: VecDeque::new(),
            totals: RadioTotals::default(),
        })
    }

    /// From now on there is this fast fading.
    pub fn fade(&mut self, profile: Profile) {
        let fading = self.fading.get(&profile);
        self.margin = fading.map_or(0.0, |fading| fading.margin.get());
        self.errors.set_ci_per_decade(fading.map_or(self.ci_per_decade, |fading| fading.ci_per_decade.get()));
    }

    /// C/I of this direction at its highest power.
    #[inline]
    pub fn ci(&self, sample: &Sample) -> f64 {
        match (sample.level, self.below_cell) {
            (Some(level), Some(below)) => level - below,
            _ => sample.carrier_to_interference,
        }
    }

    /// C/I at which power control is at its limit with a format; `None` if it never is.
    #[inline]
    pub fn needs(&self, format: &Format) -> Option<f64> {
        format.needs.map(|needs| needs.get() + self.margin)
    }

    /// Whether there is anything to send at `now`.
    #[inline]
    pub fn has_something(&self, now: Instant) -> bool {
        self.rlc.has_something(now)
    }

    /// Whether the far end has all packets, handed over by now or not.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rlc.is_empty()
    }

    /// When something happens next that is the link's own.
    #[inline]
    pub fn next_event(&self, after: Instant) -> Option<Instant> {
        let arrives = self.blocks.front().map(|block| block.arrives);
        earliest([self.tti_at, arrives, self.rlc.next_timer(after)])
    }

    /// Sends a TTI's worth of what there is, and of the reports of `receiving`, the opposite
    /// direction. Errors are drawn by `is_errored`; `dropped` gets packets that the queue drops
    /// instead of sending them.
    pub fn send(
        &mut self,
        now: Instant,
        format: &Format,
        receiving: &RlcAm,
        is_errored: impl FnOnce(&mut TtiErrors) -> bool,
        dropped: &mut Vec<Packet>,
    ) -> (Carried, bool) {
        let carried = self.rlc.fill(now, format.pdus, receiving, &mut self.pdus, dropped);
        if carried.pdus == 0 {
            return (carried, false);
        }
        let errored = is_errored(&mut self.errors);
        let arrives = now + format.tti + self.radio_delay;
        // After a change of format a block may be shorter: it does not overtake.
        let arrives = self.blocks.back().map_or(arrives, |last| arrives.max(last.arrives));
        self.blocks.push_back(Block { arrives, carried, is_errored: errored });
        (carried, errored)
    }

    /// The next block that has arrived by `now`, and its content. `polled` is set if it polls for a
    /// report.
    pub fn receive(&mut self, now: Instant, polled: &mut bool) -> Option<Received> {
        let block = *self.blocks.front().filter(|block| block.arrives <= now)?;
        self.blocks.pop_front();
        let mut progress = false;
        for pdu in self.pdus.drain(..block.carried.data as usize) {
            if block.is_errored {
                self.rlc.miss(&pdu);
            } else {
                progress |= self.rlc.receive(&pdu, polled);
            }
        }
        if progress {
            self.rlc.deliver(block.arrives);
        }
        if block.is_errored {
            return Some(Received { control: None, reports: Reports::default() });
        }
        *polled |= block.carried.polls;
        Some(Received { control: block.carried.control, reports: block.carried.reports })
    }

    /// Restarts with packets that were never sent; all others are lost.
    pub fn reset(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.rlc.reset(now, cause, cx);
    }

    /// Restarts as if it had never sent; packets sent and not delivered are lost.
    pub fn re_establish(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.rlc.re_establish(now, cause, cx);
    }

    /// Loses all that was not delivered, what was never sent included.
    pub fn discard(&mut self, now: Instant, cause: DropCause, cx: &mut Context<'_>) {
        self.rlc.discard(now, cause, cx);
    }
}
