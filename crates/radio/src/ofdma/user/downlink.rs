//! Blocks towards the mobile.

use airpath_core::{Context, Direction, Instant};

use super::User;
use crate::lte::harq::Sent;
use crate::lte::plan::Plan;
use crate::lte::rlc::Block;
use crate::lte::tables::TTI;
use crate::lte::transport_format::TransportFormat;

impl User {
    /// Sends a new block.
    pub fn send_new(
        &mut self,
        now: Instant,
        process: usize,
        format: TransportFormat,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) {
        let mut block = self.spare.pop().unwrap_or_default();
        self.down.fill(now, format.bits / 8, &mut self.up, &mut block, cx);
        self.rrc.active(now);
        let soft = plan.down.soft_buffer(&format, plan);
        self.transmit_down(now, process, Sent::new(block, format, soft), plan, cx);
        self.report_stall(now, cx);
    }

    /// Sends a block again.
    pub fn send_again(&mut self, now: Instant, process: usize, plan: &Plan, cx: &mut Context<'_>) {
        let sent = self.harq_down.take(process).expect("the process has something to send again");
        self.transmit_down(now, process, sent, plan, cx);
    }

    fn transmit_down(&mut self, now: Instant, process: usize, mut sent: Sent, plan: &Plan, cx: &mut Context<'_>) {
        let direction = Direction::Down;
        let sample = self.conditions.at(now);
        self.report_tracks(now, &sample, cx);
        let is_first = sent.attempts == 0;
        sent.attempts += 1;
        let is_missed = self.control.chance(plan.dtx_missed);
        if !is_missed && !sent.is_known {
            // The first assignment that the mobile gets is one of new data.
            sent.is_known = true;
            self.active(now, cx);
        }
        let errored = is_missed || self.is_errored(direction, &mut sent, plan);
        self.report_block(now, direction, &sent.format, (sent.block.pdus.len(), !is_first, errored), cx);
        let is_positive = !errored || (!is_missed && self.control.chance(plan.nack_to_ack));
        let again = if !errored {
            self.arrivals[direction as usize].push_back((now + TTI + plan.mobile_processing, sent.block));
            None
        } else if is_positive || sent.attempts >= plan.max_transmissions {
            self.give_up(now, direction, sent.block, cx);
            None
        } else {
            Some(sent)
        };
        let heard = self.harq_down.transmitted(process, now, again);
        if is_first && !is_missed {
            self.feedback[direction as usize].push_back((heard, is_positive));
        }
    }

    /// Whether the receiver cannot decode a transmission of a block.
    pub(super) fn is_errored(&mut self, direction: Direction, sent: &mut Sent, plan: &Plan) -> bool {
        let index = direction as usize;
        let bler = plan.grid(direction).block_errors(sent, self.sinr[index], self.bler[index], plan);
        self.errors[index].chance(bler)
    }

    /// A block is left to the RLC.
    pub(super) fn give_up(&mut self, now: Instant, direction: Direction, block: Block, cx: &mut Context<'_>) {
        self.rlc(direction).give_up(now, &block.pdus, cx);
        self.recycle(block);
    }
}
