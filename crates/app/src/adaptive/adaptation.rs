//! Algorithms that choose the quality of the next segment.
//!
//! - `rate`: J. Jiang, V. Sekar, H. Zhang, "Improving Fairness, Efficiency, and Stability in
//!   HTTP-based Adaptive Video Streaming with FESTIVE", ACM CoNEXT 2012: the harmonic mean of the
//!   throughput, and gradual changes. Not its delayed update and its random times of requests,
//!   which are for several players at one bottleneck.
//! - `bba`: T.-Y. Huang et al., "A Buffer-Based Approach to Rate Adaptation: Evidence from a Large
//!   Video Streaming Service", ACM SIGCOMM 2014: BBA-0 (algorithm 1).
//! - `bola`: K. Spiteri, R. Urgaonkar, R. Sitaraman, "BOLA: Near-Optimal Bitrate Adaptation for
//!   Online Videos", IEEE INFOCOM 2016: BOLA-BASIC.
//!
//! Algorithms and constants are recalled from these papers, not compared with their text.

use std::collections::VecDeque;

use airpath_core::{Bytes, Span, deserialize_by_key};
use serde::Serialize;

use super::Settings;
use crate::voice::SettingError;

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "algorithm", rename_all = "lowercase")]
pub enum Algorithm {
    /// By the throughput of past segments.
    Rate(Rate),
    /// By the buffer: BBA-0.
    Bba(Bba),
    /// By the buffer: BOLA-BASIC.
    Bola(Bola),
}

deserialize_by_key! {
    Algorithm by algorithm { samples: u32, efficiency: f64, reservoir: Span, cushion: Span, gamma_p: f64 }
    Rate default { samples, efficiency }
    Bba default { reservoir, cushion }
    Bola default { gamma_p }
}

/// Parameters of `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Number of segments in the mean.
    pub samples: u32,
    /// Highest rate of a quality, relative to the mean of the throughput.
    pub efficiency: f64,
}

impl Default for Rate {
    /// FESTIVE: the last 20 segments, and p = 0.85.
    fn default() -> Self {
        Self { samples: 20, efficiency: 0.85 }
    }
}

/// Parameters of `bba`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bba {
    /// Buffer up to which the lowest quality is chosen; see [`Algorithm::resolved`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservoir: Option<Span>,
    /// Further buffer up to the highest quality; see [`Algorithm::resolved`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cushion: Option<Span>,
}

/// Parameters of `bola`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bola {
    /// Weight of playback without stalls relative to the utility of a quality: γp, where p is the
    /// duration of a segment.
    pub gamma_p: f64,
}

impl Default for Bola {
    /// The value of the evaluation in BOLA's paper.
    fn default() -> Self {
        Self { gamma_p: 5.0 }
    }
}

/// BBA-0's buffer, reservoir and cushion, in seconds: the highest quality begins at 90 % of the
/// buffer.
const BBA: (u64, u64, u64) = (240, 90, 126);

impl Default for Algorithm {
    fn default() -> Self {
        Self::Rate(Rate::default())
    }
}

impl Algorithm {
    /// Most segments in the mean of the throughput.
    const MOST_SAMPLES: u32 = 10_000;

