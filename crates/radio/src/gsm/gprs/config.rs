//! What a scenario says of a GPRS or EGPRS cell and its mobiles.

use airpath_core::{Bytes, Direction, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adaptation::Adaptation;
use super::coding_scheme::CodingScheme;
use super::voice::Voice;
use super::{llc, multislot};
use crate::error::{ValueError, above_zero, at_most, within_an_hour};
use crate::gsm::gprs::ConfigError;
use crate::{conditions, error};

/// A cell with packet data channels, and the mobiles in it, which are all alike but for their radio conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What all mobiles share.
    pub cell: Cell,
    /// What each mobile can do.
    pub mobile: Mobile,
    /// Towards the mobile.
    pub downlink: Way,
    /// From the mobile.
    pub uplink: Way,
    /// Acknowledged mode of the RLC, in both directions.
    pub rlc: Rlc,
    /// Setting up and releasing temporary block flows.
    pub tbf: Tbf,
    /// C/I of the mobiles.
    pub conditions: conditions::Config,
}

/// What all mobiles share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Packet data channels: timeslots in a row that carry data in both directions, 1 to 8.
    pub slots: u8,
    /// From the end of an uplink block to the first downlink block that may answer it, and the other way round from a
    /// decision of the network to its transmission: between the antenna and the packet control unit and back.
    pub network_delay: Span,
    /// Calls that take timeslots away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
}

/// What each mobile can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Multislot class, 1 to 12: how many timeslots it can receive and send in, and in sum (3GPP TS 45.002 annex B).
    pub multislot_class: u8,
    /// Timeslots that the network gives it to send in while it receives. It gets as many to receive in as the class then
    /// allows, and while it receives nothing as many to send in.
    pub uplink_slots: u8,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The coding scheme of what is sent for the first time, at the beginning.
    pub scheme: CodingScheme,
    /// How it changes. Without it, it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptation: Option<Adaptation>,
    /// Octets of a packet in an LLC frame (N201-U, 140 to 1520). Larger packets take several frames.
    pub frame: Bytes,
    /// What of the packets' one-way delay is neither radio nor waiting: from the radio to the far end of the network, with
    /// the mobile's own.
    pub delay: Span,
    /// Bound and discipline of what waits: down in the support nodes (SGSN, GGSN), up in the mobile. Without it, any
    /// number of packets may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// Acknowledged mode of the RLC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rlc {
    /// Blocks between the oldest that is not acknowledged and the newest: 64 for GPRS, 64 to 1024 for EGPRS (3GPP TS
    /// 44.060 §9.1.9).
    pub window: u32,
    /// After how many blocks down the network polls the mobile for a bitmap of what it received.
    pub poll_interval: u32,
    /// After how many blocks up the network sends such a bitmap.
    pub ack_interval: u32,
    /// What the base station holds for a mobile, in bytes of packets; what comes above waits in the support node. A
    /// change of cell loses what is there.
    pub base_station_buffer: Bytes,
}

/// Temporary block flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tbf {
    /// How a mobile that is idle asks for an uplink.
    pub access: Access,
    /// Random access: the first burst is sent in one of so many frames, each as likely.
    pub access_frames: u32,
    /// From the end of an assignment that the mobile got on the common channel to when it can be addressed on its
    /// packet data channel.
    pub assignment_wait: Span,
    /// From the end of an assignment on the packet data channel to the first block that uses it.
    pub reaction: Span,
    /// A mobile with discontinuous reception listens to one paging block in so many 51-multiframes, 2 to 9 (BS_PA_MFRMS).
    pub paging_multiframes: u8,
    /// For so long after a transfer the mobile listens to all blocks of the common channel (the non-DRX timer).
    pub non_drx: Span,
    /// For so long after a transfer the network knows the mobile's cell and need not page it (the READY timer).
    pub ready: Span,
    /// For so long after a downlink flow the mobile still listens on its packet data channel (T3192).
    pub t3192: Span,
    /// The countdown begins with so many blocks left (BS_CV_MAX): packets that come later wait for the next uplink flow.
    pub countdown: u32,
    /// For so long the network keeps a downlink flow that has nothing to send; zero releases it with the last block.
    #[serde(default)]
    pub delayed_release: Span,
    /// For so long the network keeps an uplink flow that has nothing to send (extended uplink TBF mode); zero: not at all.
    #[serde(default)]
    pub extended_uplink: Span,
    /// How often a flow that is kept without data is given a block: dummy frames down, with a poll, and chances to send up.
    pub keep_interval: Span,
    /// Polls of a downlink flow, and chances to send of an uplink flow, that go unanswered in a row before the network
    /// gives the flow up (N3105 and N3101).
    pub max_unanswered: u32,
    /// For so long the network does not set up a flow again after it gave it up (T3195).
    pub t3195: Span,
    /// How likely a mobile is stuck after the network gave up one of its flows: it neither sends nor gets anything until its
    /// user connects anew, which is a `handover` by command.
    #[serde(default)]
    pub stuck: Probability,
}

