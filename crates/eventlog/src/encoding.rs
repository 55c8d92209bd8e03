//! Encodings of Parquet, after `Encodings.md` of the format's specification.
//!
//! The `parquet` library's own column writers take 3 to 4 times the processor time of this whole
//! log, beyond the bound of 3 times that of the run (`docs/performance.md`): they process single
//! values, hash dictionary entries, and compare values.

pub mod differences;
pub mod hybrid;
pub mod page;

/// Appends a number, seven bits per byte, the lowest first (*ULEB128*).
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