    /// The name under which it is written.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Bba(_) => "bba",
            Self::Bola(_) => "bola",
        }
    }

    /// With the defaults that depend on `most`, the most media in the buffer at a request: the
    /// buffer without the segment that it has room for. BBA's reservoir and cushion have the same
    /// shares of it as those of the paper have of the whole buffer, whose segments are short
    /// relative to it. So the highest quality is reached with any buffer.
    #[must_use]
    pub fn resolved(self, most: Span) -> Self {
        let part = |seconds: u64| Span::from_secs_f64(most.as_secs_f64() * seconds as f64 / BBA.0 as f64);
        match self {
            Self::Bba(Bba { reservoir, cushion }) => Self::Bba(Bba {
                reservoir: Some(reservoir.unwrap_or_else(|| part(BBA.1))),
                cushion: Some(cushion.unwrap_or_else(|| part(BBA.2))),
            }),
            other => other,
        }
    }

    /// Checks the ranges; `most` is as for [`Self::resolved`].
    pub(super) fn check(&self, most: Span) -> Result<(), SettingError> {
        let wrong = |field, message: &'static str| Err(SettingError { field, message: message.into() });
        let resolved = self.resolved(most);
        match resolved {
            Self::Rate(Rate { samples, .. }) if !(1..=Self::MOST_SAMPLES).contains(&samples) => {
                wrong("adaptation.samples", "it is 1 to 10,000")
            }
            Self::Rate(Rate { efficiency, .. }) if !(0.01..=10.0).contains(&efficiency) => {
                wrong("adaptation.efficiency", "it is 0.01 to 10")
            }
            Self::Bba(Bba { cushion: Some(cushion), .. }) if cushion.is_zero() => {
                wrong("adaptation.cushion", "it is longer than nothing")
            }
            Self::Bba(Bba { reservoir: Some(reservoir), cushion: Some(cushion) })
                if reservoir > most || cushion > most.saturating_sub(reservoir) =>
            {
                let only_reservoir = matches!(self, Self::Bba(Bba { cushion: None, .. }));
                let field = if only_reservoir { "adaptation.reservoir" } else { "adaptation.cushion" };
                let message = format!(
                    "`reservoir` ({reservoir}) and `cushion` ({cushion}) together are at most `buffer` − `segment` \
                     ({most}), the most media at a request: otherwise the highest quality is never chosen"
                );
                Err(SettingError { field, message: message.into() })
            }
            Self::Bola(Bola { gamma_p }) if !(0.0..=1e6).contains(&gamma_p) || gamma_p == 0.0 => {
                wrong("adaptation.gamma_p", "it is above 0, and at most 1,000,000")
            }
            _ => Ok(()),
        }
    }
}

/// An algorithm at work.
#[derive(Clone, Debug)]
pub struct Adaptation {
    /// Rates of the qualities, in bits per second, in rising order.
    rates: Vec<f64>,
    map: Map,
    /// The quality of the last segment that was chosen.
    last: Option<usize>,
}

#[derive(Clone, Debug)]
enum Map {
    Rate { samples: usize, efficiency: f64, throughputs: VecDeque<f64>, consecutive: usize },
    Bba(BufferMap),
    Bola(Scores),
}

impl Adaptation {
    /// The algorithm of these settings, before the first segment.
    pub fn new(settings: &Settings) -> Self {
        let rates: Vec<f64> = settings.qualities.iter().map(|rate| rate.as_bps() as f64).collect();
        let map = match settings.adaptation.resolved(settings.most_at_request()) {
            Algorithm::Rate(Rate { samples, efficiency }) => {
                Map::Rate { samples: samples as usize, efficiency, throughputs: VecDeque::new(), consecutive: 0 }
            }
            Algorithm::Bba(Bba { reservoir, cushion }) => Map::Bba(BufferMap {
                reservoir: reservoir.unwrap_or_default().as_secs_f64(),
                cushion: cushion.unwrap_or_default().as_secs_f64(),
            }),
            Algorithm::Bola(Bola { gamma_p }) => {
                Map::Bola(Scores::new(&rates, gamma_p, settings.most_at_request().as_secs_f64()))
            }
        };
        Self { rates, map, last: None }
    }

    /// A segment has arrived, with a response of `bytes`, this time
    /// after its request.
    pub fn arrived(&mut self, bytes: u64, latency: Span) {
        if let Map::Rate { samples, throughputs, .. } = &mut self.map {
            if throughputs.len() == *samples {
                throughputs.pop_front();
            }
            throughputs.extend(Bytes::new(bytes).rate_over(latency));
        }
    }

