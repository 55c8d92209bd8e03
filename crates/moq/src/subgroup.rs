//! Data streams: the header of a subgroup, and its objects (draft-ietf-moq-transport-19 §11.4).

use crate::wire::{self, Pair, Reader, Result, WireError, write_bytes, write_integer, write_pairs};

/// Bits of the type of a subgroup header (§11.4.2).
mod bit {
    /// Always set.
    pub const SUBGROUP: u64 = 0x10;
    pub const PROPERTIES: u64 = 0x01;
    pub const ID_MODE: u64 = 0x06;
    pub const END_OF_GROUP: u64 = 0x08;
    pub const DEFAULT_PRIORITY: u64 = 0x20;
    pub const FIRST_OBJECT: u64 = 0x40;
}

/// Publisher priority of a track without that property (§12.4).
const DEFAULT_PRIORITY: u8 = 128;

/// The header of a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubgroupHeader {
    /// Number of the track.
    pub track_alias: u64,
    /// The group.
    pub group: u64,
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// Whether objects have properties.
    pub has_properties: bool,
    /// Whether the last object of the group is in this subgroup.
    pub ends_group: bool,
    /// Whether the first object is the first one that was published in the subgroup.
    pub has_first_object: bool,
    /// Publisher priority, if it is not that of the track.
    pub priority: Option<u8>,
}

/// Number of a subgroup within its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubgroupId {
    /// Zero.
    Zero,
    /// The number of the first object.
    OfFirstObject,
    /// This number.
    Number(u64),
}

impl SubgroupHeader {
    /// The header of a group that is one subgroup, with the priority of the track.
    pub const fn of_group(track_alias: u64, group: u64) -> Self {
        Self {
            track_alias,
            group,
            subgroup: SubgroupId::Zero,
            has_properties: true,
            ends_group: true,
            has_first_object: true,
            priority: None,
        }
    }

    /// Publisher priority of the subgroup: lower numbers first.
    pub fn publisher_priority(&self) -> u8 {
        self.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mode = match self.subgroup {
            SubgroupId::Zero => 0,
            SubgroupId::OfFirstObject => 1,
            SubgroupId::Number(_) => 2,
        };
        let flags = [
            (self.has_properties, bit::PROPERTIES),
            (self.ends_group, bit::END_OF_GROUP),
            (self.priority.is_none(), bit::DEFAULT_PRIORITY),
            (self.has_first_object, bit::FIRST_OBJECT),
        ];
        let flags: u64 = flags.into_iter().filter_map(|(is_set, bit)| is_set.then_some(bit)).sum();
        write_integer(out, bit::SUBGROUP | mode << 1 | flags);
        write_integer(out, self.track_alias);
        write_integer(out, self.group);
        if let SubgroupId::Number(number) = self.subgroup {
            write_integer(out, number);
        }
        out.extend(self.priority);
    }

    /// Reads the header at the start of a stream.
    ///
    /// # Errors
    /// [`WireError::Incomplete`] if more bytes are needed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let kind = reader.integer()?;
        if kind & !0x6f != bit::SUBGROUP {
            return Err(WireError::Violation("a data stream does not begin with a subgroup header"));
        }
        let mode = (kind & bit::ID_MODE) >> 1;
        if mode == 3 {
            return Err(WireError::Violation("a subgroup header has the reserved mode of the subgroup number"));
        }
        let (track_alias, group) = (reader.integer()?, reader.integer()?);
        let subgroup = match mode {
            0 => SubgroupId::Zero,
            1 => SubgroupId::OfFirstObject,
            _ => SubgroupId::Number(reader.integer()?),
        };
        Ok(Self {
            track_alias,
            group,
            subgroup,
            has_properties: kind & bit::PROPERTIES != 0,
            ends_group: kind & bit::END_OF_GROUP != 0,
            has_first_object: kind & bit::FIRST_OBJECT != 0,
            priority: (kind & bit::DEFAULT_PRIORITY == 0).then(|| reader.byte()).transpose()?,
        })
    }
}

