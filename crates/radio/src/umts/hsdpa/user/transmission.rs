//! A block on the air, for the first time or again.

use airpath_core::{Context, Direction, Instant, RadioEvent};

use super::User;
use crate::umts::hsdpa::buffer::Packing;
use crate::umts::hsdpa::config::TTI;
use crate::umts::hsdpa::harq::Sent;
use crate::umts::hsdpa::plan::{Choice, Plan};
use crate::umts::hsdpa::unit::Block;

impl User {
    /// Sends a new block.
    pub fn send_new(
        &mut self,
        now: Instant,
        process: usize,
        choice: Choice,
        gain: f64,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) {
        let mut units = self.spare.pop().unwrap_or_default();
        self.iub.buffer.take(choice.amount, &mut units);
        self.iub.drained(now);
        let block = Block { number: self.harq.number(), units };
        let sent = Sent { block, cqi: choice.cqi, air: choice.air, share: choice.share, attempts: 0, sum: 0.0 };
        self.transmit(now, process, sent, gain, plan, cx);
        self.report_stall(now, cx);
    }

    /// Sends a block again.
    pub fn send_again(&mut self, now: Instant, process: usize, gain: f64, plan: &Plan, cx: &mut Context<'_>) {
        let sent = self.harq.take(process).expect("the process has something to send again");
        self.transmit(now, process, sent, gain, plan, cx);
    }

    /// Sends a block with its share of the power, times `gain`.
    fn transmit(&mut self, now: Instant, process: usize, mut sent: Sent, gain: f64, plan: &Plan, cx: &mut Context<'_>) {
        let ratio = plan.ratio_of(self.bler, sent.cqi, self.ratio * sent.share * gain);
        sent.attempts += 1;
        sent.sum += ratio;
        let bler = plan.quality.bler(sent.cqi, &sent.air, plan.combining, sent.attempts, ratio, sent.sum);
        let errored = self.errors.uniform() < bler;
        let pdus = sent.block.units.len() as u16;
        let event = RadioEvent {
            direction: Direction::Down,
            user: self.id,
            duration: TTI,
            pdus,
            repeated: if sent.attempts > 1 { pdus } else { 0 },
            errored: if errored { pdus } else { 0 },
            bytes: match plan.packing {
                Packing::WholePdus => u32::from(pdus) * plan.pdu,
                Packing::Segments => sent.block.units.iter().map(|unit| unit.octets).sum(),
            },
            level: sent.cqi,
            control: 0,
        };
        self.totals.add(&event);
        // Of the blocks of two carriers the log has the first one's.
        if plan.carriers == 1 || process < self.harq.on_first_carrier() {
            self.report_block(now, sent.cqi, sent.air.codes, cx);
        }
        cx.radio(now, || event);
        let in_vain = if !errored {
            self.arrivals.push_back((now + TTI + plan.radio_delay, sent.block));
            None
        } else if sent.attempts >= plan.max_transmissions {
            self.recycle(sent.block);
            None
        } else {
            Some(sent)
        };
        self.harq.transmitted(process, now, plan.round_trip, in_vain);
    }
}
