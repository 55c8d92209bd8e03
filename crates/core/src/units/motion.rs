//! Lengths, speeds and frequencies, for radio conditions.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{UnitError, parse_quantity, print_quantity, serde_as_text};

/// A length or position. Written `"3 km"`, `"250 m"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u64);

const LENGTH_UNITS: &[(&str, u64)] = &[("mm", 1), ("m", 1_000), ("km", 1_000_000)];

impl Length {
    /// `metres` metres.
    pub const fn from_metres(metres: u64) -> Self {
        Self(metres * 1_000)
    }

    /// The number of metres.
    pub fn as_metres(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_quantity("length", text, LENGTH_UNITS).map(Self)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("0 m"),
            length => print_quantity(f, length, LENGTH_UNITS),
        }
    }
}

serde_as_text!(Length, "a length such as \"3 km\"");

/// A speed. Written `"50 km/h"`, `"1.5 m/s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(u64);

// Both are whole multiples of a millimetre per hour.
const SPEED_UNITS: &[(&str, u64)] = &[("mm/h", 1), ("km/h", 1_000_000), ("m/s", 3_600_000)];

impl Speed {
    /// The speed in metres per second.
    pub fn as_metres_per_second(self) -> f64 {
        self.0 as f64 / 3.6e6
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Speed {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_quantity("speed", text, SPEED_UNITS).map(Self)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_quantity(f, self.0, &SPEED_UNITS[..2])
    }
}

serde_as_text!(Speed, "a speed such as \"50 km/h\"");

/// A frequency. Written `"900 MHz"`, `"2.1 GHz"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(u64);

const FREQUENCY_UNITS: &[(&str, u64)] = &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];

impl Frequency {
    /// The frequency in megahertz.
    pub fn as_megahertz(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl FromStr for Frequency {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse_quantity("frequency", text, FREQUENCY_UNITS)? {
            0 => Err(UnitError::OutOfRange { text: text.into(), what: "frequency above zero", base: "Hz" }),
            hertz => Ok(Self(hertz)),
        }
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_quantity(f, self.0, FREQUENCY_UNITS)
    }
}

serde_as_text!(Frequency, "a frequency such as \"900 MHz\"");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn they_print_in_customary_units() {
        let same = |text: &str| assert_eq!(text.parse::<Length>().expect(text).to_string(), text);
        ["3 km", "2.5 km", "250 m", "0 m", "7 mm"].into_iter().for_each(same);
        assert_eq!("13.5 m/s".parse::<Speed>().expect("a speed").to_string(), "48.6 km/h");
        assert_eq!("0 m/s".parse::<Speed>().expect("a speed").to_string(), "0 km/h");
        assert_eq!("0.9 GHz".parse::<Frequency>().expect("a frequency").to_string(), "900 MHz");
        assert!("0 Hz".parse::<Frequency>().expect_err("nothing").to_string().contains("above zero"));
        assert!("-3 m".parse::<Length>().expect_err("negative").to_string().contains("a length is not"));
    }

    proptest! {
        #[test]
        fn every_value_prints_to_what_it_parses_from(length: u64, speed: u64, frequency in 1u64..) {
            prop_assert_eq!(Length(length).to_string().parse(), Ok(Length(length)));
            prop_assert_eq!(Speed(speed).to_string().parse(), Ok(Speed(speed)));
            prop_assert_eq!(Frequency(frequency).to_string().parse(), Ok(Frequency(frequency)));
        }
    }
}