/// Status of an object without payload (§11.2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A normal object.
    Normal,
    /// The group has no object with this number or a higher one.
    EndOfGroup,
    /// The track has no object from this one on.
    EndOfTrack,
}

impl Status {
    const fn code(self) -> u64 {
        match self {
            Self::Normal => 0x0,
            Self::EndOfGroup => 0x3,
            Self::EndOfTrack => 0x4,
        }
    }

    fn of_code(code: u64) -> Option<Self> {
        [Self::Normal, Self::EndOfGroup, Self::EndOfTrack].into_iter().find(|status| status.code() == code)
    }
}

/// An object of a subgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its number in the group.
    pub number: u64,
    /// Its properties.
    pub properties: Vec<Pair>,
    /// Bytes of its payload.
    pub payload: usize,
    /// Its status; [`Status::Normal`] with payload.
    pub status: Status,
}

/// The place in a subgroup, from which the numbers of objects follow.
#[derive(Clone, Debug)]
pub struct Objects {
    has_properties: bool,
    /// Number of the last object.
    last: Option<u64>,
}

impl Objects {
    /// The objects after this header.
    pub const fn after(header: &SubgroupHeader) -> Self {
        Self { has_properties: header.has_properties, last: None }
    }

    /// Appends the fields of the next object, before its payload. Its number is above that of the
    /// object before.
    pub fn write(&mut self, out: &mut Vec<u8>, object: &Object) {
        let next = self.last.map_or(0, |last| last + 1);
        write_integer(out, object.number - next);
        self.last = Some(object.number);
        if self.has_properties {
            let mut properties = Vec::new();
            write_pairs(&mut properties, &object.properties);
            write_bytes(out, &properties);
        }
        write_integer(out, object.payload as u64);
        if object.payload == 0 {
            write_integer(out, object.status.code());
        }
    }

