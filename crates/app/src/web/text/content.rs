//! Contents that are made up: a proxy that compresses them comes close to the stated size.

use airpath_core::Seed;

use crate::web::page::Object;

/// Bytes of a unit of the content.
const UNIT: u64 = 512;

/// Bytes that DEFLATE needs for the run of one byte that ends a unit: its literal and two matches.
const RUN: u64 = 6;

/// The content of `object` with this URL. The same URL has the same content.
///
/// Each unit begins with random bytes, which cannot be compressed, and ends with a run of one byte.
/// Their shares are such that DEFLATE (RFC 1951) yields about the stated compressed size. Without
/// one, all bytes are random.
pub fn content(object: &Object, url: &str) -> Vec<u8> {
    let mut random = Seed::new(0).stream(url);
    let mut bytes = Vec::with_capacity(object.size as usize + 8);
    let mut fill = |bytes: &mut Vec<u8>, end: usize| {
        while bytes.len() < end {
            bytes.extend(random.bits().to_le_bytes());
        }
        bytes.truncate(end);
    };
    let compressed = object.compressed.filter(|compressed| *compressed < object.size);
    let Some(compressed) = compressed else {
        fill(&mut bytes, object.size as usize);
        return bytes;
    };
    let random_in_unit = (UNIT * compressed / object.size).saturating_sub(RUN) as usize;
    while bytes.len() < object.size as usize {
        let end = (bytes.len() + UNIT as usize).min(object.size as usize);
        let random_end = (bytes.len() + random_in_unit).min(end);
        fill(&mut bytes, random_end);
        bytes.resize(end, b' ');
    }
    bytes
}
