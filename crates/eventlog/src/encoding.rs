//! Encodings of Parquet, as `Encodings.md` of the format's specification has them.
//!
//! The `parquet` library has them too, but only behind a writer that takes a value at a time,
//! hashes what goes into a dictionary, and compares what is known to differ: several times what
//! recording an event costs.

pub mod differences;
pub mod hybrid;
pub mod page;

/// Appends a number, seven bits a byte, the lowest first (*ULEB128*).
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
