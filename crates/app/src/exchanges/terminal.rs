//! Sessions of a remote terminal: keystrokes and their echoes, updates of windows, opening of
//! files, scrolling.

use airpath_core::{Bytes, RandomStream, Span};
use serde::{Deserialize, Serialize};

use super::{Exchange, Script};

/// The kinds of interactions, by the names that sessions use.
pub const KINDS: [&str; 4] = ["key", "scroll", "window", "open"];

/// Parameters of a generated session. Each round has a line of text, scrolling, an update of a
/// window, and the opening of a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generated {
    /// Number of rounds.
    pub rounds: u32,
    /// Time of the user between two parts of a round.
    pub think: Span,
    /// Keystrokes in a line.
    pub keys: u32,
    /// Mean time from one keystroke to the next; exponential, and independent of the echo.
    pub key_interval: Span,
    /// Bytes from the client for each interaction.
    pub input: Bytes,
    /// Bytes of an echo.
    pub echo: Bytes,
    /// Steps of scrolling.
    pub scrolls: u32,
    /// Time from one step to the next, independent of their display: a key that repeats.
    pub scroll_interval: Span,
    /// Bytes of the display of a step.
    pub scroll: Bytes,
    /// Bytes of an update of a window.
    pub window: Bytes,
    /// Bytes of the display of a file.
    pub open: Bytes,
    /// Time of the server to open a file.
    pub open_time: Span,
}

impl Default for Generated {
    fn default() -> Self {
        Self {
            rounds: 10,
            think: Span::from_secs(2),
            keys: 40,
            key_interval: Span::from_millis(200),
            input: Bytes::new(36),
            echo: Bytes::new(44),
            scrolls: 20,
            scroll_interval: Span::from_millis(100),
            scroll: Bytes::new(500),
            window: Bytes::new(10_000),
            open: Bytes::new(30_000),
            open_time: Span::from_millis(100),
        }
    }
}

/// A setting that is out of range.
pub type SettingError = crate::voice::SettingError;

impl Generated {
    /// Longest time of a setting: a day.
    const LONGEST: Span = Span::from_secs(24 * 3600);
    /// Most bytes of an interaction.
    const MOST_BYTES: u64 = 1 << 30;
    /// Most interactions in all.
    const MOST: u64 = 10_000_000;

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |field, message: &'static str| Err(SettingError { field, message: message.into() });
        let bytes = [
            ("input", self.input),
            ("echo", self.echo),
            ("scroll", self.scroll),
            ("window", self.window),
            ("open", self.open),
        ];
        if let Some((field, _)) = bytes.iter().find(|(_, bytes)| !(1..=Self::MOST_BYTES).contains(&bytes.get())) {
            return wrong(field, "an interaction has 1 byte to 1 GiB each way");
        }
        let times = [
            ("think", self.think),
            ("key_interval", self.key_interval),
            ("scroll_interval", self.scroll_interval),
            ("open_time", self.open_time),
        ];
        if let Some((field, _)) = times.iter().find(|(_, time)| *time > Self::LONGEST) {
            return wrong(field, "it is at most one day");
        }
        let round = u64::from(self.keys) + u64::from(self.scrolls) + 2;
        if self.rounds == 0 || round * u64::from(self.rounds) > Self::MOST {
            return wrong("rounds", "a session has at least one round, and at most 10,000,000 interactions");
        }
        Ok(())
    }

    /// The session, with the intervals of keystrokes from `random`.
    pub fn script(&self, random: &mut RandomStream) -> Script {
        let mut script = Script::default();
        let size = |bytes: Bytes| bytes.get() as u32;
        let interaction = |waits, pause, response, processing| Exchange {
            kind: 0,
            waits,
            pause,
            request: size(self.input),
            response: size(response),
            processing,
        };
        for _ in 0..self.rounds {
            for key in 0..self.keys {
                let mean = self.key_interval.as_secs_f64();
                let interval = Span::from_secs_f64(-mean * libm::log(1.0 - random.uniform()));
                let pause = if key == 0 { self.think } else { interval };
                script.add("key", interaction(key == 0, pause, self.echo, Span::ZERO));
            }
            for step in 0..self.scrolls {
                let pause = if step == 0 { self.think } else { self.scroll_interval };
                script.add("scroll", interaction(step == 0, pause, self.scroll, Span::ZERO));
            }
            script.add("window", interaction(true, self.think, self.window, Span::ZERO));
            script.add("open", interaction(true, self.think, self.open, self.open_time));
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::Seed;

    use super::*;

    #[test]
    fn a_generated_session_has_the_stated_parts() {
        let generated = Generated { rounds: 300, ..Generated::default() };
        let script = generated.script(&mut Seed::new(1).stream("session"));
        let kinds: Vec<&str> = script.kinds.iter().map(String::as_str).collect();
        assert_eq!(kinds, KINDS);
        assert_eq!(script.exchanges.len(), 300 * 62);
        let keys: Vec<_> = script.exchanges.iter().filter(|each| each.kind == 0 && !each.waits).collect();
        let mean = keys.iter().map(|key| key.pause.as_secs_f64()).sum::<f64>() / keys.len() as f64;
        // 11,700 exponential intervals: the standard error of the mean is 0.9 %.
        assert!((mean - 0.2).abs() < 0.01, "{mean}");
        assert_eq!(script.exchanges.iter().filter(|each| each.waits).count(), 300 * 4);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let wrong = |generated: Generated| generated.check().expect_err("wrong").field;
        let good = Generated::default();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(wrong(Generated { rounds: 0, ..good }), "rounds");
        assert_eq!(wrong(Generated { keys: u32::MAX, ..good }), "rounds");
        assert_eq!(wrong(Generated { echo: Bytes::ZERO, ..good }), "echo");
        assert_eq!(wrong(Generated { think: Span::from_secs(90_000), ..good }), "think");
    }
}
