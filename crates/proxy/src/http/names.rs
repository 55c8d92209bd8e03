//! Addresses of names: messages of DNS (RFC 1035), and the answers that all mobiles share.
//!
//! The proxy has no sockets: it sends queries over a TCP connection of its own (RFC 7766), as it
//! does requests. So they are repeated when lost, and nothing can answer in the resolver's place
//! that is not on the path.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use airpath_core::{Instant, Span};

use crate::http::refusal::Refusal;

/// Names that are stored at most.
const MOST_NAMES: usize = 4096;

/// Addresses of a name that are stored at most.
const MOST_ADDRESSES: usize = 8;

/// An answer is used for this time at least, so that waiting requests can use it, and at most.
const LEAST_TIME: Span = Span::from_secs(1);
const MOST_TIME: Span = Span::from_secs(3600);

/// Types and class of records (RFC 1035 §3.2, RFC 3596 §2.1).
const A: u16 = 1;
const AAAA: u16 = 28;
const INTERNET: u16 = 1;

/// Bytes of the header of a message, and the response bit of its flags (RFC 1035 §4.1.1).
const HEADER: usize = 12;
const RESPONSE: u16 = 0x8000;
const RECURSION_DESIRED: u16 = 0x0100;

/// The name does not exist (RFC 1035 §4.1.1).
const NAME_ERROR: u16 = 3;

/// A query for the addresses of a name, with its length before it (RFC 1035 §4.2.2).
pub fn query(id: u16, name: &str, is_ipv4: bool) -> Vec<u8> {
    let mut message = Vec::new();
    for value in [id, RECURSION_DESIRED, 1, 0, 0, 0] {
        message.extend_from_slice(&value.to_be_bytes());
    }
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label.as_bytes());
    }
    message.push(0);
    for value in [record_type(is_ipv4), INTERNET] {
        message.extend_from_slice(&value.to_be_bytes());
    }
    [&(message.len() as u16).to_be_bytes()[..], &message].concat()
}

const fn record_type(is_ipv4: bool) -> u16 {
    if is_ipv4 { A } else { AAAA }
}

/// A message of a resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The identifier of the query.
    pub id: u16,
    pub result: Result<Answer, Refusal>,
    /// Its bytes, those of its length included.
    pub length: usize,
}

/// The addresses in an answer, and for how long they may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub addresses: Vec<IpAddr>,
    pub lifetime: Span,
}

/// The message at the start of `bytes`, with its length before it; `None` if it is not complete.
///
/// # Errors
/// If it is not a response.
pub fn answer(bytes: &[u8], is_ipv4: bool) -> Result<Option<Message>, Refusal> {
    let mut stream = Reader(bytes);
    let Some(message) = stream.number().and_then(|length| stream.take(length.into())) else { return Ok(None) };
    let mut reader = Reader(message);
    let header: Option<[u16; HEADER / 2]> = (|| {
        let mut header = [0; HEADER / 2];
        for value in &mut header {
            *value = reader.number()?;
        }
        Some(header)
    })();
    let Some([id, flags, questions, answers, ..]) = header.filter(|header| header[1] & RESPONSE != 0) else {
        return Err(Refusal::Resolver);
    };
    let result = match flags & 0xF {
        0 => addresses(&mut reader, (questions, answers), is_ipv4).ok_or(Refusal::Resolver),
        NAME_ERROR => Err(Refusal::NameNotFound),
        _ => Err(Refusal::Resolver),
    };
    let result =
        result.and_then(|answer| if answer.addresses.is_empty() { Err(Refusal::NameNotFound) } else { Ok(answer) });
    Ok(Some(Message { id, result, length: 2 + message.len() }))
}

/// The addresses of the answer section. A resolver follows aliases, so all belong to the name.
fn addresses(reader: &mut Reader<'_>, (questions, answers): (u16, u16), is_ipv4: bool) -> Option<Answer> {
    for _ in 0..questions {
        reader.skip_name()?;
        reader.take(4)?;
    }
    let (mut addresses, mut lifetime) = (Vec::new(), MOST_TIME);
    for _ in 0..answers {
        reader.skip_name()?;
        let (kind, class) = (reader.number()?, reader.number()?);
        let seconds = u32::from(reader.number()?) << 16 | u32::from(reader.number()?);
        let length = reader.number()?;
        let data = reader.take(length.into())?;
        if (kind, class) == (record_type(is_ipv4), INTERNET) {
            let v4 = || <[u8; 4]>::try_from(data).map(|octets| IpAddr::from(Ipv4Addr::from(octets)));
            let v6 = || <[u8; 16]>::try_from(data).map(|octets| IpAddr::from(Ipv6Addr::from(octets)));
            let address = if is_ipv4 { v4() } else { v6() }.ok()?;
            if addresses.len() < MOST_ADDRESSES {
                addresses.push(address);
            }
        }
        lifetime = lifetime.min(Span::from_secs(seconds.into()));
    }
    Some(Answer { addresses, lifetime: lifetime.max(LEAST_TIME) })
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Skips a name, which may end with a pointer (RFC 1035 §4.1.4).
    fn skip_name(&mut self) -> Option<()> {
        loop {
            match self.take(1)?[0] {
                0 => return Some(()),
                length @ 1..=63 => drop(self.take(length.into())?),
                0xC0.. => return self.take(1).map(|_| ()),
                _ => return None,
            }
        }
    }
}

/// The answers that all mobiles share.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<BTreeMap<(String, bool), Known>>>);

