//! The context of one flow at the decompressor (RFC 5225 §5.2.2).

use std::collections::VecDeque;

use super::chains::{read_dynamic, read_irregular, read_static};
use super::reference::{Fields, Reference};
use super::{LATE, common, formats, is_before};
use crate::crc::Crc;
use crate::error::DecompressError;
use crate::header::Header;
use crate::profile::Profile;
use crate::reader::Reader;
use crate::validity::Validity;

/// Bits of the sequence number whose interval for late packets the remembered headers cover.
const REMEMBERED_BITS: u32 = 6;

/// The context.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// What the packets that came last have established, in the order of their sequence numbers,
    /// the latest last. A late packet is restored from the one before it. Never empty.
    references: VecDeque<Reference>,
    /// The sequence number of the packet that came last.
    received: u16,
    pub(crate) validity: Validity,
}

impl Context {
    /// The context after the chains of an IR packet of `length` bytes, and the restored header.
    /// `known` is the context before it.
    pub(crate) fn read_ir(
        known: Option<&Self>,
        profile: Profile,
        length: usize,
        reader: &mut Reader<'_>,
    ) -> Result<(Self, Header), DecompressError> {
        let mut reference = Reference::new(read_static(profile, reader)?);
        read_dynamic(&mut reference, reader)?;
        reference.complete(length - reader.position())?;
        let known = known.filter(|known| known.latest().header.is_same_flow(&reference.header));
        let mut context = known.cloned().unwrap_or_else(|| Self {
            references: VecDeque::from([reference]),
            received: reference.msn,
            validity: Validity::default(),
        });
        context.establish(reference);
        context.validity.has_static = true;
        context.validity.receive_dynamic();
        Ok((context, reference.header))
    }

    /// The sequence number of the packet that came last.
    pub(crate) const fn msn(&self) -> u16 {
        self.received
    }

    fn latest(&self) -> &Reference {
        self.references.back().expect("a context has a reference from its IR packet on")
    }

    /// A `co_repair` packet (§6.8.2.2), of `length` bytes.
    pub(crate) fn receive_repair(
        &mut self,
        length: usize,
        cid: u16,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        self.validity.require_static(cid)?;
        let result = self.read_repair(length, reader);
        if result == Err(DecompressError::Crc) {
            self.validity.count(true);
        }
        let reference = result?;
        self.establish(reference);
        self.validity.receive_dynamic();
        out.extend_from_slice(reference.header.as_bytes());
        Ok(reader.position())
    }

    fn read_repair(&self, length: usize, reader: &mut Reader<'_>) -> Result<Reference, DecompressError> {
        let (crc, control_crc) = (reader.octet()?, reader.octet()?);
        if crc & 0x80 != 0 || control_crc & 0xf8 != 0 {
            return Err(DecompressError::Reserved { field: "the CRCs of co_repair" });
        }
        let mut reference = *self.latest();
        read_dynamic(&mut reference, reader)?;
        reference.complete(length - reader.position())?;
        if (reference.crc(Crc::Seven), reference.control_crc()) != (crc, control_crc) {
            return Err(DecompressError::Crc);
        }
        Ok(reference)
    }

    /// Takes up the whole dynamic part of a packet. If it is not late, all others are forgotten
    /// that may be damaged.
    fn establish(&mut self, reference: Reference) {
        let is_late = (1..=LATE).contains(&self.latest().msn.wrapping_sub(reference.msn));
        let is_next = reference.msn.wrapping_sub(self.latest().msn) <= LATE;
        if !(self.validity.has_dynamic && (is_late || is_next)) {
            self.references.clear();
        }
        self.insert(reference);
    }

    /// Remembers what a packet has established.
    fn insert(&mut self, reference: Reference) {
        self.received = reference.msn;
        let at = self.references.partition_point(|other| is_before(other.msn, reference.msn));
        match self.references.get_mut(at) {
            Some(same) if same.msn == reference.msn => *same = reference,
            _ => self.references.insert(at, reference),
        }
        let most = 2 + reference.ratio.offset(REMEMBERED_BITS) as usize;
        let leaving = self.references.len().saturating_sub(most);
        self.references.drain(..leaving);
    }

    /// A compressed packet of `length` bytes that begins with `first`.
    pub(crate) fn receive(
        &mut self,
        length: usize,
        cid: u16,
        first: u8,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        self.validity.require_static(cid)?;
        let result = self.restore(length, first, reader);
        if result != Err(DecompressError::Repair) {
            self.validity.count(result.is_err());
        }
        let reference = result?;
        out.extend_from_slice(reference.header.as_bytes());
        if !self.validity.has_dynamic {
            self.references.clear();
            self.validity.receive_dynamic();
        }
        self.insert(reference);
        Ok(reader.position())
    }

    /// Restores a packet from the reference before it. Which one that is follows from the sequence
    /// number, whose place follows from the behaviour of the IP-ID: all are tried that a
    /// remembered reference has.
    fn restore(&self, length: usize, first: u8, reader: &mut Reader<'_>) -> Result<Reference, DecompressError> {
        let (start, latest) = (*reader, self.latest());
        let has_offset = |reference: &Reference| reference.id.has_offset(&reference.header);
        let other = self.references.iter().rev().find(|other| has_offset(other) != has_offset(latest));
        let mut failure = None;
        for example in [Some(latest), other].into_iter().flatten() {
            *reader = start;
            let result = read_fields(example, first, reader).and_then(|fields| {
                if !self.validity.has_dynamic && fields.crc.0 == Crc::Three {
                    return Err(DecompressError::Repair);
                }
                let msn = latest.msn_of(&fields);
                let reference = self.before(msn);
                if has_offset(reference) != has_offset(example) {
                    return Err(DecompressError::Crc);
                }
                let before_irregular = *reader;
                let result = decompress(reference, &fields, msn, length, reader);
                // Two attempts with three bits would be wrong too often.
                if result.is_ok() || reference.msn == latest.msn || fields.crc.0 == Crc::Three {
                    return result;
                }
                *reader = before_irregular;
                decompress(latest, &fields, msn, length, reader)
            });
            match result {
                Ok(reference) => return Ok(reference),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or(DecompressError::Crc))
    }

    /// The reference of a packet with this sequence number: a late packet was compressed when those
    /// that have overtaken it were no reference yet.
    fn before(&self, msn: u16) -> &Reference {
        let earlier = self.references.iter().rev().find(|reference| !is_before(msn, reference.msn));
        earlier.or(self.references.front()).unwrap_or_else(|| self.latest())
    }
}

/// Reads a packet up to its irregular chain.
fn read_fields(reference: &Reference, first: u8, reader: &mut Reader<'_>) -> Result<Fields, DecompressError> {
    if common::is_common(first) {
        common::read(reference, reader)
    } else {
        formats::read(reference, reference.id, first, reader)
    }
}

/// Restores the header of a packet from `reference`, if its CRCs match.
fn decompress(
    reference: &Reference,
    fields: &Fields,
    msn: u16,
    length: usize,
    reader: &mut Reader<'_>,
) -> Result<Reference, DecompressError> {
    let irregular = read_irregular(reference, reference.has_random_id(fields), reader)?;
    let restored = reference.restore(fields, msn, irregular, length - reader.position())?;
    let (crc, value) = fields.crc;
    let is_right = restored.crc(crc) == value && fields.control_crc.is_none_or(|crc| crc == restored.control_crc());
    if is_right { Ok(restored) } else { Err(DecompressError::Crc) }
}
