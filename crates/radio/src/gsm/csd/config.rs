//! The parameters of the bearer.

use airpath_core::{Bitrate, Bytes, Probability, Span};
use airpath_link::queue::Queue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hdlc_abm::Settings;
use crate::conditions;
use crate::error::{ValueError, above_zero, at_most, within_an_hour};
use crate::gsm::csd::ConfigError;

/// A call to a gateway for each mobile: `PPP – modems – interworking function – RLP – mobile`.
/// Without `radio` the subscriber has a modem on a telephone line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How IP packets are framed, the same both ways.
    pub ppp: Ppp,
    /// The serial interfaces at both ends of the call; without it, equipment and modem, or terminal
    /// and phone, are one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<Serial>,
    /// The link between gateway and interworking function; without it, that link is digital and
    /// takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modem: Option<Modem>,
    /// The radio link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Radio conditions of each mobile, in place of `radio.frame_errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<conditions::Config>,
    /// When the call is made, and how long that takes.
    pub call: Call,
    /// Towards the mobile.
    #[serde(default)]
    pub downlink: Direction,
    /// From the mobile.
    #[serde(default)]
    pub uplink: Direction,
}

/// What is particular to one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Direction {
    /// Bound and discipline of the packets that wait to be framed, until the first link has room: a
    /// slow link holds those before it. Without it, any number may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// PPP in HDLC-like framing (RFC 1662).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ppp {
    /// What a frame adds to a packet: flag, address, control, protocol, FCS.
    pub overhead: Bytes,
    /// The share of octets that are sent as two: flag and escape themselves, and the control
    /// characters of the map. It depends on what is sent: of evenly distributed octets (2 + 32)/256
    /// with the default map, 2/256 with an empty one. A frame gets its share of such octets,
    /// exactly in the long run.
    #[serde(default)]
    pub escaped: Probability,
    /// The same share of what PPP adds and of the headers of the packet, its first 40 bytes or what
    /// compression leaves of them, where it differs from that of what follows: `escaped` then is
    /// that of the data alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escaped_headers: Option<Probability>,
    /// Bytes of IP and TCP header that are left of 40 where Van Jacobson's compression (RFC 1144)
    /// sends the difference to the segment before. Without it, headers are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressed_header: Option<Bytes>,
}

/// The serial interface between data terminal equipment and what makes its call (ITU-T V.24):
/// between the gateway and its modem, and between a terminal and its phone or modem. Characters are
/// start-stop: ten bits for eight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serial {
    /// The rate of the interface, start and stop bits included.
    pub rate: Bitrate,
}

/// Two modems on a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Modem {
    /// The rate of the line.
    pub rate: Bitrate,
    /// How the modems protect what they send.
    pub error_control: ErrorControl,
    /// From the end of a frame on the line to when the other modem has passed it on.
    pub delay: Span,
    /// N401: octets of user data in a frame, with V.42.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Bytes>,
    /// How long a modem waits for another character before it sends what does not fill a frame,
    /// with V.42.
    #[serde(default)]
    pub assembly: Span,
    /// k: frames that may be unacknowledged, with V.42.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// T401, with V.42.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledgement_timer: Option<Span>,
    /// N400: transmissions of a poll without an answer, with V.42.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The share of zeros that are inserted after five ones, with V.42: 1/62 of evenly distributed
    /// bits.
    #[serde(default)]
    pub zero_insertion: Probability,
    /// The probability that a frame, or without V.42 a block of 8 octets, is in error.
    #[serde(default)]
    pub frame_errors: Probability,
    /// V.42bis between the modems, with V.42: octets of data for each octet on the line, 1 to 100.
    /// It depends on what is sent: see the study gsm-csd. Without it, data are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<f64>,
}

/// How modems protect what they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorControl {
    /// LAPM of V.42, synchronous.
    V42,
    /// None: start, eight bits, stop.
    None,
}

