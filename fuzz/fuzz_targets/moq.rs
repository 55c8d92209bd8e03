//! Arbitrary bytes as a control stream and as a data stream of Media over QUIC Transport: no reader
//! panics, and what is read is written and read again as the same.

#![no_main]

use airpath_moq::message::Message;
use airpath_moq::subgroup::{Objects, SubgroupHeader};
use airpath_moq::wire::Reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut control = Reader::new(bytes);
    while let Ok(message) = Message::read(&mut control) {
        assert_eq!(Message::read(&mut Reader::new(&message.to_bytes())), Ok(message));
    }
    let mut data = Reader::new(bytes);
    let Ok(header) = SubgroupHeader::read(&mut data) else { return };
    let mut written = Vec::new();
    header.write(&mut written);
    assert_eq!(SubgroupHeader::read(&mut Reader::new(&written)), Ok(header));
    let (mut reading, mut writing, mut rereading) =
        (Objects::after(&header), Objects::after(&header), Objects::after(&header));
    while let Ok(object) = reading.read(&mut data) {
        let mut written = Vec::new();
        writing.write(&mut written, &object);
        written.resize(written.len() + object.payload, 0);
        assert_eq!(rereading.read(&mut Reader::new(&written)), Ok(object));
    }
});
