//! Puncturing: bits of the mother code that are not sent (TS 45.003; the clause is given at each
//! pattern).

/// The punctured bits: those whose index modulo `period` is in `residues`, without `kept`, plus
/// `dropped`.
#[derive(Clone, Copy, Debug)]
pub struct Puncturing {
    period: usize,
    residues: &'static [usize],
    kept: &'static [usize],
    dropped: &'static [usize],
}

impl Puncturing {
    /// All bits are sent.
    pub const NONE: Self = Self { period: 1, residues: &[], kept: &[], dropped: &[] };

    const fn every(period: usize, residues: &'static [usize]) -> Self {
        Self { period, residues, kept: &[], dropped: &[] }
    }

    const fn keeping(self, kept: &'static [usize]) -> Self {
        Self { kept, ..self }
    }

    const fn dropping(self, dropped: &'static [usize]) -> Self {
        Self { dropped, ..self }
    }

    /// Whether bit `k` of the mother code is sent.
    pub fn sends(&self, k: usize) -> bool {
        let regular = self.residues.contains(&(k % self.period)) && !self.kept.contains(&k);
        !regular && !self.dropped.contains(&k)
    }

    /// The indices of the bits sent of a mother code word of `length` bits.
    pub fn sent(&self, length: usize) -> Vec<usize> {
        (0..length).filter(|k| self.sends(*k)).collect()
    }
}

/// CS-2, §5.1.2.3: every fourth bit, except the first ones of a group of twelve.
pub const CS_2: Puncturing = Puncturing::every(48, &[3, 7, 11, 15, 19, 23, 27, 31, 35, 43, 47]).keeping(&[3, 7, 11]);
/// CS-3, §5.1.3.3.
pub const CS_3: Puncturing = Puncturing::every(6, &[3, 5]).keeping(&[3, 5, 9, 11, 675]);
/// TCH/F9.6, §3.3.3: C(11 + 15j).
pub const TCH_F9_6: Puncturing = Puncturing::every(15, &[11]);
/// TCH/F14.4, §3.8.3.
pub const TCH_F14_4: Puncturing = Puncturing::every(18, &[1, 6, 11, 15]).dropping(&[584]);
/// MCS-1, §5.1.5.1.4: P1, P2.
pub const MCS_1: [Puncturing; 2] = [
    Puncturing::every(21, &[2, 5, 8, 10, 11, 14, 17, 20]).keeping(&[71, 136, 199, 262, 325, 388, 451, 514]),
    Puncturing::every(21, &[1, 4, 7, 9, 13, 15, 16, 19]).keeping(&[78, 141, 204, 267, 330, 393, 456, 519]),
];
/// MCS-2, §5.1.6.1.4: P1, P2.
pub const MCS_2: [Puncturing; 2] = [
    Puncturing::every(6, &[2, 3, 4]).keeping(&[57, 171, 285, 399, 513, 627]),
    Puncturing::every(6, &[0, 1, 5]).keeping(&[108, 222, 336, 450, 564, 678]),
];
/// MCS-3, §5.1.7.1.4: P1, P2, P3.
pub const MCS_3: [Puncturing; 3] = [
    Puncturing::every(18, &[2, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16]).keeping(&[241, 475, 709]),
    Puncturing::every(18, &[0, 1, 3, 4, 8, 10, 11, 13, 14, 15, 17]).keeping(&[121, 355, 589]),
    Puncturing::every(18, &[1, 2, 3, 5, 6, 7, 9, 10, 14, 16, 17]).keeping(&[181, 289, 523, 811]),
];
/// MCS-4, §5.1.8.1.4, and MCS-9, §5.1.13.1.4: one bit in three is sent, a different one each time.
/// P1, P2, P3.
pub const ONE_IN_THREE: [Puncturing; 3] =
    [Puncturing::every(3, &[1, 2]), Puncturing::every(3, &[0, 2]), Puncturing::every(3, &[0, 1])];