/// How a mobile that is idle asks for an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The answer to the access burst assigns the flow's timeslot.
    OnePhase,
    /// It assigns a single block, in which the mobile says what it needs.
    TwoPhase,
}

impl Config {
    /// The table of a direction.
    pub const fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Down => &self.downlink,
            Direction::Up => &self.uplink,
        }
    }

    /// Timeslots that a mobile receives in, sends in, and sends in when it receives nothing.
    pub(super) fn slots(&self) -> Result<[u8; 3], ConfigError> {
        let class = multislot::Class::of(self.mobile.multislot_class)
            .ok_or(ConfigError::MultislotClass { known: multislot::KNOWN })?;
        let up = self.mobile.uplink_slots;
        if up == 0 || up > class.send {
            return Err(ConfigError::UplinkSlots { class: self.mobile.multislot_class, max: class.send });
        }
        let down = class.receive.min(class.sum - up);
        // It still listens in one timeslot, for control.
        let up_alone = class.send.min(class.sum - 1);
        Ok([down, up, up_alone].map(|count| count.min(self.cell.slots)))
    }

    /// Whether all of it makes sense, one by one and together.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { cell, downlink, uplink, rlc, tbf, .. } = self;
        above_zero(cell.slots > 0, "cell", "slots")?;
        at_most(u64::from(cell.slots), 8, "cell", "slots")?;
        self.slots()?;
        within_an_hour(cell.network_delay, "cell", "network_delay")?;
        if let Some(voice) = &cell.voice {
            voice.check(cell.slots)?;
        }
        for (way, table) in [(downlink, "downlink"), (uplink, "uplink")] {
            within_an_hour(way.delay, table, "delay")?;
            error::check_queue(way.queue.as_ref(), table)?;
            if let Some(adaptation) = &way.adaptation {
                adaptation.check(way.scheme, table)?;
            }
            let frame = way.frame.get();
            if !(u64::from(llc::MIN_FRAME)..=u64::from(llc::MAX_FRAME)).contains(&frame) {
                return Err(ValueError::OutOfRange {
                    key: format!("{table}.frame"),
                    min: llc::MIN_FRAME.into(),
                    max: llc::MAX_FRAME.into(),
                }
                .into());
            }
        }
        if downlink.scheme.is_egprs() != uplink.scheme.is_egprs() {
            return Err(ConfigError::SchemesOfTwoKinds);
        }
        let windows = if downlink.scheme.is_egprs() { (64, 1024) } else { (1, 64) };
        if !(windows.0..=windows.1).contains(&rlc.window) {
            let (min, max) = (windows.0.into(), windows.1.into());
            return Err(ValueError::OutOfRange { key: "rlc.window".to_owned(), min, max }.into());
        }
        above_zero(rlc.poll_interval > 0, "rlc", "poll_interval")?;
        above_zero(rlc.ack_interval > 0, "rlc", "ack_interval")?;
        above_zero(rlc.base_station_buffer > Bytes::ZERO, "rlc", "base_station_buffer")?;
        above_zero(tbf.access_frames > 0, "tbf", "access_frames")?;
        at_most(u64::from(tbf.access_frames), 1000, "tbf", "access_frames")?;
        above_zero(tbf.max_unanswered > 0, "tbf", "max_unanswered")?;
        above_zero(!tbf.keep_interval.is_zero(), "tbf", "keep_interval")?;
        if !(2..=9).contains(&tbf.paging_multiframes) {
            return Err(ValueError::OutOfRange { key: "tbf.paging_multiframes".to_owned(), min: 2, max: 9 }.into());
        }
        for (span, key) in [
            (tbf.assignment_wait, "assignment_wait"),
            (tbf.reaction, "reaction"),
            (tbf.non_drx, "non_drx"),
            (tbf.ready, "ready"),
            (tbf.t3192, "t3192"),
            (tbf.delayed_release, "delayed_release"),
            (tbf.extended_uplink, "extended_uplink"),
            (tbf.keep_interval, "keep_interval"),
            (tbf.t3195, "t3195"),
        ] {
            within_an_hour(span, "tbf", key)?;
        }
        Ok(())
    }
}
