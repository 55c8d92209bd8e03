//! The fields of a TCP header (RFC 9293 §3.1).

use super::{Header, TCP, TCP_OPTIONS};

/// Bytes of the options of the TCP header at the front of `segment`; `None` for a header that
/// ends before its 20 bytes.
pub(super) fn options_length(segment: &[u8]) -> Option<u8> {
    (segment.get(12)? >> 4).checked_sub((TCP / 4) as u8).map(|words| 4 * words)
}

impl Header {
    fn tcp(&self) -> &[u8] {
        &self.bytes[self.ip_length()..]
    }

    fn tcp_word(&self, offset: usize) -> u16 {
        let tcp = self.tcp();
        u16::from_be_bytes([tcp[offset], tcp[offset + 1]])
    }

    fn set_tcp_word(&mut self, offset: usize, word: u16) {
        self.at(self.ip_length() + offset, &word.to_be_bytes());
    }

    fn tcp_number(&self, offset: usize) -> u32 {
        u32::from(self.tcp_word(offset)) << 16 | u32::from(self.tcp_word(offset + 2))
    }

    fn set_tcp_number(&mut self, offset: usize, number: u32) {
        self.at(self.ip_length() + offset, &number.to_be_bytes());
    }

    fn set_tcp_bits(&mut self, offset: usize, mask: u8, bits: u8) {
        let at = self.ip_length() + offset;
        self.bytes[at] = self.bytes[at] & !mask | bits & mask;
    }

    /// The data offset follows from the options (RFC 6846 §6.4.5).
    pub(super) fn infer_tcp(&mut self) {
        let words = (TCP as u8 + self.options) / 4;
        self.set_tcp_bits(12, 0xf0, words << 4);
    }

    /// The sequence number of TCP.
    pub(crate) fn tcp_sequence(&self) -> u32 {
        self.tcp_number(4)
    }

    pub(crate) fn set_tcp_sequence(&mut self, sequence: u32) {
        self.set_tcp_number(4, sequence);
    }

    /// The acknowledgment number.
    pub(crate) fn acknowledgment(&self) -> u32 {
        self.tcp_number(8)
    }

    pub(crate) fn set_acknowledgment(&mut self, acknowledgment: u32) {
        self.set_tcp_number(8, acknowledgment);
    }

    /// The four bits behind the data offset, which RFC 9293 reserves.
    pub(crate) fn tcp_reserved(&self) -> u8 {
        self.tcp()[12] & 0x0f
    }

    pub(crate) fn set_tcp_reserved(&mut self, bits: u8) {
        self.set_tcp_bits(12, 0x0f, bits);
    }

    /// CWR and ECE.
    pub(crate) fn tcp_ecn(&self) -> u8 {
        self.tcp()[13] >> 6
    }

    pub(crate) fn set_tcp_ecn(&mut self, bits: u8) {
        self.set_tcp_bits(13, 0xc0, bits << 6);
    }

    /// URG, ACK and PSH.
    pub(crate) fn urgent(&self) -> bool {
        self.tcp()[13] & 0x20 != 0
    }

    pub(crate) fn set_urgent(&mut self, is_set: bool) {
        self.set_tcp_bits(13, 0x20, u8::from(is_set) << 5);
    }

    pub(crate) fn has_acknowledgment(&self) -> bool {
        self.tcp()[13] & 0x10 != 0
    }

    pub(crate) fn set_has_acknowledgment(&mut self, is_set: bool) {
        self.set_tcp_bits(13, 0x10, u8::from(is_set) << 4);
    }

    pub(crate) fn push(&self) -> bool {
        self.tcp()[13] & 0x08 != 0
    }

    pub(crate) fn set_push(&mut self, is_set: bool) {
        self.set_tcp_bits(13, 0x08, u8::from(is_set) << 3);
    }

    /// RST, SYN and FIN.
    pub(crate) fn reset_syn_fin(&self) -> u8 {
        self.tcp()[13] & 0x07
    }

    pub(crate) fn set_reset_syn_fin(&mut self, flags: u8) {
        self.set_tcp_bits(13, 0x07, flags);
    }

    /// The window, without its scale.
    pub(crate) fn tcp_window(&self) -> u16 {
        self.tcp_word(14)
    }

    pub(crate) fn set_tcp_window(&mut self, window: u16) {
        self.set_tcp_word(14, window);
    }

    /// The checksum of TCP.
    pub(crate) fn tcp_checksum(&self) -> u16 {
        self.tcp_word(16)
    }

    pub(crate) fn set_tcp_checksum(&mut self, checksum: u16) {
        self.set_tcp_word(16, checksum);
    }

    /// The urgent pointer.
    pub(crate) fn urgent_pointer(&self) -> u16 {
        self.tcp_word(18)
    }

    pub(crate) fn set_urgent_pointer(&mut self, pointer: u16) {
        self.set_tcp_word(18, pointer);
    }

    /// The options of TCP, with padding.
    pub(crate) fn tcp_options(&self) -> &[u8] {
        &self.tcp()[TCP..TCP + usize::from(self.options)]
    }

    /// Sets the options; returns `false` if a TCP header cannot have as many bytes of them.
    pub(crate) fn set_tcp_options(&mut self, options: &[u8]) -> bool {
        if options.len() > TCP_OPTIONS || !options.len().is_multiple_of(4) {
            return false;
        }
        self.at(self.ip_length() + TCP, options);
        self.options = options.len() as u8;
        true
    }
}
