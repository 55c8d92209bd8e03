//! The E-model: the transmission rating R of a call, and the mean opinion score (MOS).
//!
//! Narrowband codecs are rated by ITU-T G.107 (06/2015), with all of its terms and default values.
//! Wideband codecs are rated by ITU-T G.107.1 (06/2019) with Corrigendum 1. The two scales differ:
//! ratings of one are not comparable with those of the other.

use libm::{exp, log10, pow, sqrt};

use super::codec::{Impairment, Scale};

/// Delay and loss of a direction of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// Ta: mean delay from mouth to ear in this direction, in milliseconds.
    pub delay_ms: f64,
    /// Tr: delay of the loop of both directions, in milliseconds. The echo path T is half of it.
    pub loop_ms: f64,
    /// Ppl: share of speech frames that are lost, from 0 to 1.
    pub loss: f64,
    /// BurstR: mean length of bursts of losses, relative to that of random losses.
    pub burst_ratio: f64,
    /// A: what users accept for the advantage of access.
    pub advantage: f64,
}

/// The rating of a direction of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Ro: the basic signal-to-noise ratio.
    pub signal_to_noise: f64,
    /// Is: impairments simultaneous with speech.
    pub simultaneous: f64,
    /// Id: impairments by delay and echo.
    pub delay: f64,
    /// Ie-eff: impairments by codec and loss.
    pub equipment: f64,
    /// R.
    pub r: f64,
    /// MOS, conversational quality, estimated.
    pub mos: f64,
}

// Default values of G.107 table 3.
/// Send loudness rating, in dB.
const SLR: f64 = 8.0;
/// Receive loudness rating, in dB.
const RLR: f64 = 2.0;
/// Sidetone masking rating, in dB.
const STMR: f64 = 15.0;
/// Factors of the telephones at the send and receive side, in dB.
const DS: f64 = 3.0;
const DR: f64 = 3.0;
/// Talker echo loudness rating, in dB.
const TELR: f64 = 65.0;
/// Weighted echo path loss, in dB.
const WEPL: f64 = 110.0;
/// Quantising distortion units.
const QDU: f64 = 1.0;
/// Circuit noise, in dBm0p.
const NC: f64 = -70.0;
/// Noise floor at the receive side, in dBmp.
const NFOR: f64 = -64.0;
/// Room noise at the send and receive side, in dB(A).
const PS: f64 = 35.0;
const PR: f64 = 35.0;
/// Delay from which on it disturbs by itself, in milliseconds (mT), with the sensitivity sT = 1.
const NOTICEABLE_MS: f64 = 100.0;

/// The greatest Ie-eff.
const MOST_EQUIPMENT: f64 = 95.0;
/// The formula of Ie-eff is valid for bursts up to this BurstR (G.107 §7.5).
pub const MOST_BURST_RATIO: f64 = 2.0;
/// Below this share of loss it is valid for all bursts (G.107 §7.5).
pub const LEAST_BURST_LOSS: f64 = 0.02;

/// Ro of a wideband connection (G.107.1 equation 7-2).
const WIDEBAND: f64 = 129.0;

/// Rates a direction of a call with a codec of this `impairment`.
pub fn rate(path: &Path, impairment: &Impairment) -> Rating {
    let noise = noise();
    let echo = path.loop_ms / 2.0;
    let (signal_to_noise, simultaneous, talker_echo) = match impairment.scale {
        Scale::Narrowband => {
            let ro = 15.0 - 1.5 * (SLR + noise);
            (ro, simultaneous(ro, noise, echo), talker_echo(-1.5 * (noise - RLR), echo_loss(echo), 2.5, echo))
        }
        // The simultaneous impairment is not defined yet (G.107.1 §7.3). The echo loss has a
        // correction K for wideband (§7.4), recalled.
        Scale::Wideband => {
            let correction = if echo < 100.0 { 0.08 * echo + 10.0 } else { 18.0 };
            (WIDEBAND, 0.0, talker_echo(WIDEBAND, echo_loss(echo) + correction, 3.0, echo))
        }
    };
    let delay = talker_echo + listener_echo(signal_to_noise, path.loop_ms) + absolute_delay(path.delay_ms);
    let equipment = equipment(impairment, path.loss * 100.0, path.burst_ratio);
    let r = signal_to_noise - simultaneous - delay - equipment + path.advantage;
    let mos = match impairment.scale {
        Scale::Narrowband => mos(r),
        // G.107.1 annex A.
        Scale::Wideband => mos(r / 1.29),
    };
    Rating { signal_to_noise, simultaneous, delay, equipment, r, mos }
}

