//! Control messages (draft-ietf-moq-transport-19 §10).

use serde::{Deserialize, Serialize};

use crate::wire::{self, Pair, Reader, Result, WireError, write_bytes, write_integer, write_pairs};

/// Type of SETUP, which is also that of a control stream (§10.3).
pub const SETUP: u64 = 0x2f00;
const SUBSCRIBE: u64 = 0x3;
const SUBSCRIBE_OK: u64 = 0x4;
const REQUEST_ERROR: u64 = 0x5;
const PUBLISH_DONE: u64 = 0xb;

/// Most bytes of the fields of a namespace and the name of a track together (§2.4.1).
const MOST_NAME: u64 = 4096;
/// Most fields of a namespace (§2.4.1).
const MOST_FIELDS: u64 = 32;
/// Most bytes of a reason (§1.4.4).
const MOST_REASON: u64 = 1024;

/// Error codes of REQUEST_ERROR (§10.6).
pub mod request_error {
    /// The publisher does not do this.
    pub const NOT_SUPPORTED: u64 = 0x3;
    /// No such track.
    pub const DOES_NOT_EXIST: u64 = 0x10;
}

/// Status codes of PUBLISH_DONE (§10.11).
pub mod publish_done {
    /// The track is no longer published.
    pub const TRACK_ENDED: u64 = 0x2;
}

/// A control message. Those that this implementation does not use are unknown to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The first message of a control stream (§10.3).
    Setup {
        /// Setup Options.
        options: Vec<Pair>,
    },
    /// Requests the objects of a track from now on (§10.7).
    Subscribe(Subscribe),
    /// The response to SUBSCRIBE (§10.8). Properties of the track are skipped.
    SubscribeOk {
        /// The number of the track on data streams.
        track_alias: u64,
    },
    /// A request failed (§10.6).
    RequestError {
        /// Why: [`request_error`].
        code: u64,
        /// Milliseconds after which to repeat the request, plus one; 0 for never.
        retry: u64,
        /// The same in words.
        reason: String,
    },
    /// The last message about a subscription (§10.11).
    PublishDone {
        /// Why: [`publish_done`].
        status: u64,
        /// Number of data streams that were opened.
        streams: u64,
        /// The same in words.
        reason: String,
    },
}

/// SUBSCRIBE (§10.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// Number of the request: even from a client (§10.1).
    pub request: u64,
    /// Fields of the namespace of the track.
    pub namespace: Vec<Vec<u8>>,
    /// Name of the track.
    pub name: Vec<u8>,
    /// Parameters.
    pub parameters: Parameters,
}

/// Message Parameters of SUBSCRIBE (§10.2) that this implementation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// OBJECT_DELIVERY_TIMEOUT in milliseconds; 0 for none.
    pub object_timeout_ms: u64,
    /// SUBGROUP_DELIVERY_TIMEOUT in milliseconds; 0 for none.
    pub subgroup_timeout_ms: u64,
    /// SUBSCRIBER_PRIORITY: lower numbers first.
    pub priority: u8,
    /// GROUP_ORDER.
    pub group_order: GroupOrder,
}

/// Which group of a subscription is sent first (§7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupOrder {
    /// The oldest.
    Ascending,
    /// The newest.
    #[default]
    Descending,
}

impl GroupOrder {
    /// Its value in messages (§10.2.8).
    pub const fn code(self) -> u8 {
        match self {
            Self::Ascending => 1,
            Self::Descending => 2,
        }
    }

    /// The order with this value.
    pub fn of_code(code: u8) -> Option<Self> {
        [Self::Ascending, Self::Descending].into_iter().find(|order| order.code() == code)
    }
}

/// The values of parameters that are absent. The group order is that of the publisher (§12.5):
/// without a property of the track, the order of the groups.
impl Default for Parameters {
    fn default() -> Self {
        Self { object_timeout_ms: 0, subgroup_timeout_ms: 0, priority: 128, group_order: GroupOrder::Ascending }
    }
}

/// Types of parameters (§10.2).
mod parameter {
    pub const OBJECT_DELIVERY_TIMEOUT: u64 = 0x02;
    pub const SUBGROUP_DELIVERY_TIMEOUT: u64 = 0x06;
    pub const SUBSCRIBER_PRIORITY: u64 = 0x20;
    pub const GROUP_ORDER: u64 = 0x22;
}