/// The radio link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Radio {
    /// The channel coding.
    pub channel: Channel,
    /// How many channels the call has: more than one is HSCSD.
    pub slots: u32,
    /// From the beginning of a frame to the end of its last burst: interleaving spreads a frame
    /// over 22 bursts of TCH/F9.6; a full-rate channel has 24 in 120 ms.
    pub interleaving: Span,
    /// From there to the other end of the link: decoding, base station, transcoder, interworking
    /// function.
    pub delay: Span,
    /// k: RLP frames that may be unacknowledged.
    pub window: u32,
    /// T1.
    pub acknowledgement_timer: Span,
    /// N2: transmissions of a poll without an answer.
    pub attempts: u32,
    /// How missing frames are requested.
    pub recovery: Recovery,
    /// The probability that a frame is received in error, instead of that which follows from
    /// `conditions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_errors: Option<Probability>,
    /// V.42bis between mobile and interworking function (3GPP TS 24.022 §5.2.2.6): octets of data
    /// for each octet on the radio link, 1 to 100. Without it, data are not compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<f64>,
}

/// Channel codings of non-transparent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// TCH/F9.6: an RLP frame of 240 bits each 20 ms.
    #[serde(rename = "tch-f9.6")]
    F9_6,
    /// TCH/F14.4: an RLP frame of 576 bits each 40 ms.
    #[serde(rename = "tch-f14.4")]
    F14_4,
}

/// How RLP requests missing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// SREJ: for each by itself.
    Selective,
    /// REJ: for all from one on.
    Reject,
}

/// The call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// When it is made.
    pub dial: Dial,
    /// How long it takes until packets can be sent: dialling, ringing, training of the modems, PPP.
    pub set_up: Span,
}

/// When a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dial {
    /// Before the run: it is there from the beginning. If it is lost it stays lost.
    Before,
    /// With the first packet, and again with the first after it was lost.
    FirstPacket,
}

/// Octets of a LAPM frame beside user data: flag, address, control (2), FCS (2), as ITU-T V.42 §8.1
/// has them with modulus 128 and the 16-bit FCS.
pub const LAPM_OVERHEAD: u32 = 6;

impl Channel {
    /// Its name, by which its table of block errors is found.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F9_6 => "tch-f9.6",
            Self::F14_4 => "tch-f14.4",
        }
    }

    /// How long a frame takes (3GPP TS 24.022 §4.1).
    pub const fn frame_duration(self) -> Span {
        match self {
            Self::F9_6 => Span::from_millis(20),
            Self::F14_4 => Span::from_millis(40),
        }
    }

    /// Octets of user data in a frame of a call with one channel, or with several. 240 bits less
    /// header and FCS are 25 octets, 576 bits 67; the header has 16 bits, with several channels 24
    /// (RLP version 2); one octet is the status octet of L2RCOP (3GPP TS 27.002).
    pub const fn payload(self, is_multilink: bool) -> u32 {
        let (bits, header) = match self {
            Self::F9_6 => (240, 16),
            Self::F14_4 => (576, 16),
        };
        let header = if is_multilink { header + 8 } else { header };
        (bits - header - 24) / 8 - 1
    }
}

impl Radio {
    /// From the beginning of a frame to when it is at the other end.
    pub fn frame_delay(&self) -> Span {
        self.interleaving + self.delay
    }

    pub(super) fn station(&self) -> Settings {
        Settings {
            window: self.window,
            acknowledgement_timer: self.acknowledgement_timer,
            attempts: self.attempts,
            selective: self.recovery == Recovery::Selective,
            payload: self.channel.payload(self.slots > 1),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let table = "radio";
        above_zero(self.slots > 0, table, "slots")?;
        above_zero(self.window > 0, table, "window")?;
        above_zero(self.attempts > 0, table, "attempts")?;
        at_most(u64::from(self.slots), 8, table, "slots")?;
        // Sequence numbers are 0 to 61 with one channel, 0 to 495 with several (3GPP TS 24.022
        // §5.5).
        at_most(u64::from(self.window), if self.slots > 1 { 496 } else { 61 }, table, "window")?;
        within_an_hour(self.interleaving, table, "interleaving")?;
        within_an_hour(self.delay, table, "delay")?;
        within_an_hour(self.acknowledgement_timer, table, "acknowledgement_timer")?;
        check_compression(self.compression, table)?;
        // An answer takes both ways, and its frame has to wait for the next to begin.
        let round_trip = self.frame_delay() * 2 + self.channel.frame_duration();
        longer_than(self.acknowledgement_timer, round_trip, table)
    }
}

impl Serial {
    /// A wire that carries characters as modems without error control do, and takes no time
    /// besides.
    pub(super) const fn wire(&self) -> Modem {
        Modem {
            rate: self.rate,
            error_control: ErrorControl::None,
            delay: Span::ZERO,
            frame: None,
            assembly: Span::ZERO,
            window: None,
            acknowledgement_timer: None,
            attempts: None,
            zero_insertion: Probability::NEVER,
            frame_errors: Probability::NEVER,
            compression: None,
        }
    }
}

impl Modem {
    /// Octets that go at once.
    pub(super) fn payload(&self) -> u32 {
        self.frame.map_or(128, |frame| frame.get() as u32)
    }