/// No: the power addition of all noise sources (G.107 §7.2), in dBm0p.
fn noise() -> f64 {
    let overall = SLR + RLR;
    let send = PS - overall - DS - 14.0;
    let room_send = PS - SLR - DS - 100.0 + 0.004 * send * send;
    let listener_sidetone = STMR + DR;
    let effective = PR + 10.0 * log10(1.0 + pow(10.0, (10.0 - listener_sidetone) / 10.0));
    let room_receive = RLR - 121.0 + effective + 0.008 * (effective - 35.0) * (effective - 35.0);
    let floor = NFOR + RLR;
    let power = [NC, room_send, room_receive, floor].map(|level| pow(10.0, level / 10.0));
    10.0 * log10(power.iter().sum())
}

/// Is (G.107 §7.3): too low loudness, sidetone, quantising distortion.
fn simultaneous(ro: f64, noise: f64, echo_ms: f64) -> f64 {
    let root = |base: f64, exponent: f64| pow(1.0 + pow(base, exponent), 1.0 / exponent);
    let optimum = SLR + RLR + 0.2 * (64.0 + noise - RLR);
    let loudness = 20.0 * (root(optimum / 8.0, 8.0) - optimum / 8.0);
    let sidetone = -10.0 * log10(pow(10.0, -STMR / 10.0) + exp(-echo_ms / 4.0) * pow(10.0, -TELR / 10.0));
    let sidetone = 12.0 * root((sidetone - 13.0) / 6.0, 8.0)
        - 28.0 * root((sidetone + 1.0) / 19.4, 35.0)
        - 13.0 * root((sidetone - 3.0) / 33.0, 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * log10(QDU);
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantising = 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z));
    loudness + sidetone + quantising
}

/// TERV (G.107 §7.4): the echo loss as the talker perceives it after this delay.
fn echo_loss(echo_ms: f64) -> f64 {
    TELR - 40.0 * log10((1.0 + echo_ms / 10.0) / (1.0 + echo_ms / 150.0)) + 6.0 * exp(-0.3 * echo_ms * echo_ms)
}

/// Idte (G.107 §7.4), for the default sidetone, which changes nothing in it.
fn talker_echo(roe: f64, echo_loss: f64, slope: f64, echo_ms: f64) -> f64 {
    let re = 80.0 + slope * (echo_loss - 14.0);
    let half = (roe - re) / 2.0;
    (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-echo_ms))
}

/// Idle (G.107 §7.4).
fn listener_echo(ro: f64, loop_ms: f64) -> f64 {
    let rle = 10.5 * (WEPL + 7.0) * pow(loop_ms + 1.0, -0.25);
    let half = (ro - rle) / 2.0;
    half + sqrt(half * half + 169.0)
}

