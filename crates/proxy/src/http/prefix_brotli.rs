//! An encoder of Brotli with a prefix dictionary (RFC 9841).

use std::io::{self, Write};

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};

/// Bytes that the library returns at a time.
const PART: usize = 4096;

/// The window, as a power of two (RFC 7932 §9.1).
const LEAST_WINDOW: u32 = 16;
const MOST_WINDOW: u32 = 22;

/// An encoder of Brotli that refers to a prefix dictionary. Distances beyond the content point into
/// the dictionary (RFC 9841), and the dictionary of Brotli itself is not used.
pub struct PrefixBrotli {
    state: BrotliEncoderStateStruct<StandardAlloc>,
    output: Vec<u8>,
}

impl PrefixBrotli {
    /// An encoder whose output follows the bytes `before`.
    pub fn new(before: Vec<u8>, dictionary: &[u8], quality: u32) -> Self {
        // The encoder sees the dictionary and the content through one window.
        let window = (2 * dictionary.len()).next_power_of_two().ilog2().clamp(LEAST_WINDOW, MOST_WINDOW);
        let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, quality);
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window);
        state.set_custom_dictionary(dictionary.len(), dictionary);
        Self { state, output: before }
    }

    /// The output since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Ends the content, and returns the output since the last call.
    ///
    /// # Errors
    /// If the library refuses.
    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        self.encode(BrotliEncoderOperation::BROTLI_OPERATION_FINISH, &[])?;
        Ok(self.output)
    }

    fn encode(&mut self, operation: BrotliEncoderOperation, data: &[u8]) -> io::Result<()> {
        let (mut left, mut read) = (data.len(), 0);
        loop {
            let (mut part, mut room, mut written) = ([0; PART], PART, 0);
            let is_done = self.state.compress_stream(
                operation,
                &mut left,
                data,
                &mut read,
                &mut room,
                &mut part,
                &mut written,
                &mut None,
                &mut |_, _, _, _| (),
            );
            self.output.extend_from_slice(&part[..written]);
            if !is_done {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if left == 0 && !self.state.has_more_output() {
                return Ok(());
            }
        }
    }
}

impl Write for PrefixBrotli {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.encode(BrotliEncoderOperation::BROTLI_OPERATION_PROCESS, data)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encode(BrotliEncoderOperation::BROTLI_OPERATION_FLUSH, &[])
    }
}