    /// What LAPM is set to; `None` without V.42.
    pub(super) fn station(&self) -> Option<Settings> {
        (self.error_control == ErrorControl::V42).then(|| Settings {
            window: self.window.unwrap_or(15),
            acknowledgement_timer: self.acknowledgement_timer.unwrap_or(Span::from_secs(1)),
            attempts: self.attempts.unwrap_or(5),
            selective: false,
            payload: self.payload(),
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let table = "modem";
        above_zero(self.frame != Some(Bytes::ZERO), table, "frame")?;
        above_zero(self.window != Some(0), table, "window")?;
        above_zero(self.attempts != Some(0), table, "attempts")?;
        // The negotiation of V.42 has two octets for it; a modulus of 128 numbers the frames.
        at_most(u64::from(self.payload()), 8192, table, "frame")?;
        at_most(u64::from(self.window.unwrap_or(1)), 127, table, "window")?;
        within_an_hour(self.delay, table, "delay")?;
        let Some(settings) = self.station() else {
            let foreign = [
                ("frame", self.frame.is_some()),
                ("assembly", !self.assembly.is_zero()),
                ("window", self.window.is_some()),
                ("acknowledgement_timer", self.acknowledgement_timer.is_some()),
                ("attempts", self.attempts.is_some()),
                ("zero_insertion", self.zero_insertion.get() > 0.0),
                ("compression", self.compression.is_some()),
            ];
            return match foreign.into_iter().find(|(_, is_given)| *is_given) {
                Some((key, _)) => {
                    Err(ValueError::Needs { key: format!("{table}.{key}"), needs: "error_control = \"v42\"" }.into())
                }
                None => Ok(()),
            };
        };
        check_compression(self.compression, table)?;
        within_an_hour(self.assembly, table, "assembly")?;
        within_an_hour(settings.acknowledgement_timer, table, "acknowledgement_timer")?;
        // A frame, its answer, and a frame that the answer may have to wait for.
        let round_trip = self.duration(self.payload()) * 3 + self.delay * 2;
        within_an_hour(round_trip, table, "rate")?;
        longer_than(settings.acknowledgement_timer, round_trip, table)
    }
}

impl Config {
    /// Whether the parameters make sense together.
    ///
    /// # Errors
    /// If they do not.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.modem.is_none() && self.radio.is_none() {
            return Err(ConfigError::NoLink);
        }
        at_most(self.ppp.overhead.get(), 64, "ppp", "overhead")?;
        at_most(self.ppp.compressed_header.map_or(0, Bytes::get), 40, "ppp", "compressed_header")?;
        within_an_hour(self.call.set_up, "call", "set_up")?;
        let frame_errors = self.radio.as_ref().and_then(|radio| radio.frame_errors);
        match (&self.radio, frame_errors.is_some(), self.conditions.is_some()) {
            (Some(_), true, true) | (Some(_), false, false) => return Err(ConfigError::FrameErrors),
            (None, _, true) => return Err(ValueError::Needs { key: "conditions".to_owned(), needs: "radio" }.into()),
            _ => {}
        }
        self.modem.as_ref().map_or(Ok(()), Modem::check)?;
        self.radio.as_ref().map_or(Ok(()), Radio::check)
    }
}

fn check_compression(ratio: Option<f64>, table: &str) -> Result<(), ConfigError> {
    match ratio {
        Some(ratio) if !(1.0..=100.0).contains(&ratio) => {
            Err(ValueError::Range { key: format!("{table}.compression"), expected: "1 to 100" }.into())
        }
        _ => Ok(()),
    }
}

fn longer_than(timer: Span, round_trip: Span, table: &str) -> Result<(), ConfigError> {
    if timer > round_trip {
        return Ok(());
    }
    Err(ConfigError::TimerTooShort { key: format!("{table}.acknowledgement_timer"), round_trip })
}
