//! The description of a session with a video in H.264 (SDP, RFC 8866; parameters of RFC 6184 §8).

use std::fmt::Write;
use std::net::IpAddr;

use super::LowerTransport;

/// A session with one video.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Where its packets are sent; `None` if the description has a name.
    pub address: Option<IpAddr>,
    /// The port of RTP. Over UDP that of RTCP is the next one.
    pub port: u16,
    /// The protocol below RTP. Over TCP the receiver listens, and RTCP has the same connection.
    pub transport: LowerTransport,
    /// The payload type.
    pub payload_type: u8,
    /// The parameter sets that decoders need first, as NAL units.
    pub parameter_sets: Vec<Vec<u8>>,
    /// Frames per second.
    pub frame_rate: Option<f64>,
}

/// Why a text describes no such session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct DescriptionError {
    /// The line, counted from one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl DescriptionError {
    fn new(line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { line: line.into(), message: message.into() }
    }
}

/// The media of a description, while it is read.
struct Media {
    line: usize,
    port: u16,
    transport: LowerTransport,
    payload_types: Vec<u8>,
    /// The payload type of H.264, and the encodings of the others.
    h264: Option<u8>,
    others: Vec<String>,
}

impl Description {
    /// The text of the description, by a sender at `origin`. It needs [`Self::address`].
    pub fn text(&self, origin: IpAddr) -> String {
        let address = self.address.unwrap_or(origin);
        let kind = |address: IpAddr| if address.is_ipv4() { "IP4" } else { "IP6" };
        let Self { port, payload_type, .. } = self;
        let (protocol, attributes) = match self.transport {
            LowerTransport::Udp => ("RTP/AVP", ""),
            // RFC 4571 §4, RFC 4145 §4 and §5, RFC 5761 §5.1.1.
            LowerTransport::Tcp => ("TCP/RTP/AVP", "a=setup:passive\r\na=connection:new\r\na=rtcp-mux\r\n"),
        };
        let mut text = format!(
            "v=0\r\no=- 0 0 IN {} {origin}\r\ns=airpath\r\nc=IN {} {address}\r\nt=0 0\r\n\
             m=video {port} {protocol} {payload_type}\r\n{attributes}a=rtpmap:{payload_type} H264/90000\r\n\
             a=fmtp:{payload_type} packetization-mode=1",
            kind(origin),
            kind(address),
        );
        let sequence = self.parameter_sets.iter().find(|set| set.first().is_some_and(|first| first & 0x1F == 7));
        if let Some([_, profile, constraints, level, ..]) = sequence.map(Vec::as_slice) {
            let _ = write!(text, ";profile-level-id={profile:02X}{constraints:02X}{level:02X}");
        }
        if !self.parameter_sets.is_empty() {
            let sets: Vec<String> = self.parameter_sets.iter().map(|set| base64(set)).collect();
            let _ = write!(text, ";sprop-parameter-sets={}", sets.join(","));
        }
        text.push_str("\r\n");
        if let Some(rate) = self.frame_rate {
            let _ = write!(text, "a=framerate:{rate}\r\n");
        }
        text
    }

    /// Reads the first video of a description.
    ///
    /// # Errors
    /// If it is no description, has no video in H.264, or one that cannot be received.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        // ffmpeg prints a title before the description.
        let lines = || (1..).zip(text.lines()).skip_while(|(_, line)| !line.starts_with("v="));
        if lines().next().is_none_or(|(_, line)| line.trim_end() != "v=0") {
            return Err(DescriptionError::new(
                None,
                "this is no description of a session (SDP): the line `v=0` is missing",
            ));
        }
        let mut media: Option<Media> = None;
        let mut in_video = false;
        let (mut session_address, mut media_address) = (None, None);
        let (mut parameters, mut frame_rate) = (Vec::new(), None);
        for (number, line) in lines() {
            let line = line.trim_end();
            let wrong = |message: &str| DescriptionError::new(number, message);
            let Some((kind, value)) = line.split_once('=').filter(|(kind, _)| kind.len() == 1) else {
                if line.is_empty() {
                    continue;
                }
                return Err(wrong("a line is TYPE=VALUE, with a type of one letter"));
            };
            match kind {
                "m" => {
                    in_video = media.is_none() && value.starts_with("video ");
                    if in_video {
                        media = Some(Media::parse(value, number)?);
                    }
                }
                "c" if in_video => media_address = Some(address(value).ok_or_else(|| wrong(CONNECTION))?),
                "c" if media.is_none() => session_address = Some(address(value).ok_or_else(|| wrong(CONNECTION))?),
                "a" if in_video => {
                    let Some(media) = &mut media else { continue };
                    if let Some(map) = value.strip_prefix("rtpmap:") {
                        media.map(map).ok_or_else(|| wrong("it is a=rtpmap:TYPE ENCODING/CLOCK"))?;
                    } else if let Some(format) = value.strip_prefix("fmtp:") {
                        parameters.push((number, format));
                    } else if value.trim() == "setup:active" && media.transport == LowerTransport::Tcp {
                        return Err(wrong(
                            "with setup:active the receiver would connect; airpath listens, as with setup:passive",
                        ));
                    } else if let Some(rate) = value.strip_prefix("framerate:") {
                        frame_rate = rate.trim().parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
                    }
                }
                _ => {}
            }
        }
        let Some(media) = media else {
            return Err(DescriptionError::new(None, "there is no video: no line begins with `m=video`"));
        };
        let payload_type = media.h264()?;
        let mut parameter_sets = Vec::new();
        for (line, format) in parameters {
            let Some((number, list)) = format.split_once(' ') else { continue };
            if number.parse() == Ok(payload_type) {
                parameter_sets = sets(list).map_err(|message| DescriptionError::new(line, message))?;
            }
        }
        let address = media_address.or(session_address).flatten();
        let Media { port, transport, .. } = media;
        Ok(Self { address, port, transport, payload_type, parameter_sets, frame_rate })
    }
}