impl Message {
    /// The bytes of the message.
    ///
    /// # Panics
    /// If the body has more than 65,535 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Setup { options } => {
                write_pairs(&mut body, options);
                SETUP
            }
            Self::Subscribe(subscribe) => {
                subscribe.write(&mut body);
                SUBSCRIBE
            }
            Self::SubscribeOk { track_alias } => {
                write_integer(&mut body, *track_alias);
                write_integer(&mut body, 0);
                SUBSCRIBE_OK
            }
            Self::RequestError { code, retry, reason } => {
                write_integer(&mut body, *code);
                write_integer(&mut body, *retry);
                write_bytes(&mut body, reason.as_bytes());
                REQUEST_ERROR
            }
            Self::PublishDone { status, streams, reason } => {
                write_integer(&mut body, *status);
                write_integer(&mut body, *streams);
                write_bytes(&mut body, reason.as_bytes());
                PUBLISH_DONE
            }
        };
        let mut out = Vec::with_capacity(body.len() + 5);
        write_integer(&mut out, kind);
        let length = u16::try_from(body.len()).expect("the body of a message has at most 65,535 bytes");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&body);
        out
    }

    /// Reads the message at the start of a stream.
    ///
    /// # Errors
    /// [`WireError::Incomplete`] if more bytes are needed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let kind = reader.integer()?;
        let length = reader.two_bytes()?;
        let mut body = Reader::new(reader.take(length.into())?);
        let message = Self::read_body(kind, &mut body).map_err(|error| match error {
            WireError::Incomplete => WireError::Violation("a control message is longer than its length"),
            violation => violation,
        })?;
        if !body.rest().is_empty() {
            return Err(WireError::Violation("a control message is shorter than its length"));
        }
        Ok(message)
    }

    fn read_body(kind: u64, body: &mut Reader<'_>) -> Result<Self> {
        Ok(match kind {
            SETUP => Self::Setup { options: read_rest(body)? },
            SUBSCRIBE => Self::Subscribe(Subscribe::read(body)?),
            SUBSCRIBE_OK => {
                let track_alias = body.integer()?;
                if body.integer()? != 0 {
                    return Err(WireError::Violation("SUBSCRIBE_OK has a parameter that is not supported here"));
                }
                read_rest(body)?;
                Self::SubscribeOk { track_alias }
            }
            REQUEST_ERROR => {
                Self::RequestError { code: body.integer()?, retry: body.integer()?, reason: read_reason(body)? }
            }
            PUBLISH_DONE => {
                Self::PublishDone { status: body.integer()?, streams: body.integer()?, reason: read_reason(body)? }
            }
            _ => return Err(WireError::Violation("a control message has a type that is not supported here")),
        })
    }
}

/// The key-value pairs that fill the rest of a message.
fn read_rest(body: &mut Reader<'_>) -> Result<Vec<Pair>> {
    let length = body.rest().len() as u64;
    wire::read_pairs(body.take(length)?)
}

fn read_reason(body: &mut Reader<'_>) -> Result<String> {
    let bytes = body.bytes(MOST_REASON, "a reason has more than 1024 bytes")?;
    String::from_utf8(bytes.to_vec()).map_err(|_| WireError::Violation("a reason is not UTF-8"))
}

impl Subscribe {
    fn write(&self, out: &mut Vec<u8>) {
        write_integer(out, self.request);
        write_integer(out, self.namespace.len() as u64);
        self.namespace.iter().for_each(|field| write_bytes(out, field));
        write_bytes(out, &self.name);
        self.parameters.write(out);
    }

    fn read(body: &mut Reader<'_>) -> Result<Self> {
        const TOO_LONG: &str = "the name of a track has more than 4096 bytes";
        let request = body.integer()?;
        let fields = body.integer()?;
        if fields > MOST_FIELDS {
            return Err(WireError::Violation("the namespace of a track has more than 32 fields"));
        }
        let (mut namespace, mut left) = (Vec::new(), MOST_NAME);
        for _ in 0..fields {
            let field = body.bytes(left, TOO_LONG)?;
            if field.is_empty() {
                return Err(WireError::Violation("a field of a namespace is empty"));
            }
            left -= field.len() as u64;
            namespace.push(field.to_vec());
        }
        let name = body.bytes(left, TOO_LONG)?.to_vec();
        Ok(Self { request, namespace, name, parameters: Parameters::read(body)? })
    }
}

impl Parameters {
    fn write(self, out: &mut Vec<u8>) {
        let integers = [
            (parameter::OBJECT_DELIVERY_TIMEOUT, self.object_timeout_ms),
            (parameter::SUBGROUP_DELIVERY_TIMEOUT, self.subgroup_timeout_ms),
        ];
        let integers: Vec<_> = integers.into_iter().filter(|(_, value)| *value > 0).collect();
        write_integer(out, integers.len() as u64 + 2);
        let mut before = 0;
        for (kind, value) in integers {
            write_integer(out, kind - before);
            write_integer(out, value);
            before = kind;
        }
        for (kind, value) in
            [(parameter::SUBSCRIBER_PRIORITY, self.priority), (parameter::GROUP_ORDER, self.group_order.code())]
        {
            write_integer(out, kind - before);
            out.push(value);
            before = kind;
        }
    }

