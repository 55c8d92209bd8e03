//! Arbitrary bytes as a capture file of libpcap, snoop, gzip or zstd, or after a header of libpcap.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod capture;

/// Version 2.4, a snap length of 65,535 bytes, Ethernet; with microseconds.
const HEADER: [u8; 24] = *b"\xD4\xC3\xB2\xA1\x02\0\x04\0\0\0\0\0\0\0\0\0\xFF\xFF\0\0\x01\0\0\0";

fuzz_target!(|bytes: &[u8]| {
    capture::check(bytes);
    capture::check(&[&HEADER, bytes].concat());
});