    /// Reads the next object with its payload, which is skipped.
    ///
    /// # Errors
    /// [`WireError::Incomplete`] if more bytes are needed.
    pub fn read(&mut self, reader: &mut Reader<'_>) -> Result<Object> {
        let delta = reader.integer()?;
        let number = match self.last {
            Some(last) => last.checked_add(1).and_then(|next| next.checked_add(delta)),
            None => Some(delta),
        };
        let number = number.ok_or(WireError::Violation("the number of an object is above 2^64"))?;
        let properties = if self.has_properties {
            let length = reader.integer()?;
            wire::read_pairs(reader.take(length)?)?
        } else {
            Vec::new()
        };
        let length = reader.integer()?;
        let status = if length == 0 {
            Status::of_code(reader.integer()?).ok_or(WireError::Violation("the status of an object is unknown"))?
        } else {
            Status::Normal
        };
        if status != Status::Normal && !properties.is_empty() {
            return Err(WireError::Violation("an object that is not normal has properties"));
        }
        let payload = reader.take(length)?.len();
        self.last = Some(number);
        Ok(Object { number, properties, payload, status })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Value;

    #[test]
    fn the_subgroup_of_the_example_is_read() {
        // §11.6: type 0x14, alias 2, group 0, subgroup 0, priority 0, and two objects of 4 bytes.
        let bytes = [&[0x14, 2, 0, 0, 0][..], &[0, 4], b"abcd", &[0, 4], b"efgh"].concat();
        let mut reader = Reader::new(&bytes);
        let header = SubgroupHeader::read(&mut reader).expect("it is a header");
        assert_eq!((header.track_alias, header.group, header.subgroup), (2, 0, SubgroupId::Number(0)));
        assert_eq!((header.has_properties, header.ends_group, header.publisher_priority()), (false, false, 0));
        let mut objects = Objects::after(&header);
        for number in [0, 1] {
            let object = Object { number, properties: Vec::new(), payload: 4, status: Status::Normal };
            assert_eq!(objects.read(&mut reader), Ok(object));
        }
        assert!(reader.rest().is_empty());
    }

    #[test]
    fn a_group_on_one_stream_has_the_type_of_its_bits() {
        let mut out = Vec::new();
        SubgroupHeader::of_group(1, 200).write(&mut out);
        assert_eq!(out, [0x79, 1, 0x80, 200]);
    }

    #[test]
    fn reserved_types_and_unknown_status_are_violations() {
        for kind in [0x00, 0x05, 0x16, 0x1f, 0x77, 0x80, 0x90] {
            let mut out = Vec::new();
            write_integer(&mut out, kind);
            out.extend_from_slice(&[0; 8]);
            let read = SubgroupHeader::read(&mut Reader::new(&out));
            assert!(matches!(read, Err(WireError::Violation(_))), "{kind:x}: {read:?}");
        }
        let mut objects = Objects::after(&SubgroupHeader { has_properties: false, ..SubgroupHeader::of_group(0, 0) });
        assert_eq!(objects.read(&mut Reader::new(&[0, 0, 3])).expect("end of group").status, Status::EndOfGroup);
        let read = objects.read(&mut Reader::new(&[0, 0, 1]));
        assert_eq!(read, Err(WireError::Violation("the status of an object is unknown")));
    }

    fn headers() -> impl Strategy<Value = SubgroupHeader> {
        let subgroup = prop_oneof![
            Just(SubgroupId::Zero),
            Just(SubgroupId::OfFirstObject),
            any::<u64>().prop_map(SubgroupId::Number)
        ];
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        (any::<u64>(), any::<u64>(), subgroup, flags, any::<Option<u8>>()).prop_map(
            |(track_alias, group, subgroup, (has_properties, ends_group, has_first_object), priority)| SubgroupHeader {
                track_alias,
                group,
                subgroup,
                has_properties,
                ends_group,
                has_first_object,
                priority,
            },
        )
    }

    proptest! {
        #[test]
        fn any_subgroup_is_read_as_it_was_written(
            header in headers(),
            fields in vec((0..1000_u64, any::<u64>(), 1..2000_usize), 0..5),
        ) {
            let mut out = Vec::new();
            header.write(&mut out);
            let (mut writer, mut number, mut written) = (Objects::after(&header), 0, Vec::new());
            for (step, value, payload) in fields {
                number += step + 1;
                let property = Pair { kind: 0x78, value: Value::Integer(value) };
                let properties = if header.has_properties { vec![property] } else { Vec::new() };
                let object = Object { number, properties, payload, status: Status::Normal };
                writer.write(&mut out, &object);
                out.resize(out.len() + payload, 0);
                written.push(object);
            }
            let mut reader = Reader::new(&out);
            prop_assert_eq!(SubgroupHeader::read(&mut reader), Ok(header));
            let mut objects = Objects::after(&header);
            for object in written {
                prop_assert_eq!(objects.read(&mut reader), Ok(object));
            }
            prop_assert!(reader.rest().is_empty());
            prop_assert_eq!(objects.read(&mut reader), Err(WireError::Incomplete));
        }

        #[test]
        fn streams_of_any_bytes_end_with_an_error(kind in 0x10..0x80_u8, bytes: Vec<u8>) {
            let bytes = [vec![kind], bytes].concat();
            let mut reader = Reader::new(&bytes);
            let Ok(header) = SubgroupHeader::read(&mut reader) else { return Ok(()) };
            let mut objects = Objects::after(&header);
            let (mut before, mut left) = (None, reader.rest().len());
            while let Ok(object) = objects.read(&mut reader) {
                prop_assert!(Some(object.number) > before, "numbers rise");
                prop_assert!(reader.rest().len() < left, "each object has bytes");
                (before, left) = (Some(object.number), reader.rest().len());
            }
        }
    }
}
