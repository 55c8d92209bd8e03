//! The parameters of a GPRS or EGPRS cell and its mobiles, as a scenario has them.

use airpath_core::{Bytes, Direction, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adaptation::Adaptation;
use super::coding_scheme::CodingScheme;
use super::llc;
use super::multislot::{self, Timeslots};
use super::voice::Voice;
use crate::error::{ValueError, above_zero, at_most, range, within_an_hour};
use crate::gsm::gprs::ConfigError;
use crate::{conditions, error};

/// A cell with packet data channels. Its mobiles differ in their radio conditions only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The packet data channels, which all mobiles share.
    pub cell: Cell,
    /// What each mobile can do.
    pub mobile: Mobile,
    /// Towards the mobile.
    pub downlink: DirectionConfig,
    /// From the mobile.
    pub uplink: DirectionConfig,
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
    /// Delay between the antenna and the packet control unit and back: from the end of an uplink
    /// block to the first downlink block that can respond to it, and from a decision of the network
    /// to its transmission.
    pub network_delay: Span,
    /// Calls that take timeslots away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
}

/// What each mobile can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mobile {
    /// Multislot class, 1 to 12, 32 or 33: limits of the timeslots to receive in, to send in, and
    /// of their sum (3GPP TS 45.002 annex B).
    pub multislot_class: u8,
    /// Timeslots to send in while the mobile receives. It receives in as many as the class then
    /// allows. While it does not receive, it sends in as many as the class allows.
    pub uplink_slots: u8,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionConfig {
    /// The coding scheme of first transmissions, at the beginning.
    pub scheme: CodingScheme,
    /// Link adaptation. Without it, the coding scheme never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptation: Option<Adaptation>,
    /// Octets of a packet in an LLC frame (N201-U, 140 to 1520). Larger packets take several
    /// frames.
    pub frame: Bytes,
    /// Constant part of a packet's one-way delay: between the radio and the far end of the network,
    /// and in the mobile.
    pub delay: Span,
    /// Limits and discipline of the queue: down in the support nodes (SGSN, GGSN), up in the
    /// mobile. Without it, any number of packets may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// Acknowledged mode of the RLC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rlc {
    /// Blocks between the oldest that is not acknowledged and the newest: 64 for GPRS. For EGPRS, a
    /// multiple of 32, from 64 to 192 with one timeslot, and to 128 for each with more (3GPP TS
    /// 44.060 §9.1.9).
    pub window: u32,
    /// Downlink blocks between polls for a Packet Downlink Ack/Nack, which has the bitmap of
    /// received blocks.
    pub poll_interval: u32,
    /// Uplink blocks between Packet Uplink Ack/Nacks of the network.
    pub ack_interval: u32,
    /// Bytes of packets that the base station holds for a mobile; packets above that wait in the
    /// support node. A change of cell loses the packets in the base station.
    pub base_station_buffer: Bytes,
}

/// Temporary block flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tbf {
    /// How an idle mobile requests an uplink TBF.
    pub access: Access,
    /// Random access: the access burst is sent in one of this number of frames, at least 8 for the
    /// first burst. All are equally likely. 3 to 12, 14, 16, 20, 25, 32 or 50 (Tx-integer).
    pub access_frames: u32,
    /// Access bursts without an answer that the mobile repeats (max retrans): 1, 2, 4 or 7. Then it
    /// waits for T3146 and begins again.
    pub max_retrans: u32,
    /// From the end of an assignment on the common channel to when the mobile can be addressed on
    /// its packet data channel.
    pub assignment_wait: Span,
    /// From the end of an assignment on the packet data channel to the first block that uses it.
    pub reaction: Span,
    /// Period of a mobile's paging block with discontinuous reception, in 51-multiframes, 2 to 9
    /// (BS_PA_MFRMS).
    pub paging_multiframes: u8,
    /// How long after a transfer the mobile monitors all blocks of the common channel (the non-DRX
    /// timer).
    pub non_drx: Span,
    /// How long after a transfer the mobile's cell is known, so that the network need not page (the
    /// READY timer).
    pub ready: Span,
    /// How long a mobile waits for the assignment that it has requested on a packet data channel,
    /// before it requests again (T3168): 500 ms to 4 s.
    pub t3168: Span,
    /// How long after a downlink TBF the mobile still monitors its packet data channel (T3192).
    pub t3192: Span,
    /// The countdown begins with this number of blocks left (BS_CV_MAX). Later packets wait for the
    /// next uplink TBF.
    pub countdown: u32,
    /// How long the network keeps a downlink TBF without data; zero releases it with the last
    /// block.
    #[serde(default)]
    pub delayed_release: Span,
    /// How long the network keeps an uplink TBF without data (extended uplink TBF mode); zero: not
    /// at all.
    #[serde(default)]
    pub extended_uplink: Span,
    /// Interval at which a TBF that is kept without data gets a block: a dummy block with a poll
    /// down, a block to send in up.
    pub keep_interval: Span,
    /// Scheduled blocks of an uplink TBF without data in a row, after which the network schedules
    /// no more: N3101max, more than 8.
    pub n3101: u32,
    /// Final Packet Uplink Ack/Nacks without an acknowledgement after which the network releases
    /// the uplink TBF: N3103max.
    pub n3103: u32,
    /// Polls of a downlink TBF without a response in a row, assignments among them, after which the
    /// network releases the TBF: N3105max.
    pub n3105: u32,
    /// How long the network sets up no new downlink TBF after such a release (T3195).
    pub t3195: Span,
    /// Probability that a mobile is stuck after its TBF was released in one of these ways: it
    /// neither sends nor receives until its user connects again, which is a commanded `handover`.
    #[serde(default)]
    pub stuck: Probability,
}

