//! Recoding of images: JPEG with another quality, PNG without loss as WebP or PNG.
//!
//! An image is changed only if nothing forbids it ([`transform`](crate::http::transform)) and it
//! becomes smaller by a tenth: less is not worth a loss. Images whose colours or frames the new
//! form could not have are left alone: animations, CMYK, and more than eight bits. The whole image
//! is needed, so its bytes are held back until the last one has arrived.

use std::io::Cursor;
use std::num::NonZeroU8;

use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::codecs::png::{CompressionType, FilterType, PngDecoder, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, ImageDecoder, ImageEncoder, Limits};

use crate::http::fields::{lines, list, values};
use crate::http::transform::{client_permits, permits, transformed};

/// An image outside these bounds is left alone: nothing else happens while one is recoded.
const LEAST_BYTES: u64 = 1024;
const MOST_BYTES: u64 = 2 << 20;
const MOST_PIXELS: u64 = 4 << 20;

/// Bytes that a decoder may allocate: 4 for each pixel, twice.
const MOST_MEMORY: u64 = 2 * 4 * MOST_PIXELS;

/// How the images for a request are recoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recoding {
    quality: NonZeroU8,
    accepts_webp: bool,
}

/// A format of images that are recoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Jpeg,
    Png,
}

/// An image that is arriving.
#[derive(Debug)]
pub struct Recoder {
    recoding: Recoding,
    format: Format,
    /// The head of the origin.
    head: Vec<u8>,
    content: Vec<u8>,
}

impl Recoding {
    /// For the response to a request with this head; `None` if the response is not to be changed.
    pub fn of_request(head: &[u8], quality: NonZeroU8) -> Option<Self> {
        let accepts = list(head, "accept").unwrap_or_default();
        let is_webp = |item: &[u8]| item.split(|byte| *byte == b';').next().unwrap_or_default() == b"image/webp";
        let accepts_webp = accepts.split(|byte| *byte == b',').any(|item| is_webp(item.trim_ascii()));
        client_permits(head).then_some(Self { quality, accepts_webp })
    }

    /// Begins with the head of a response; `None` if it is not to be changed.
    pub fn begin(self, head: &[u8]) -> Option<Recoder> {
        let only = |name| values(head, name).next();
        let format = match only("content-type")?.to_ascii_lowercase().as_slice() {
            b"image/jpeg" => Format::Jpeg,
            b"image/png" => Format::Png,
            _ => return None,
        };
        let length: u64 = std::str::from_utf8(only("content-length")?).ok()?.parse().ok()?;
        let fits = (LEAST_BYTES..=MOST_BYTES).contains(&length);
        let is_permitted = lines(head)?.0.starts_with(b"HTTP/1.1 200") && permits(head);
        (fits && is_permitted).then(|| Recoder { recoding: self, format, head: head.to_vec(), content: Vec::new() })
    }
}

impl Recoder {
    /// Appends content.
    pub fn write(&mut self, data: &[u8]) {
        self.content.extend_from_slice(data);
    }

    /// Bytes of content that have arrived.
    pub const fn length(&self) -> usize {
        self.content.len()
    }

    /// What has arrived, as it came.
    pub fn into_origin(self) -> Vec<u8> {
        [self.head, self.content].concat()
    }

    /// The response with the smaller image, and the bytes of its content; the response as it came
    /// if there is none.
    pub fn finish(self) -> Result<(Vec<u8>, usize), Vec<u8>> {
        let recoded = match self.format {
            Format::Jpeg => jpeg(&self.content, self.recoding.quality).map(|bytes| ("image/jpeg", bytes)),
            Format::Png => png(&self.content, self.recoding.accepts_webp),
        };
        let Some((kind, image)) = recoded.filter(|(_, image)| image.len() <= self.content.len() / 10 * 9) else {
            return Err(self.into_origin());
        };
        // RFC 9110 §7.7: the status code informs of the transformation.
        let start = b"HTTP/1.1 203 Non-Authoritative Information";
        let added = format!("Content-Type: {kind}\r\nContent-Length: {}\r\nVia: 1.1 airpath\r\n\r\n", image.len());
        let varies: &[&str] = if self.format == Format::Png { &["Accept"] } else { &[] };
        match transformed(&self.head, start, &["content-type", "content-length"], varies) {
            Some(head) => Ok(([&head[..], added.as_bytes(), &image].concat(), image.len())),
            None => Err(self.into_origin()),
        }
    }
}