/// What a line of the connection is.
const CONNECTION: &str = "it is c=IN IP4 ADDRESS, or c=IN IP6 ADDRESS";

impl Media {
    /// Reads the value of a line that begins the video.
    fn parse(value: &str, line: usize) -> Result<Self, DescriptionError> {
        let wrong = |message: &str| DescriptionError::new(line, message);
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        let [_, port, protocol, formats @ ..] = &words[..] else {
            return Err(wrong("it is m=video PORT RTP/AVP TYPE"));
        };
        let (transport, most) = match *protocol {
            "RTP/AVP" | "RTP/AVPF" => (LowerTransport::Udp, u16::MAX - 1),
            "TCP/RTP/AVP" | "TCP/RTP/AVPF" => (LowerTransport::Tcp, u16::MAX),
            _ => {
                let known = "RTP/AVP, RTP/AVPF, TCP/RTP/AVP and TCP/RTP/AVPF can be received";
                return Err(wrong(&format!("the protocol is {protocol}; {known}")));
            }
        };
        // A number of ports follows a slash.
        let port = port.split('/').next().and_then(|port| port.parse().ok());
        let port = port.filter(|port| (1..=most).contains(port));
        let port = port.ok_or_else(|| wrong(&format!("the port is 1 to {most}")))?;
        let payload_types = formats.iter().map(|format| format.parse().ok().filter(|kind| *kind < 128)).collect();
        let payload_types = Option::filter(payload_types, |types: &Vec<u8>| !types.is_empty());
        let payload_types = payload_types.ok_or_else(|| wrong("a payload type is 0 to 127"))?;
        Ok(Self { line, port, transport, payload_types, h264: None, others: Vec::new() })
    }

    /// Reads the encoding of a payload type.
    fn map(&mut self, map: &str) -> Option<()> {
        let (number, encoding) = map.split_once(' ')?;
        let number = number.parse().ok()?;
        let (name, _) = encoding.trim().split_once('/')?;
        if !self.payload_types.contains(&number) {
            return Some(());
        }
        match name.eq_ignore_ascii_case("H264") {
            true => drop(self.h264.get_or_insert(number)),
            false => self.others.push(name.to_owned()),
        }
        Some(())
    }

    /// The payload type of H.264.
    fn h264(&self) -> Result<u8, DescriptionError> {
        let message = || match &self.others[..] {
            [] => "no line a=rtpmap names the encoding of the video".to_owned(),
            others => format!("the video is {}, not H264", others.join(", ")),
        };
        self.h264.ok_or_else(|| DescriptionError::new(self.line, message()))
    }
}

/// The address of a connection: `None` within for a name. A time to live may follow it.
fn address(value: &str) -> Option<Option<IpAddr>> {
    let mut words = value.split_ascii_whitespace();
    let (net, kind, address) = (words.next()?, words.next()?, words.next()?);
    let address = address.split('/').next()?;
    (net == "IN" && matches!(kind, "IP4" | "IP6")).then(|| address.parse().ok())
}

