//! Captures inside gzip (RFC 1952) and zstd (RFC 8878), of several members or frames, too.

use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::input::Input;

const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Bytes decoded at once: the maximum size of a zstd block.
const CHUNK: usize = 128 << 10;

/// The decompressed `input` if it begins with the magic of a compressed file, or else `input`.
pub(super) fn unpacked(mut input: Input<'_>) -> Input<'_> {
    match input.peek::<4>() {
        Some([first, second, ..]) if [first, second] == GZIP => Input::new(Box::new(Gzip(MultiGzDecoder::new(input)))),
        Some(ZSTD) => Input::new(Box::new(Zstd { input, decoder: FrameDecoder::new(), within: false })),
        _ => input,
    }
}

/// Members of gzip, one after the other, in small portions: damaged data loses only its own
/// portion.
struct Gzip<'a>(MultiGzDecoder<Input<'a>>);

impl Read for Gzip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const PORTION: usize = 16 << 10;
        let length = buffer.len().min(PORTION);
        self.0.read(&mut buffer[..length]).map_err(|error| cut_short(self.0.get_mut(), error))
    }
}

/// Frames of zstd, one after the other.
struct Zstd<'a> {
    input: Input<'a>,
    decoder: FrameDecoder,
    /// Whether a frame has begun and is not completely returned.
    within: bool,
}

impl Read for Zstd<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decode(buffer).map_err(|error| cut_short(&mut self.input, error))
    }
}

impl Zstd<'_> {
    fn decode(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            if self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBytes(CHUNK))
                    .map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if self.decoder.is_finished() {
                self.end()?;
            }
        }
    }

    /// Begins the next frame, if there is one.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if !self.input.fill(1) {
                return self.input.take_error().map_or(Ok(false), Err);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => break,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut Read::take(&mut self.input, length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        self.within = true;
        Ok(true)
    }

    /// Ends a frame that is completely returned, and verifies its checksum.
    fn end(&mut self) -> io::Result<()> {
        self.within = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(computed)) if stored != computed => {
                Err(io::Error::other("the checksum of a zstd frame does not hold"))
            }
            _ => Ok(()),
        }
    }
}

/// The error of a decoder: one that has used all its input needs more of it.
fn cut_short(input: &mut Input<'_>, error: io::Error) -> io::Error {
    if input.fill(1) || input.error().is_some() {
        return error;
    }
    io::Error::new(io::ErrorKind::UnexpectedEof, "the compressed data is cut short")
}