/// The image of a decoder, if it is within the bounds.
fn decoded(mut decoder: impl ImageDecoder) -> Option<(DynamicImage, Option<Vec<u8>>)> {
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return None;
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    decoder.set_limits(limits).ok()?;
    let profile = decoder.icc_profile().ok()?;
    let orientation = decoder.orientation().ok()?;
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    image.apply_orientation(orientation);
    Some((image, profile))
}

fn jpeg(bytes: &[u8], quality: NonZeroU8) -> Option<Vec<u8>> {
    if !matches!(components(bytes), Some(1 | 3)) {
        return None;
    }
    let (image, profile) = decoded(JpegDecoder::new(Cursor::new(bytes)).ok()?)?;
    let mut recoded = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut recoded, quality.get());
    if let Some(profile) = profile {
        encoder.set_icc_profile(profile).ok()?;
    }
    encoder.encode_image(&image).ok()?;
    Some(recoded)
}

/// The number of colour components: the frame header has it (ITU-T T.81 §B.2.2).
fn components(bytes: &[u8]) -> Option<u8> {
    let mut at = 2;
    loop {
        let [0xFF, marker, high, low] = *bytes.get(at..)?.first_chunk()? else { return None };
        // SOF0 to SOF15 without DHT, JPG and DAC.
        if matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC) {
            return bytes.get(at + 9).copied();
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
}

fn png(bytes: &[u8], as_webp: bool) -> Option<(&'static str, Vec<u8>)> {
    let decoder = PngDecoder::new(Cursor::new(bytes)).ok()?;
    // Without a profile, WebP is sRGB; the gamma of sRGB is stated as 1/2.2.
    let is_usual = decoder.gamma_value().ok()?.is_none_or(|gamma| (gamma - 1.0 / 2.2).abs() < 0.001);
    if decoder.is_apng().ok()? || !is_usual {
        return None;
    }
    let (image, profile) = decoded(decoder)?;
    let (width, height, colour) = (image.width(), image.height(), image.color());
    let mut recoded = Vec::new();
    if as_webp && colour.bits_per_pixel() == 8 * u16::from(colour.channel_count()) {
        let mut encoder = WebPEncoder::new_lossless(&mut recoded);
        profile.map_or(Ok(()), |profile| encoder.set_icc_profile(profile)).ok()?;
        encoder.write_image(image.as_bytes(), width, height, colour.into()).ok()?;
        return Some(("image/webp", recoded));
    }
    let mut encoder = PngEncoder::new_with_quality(&mut recoded, CompressionType::Best, FilterType::Adaptive);
    profile.map_or(Ok(()), |profile| encoder.set_icc_profile(profile)).ok()?;
    encoder.write_image(image.as_bytes(), width, height, colour.into()).ok()?;
    Some(("image/png", recoded))
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, Rgb, RgbImage};

    use super::*;

    const QUALITY: NonZeroU8 = NonZeroU8::new(40).unwrap();
    const GET: &str = "GET /a.png HTTP/1.1\r\nHost: a\r\n";

    fn picture(width: u32, height: u32) -> DynamicImage {
        let pixel = |x: u32, y: u32| Rgb([(x * 3) as u8, (y * 5) as u8, (x * y / 7) as u8]);
        RgbImage::from_fn(width, height, pixel).into()
    }

    fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).expect("memory can be written");
        bytes.into_inner()
    }

    /// The head and the content of the response to a client; `None` if it passes unchanged.
    fn recoded(request: &str, kind: &str, fields: &str, content: &[u8]) -> Option<(String, Vec<u8>)> {
        let recoding = Recoding::of_request(format!("{GET}{request}\r\n").as_bytes(), QUALITY)?;
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{fields}\r\n", content.len());
        let mut recoder = recoding.begin(head.as_bytes())?;
        content.chunks(1000).for_each(|part| recoder.write(part));
        let whole = [head.as_bytes(), content].concat();
        match recoder.finish() {
            Ok((response, length)) => {
                let (head, image) = response.split_at(response.len() - length);
                Some((String::from_utf8(head.to_vec()).expect("it is text"), image.to_vec()))
            }
            Err(origin) => {
                assert!(origin == whole, "it passes as it came");
                None
            }
        }
    }

    #[test]
    fn a_jpeg_becomes_smaller_and_looks_the_same() {
        let image = picture(300, 200);
        let mut fine = Vec::new();
        JpegEncoder::new_with_quality(&mut fine, 95).encode_image(&image).expect("memory can be written");
        let (head, bytes) = recoded("", "image/jpeg", "ETag: \"a\"\r\n", &fine).expect("it becomes smaller");
        assert!(bytes.len() < fine.len() / 2);
        let expected = format!(
            "HTTP/1.1 203 Non-Authoritative Information\r\nETag: W/\"a\"\r\nContent-Type: image/jpeg\r\n\
             Content-Length: {}\r\nVia: 1.1 airpath\r\n\r\n",
            bytes.len()
        );
        assert_eq!(head, expected);
        let new = image::load_from_memory_with_format(&bytes, ImageFormat::Jpeg).expect("a JPEG").to_rgb8();
        let old = image.to_rgb8();
        let difference: u64 = new.iter().zip(old.iter()).map(|(new, old)| u64::from(new.abs_diff(*old))).sum();
        assert!(difference / (3 * 300 * 200) < 12, "mean difference {}", difference / (3 * 300 * 200));
        assert_eq!(recoded("", "image/jpeg", "", &bytes), None, "the same quality is not smaller");
    }

    #[test]
    fn a_png_keeps_each_pixel() {
        let image = picture(300, 200);
        let mut simple = Vec::new();
        let encoder = PngEncoder::new_with_quality(&mut simple, CompressionType::Fast, FilterType::NoFilter);
        image.write_with_encoder(encoder).expect("memory can be written");
        for (accept, kind, format) in [
            ("Accept: image/avif, image/webp;q=0.9, */*\r\n", "image/webp", ImageFormat::WebP),
            ("Accept: */*\r\n", "image/png", ImageFormat::Png),
        ] {
            let (head, bytes) = recoded(accept, "image/png", "", &simple).expect("it becomes smaller");
            assert!(head.contains(&format!("Content-Type: {kind}\r\n")) && head.contains("Vary: Accept\r\n"), "{head}");
            let new = image::load_from_memory_with_format(&bytes, format).expect("an image");
            assert!(new.to_rgb8() == image.to_rgb8());
        }
    }

    #[test]
    fn what_must_not_or_cannot_be_changed_is_not() {
        let mut jpeg = Vec::new();
        JpegEncoder::new_with_quality(&mut jpeg, 95).encode_image(&picture(100, 100)).expect("memory");
        assert!(recoded("", "image/jpeg", "", &jpeg).is_some());
        assert_eq!(recoded("", "image/png", "", &jpeg), None, "it is not a PNG");
        assert_eq!(recoded("Cache-Control: no-transform\r\n", "image/jpeg", "", &jpeg), None);
        assert_eq!(recoded("Range: bytes=0-5\r\n", "image/jpeg", "", &jpeg), None);
        for field in ["Cache-Control: no-transform", "Content-Encoding: x", "Repr-Digest: x", "Content-Range: x"] {
            assert_eq!(recoded("", "image/jpeg", &format!("{field}\r\n"), &jpeg), None, "{field}");
        }
        assert_eq!(recoded("", "image/gif", "", &jpeg), None);
        assert_eq!(recoded("", "image/jpeg", "", &jpeg[..jpeg.len() / 8]), None, "it is cut off");
        let start = jpeg.windows(2).position(|marker| marker == [0xFF, 0xC0]).expect("a frame header");
        jpeg[start + 9] = 4;
        assert_eq!(recoded("", "image/jpeg", "", &jpeg), None, "CMYK");
        // The header claims more pixels than are decoded.
        let mut bomb = encoded(&picture(60, 60), ImageFormat::Png);
        bomb[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        assert_eq!(recoded("", "image/png", "", &bomb), None);
        let deep = DynamicImage::from(picture(60, 60).to_rgb16());
        let deep = encoded(&deep, ImageFormat::Png);
        if let Some((head, _)) = recoded("Accept: image/webp\r\n", "image/png", "", &deep) {
            assert!(head.contains("image/png"), "WebP has eight bits: {head}");
        }
    }
}