/// S, the frames between an access burst and the first in which it may be repeated, by Tx-integer,
/// on a CCCH that is not combined with dedicated channels (TS 44.018 §3.3.1.1.2, recalled;
/// osmo-bsc, bts.c, has 217 for 12).
pub const fn access_spacing(tx_integer: u32) -> Option<u32> {
    match tx_integer {
        3 | 8 | 14 | 50 => Some(55),
        4 | 9 | 16 => Some(76),
        5 | 10 | 20 => Some(109),
        6 | 11 | 25 => Some(163),
        7 | 12 | 32 => Some(217),
        _ => None,
    }
}

/// How an idle mobile requests an uplink TBF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The response to the access burst assigns the timeslot of the TBF.
    OnePhase,
    /// It assigns a single block for a Packet Resource Request.
    TwoPhase,
}

impl Config {
    /// The table of a direction.
    pub const fn direction_config(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Down => &self.downlink,
            Direction::Up => &self.uplink,
        }
    }

    /// The timeslots of a mobile.
    pub(super) fn slots(&self) -> Result<Timeslots, ConfigError> {
        let class = multislot::Class::of(self.mobile.multislot_class)
            .ok_or(ConfigError::MultislotClass { known: multislot::MODELLED })?;
        let up = self.mobile.uplink_slots;
        if up == 0 || up > class.send {
            return Err(ConfigError::UplinkSlots { class: self.mobile.multislot_class, max: class.send });
        }
        let down = class.receive.min(class.sum - up);
        // One timeslot remains to receive control messages in.
        let up_alone = class.send.min(class.sum - 1);
        let [down, up, up_alone] = [down, up, up_alone].map(|count| count.min(self.cell.slots));
        Ok(Timeslots { down, up, up_alone })
    }

    /// Checks each value, and all of them together.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { cell, downlink, uplink, rlc, tbf, .. } = self;
        above_zero(cell.slots > 0, "cell", "slots")?;
        at_most(u64::from(cell.slots), 8, "cell", "slots")?;
        let slots = self.slots()?;
        within_an_hour(cell.network_delay, "cell", "network_delay")?;
        if let Some(voice) = &cell.voice {
            voice.check(cell.slots)?;
        }
        for (config, table) in [(downlink, "downlink"), (uplink, "uplink")] {
            within_an_hour(config.delay, table, "delay")?;
            error::check_queue(config.queue.as_ref(), table)?;
            if let Some(adaptation) = &config.adaptation {
                adaptation.check(config.scheme, table)?;
            }
            let frame = config.frame.get();
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
        check_window(rlc.window, slots, downlink.scheme.is_egprs())?;
        above_zero(rlc.poll_interval > 0, "rlc", "poll_interval")?;
        above_zero(rlc.ack_interval > 0, "rlc", "ack_interval")?;
        above_zero(rlc.base_station_buffer > Bytes::ZERO, "rlc", "base_station_buffer")?;
        if access_spacing(tbf.access_frames).is_none() {
            let allowed = "3 to 12, 14, 16, 20, 25, 32 or 50 (TS 44.018 Table 10.5.2.29.1)";
            return Err(range("tbf", "access_frames", allowed).into());
        }
        if ![1, 2, 4, 7].contains(&tbf.max_retrans) {
            return Err(range("tbf", "max_retrans", "1, 2, 4 or 7 (TS 44.018 Table 10.5.2.29.1)").into());
        }
        if !(Span::from_millis(500)..=Span::from_secs(4)).contains(&tbf.t3168) {
            return Err(range("tbf", "t3168", "500 ms to 4 s (TS 44.060 Table 12.24.2)").into());
        }
        if tbf.n3101 <= 8 {
            return Err(range("tbf", "n3101", "more than 8 (TS 44.060 §13.4)").into());
        }
        above_zero(tbf.n3103 > 0, "tbf", "n3103")?;
        above_zero(tbf.n3105 > 0, "tbf", "n3105")?;
        above_zero(!tbf.keep_interval.is_zero(), "tbf", "keep_interval")?;
        if !(2..=9).contains(&tbf.paging_multiframes) {
            return Err(ValueError::OutOfRange { key: "tbf.paging_multiframes".to_owned(), min: 2, max: 9 }.into());
        }
        for (span, key) in [
            (tbf.assignment_wait, "assignment_wait"),
            (tbf.reaction, "reaction"),
            (tbf.non_drx, "non_drx"),
            (tbf.ready, "ready"),
            (tbf.t3168, "t3168"),
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

/// Checks the blocks of a window: with EGPRS a multiple of 32, up to what the timeslots of a TBF
/// allow (TS 44.060 Table 9.1.9.2.1, and `egprs_window_size` of osmo-pcu). The model has one window
/// for both directions, and allows what the one with the most timeslots may have.
fn check_window(window: u32, slots: Timeslots, is_egprs: bool) -> Result<(), ValueError> {
    let (min, max) = match slots.down.max(slots.up_alone) {
        _ if !is_egprs => (1, 64),
        1 => (64, 192),
        slots => (64, 128 * u32::from(slots)),
    };
    if !(min..=max).contains(&window) {
        return Err(ValueError::OutOfRange { key: "rlc.window".to_owned(), min: min.into(), max: max.into() });
    }
    if is_egprs && !window.is_multiple_of(32) {
        return Err(range("rlc", "window", "a multiple of 32 (TS 44.060 Table 9.1.9.2.1)"));
    }
    Ok(())
}