/// MCS-5, §5.1.9.1.4: P1, P2.
pub const MCS_5: [Puncturing; 2] = [
    Puncturing::every(9, &[2]).keeping(&[47, 371, 695, 1019]).dropping(&[1391, 1394, 1400, 1403]),
    Puncturing::every(9, &[1]).keeping(&[136, 460, 784, 1108]).dropping(&[1390, 1393, 1399, 1402]),
];
/// MCS-6, §5.1.10.1.4: P1, P2. Every third bit, with some exceptions that are sent.
pub const MCS_6: [Puncturing; 2] = [
    Puncturing::every(66, &[2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65])
        .dropping(&[362, 758, 1154, 1550]),
    Puncturing::every(66, &[1, 4, 7, 10, 13, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64])
        .dropping(&[346, 742, 1138, 1534]),
];
/// MCS-7, §5.1.11.1.4: P1, P2, P3.
pub const MCS_7: [Puncturing; 3] = [
    Puncturing::every(18, &[2, 3, 5, 6, 7, 9, 10, 14, 16, 17])
        .dropping(&[1, 19, 37, 235, 415, 595, 775, 955, 1135, 1351, 1369, 1387]),
    Puncturing::every(18, &[0, 1, 4, 7, 8, 9, 11, 12, 13, 15])
        .dropping(&[16, 34, 52, 196, 376, 556, 736, 916, 1096, 1366, 1384, 1402]),
    Puncturing::every(18, &[0, 1, 3, 4, 8, 10, 11, 14, 15, 17])
        .dropping(&[13, 31, 49, 301, 481, 661, 841, 1021, 1201, 1363, 1381, 1399]),
];
/// MCS-8, §5.1.12.1.4: P1, P2, P3.
pub const MCS_8: [Puncturing; 3] = [
    Puncturing::every(36, &[1, 3, 4, 7, 8, 9, 11, 12, 14, 15, 17, 18, 19, 21, 22, 25, 26, 28, 29, 30, 32, 33, 34])
        .keeping(&[845]),
    Puncturing::every(36, &[0, 2, 3, 5, 6, 7, 9, 10, 13, 14, 16, 18, 20, 21, 23, 24, 26, 27, 29, 31, 32, 34, 35])
        .keeping(&[582]),
    Puncturing::every(36, &[0, 1, 4, 5, 6, 8, 10, 11, 12, 13, 15, 16, 19, 20, 22, 23, 24, 25, 28, 30, 31, 33, 35])
        .keeping(&[1156]),
];
/// Header of MCS-1 to MCS-4 in the downlink, §5.1.5.1.3: 68 of 108 bits.
pub const HEADER_MCS_1: Puncturing = Puncturing::every(3, &[2]).dropping(&[34, 58, 82, 106]);
/// Header of MCS-7 to MCS-9 in the downlink, §5.1.11.1.3: 124 of 135 bits.
pub const HEADER_MCS_7: Puncturing = Puncturing::every(36, &[14, 23, 33]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bits_are_sent_as_the_standard_has_room_for() {
        let sent = |puncturing: &Puncturing, length| puncturing.sent(length).len();
        assert_eq!(sent(&CS_2, 588), 456);
        assert_eq!(sent(&CS_3, 676), 456);
        assert_eq!(sent(&TCH_F9_6, 488), 456);
        assert_eq!(sent(&TCH_F14_4, 588), 456);
        assert_eq!(sent(&HEADER_MCS_1, 108), 68);
        assert_eq!(sent(&HEADER_MCS_7, 135), 124);
        let of_each = |patterns: &[Puncturing], length| patterns.iter().map(|p| sent(p, length)).collect::<Vec<_>>();
        assert_eq!(of_each(&MCS_1, 588), [372; 2]);
        assert_eq!(of_each(&MCS_2, 732), [372; 2]);
        assert_eq!(of_each(&MCS_3, 948), [372; 3]);
        assert_eq!(of_each(&ONE_IN_THREE, 1116), [372; 3]);
        assert_eq!(of_each(&MCS_5, 1404), [1248; 2]);
        assert_eq!(of_each(&MCS_6, 1836), [1248; 2]);
        assert_eq!(of_each(&MCS_7, 1404), [612; 3]);
        assert_eq!(of_each(&MCS_8, 1692), [612; 3]);
        assert_eq!(of_each(&ONE_IN_THREE, 1836), [612; 3]);
    }

    /// The basis of incremental redundancy: after all patterns each bit of the mother code was
    /// sent, except for twelve of MCS-7.
    #[test]
    fn the_patterns_of_a_scheme_complete_each_other() {
        let never = |patterns: &[Puncturing], length| {
            (0..length).filter(|k| !patterns.iter().any(|pattern| pattern.sends(*k))).count()
        };
        assert_eq!([never(&MCS_1, 588), never(&MCS_2, 732), never(&MCS_3, 948), never(&ONE_IN_THREE, 1116)], [0; 4]);
        assert_eq!([never(&MCS_5, 1404), never(&MCS_6, 1836), never(&MCS_7, 1404), never(&MCS_8, 1692)], [0, 0, 12, 0]);
    }
}
