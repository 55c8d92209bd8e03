//! Arbitrary bytes as blocks of pcapng, after a section header and an interface in either byte
//! order.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod capture;

/// A section header, and an interface of raw IP.
const LITTLE: [u8; 48] =
    *b"\x0A\x0D\x0D\x0A\x1C\0\0\0\x4D\x3C\x2B\x1A\x01\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x1C\0\0\0\
    \x01\0\0\0\x14\0\0\0\x65\0\0\0\0\0\0\0\x14\0\0\0";
const BIG: [u8; 48] =
    *b"\x0A\x0D\x0D\x0A\0\0\0\x1C\x1A\x2B\x3C\x4D\0\x01\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\x1C\
    \0\0\0\x01\0\0\0\x14\0\x65\0\0\0\0\0\0\0\0\0\x14";

fuzz_target!(|bytes: &[u8]| {
    capture::check(bytes);
    for header in [LITTLE, BIG] {
        capture::check(&[&header, bytes].concat());
    }
});