    /// The quality of the next segment, which is requested with this `buffer`.
    pub fn choose(&mut self, buffer: Span) -> usize {
        let Self { rates, map, last } = self;
        let chosen = match map {
            Map::Rate { efficiency, throughputs, consecutive, .. } => {
                let limit = harmonic_mean(throughputs).map(|mean| mean * *efficiency);
                let next = last.zip(limit).map_or(0, |(last, limit)| gradual(rates, last, limit, *consecutive));
                *consecutive = if *last == Some(next) { *consecutive + 1 } else { 1 };
                next
            }
            Map::Bba(map) => map.choose(rates, *last, buffer.as_secs_f64()),
            Map::Bola(bola) => bola.choose(rates, buffer.as_secs_f64()),
        };
        *last = Some(chosen);
        chosen
    }
}

fn harmonic_mean(values: &VecDeque<f64>) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| 1.0 / value).sum();
    (!values.is_empty()).then(|| values.len() as f64 / sum)
}

/// FESTIVE's gradual changes: one quality down when the rate of the present one is above `limit`;
/// one up when that rate is at most `limit`, and the present one, number k from one on, had k
/// segments.
fn gradual(rates: &[f64], last: usize, limit: f64, consecutive: usize) -> usize {
    if rates[last] > limit {
        return last.saturating_sub(1);
    }
    let rises = consecutive > last && rates.get(last + 1).is_some_and(|rate| *rate <= limit);
    last + usize::from(rises)
}

/// The map of BBA-0 from buffer to rate: the lowest up to the reservoir, then linear within the
/// cushion, then the highest. In seconds.
#[derive(Clone, Copy, Debug)]
struct BufferMap {
    reservoir: f64,
    cushion: f64,
}

impl BufferMap {
    /// f(B).
    fn rate(&self, rates: &[f64], buffer: f64) -> f64 {
        let (lowest, highest) = (rates[0], rates[rates.len() - 1]);
        lowest + (highest - lowest) * ((buffer - self.reservoir) / self.cushion).clamp(0.0, 1.0)
    }

    /// Algorithm 1: the quality changes when f(B) reaches the next rate above or below.
    fn choose(&self, rates: &[f64], last: Option<usize>, buffer: f64) -> usize {
        let highest = rates.len() - 1;
        let last = last.unwrap_or(0);
        let (above, below) = ((last + 1).min(highest), last.saturating_sub(1));
        if buffer <= self.reservoir {
            return 0;
        }
        if buffer >= self.reservoir + self.cushion {
            return highest;
        }
        let mapped = self.rate(rates, buffer);
        if mapped >= rates[above] {
            rates.iter().rposition(|rate| *rate < mapped).unwrap_or(0)
        } else if mapped <= rates[below] {
            rates.iter().position(|rate| *rate > mapped).unwrap_or(highest)
        } else {
            last
        }
    }
}

/// BOLA-BASIC. The buffer is in seconds in place of segments, which multiplies V by their duration.
#[derive(Clone, Debug)]
struct Scores {
    /// The utility of each quality: ln(S/S₁), where S is the size of a segment.
    utilities: Vec<f64>,
    gamma_p: f64,
    v: f64,
}

impl Scores {
    /// V is the largest with which the buffer never exceeds its limit: V = (Qmax − 1)/(υ_M + γp).
    /// `most` is Qmax − 1.
    fn new(rates: &[f64], gamma_p: f64, most: f64) -> Self {
        let utilities: Vec<f64> = rates.iter().map(|rate| libm::log(rate / rates[0])).collect();
        let v = most / (utilities[utilities.len() - 1] + gamma_p);
        Self { utilities, gamma_p, v }
    }

