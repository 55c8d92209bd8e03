//! Responses of nftables: consecutive messages, each with attributes (netlink(7)).

use std::io;

/// `nlmsghdr`, and `nfgenmsg` after it.
const HEADER: usize = 16;
const FAMILY_HEADER: usize = 4;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Flags in the type of an attribute.
const TYPE: u16 = 0x3fff;

/// One message.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    kind: u16,
    body: &'a [u8],
}

/// The messages in a datagram of the kernel.
pub fn answers(mut datagram: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*datagram.first_chunk()?) as usize;
        let message = datagram.get(..length).filter(|message| message.len() >= HEADER)?;
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Answer { kind: u16::from_ne_bytes([message[4], message[5]]), body: &message[HEADER..] })
    })
}

impl<'a> Answer<'a> {
    /// Checks the message for an error.
    ///
    /// # Errors
    /// The error that the kernel reports.
    pub fn check(self) -> io::Result<()> {
        let code = self.body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
        if matches!(self.kind, ERROR | DONE) && code != 0 {
            return Err(io::Error::from_raw_os_error(-code));
        }
        Ok(())
    }

    /// Whether it ends a list.
    pub fn is_last(self) -> bool {
        matches!(self.kind, ERROR | DONE)
    }

    /// Its protocol family.
    pub fn family(self) -> u8 {
        self.body.first().copied().unwrap_or(0)
    }

    /// Its attributes.
    pub fn attributes(self) -> Values<'a> {
        Values(self.body.get(FAMILY_HEADER..).unwrap_or_default())
    }
}

/// Attributes, as they were received.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    /// The bytes of an attribute.
    fn bytes(self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.0;
        loop {
            let [a, b, c, d] = *rest.first_chunk()?;
            let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
            let value = rest.get(4..length)?;
            if kind & TYPE == wanted {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
    }

    /// An attribute as a number.
    pub fn number(self, wanted: u16) -> Option<u32> {
        self.bytes(wanted)?.first_chunk().map(|number| u32::from_be_bytes(*number))
    }

    /// An attribute as text.
    pub fn text(self, wanted: u16) -> Option<String> {
        let (_zero, text) = self.bytes(wanted)?.split_last()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// A nested attribute; empty if it is absent.
    pub fn nested(self, wanted: u16) -> Self {
        Self(self.bytes(wanted).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn attributes_are_found_behind_others_and_within_others() {
        let inner = [attribute(2, &[0; 3]), attribute(1, &7u32.to_be_bytes())].concat();
        let body = [vec![2, 0, 0, 0], attribute(1, b"filter\0"), attribute(0x8004, &inner)].concat();
        let datagram = [message(0xa03, &body), message(DONE, &0i32.to_ne_bytes())].concat();
        let found: Vec<_> = answers(&datagram).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].family(), found[0].is_last(), found[1].is_last()), (2, false, true));
        let values = found[0].attributes();
        assert_eq!(values.text(1).as_deref(), Some("filter"));
        assert_eq!(values.nested(4).number(1), Some(7));
        assert_eq!((values.number(5), values.nested(6).number(1)), (None, None));
        assert!(found.iter().all(|answer| answer.check().is_ok()));
    }

    #[test]
    fn an_error_is_one_at_the_end_of_a_list_too() {
        for kind in [ERROR, DONE] {
            let datagram = message(kind, &(-libc::EPERM).to_ne_bytes());
            let errors: Vec<_> = answers(&datagram).filter_map(|answer| answer.check().err()).collect();
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0].raw_os_error(), Some(libc::EPERM));
        }
    }

    #[test]
    fn what_is_cut_short_holds_nothing() {
        let whole = message(0xa03, &[vec![2, 0, 0, 0], attribute(1, b"filter\0")].concat());
        for length in 0..whole.len() {
            assert_eq!(answers(&whole[..length]).count(), 0);
        }
        let mut lies = whole;
        lies[HEADER + FAMILY_HEADER] = 200;
        assert!(answers(&lies).all(|answer| answer.attributes().text(1).is_none()));
        lies[..4].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(answers(&lies).count(), 0);
        lies[HEADER + FAMILY_HEADER] = 0;
        assert!(Values(&lies[HEADER + FAMILY_HEADER..]).bytes(1).is_none());
    }
}
