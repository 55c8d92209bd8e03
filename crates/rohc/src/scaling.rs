//! Numbers in units of a step that they have in common.

/// The greatest common divisor.
pub(crate) const fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A number in units of `factor`: the scaled value and the residue (field_scaling of RFC 6846
/// §8.2).
pub(crate) fn scale(value: u32, factor: u32) -> (u32, u32) {
    value.checked_div(factor).map_or((0, value), |scaled| (scaled, value % factor))
}
