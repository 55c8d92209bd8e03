//! Page headers (`PageHeader` of the format's `parquet.thrift`), in the compact protocol of Thrift.

use parquet::basic::Encoding;

use super::varint;

// A field: the difference of its number to the one before in the upper half, its type in the lower.
const NEXT_NUMBER: u8 = 0x15;
const STRUCT: u8 = 0x0C;
const END: u8 = 0;

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// Appends the header of a data page of `rows` rows in `bytes` bytes, including levels if some rows
/// may be null.
pub fn data_header(bytes: usize, rows: usize, encoding: Encoding, out: &mut Vec<u8>) {
    begin(DATA_PAGE, bytes, out);
    // `data_page_header`, field 5 behind field 3.
    out.push(2 << 4 | STRUCT);
    number(size(rows), out);
    // The encodings of the values and of both kinds of levels.
    [encoding, Encoding::RLE, Encoding::RLE].into_iter().for_each(|encoding| number(encoding as i32, out));
    out.extend_from_slice(&[END, END]);
}

/// Appends the header of a dictionary page with `entries` plain entries in `bytes` bytes.
pub fn dictionary_header(bytes: usize, entries: usize, out: &mut Vec<u8>) {
    begin(DICTIONARY_PAGE, bytes, out);
    // `dictionary_page_header`, field 7 behind field 3.
    out.push(4 << 4 | STRUCT);
    number(size(entries), out);
    number(Encoding::PLAIN as i32, out);
    out.extend_from_slice(&[END, END]);
}

/// The type, and the size twice: uncompressed and compressed are the same.
fn begin(page: i32, bytes: usize, out: &mut Vec<u8>) {
    [page, size(bytes), size(bytes)].into_iter().for_each(|value| number(value, out));
}

/// The next field: a number, zigzag.
fn number(value: i32, out: &mut Vec<u8>) {
    out.push(NEXT_NUMBER);
    varint((value << 1 ^ value >> (i32::BITS - 1)) as u32 as u64, out);
}

fn size(of: usize) -> i32 {
    i32::try_from(of).expect("a page of one batch has less than 2 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_format() {
        let mut out = Vec::new();
        data_header(100, 2048, Encoding::RLE_DICTIONARY, &mut out);
        // 2048, zigzag, is 4096: 80 20 in groups of seven bits; RLE_DICTIONARY is 8, RLE is 3.
        let expected =
            [0x15, 0, 0x15, 0xC8, 1, 0x15, 0xC8, 1, 0x2C, 0x15, 0x80, 0x20, 0x15, 16, 0x15, 6, 0x15, 6, 0, 0];
        assert_eq!(out, expected);
        out.clear();
        dictionary_header(4, 1, &mut out);
        assert_eq!(out, [0x15, 4, 0x15, 8, 0x15, 8, 0x4C, 0x15, 2, 0x15, 0, 0, 0]);
    }
}
