//! Blocks towards the mobile.

use airpath_core::{Context, Direction, Instant};

use super::User;
use crate::ofdma::harq::Process;
use crate::ofdma::plan::Plan;
use crate::ofdma::rlc::Block;
use crate::ofdma::transport_block::Sent;
use crate::ofdma::transport_format::TransportFormat;

impl User {
    /// The process of a carrier whose block is to be sent again at `now`.
    #[inline]
    pub fn repeat_process(&self, now: Instant, carrier: usize, listens: bool) -> Option<Process> {
        self.harq_down[carrier].repeat_at(now, listens).map(|number| Process { carrier, number })
    }

    /// A process of a carrier for a new block.
    #[inline]
    pub fn idle_process(&self, now: Instant, carrier: usize) -> Option<Process> {
        self.harq_down[carrier].idle(now).map(|number| Process { carrier, number })
    }

    /// The format of the block of a process that is to be sent again.
    pub fn format_again(&self, process: Process) -> Option<TransportFormat> {
        self.harq_down[process.carrier].format(process.number)
    }

    /// Sends a new block.
    pub fn send_new(
        &mut self,
        now: Instant,
        process: Process,
        format: TransportFormat,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) {
        let mut block = self.spare.pop().unwrap_or_default();
        self.down.fill(now, format.bits / 8, &mut self.up, &mut block, cx);
        self.rrc.active(now);
        let soft = plan.soft_buffer(Direction::Down, &format);
        self.transmit_down(now, process, Sent::new(block, format, soft), plan, cx);
        self.report_stall(now, cx);
    }

    /// Sends a block again.
    pub fn send_again(&mut self, now: Instant, process: Process, plan: &Plan, cx: &mut Context<'_>) {
        let sent =
            self.harq_down[process.carrier].take(process.number).expect("the process has something to send again");
        self.transmit_down(now, process, *sent, plan, cx);
    }

    fn transmit_down(&mut self, now: Instant, process: Process, mut sent: Sent, plan: &Plan, cx: &mut Context<'_>) {
        self.has_changed = true;
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
        let errored = is_missed || self.is_errored(now, direction, &mut sent, plan);
        let pdus = sent.block.count();
        let times = plan.downlink_times(now, self.coverage(sent.format.mode));
        let duration = times.received.since(now);
        let blocks = sent.format.blocks;
        self.report_block((now, duration), direction, &sent.format, (pdus, !is_first, errored), cx);
        let is_positive = !errored || (!is_missed && self.control.chance(plan.nack_to_ack));
        let again = if !errored {
            self.arrivals[direction as usize].push_back((times.received + plan.mobile_processing, sent.block));
            None
        } else if is_positive || sent.attempts >= plan.max_transmissions {
            self.give_up(now, direction, sent.block, cx);
            None
        } else {
            Some(Box::new(sent))
        };
        self.harq_down[process.carrier].transmitted(process.number, &times, again);
        self.report_harq(now, direction, cx);
        self.will_send(now, times.feedback, plan);
        if is_first && !is_missed {
            self.learn_from(direction, times.heard, blocks, is_positive);
        }
    }

    /// The base station has feedback to a first transmission at `heard`.
    pub(super) fn learn_from(&mut self, direction: Direction, heard: Instant, blocks: u32, is_positive: bool) {
        // Errors that do not follow from the SINR are no sign of it.
        if self.bler[direction as usize].is_none() {
            self.quality.send_feedback(direction, heard, blocks, is_positive);
        }
    }

    /// Whether the receiver cannot decode a transmission of a block.
    pub(super) fn is_errored(&mut self, now: Instant, direction: Direction, sent: &mut Sent, plan: &Plan) -> bool {
        let index = direction as usize;
        let sinr = self.sinr[index] + plan.gain(direction, self.sinr[index], &sent.format, self.mode);
        let bler = plan.block_errors(direction, now, sent, sinr, self.bler[index]);
        self.errors[index].chance(bler)
    }

    /// A block is left to the RLC.
    pub(super) fn give_up(&mut self, now: Instant, direction: Direction, block: Block, cx: &mut Context<'_>) {
        self.channels(direction).give_up(now, &block, cx);
        self.recycle(block);
    }
}