/// Idd (G.107 §7.4).
fn absolute_delay(delay_ms: f64) -> f64 {
    if delay_ms <= NOTICEABLE_MS {
        return 0.0;
    }
    let x = log10(delay_ms / NOTICEABLE_MS) / log10(2.0);
    let root = |base: f64| pow(1.0 + pow(base, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// Ie-eff (G.107 §7.5, G.107.1 §7.5); `loss` in per cent. At [`MOST_BURST_RATIO`] and
/// [`LEAST_BURST_LOSS`] the formula is evaluated at the limits of its range, and the greater value
/// is taken, so that more loss or longer bursts never impair less. It never exceeds 95, at which
/// the formula with random losses ends.
fn equipment(impairment: &Impairment, loss: f64, burst_ratio: f64) -> f64 {
    let Impairment { equipment, robustness, .. } = *impairment;
    let formula = |loss: f64, burst_ratio: f64| {
        equipment + (MOST_EQUIPMENT - equipment) * loss / (loss / burst_ratio.max(1.0) + robustness)
    };
    let bursts = formula(loss.min(LEAST_BURST_LOSS * 100.0), burst_ratio);
    formula(loss, burst_ratio.min(MOST_BURST_RATIO)).max(bursts).min(MOST_EQUIPMENT)
}

/// MOS of a rating (G.107 annex B). Below R = 6.5 the polynomial of the annex falls below 1.
fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::Codec;
    use super::*;

    /// G.113 table I.4: G.711 with and without concealment, G.729A with VAD, GSM EFR.
    const G711_PLC: Impairment = Impairment { scale: Scale::Narrowband, equipment: 0.0, robustness: 25.1 };
    const G711: Impairment = Impairment { scale: Scale::Narrowband, equipment: 0.0, robustness: 4.3 };
    const G729A: Impairment = Impairment { scale: Scale::Narrowband, equipment: 11.0, robustness: 19.0 };

    fn path(delay_ms: f64, loss: f64) -> Path {
        Path { delay_ms, loop_ms: 2.0 * delay_ms, loss, burst_ratio: 1.0, advantage: 0.0 }
    }

    #[track_caller]
    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
    }

    #[test]
    fn defaults_are_those_of_g107() {
        // G.107 §7.7: with all default values R = 93.2; annex B: MOS 4.41. The terms are those of
        // the lecture "QoS 05" of VSB-TU Ostrava (Rozhon, Vozňák): Ro 94.77, Is 1.41, Id 0.15.
        let rating = rate(&path(0.0, 0.0), &G711);
        near(rating.signal_to_noise, 94.77, 0.005);
        near(rating.simultaneous, 1.41, 0.005);
        near(rating.delay, 0.15, 0.005);
        near(rating.r, 93.2, 0.05);
        near(rating.mos, 4.41, 0.005);
    }

    #[test]
    fn mos_of_ratings_is_that_of_g107_annex_b() {
        // G.107 table B.1, limits of the categories of G.109.
        for (r, expected) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            near(mos(r), expected, 0.01);
        }
        assert_eq!([mos(-5.0), mos(3.0), mos(100.0), mos(120.0)], [1.0, 1.0, 4.5, 4.5]);
    }

    #[test]
    fn worked_examples_with_delay_and_loss() {
        // The same lecture, computed with the formulas of G.107 (06/2015): 150 ms, 2 % random loss.
        let rating = rate(&path(150.0, 0.02), &G729A);
        near(rating.delay, 3.8, 0.05);
        near(rating.equipment, 19.0, 0.05);
        near(rating.r, 70.5, 0.1);
        near(rating.mos, 3.62, 0.05);
        let rating = rate(&path(150.0, 0.02), &G711_PLC);
        near(rating.r, 82.5, 0.1);
        near(rating.mos, 4.12, 0.05);
        // Bursts, G.711 without concealment: BurstR = 2.
        near(rate(&Path { burst_ratio: 2.0, ..path(0.0, 0.02) }, &G711).equipment, 35.8, 0.05);
    }

    #[test]
    fn impairments_with_loss_are_those_tabulated_before_the_formula() {
        // Tables I.2 and I.3 of G.113 appendix I (09/1999), to which the formula was fitted.
        for (loss, expected) in [(0.02, 19.0), (0.08, 36.0), (0.16, 49.0)] {
            near(equipment(&G729A, loss * 100.0, 1.0), expected, 0.5);
        }
    }

    #[test]
    fn bursts_beyond_the_range_of_the_formula_are_bounded() {
        let amr = Codec::Amr.impairment();
        // Below 2 % every burst ratio counts; from there on BurstR = 2 at most.
        near(equipment(&amr, 1.0, 50.0), 5.0 + 90.0 / (1.0 / 50.0 + 10.0), 1e-9);
        near(equipment(&amr, 10.0, 50.0), 5.0 + 90.0 * 10.0 / (10.0 / 2.0 + 10.0), 1e-9);
        assert_eq!(equipment(&amr, 50.0, 50.0), 95.0);
        for step in 0..1_000 {
            let (loss, next) = (f64::from(step) / 10.0, f64::from(step + 1) / 10.0);
            for ratio in [1.0, 1.5, 2.0, 5.0, 100.0] {
                assert!(equipment(&amr, loss, ratio) <= equipment(&amr, next, ratio), "{loss} {ratio}");
                assert!(equipment(&amr, loss, ratio) <= equipment(&amr, loss, ratio * 1.5), "{loss} {ratio}");
            }
        }
    }

    #[test]
    fn wideband_has_its_own_scale() {
        let impairment = Impairment { equipment: 0.0, ..Codec::AmrWb.impairment() };
        near(rate(&path(0.0, 0.0), &impairment).r, WIDEBAND, 0.2);
        near(rate(&path(0.0, 0.0), &impairment).mos, 4.5, 0.005);
    }

    #[test]
    fn more_delay_and_more_loss_never_rate_higher() {
        for codec in [Codec::Amr, Codec::AmrWb] {
            let ratings = |delay: f64, loss: f64| rate(&path(delay, loss), &codec.impairment()).r;
            for step in 0..100 {
                let at = f64::from(step);
                assert!(ratings(at * 10.0, 0.0) >= ratings(at * 10.0 + 10.0, 0.0) - 1e-9, "{codec:?} {at}");
                assert!(ratings(50.0, at / 100.0) > ratings(50.0, (at + 1.0) / 100.0), "{codec:?} {at}");
            }
        }
    }
}