    fn read(body: &mut Reader<'_>) -> Result<Self> {
        let mut parameters = Self::default();
        let (count, mut kind) = (body.integer()?, 0_u64);
        for index in 0..count {
            let delta = body.integer()?;
            if index > 0 && delta == 0 {
                return Err(WireError::Violation("a parameter is there twice"));
            }
            kind = kind.checked_add(delta).ok_or(WireError::Violation("the type of a parameter is above 2^64"))?;
            match kind {
                parameter::OBJECT_DELIVERY_TIMEOUT => parameters.object_timeout_ms = body.integer()?,
                parameter::SUBGROUP_DELIVERY_TIMEOUT => parameters.subgroup_timeout_ms = body.integer()?,
                parameter::SUBSCRIBER_PRIORITY => parameters.priority = body.byte()?,
                parameter::GROUP_ORDER => {
                    let order = GroupOrder::of_code(body.byte()?);
                    parameters.group_order = order.ok_or(WireError::Violation("a group order is not 1 or 2"))?;
                }
                _ => return Err(WireError::Violation("SUBSCRIBE has a parameter that is not supported here")),
            }
        }
        Ok(parameters)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Message> {
        Message::read(&mut Reader::new(bytes))
    }

    fn subscribe() -> Message {
        let parameters =
            Parameters { subgroup_timeout_ms: 500, group_order: GroupOrder::Descending, ..Parameters::default() };
        let (namespace, name) = (vec![b"live".to_vec()], b"video".to_vec());
        Message::Subscribe(Subscribe { request: 2, namespace, name, parameters })
    }

    #[test]
    fn subscribe_has_the_bytes_of_the_draft() {
        let expected = [
            &[0x3, 0, 21, 2][..], // type, length, request
            &[1, 4][..],
            b"live",
            &[5],
            b"video",
            // Three parameters: 0x06 with 500, 0x20 with 128, 0x22 with 2.
            &[3, 0x06, 0x81, 0xf4, 0x1a, 128, 0x02, 2],
        ];
        assert_eq!(subscribe().to_bytes(), expected.concat());
        assert_eq!(read(&subscribe().to_bytes()), Ok(subscribe()));
    }

    #[test]
    fn a_message_that_does_not_have_its_length_is_a_violation() {
        let mut bytes = subscribe().to_bytes();
        assert_eq!(read(&bytes[..bytes.len() - 1]), Err(WireError::Incomplete));
        bytes[2] -= 1;
        assert_eq!(read(&bytes), Err(WireError::Violation("a control message is longer than its length")));
        bytes[2] += 2;
        bytes.push(0);
        assert_eq!(read(&bytes), Err(WireError::Violation("a control message is shorter than its length")));
    }

    #[test]
    fn what_is_not_allowed_is_a_violation() {
        let of = |bytes: &[u8]| match read(bytes) {
            Err(WireError::Violation(message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(of(&[0x7d, 0, 0]).contains("a type that is not supported"));
        assert!(of(&[0x3, 0, 3, 0, 1, 0]).contains("a field of a namespace is empty"));
        assert!(of(&[0x3, 0, 2, 0, 33]).contains("more than 32 fields"));
        assert!(of(&[0x3, 0, 6, 0, 0, 0, 1, 0x22, 3]).contains("a group order is not 1 or 2"));
        assert!(of(&[0x3, 0, 8, 0, 0, 0, 2, 0x02, 1, 0, 1]).contains("twice"));
        assert!(of(&[0x3, 0, 5, 0, 0, 0, 1, 0x21]).contains("a parameter that is not supported"));
        assert!(of(&[0x5, 0, 4, 0, 0, 1, 0xff]).contains("not UTF-8"));
        assert!(of(&[0x4, 0, 2, 1, 1]).contains("a parameter that is not supported"));
        assert!(of(&[0x3, 0, 4, 0, 0, 0xd0, 0x01]).contains("longer"));
    }

    proptest! {
        #[test]
        fn any_message_is_read_as_it_was_written(code: u64, retry: u64, reason in "\\PC{0,100}", done: bool) {
            let message = if done {
                Message::PublishDone { status: code, streams: retry, reason }
            } else {
                Message::RequestError { code, retry, reason }
            };
            prop_assert_eq!(read(&message.to_bytes()), Ok(message));
        }

        #[test]
        fn messages_of_any_bytes_are_read_or_are_an_error(
            kind in prop_oneof![Just(vec![3]), Just(vec![4]), Just(vec![5]), Just(vec![0xb]), Just(vec![0xaf, 0])],
            body in vec(any::<u8>(), 0..60),
        ) {
            let bytes = [kind, vec![0, body.len() as u8], body].concat();
            match read(&bytes) {
                Ok(message) => prop_assert_eq!(read(&message.to_bytes()), Ok(message)),
                Err(error) => prop_assert!(matches!(error, WireError::Violation(_))),
            }
        }

        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
