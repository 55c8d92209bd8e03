//! How a mobile moves: along a line, once or to and fro.

use airpath_core::{Length, RandomStream, Speed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::ConfigError;
use crate::error::ValueError;

/// A movement along the line on which the cells stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Movement {
    /// How fast. 0 for a mobile that stays where it is.
    pub speed: Speed,
    /// One end of the way; the first cell is at 0.
    pub from: Length,
    /// The other end.
    pub to: Length,
    /// What happens at the ends. Default: `to-and-fro`.
    #[serde(default)]
    pub path: Path,
    /// The start, in the direction of `to`. Without it: drawn uniformly along the path for each
    /// mobile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Length>,
}

/// What happens at the ends of the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// The mobile turns.
    #[default]
    ToAndFro,
    /// The mobile stays at `to`.
    Once,
}

impl Movement {
    pub(super) fn motion(&self, stream: &mut RandomStream) -> Result<Motion, ConfigError> {
        let key = |key: &str| format!("conditions.movement.{key}");
        if self.to < self.from {
            return Err(ValueError::Range { key: key("to"), expected: "at least `from`" }.into());
        }
        if self.start.is_some_and(|start| start < self.from || start > self.to) {
            return Err(ValueError::Range { key: key("start"), expected: "between `from` and `to`" }.into());
        }
        let way = self.to.as_metres() - self.from.as_metres();
        let drawn = stream.uniform() * if self.path == Path::ToAndFro { 2.0 * way } else { way };
        let begin = self.start.map_or(drawn, |start| start.as_metres() - self.from.as_metres());
        Ok(Motion {
            from: self.from.as_metres(),
            way,
            begin,
            speed: self.speed.as_metres_per_second(),
            turns: self.path == Path::ToAndFro,
        })
    }
}

/// A position as a function of time.
#[derive(Clone, Copy, Debug)]
pub struct Motion {
    from: f64,
    way: f64,
    /// How far along the way forth, and back, it begins.
    begin: f64,
    speed: f64,
    turns: bool,
}

impl Motion {
    /// Where it is after `seconds`, in metres.
    #[inline]
    pub fn position(&self, seconds: f64) -> f64 {
        let gone = self.begin + self.speed * seconds;
        if !self.turns {
            return self.from + gone.min(self.way);
        }
        if self.way <= 0.0 {
            return self.from;
        }
        let gone = gone % (2.0 * self.way);
        self.from + if gone <= self.way { gone } else { 2.0 * self.way - gone }
    }

    /// After how many seconds it stays where it is, if it ever does.
    pub fn settles(&self) -> Option<f64> {
        if self.speed <= 0.0 || self.way <= 0.0 {
            return Some(0.0);
        }
        (!self.turns).then(|| ((self.way - self.begin) / self.speed).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Seed;

    fn motion(text: &str) -> Result<Motion, ConfigError> {
        let movement: Movement = toml::from_str(text).expect(text);
        movement.motion(&mut Seed::new(1).stream("a"))
    }

    #[test]
    fn it_turns_or_stays() {
        let turning = motion("speed = \"10 m/s\"\nfrom = \"100 m\"\nto = \"200 m\"\nstart = \"150 m\"").expect("sound");
        let at = |seconds| turning.position(seconds);
        assert_eq!(
            [at(0.0), at(5.0), at(6.0), at(15.0), at(16.0), at(20.0)],
            [150.0, 200.0, 190.0, 100.0, 110.0, 150.0]
        );
        assert_eq!(turning.settles(), None);
        let once = motion("speed = \"10 m/s\"\nfrom = \"0 m\"\nto = \"1 km\"\nstart = \"0 m\"\npath = \"once\"");
        let once = once.expect("sound");
        assert_eq!((once.position(50.0), once.position(1e6), once.settles()), (500.0, 1000.0, Some(100.0)));
        let drawn = motion("speed = \"0 m/s\"\nfrom = \"100 m\"\nto = \"200 m\"").expect("sound");
        assert!((100.0..=200.0).contains(&drawn.position(7.0)));
        assert_eq!(drawn.position(7.0), drawn.position(0.0));
    }

    #[test]
    fn ways_that_make_no_sense_are_refused() {
        let error = |text| motion(text).expect_err(text).to_string();
        assert!(error("speed = \"1 m/s\"\nfrom = \"2 m\"\nto = \"1 m\"").contains("at least `from`"));
        assert!(error("speed = \"1 m/s\"\nfrom = \"2 m\"\nto = \"3 m\"\nstart = \"1 m\"").contains("between"));
    }
}
