//! Dedicated channels in one direction, one for each user.

use airpath_core::{Bytes, Direction, Probability, Seed, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::multiplexing::paths::OneWay;
use crate::common::shared_channel::harq::ErrorsByAttempt;
use crate::common::shared_channel::scheduler::round_robin::RoundRobin;
use crate::common::shared_channel::transport_channel::{Parameters, Repetition, TransportChannel};
use crate::error::{above_zero, at_most, check_queue, pdu_size, within_an_hour};
use crate::study::ConfigError;
use crate::study::in_sequence;

/// A dedicated channel in one direction. Its rate is `channels` · `pdu` / `tti`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dch {
    /// Length of a TTI. TTIs begin at multiples of it.
    pub tti: Span,
    /// Payload of a PDU, in bytes. Packets are cut into such PDUs, the last one is padded.
    pub pdu: Bytes,
    /// Parallel channels. Each carries one PDU in a TTI.
    pub channels: u32,
    /// What is in error as one.
    pub error_unit: ErrorUnit,
    /// The probability that it is, at each transmission, independently of all others.
    pub bler: Probability,
    /// From the end of the TTI of a PDU in error to when the PDU may be sent again, in the next TTI
    /// that begins.
    pub retransmission_delay: Span,
    /// How often a PDU is sent before its packet is given up. Without it: until it gets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Whether packets are delivered in the order in which they came, the default, or each as soon
    /// as it is complete.
    #[serde(default = "in_sequence")]
    pub in_sequence: bool,
    /// From the end of the TTI that completes a packet to its arrival.
    pub delay: Span,
    /// Bound and discipline of what waits to be cut into PDUs. Without it, any number of packets
    /// may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// What is in error as one on a dedicated channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorUnit {
    /// All PDUs of a TTI.
    Tti,
    /// Each PDU by itself.
    Pdu,
}

impl Dch {
    /// Makes the channels of `users` users, with streams `name/user-N/down/errors` or
    /// `…/up/errors`.
    pub(crate) fn build(
        &self,
        direction: Direction,
        users: usize,
        seed: Seed,
        name: &str,
    ) -> Result<Vec<OneWay>, ConfigError> {
        let parameters = self.parameters(direction)?;
        let carrier = |user| {
            let path = format!("{name}/user-{user}/{}", direction.name());
            let users = (user as u32, vec![format!("{path}/errors")]);
            OneWay::TransportChannel(Box::new(TransportChannel::new(
                parameters.clone(),
                Box::new(RoundRobin),
                Vec::new(),
                users,
                seed,
            )))
        };
        Ok((0..users).map(carrier).collect())
    }

    fn parameters(&self, direction: Direction) -> Result<Parameters, ConfigError> {
        let table = match direction {
            Direction::Down => "downlink",
            Direction::Up => "uplink.dch",
        };
        above_zero(!self.tti.is_zero(), table, "tti")?;
        within_an_hour(self.tti, table, "tti")?;
        within_an_hour(self.retransmission_delay, table, "retransmission_delay")?;
        within_an_hour(self.delay, table, "delay")?;
        above_zero(self.channels > 0, table, "channels")?;
        above_zero(self.max_attempts != Some(0), table, "max_attempts")?;
        at_most(self.channels.into(), u16::MAX.into(), table, "channels")?;
        Ok(Parameters {
            direction,
            tti: self.tti,
            pdu: pdu_size(self.pdu, table)?,
            pdus_per_tti: vec![self.channels],
            errors: ErrorsByAttempt::constant(self.bler),
            repetition: Repetition::Pdus { together: self.error_unit == ErrorUnit::Tti },
            retransmission_delay: self.retransmission_delay,
            max_attempts: self.max_attempts,
            in_sequence: self.in_sequence,
            delay: self.delay,
            queue: check_queue(self.queue.as_ref(), table)?,
            levels: None,
        })
    }
}
