//! Contents that are made up: a proxy that compresses them comes close to the stated size, and
//! documents name their objects.

use airpath_core::Seed;
use flate2::Crc;

use crate::web::page::Object;

/// Bytes of a unit of the content.
const UNIT: u64 = 512;

/// Bytes that DEFLATE needs for the run of one byte that ends a unit: its literal and two matches.
const RUN: u64 = 6;

/// The header of a gzip file without name and time (RFC 1952 §2.3.1).
const GZIP_HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255];

/// Bytes of a gzip file after its data: a checksum and the length.
const GZIP_TRAILER: u64 = 8;

/// Bytes before the content of a stored block, and the most that it has (RFC 1951 §3.2.4).
const BLOCK_HEADER: u64 = 5;
const MOST_STORED: u64 = 65_535;

/// A tag that names an object, and the byte of the document at which it ends.
pub type Tag = (u64, String);

/// The content of a response with this URL, with `tags` in it: `object` as it is, or as a server
/// sends it compressed.
///
/// The tags end at their bytes, or directly after the tags before them; compressed, they are at the
/// start. Those for which there is no room are left out.
pub fn content(object: &Object, url: &str, tags: &[Tag], compressed: bool) -> Vec<u8> {
    let mut bytes = made_up(object, url);
    if !tags.is_empty() {
        // What is not a tag must not begin one.
        bytes.iter_mut().filter(|byte| **byte == b'<').for_each(|byte| *byte = b'>');
    }
    if !compressed {
        insert(&mut bytes, tags.iter().map(|(at, tag)| (*at as usize, tag)));
        return bytes;
    }
    // The browser does not decompress it: what it decompresses to has another size.
    let size = object.encoded(true);
    bytes.resize(size as usize, 0);
    let blocks = size.div_ceil(MOST_STORED + BLOCK_HEADER);
    let overhead = GZIP_HEADER.len() as u64 + GZIP_TRAILER + blocks * BLOCK_HEADER;
    if !tags.is_empty() && size > overhead {
        bytes.truncate((size - overhead) as usize);
        insert(&mut bytes, tags.iter().map(|(_, tag)| (0, tag)));
        bytes = stored(&bytes, blocks);
    }
    bytes
}

/// Writes tags over the content of a document.
fn insert<'a>(bytes: &mut [u8], tags: impl Iterator<Item = (usize, &'a String)>) {
    let mut end = 0;
    for (at, tag) in tags {
        let start = at.min(bytes.len()).saturating_sub(tag.len()).max(end);
        let Some(place) = bytes.get_mut(start..start + tag.len()) else { return };
        place.copy_from_slice(tag.as_bytes());
        end = start + tag.len();
    }
}

/// A gzip file of `bytes` in stored blocks of about equal length.
fn stored(bytes: &[u8], blocks: u64) -> Vec<u8> {
    let mut file = GZIP_HEADER.to_vec();
    let mut parts = bytes.chunks(bytes.len().div_ceil(blocks as usize)).peekable();
    while let Some(part) = parts.next() {
        // Truncation is excluded: a part has at most `MOST_STORED` bytes.
        let length = part.len() as u16;
        file.push(u8::from(parts.peek().is_none()));
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend(part);
    }
    let mut checksum = Crc::new();
    checksum.update(bytes);
    file.extend(checksum.sum().to_le_bytes());
    file.extend(checksum.amount().to_le_bytes());
    file
}

/// Bytes with the size of `object`. The same URL has the same bytes.
///
/// Each unit begins with random bytes, which cannot be compressed, and ends with a run of one byte.
/// Their shares are such that DEFLATE (RFC 1951) yields about the stated compressed size. Without
/// one, all bytes are random.
fn made_up(object: &Object, url: &str) -> Vec<u8> {
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