    /// The quality with the highest (V(υ + γp) − Q)/S; of equal ones the lowest.
    fn choose(&self, rates: &[f64], buffer: f64) -> usize {
        let score = |quality: usize| (self.v * (self.utilities[quality] + self.gamma_p) - buffer) / rates[quality];
        (1..rates.len()).fold(0, |best, quality| if score(quality) > score(best) { quality } else { best })
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Bitrate;
    use proptest::prelude::*;

    use super::*;

    fn settings(adaptation: Algorithm, buffer: u64) -> Settings {
        Settings { adaptation, buffer: Span::from_secs(buffer), ..Settings::default() }
    }

    fn bba(buffer: u64) -> Settings {
        settings(Algorithm::Bba(Bba::default()), buffer)
    }

    /// The parameters of the paper: a reservoir of 90 s of 240 s, the highest rate from 90 % on.
    #[test]
    fn the_map_of_bba_is_that_of_its_paper() {
        let algorithm = bba(240).adaptation.resolved(Span::from_secs(240));
        let expected = [Some(Span::from_secs(90)), Some(Span::from_secs(216 - 90))];
        let Algorithm::Bba(Bba { reservoir, cushion }) = algorithm else { panic!("{algorithm:?}") };
        assert_eq!([reservoir, cushion], expected);
        let map = BufferMap { reservoir: 90.0, cushion: 126.0 };
        let rates = [235e3, 1050e3, 5000e3];
        for (buffer, rate) in [(0.0, 235e3), (90.0, 235e3), (153.0, (235e3 + 5000e3) / 2.0), (216.0, 5000e3)] {
            assert!((map.rate(&rates, buffer) - rate).abs() < 1.0, "{buffer}");
        }
        // f(B) reaches 1,050 kbit/s at 90 + 126·815/4765 s: a quality changes only when it reaches
        // the next one, and returns only at that below.
        let crossing = 90.0 + 126.0 * 815.0 / 4765.0;
        assert_eq!(map.choose(&rates, Some(0), crossing - 0.1), 0);
        assert_eq!(map.choose(&rates, Some(0), crossing + 0.1), 1);
        assert_eq!(map.choose(&rates, Some(1), crossing - 0.1), 1, "the quality stays within its band");
        assert_eq!(map.choose(&rates, Some(2), crossing - 0.1), 1, "the next rate above f(B)");
        assert_eq!(map.choose(&rates, Some(2), 215.0), 2);
        assert_eq!(map.choose(&rates, Some(1), 90.0), 0);
        assert_eq!(map.choose(&rates, Some(0), 216.0), 2);
    }

    /// The thresholds of BOLA between neighbouring qualities, from the equality of their scores:
    /// Q = V·(γp + (S₂υ₁ − S₁υ₂)/(S₂ − S₁)).
    #[test]
    fn bola_changes_at_the_thresholds_of_its_utilities() {
        let rates = [230e3, 477e3, 991e3, 2056e3, 6000e3];
        let bola = Scores::new(&rates, 5.0, 22.0);
        assert!((bola.v - 22.0 / (libm::log(6000.0 / 230.0) + 5.0)).abs() < 1e-12);
        for quality in 0..4 {
            let (low, high) = (rates[quality], rates[quality + 1]);
            let (of_low, of_high) = (bola.utilities[quality], bola.utilities[quality + 1]);
            let threshold = bola.v * (5.0 + (high * of_low - low * of_high) / (high - low));
            assert_eq!(bola.choose(&rates, threshold - 1e-6), quality);
            assert_eq!(bola.choose(&rates, threshold + 1e-6), quality + 1);
        }
        // Above V(υ + γp) = Qmax − 1 no score is positive, and the client waits.
        let best = bola.choose(&rates, 22.0 + 1e-6);
        assert!(bola.v * (bola.utilities[best] + 5.0) < 22.0 + 1e-6);
    }

    #[test]
    fn the_rate_is_a_harmonic_mean_and_changes_are_gradual() {
        assert_eq!(harmonic_mean(&VecDeque::from([1e6, 3e6])), Some(1.5e6));
        let rates = [1e6, 2e6, 4e6];
        assert_eq!(gradual(&rates, 0, 5e6, 1), 1, "the first quality has one segment");
        assert_eq!(gradual(&rates, 1, 5e6, 1), 1, "the second one two");
        assert_eq!(gradual(&rates, 1, 5e6, 2), 2);
        assert_eq!(gradual(&rates, 2, 5e6, 9), 2);
        assert_eq!(gradual(&rates, 1, 3e6, 9), 1, "the next one is not sustainable");
        assert_eq!(gradual(&rates, 2, 0.5e6, 1), 1, "one quality at a time");
        assert_eq!(gradual(&rates, 0, 0.5e6, 1), 0);
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        let wrong = |settings: Settings| settings.check().expect_err("wrong").field;
        let of = |adaptation| wrong(settings(adaptation, 30));
        let rate = |samples, efficiency| of(Algorithm::Rate(Rate { samples, efficiency }));
        assert_eq!(rate(0, 0.85), "adaptation.samples");
        assert_eq!(rate(1, f64::NAN), "adaptation.efficiency");
        let of_bba = |reservoir: u64, cushion: Option<u64>| {
            let reservoir = Some(Span::from_secs(reservoir));
            Algorithm::Bba(Bba { reservoir, cushion: cushion.map(Span::from_secs) })
        };
        assert_eq!(of(of_bba(20, Some(0))), "adaptation.cushion");
        assert_eq!(of(of_bba(20, Some(7))), "adaptation.cushion", "27 s of 30 s less a segment of 4 s");
        assert_eq!(of(of_bba(20, None)), "adaptation.reservoir");
        assert_eq!(settings(of_bba(20, Some(6)), 30).check(), Ok(()));
        assert_eq!(of(Algorithm::Bola(Bola { gamma_p: 0.0 })), "adaptation.gamma_p");
        assert_eq!(wrong(Settings { qualities: vec![], ..Settings::default() }), "qualities");
        let falling = [2, 1].map(|mbps| Bitrate::from_bps(mbps * 1_000_000)).to_vec();
        assert_eq!(wrong(Settings { qualities: falling, ..Settings::default() }), "qualities");
        assert_eq!(wrong(Settings { buffer: Span::from_secs(7), ..Settings::default() }), "buffer");
        assert_eq!(wrong(Settings { segment: Span::ZERO, ..Settings::default() }), "segment");
        assert_eq!(Settings::default().check(), Ok(()));
        assert_eq!(bba(30).check(), Ok(()));
    }

    prop_compose! {
        fn ladder()(steps in prop::collection::vec(1_000_u64..5_000_000, 1..12)) -> Vec<f64> {
            let mut rate = 0;
            steps.into_iter().map(|step| { rate += step; rate as f64 }).collect()
        }
    }

    proptest! {
        #[test]
        fn bola_never_chooses_a_higher_quality_with_less_buffer(
            rates in ladder(), gamma_p in 0.1_f64..20.0, a in 0.0_f64..60.0, b in 0.0_f64..60.0,
        ) {
            let bola = Scores::new(&rates, gamma_p, 56.0);
            let [less, more] = [a.min(b), a.max(b)];
            prop_assert!(bola.choose(&rates, less) <= bola.choose(&rates, more));
        }

        #[test]
        fn the_map_of_bba_is_monotone_and_within_the_ladder(
            rates in ladder(), last in 0_usize..12, a in 0.0_f64..300.0, b in 0.0_f64..300.0,
        ) {
            let map = BufferMap { reservoir: 90.0, cushion: 126.0 };
            let [less, more] = [a.min(b), a.max(b)];
            prop_assert!(map.rate(&rates, less) <= map.rate(&rates, more));
            let last = Some(last.min(rates.len() - 1));
            let (low, high) = (map.choose(&rates, last, less), map.choose(&rates, last, more));
            prop_assert!(low <= high && high < rates.len());
        }
    }
}