/// The parameter sets among the parameters of a format (RFC 6184 §8.1).
fn sets(list: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut sets = Vec::new();
    for (name, value) in list.split(';').filter_map(|parameter| parameter.trim().split_once('=')) {
        match name.to_ascii_lowercase().as_str() {
            "packetization-mode" if !["0", "1"].contains(&value) => {
                return Err("the packetization mode is 0 or 1; interleaved packets cannot be received");
            }
            "sprop-parameter-sets" => {
                let units: Option<Vec<_>> = value.split(',').map(from_base64).collect();
                sets = units.ok_or("the parameter sets are no base64")?;
            }
            _ => {}
        }
    }
    Ok(sets)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let digits = [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(word >> shift & 63) as usize]));
        text.extend(&digits[..=chunk.len()]);
        text.extend(std::iter::repeat_n('=', 3 - chunk.len()));
    }
    text
}

/// The bytes of base64, with or without padding.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut word, mut bits) = (0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|each| *each == digit)?;
        word = word << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As ffmpeg 5.1 prints it.
    const OF_FFMPEG: &str = "SDP:\nv=0\no=- 0 0 IN IP4 127.0.0.1\ns=No Name\nc=IN IP4 127.0.0.1\nt=0 0\n\
        a=tool:libavformat 59.27.100\nm=video 5004 RTP/AVP 96\nb=AS:148\na=rtpmap:96 H264/90000\n\
        a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LACtoLEwEQAAADABAAAAMB4PEiag==,aM4PyA==; \
        profile-level-id=42C00A\n\n";

    #[test]
    fn the_description_of_ffmpeg_is_read() {
        let read = Description::parse(OF_FFMPEG).expect("valid");
        assert_eq!((read.address, read.port, read.payload_type), (Some("127.0.0.1".parse().expect("valid")), 5004, 96));
        assert_eq!(read.parameter_sets.iter().map(|set| set[0]).collect::<Vec<_>>(), [0x67, 0x68]);
    }

    #[test]
    fn other_media_are_skipped() {
        let audio =
            "m=audio 4000 RTP/AVP 97\na=rtpmap:97 opus/48000/2\nm=video 5004 RTP/AVP 98 96\na=rtpmap:98 VP8/90000\n";
        let read = Description::parse(&OF_FFMPEG.replace("m=video 5004 RTP/AVP 96\n", audio)).expect("valid");
        assert_eq!((read.port, read.payload_type), (5004, 96));
    }

    #[test]
    fn errors_name_the_line() {
        let error =
            |from: &str, to: &str| Description::parse(&OF_FFMPEG.replace(from, to)).expect_err("wrong").to_string();
        assert!(error("v=0", "v=1").contains("`v=0` is missing"));
        assert!(error("m=video", "m=audio").contains("no video"));
        assert_eq!(error("H264/90000", "VP8/90000"), "line 8: the video is VP8, not H264");
        assert!(error("video 5004", "video 0").starts_with("line 8: the port"));
        assert!(error("RTP/AVP", "RTP/SAVP").starts_with("line 8: the protocol is RTP/SAVP"));
        assert_eq!(error("5004 RTP", "65535 RTP"), "line 8: the port is 1 to 65534");
        assert!(error("RTP/AVP 96", "TCP/RTP/AVP 96\na=setup:active").starts_with("line 9: with setup:active"));
        assert!(error("AVP 96", "AVP x").starts_with("line 8: a payload type"));
        assert!(error("mode=1", "mode=2").starts_with("line 11: the packetization mode"));
        assert!(error("aM4PyA", "aM4*yA").starts_with("line 11: the parameter sets"));
        assert!(error("s=No", "No").starts_with("line 4: a line is"));
        assert!(error("c=IN", "c=X").starts_with("line 5: it is c=IN"));
        assert!(error("a=rtpmap:96", "a=rtpmap:95").contains("no line a=rtpmap"));
    }

    proptest! {
        #[test]
        fn a_description_reads_as_it_was_written(
            address: IpAddr, port in 1..u16::MAX, payload_type in 96..128_u8, rate in 1..60_u8,
            sets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..30), 0..3),
            is_tcp: bool,
        ) {
            let description = Description {
                address: Some(address),
                port,
                transport: if is_tcp { LowerTransport::Tcp } else { LowerTransport::Udp },
                payload_type,
                parameter_sets: sets,
                frame_rate: Some(rate.into()),
            };
            prop_assert_eq!(Description::parse(&description.text(address)), Ok(description));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,60}", at in 0..400_usize, cut in 0..40_usize) {
            let mut damaged: String = OF_FFMPEG.chars().take(at).collect();
            damaged.push_str(&text);
            damaged.extend(OF_FFMPEG.chars().skip(at + cut));
            let _ = Description::parse(&damaged);
        }
    }
}