#[derive(Debug)]
struct Known {
    addresses: Vec<IpAddr>,
    expires: Instant,
}

impl Names {
    /// The address of a name to use next.
    pub fn find(&self, now: Instant, name: &str, is_ipv4: bool) -> Option<IpAddr> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&(name.to_owned(), is_ipv4)).filter(|known| now < known.expires)?;
        known.addresses.first().copied()
    }

    /// Stores the answer for a name.
    pub fn insert(&self, now: Instant, name: &str, is_ipv4: bool, answer: Answer) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_NAMES {
            known.retain(|_, known| now < known.expires);
        }
        let key = (name.to_owned(), is_ipv4);
        if known.len() >= MOST_NAMES && !known.contains_key(&key) {
            let first = known.iter().min_by_key(|(_, known)| known.expires).map(|(key, _)| key.clone());
            first.map(|first| known.remove(&first));
        }
        let Answer { addresses, lifetime } = answer;
        known.insert(key, Known { addresses, expires: now + lifetime });
    }

    /// An address of a name does not accept connections: the others are used before it. Returns
    /// whether there are others.
    pub fn defer(&self, name: &str, address: IpAddr) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get_mut(&(name.to_owned(), address.is_ipv4())) else { return false };
        if known.addresses.first() == Some(&address) {
            known.addresses.rotate_left(1);
        }
        known.addresses.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer for `www.example.com` (RFC 1035 §4.1): an alias, and the address of that.
    fn example() -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0];
        message.extend(b"\x03www\x07example\x03com\0\0\x01\0\x01");
        message.extend(b"\xC0\x0C\0\x05\0\x01\0\0\x01\x2C\0\x04\x01a\xC0\x10");
        message.extend(b"\xC0\x2D\0\x01\0\x01\0\0\0\x3C\0\x04\xC0\0\x02\x05");
        [&(message.len() as u16).to_be_bytes()[..], &message].concat()
    }

    #[test]
    fn an_answer_has_addresses_and_a_lifetime() {
        let bytes = [&example()[..], b"next"].concat();
        let addresses = vec![IpAddr::from([192, 0, 2, 5])];
        let expected = Answer { addresses, lifetime: Span::from_secs(60) };
        let message = |result| Ok(Some(Message { id: 0x1234, result, length: example().len() }));
        assert_eq!(answer(&bytes, true), message(Ok(expected)));
        assert_eq!(answer(&bytes, false), message(Err(Refusal::NameNotFound)));
        assert_eq!(answer(&bytes[..40], true), Ok(None));
        let mut wrong = bytes.clone();
        wrong[4] = 0;
        assert_eq!(answer(&wrong, true), Err(Refusal::Resolver), "it is not a response");
        wrong[4..6].copy_from_slice(&[0x81, 0x83]);
        assert_eq!(answer(&wrong, true), message(Err(Refusal::NameNotFound)));
    }

    #[test]
    fn a_query_has_the_form_of_rfc_1035() {
        assert_eq!(query(7, "a", false), b"\0\x13\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x1C\0\x01");
    }

    #[test]
    fn answers_expire_and_are_bounded() {
        let (names, at) = (Names::default(), |seconds| Instant::ZERO + Span::from_secs(seconds));
        let both = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let answer = Answer { addresses: both.to_vec(), lifetime: Span::from_secs(10) };
        names.insert(at(0), "a", true, answer.clone());
        assert_eq!(names.find(at(9), "a", true), Some(both[0]));
        assert!(names.defer("a", both[0]));
        assert_eq!(names.find(at(9), "a", true), Some(both[1]));
        assert_eq!((names.find(at(9), "a", false), names.find(at(10), "a", true)), (None, None));
        (0..MOST_NAMES + 9).for_each(|number| names.insert(at(20), &number.to_string(), true, answer.clone()));
        assert!(names.0.lock().expect("it is not poisoned").len() <= MOST_NAMES);
    }

    #[test]
    fn the_answer_that_expires_first_makes_room() {
        let (names, at) = (Names::default(), |seconds| Instant::ZERO + Span::from_secs(seconds));
        let answer = |seconds| Answer { addresses: vec![[192, 0, 2, 1].into()], lifetime: Span::from_secs(seconds) };
        (1..MOST_NAMES).for_each(|number| names.insert(at(0), &number.to_string(), true, answer(100)));
        names.insert(at(0), "z", true, answer(50));
        names.insert(at(1), "a", true, answer(100));
        let is_known = |name: &str| names.find(at(2), name, true).is_some();
        assert_eq!((is_known("1"), is_known("z"), is_known("a")), (true, false, true));
    }

    #[test]
    fn few_addresses_of_a_name_are_stored() {
        let mut message = vec![0, 1, 0x81, 0x80, 0, 0, 0, 20, 0, 0, 0, 0];
        for last in 0..20 {
            message.extend([&b"\0\0\x01\0\x01\0\0\0\x3C\0\x04\xC0\0\x02"[..], &[last]].concat());
        }
        let bytes = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
        let found = answer(&bytes, true).expect("it is a response").expect("it is complete");
        assert_eq!(found.result.expect("there are addresses").addresses.len(), MOST_ADDRESSES);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            at in 0_usize..90,
            value in any::<u8>(),
        ) {
            let _ = answer(&bytes, true);
            let mut changed = example();
            if let Some(byte) = changed.get_mut(at) {
                *byte = value;
            }
            let _ = answer(&changed, true);
        }
    }
}
