//! Radio-bearer switching: which of its formats a dedicated channel uses (TS 25.331 §8.2, on
//! measurements of §14.4).

use airpath_core::{Instant, Span};

use super::config;
use super::radio_link::RadioLink;

/// The switching of one direction.
#[derive(Clone, Debug)]
pub struct Switching {
    config: config::Switching,
    /// When the throughput began to be measured, and the bytes that had been sent by then.
    measured_from: Option<(Instant, u64)>,
}

impl Switching {
    /// Nothing measured yet.
    pub const fn new(config: config::Switching) -> Self {
        Self { config, measured_from: None }
    }

    /// How long nothing is sent while the bearer is reconfigured.
    pub const fn gap(&self) -> Span {
        self.config.gap
    }

    /// The format to change to at `now`, if there is a better one: a slower one if C/I is not
    /// enough for this, or if it would have done for what was sent; a faster one if too much waits.
    pub fn choose(&mut self, now: Instant, link: &RadioLink, ci: f64, waits: u64, sent: u64) -> Option<usize> {
        let (began, sent_before) = *self.measured_from.get_or_insert((now, sent));
        let current = link.format;
        let enough =
            |format: usize, margin: f64| link.needs(&link.formats[format]).is_none_or(|needs| ci >= needs + margin);
        let below = (0..current).rev();
        let chosen = if !enough(current, 0.0) && current > 0 {
            below.into_iter().find(|format| enough(*format, 0.0)).or(Some(0))
        } else if waits > self.config.up_threshold.get()
            && current + 1 < link.formats.len()
            && enough(current + 1, self.config.hysteresis.get())
        {
            Some(current + 1)
        } else if now.since(began) >= self.config.down_after {
            self.measured_from = Some((now, sent));
            let slower = current.checked_sub(1).map(|slower| &link.formats[slower]);
            // What the slower one sends in the time: TTIs times PDUs times their size.
            let carries = |format: &config::Format| {
                now.since(began).as_nanos() / format.tti.as_nanos() * u64::from(format.pdus) * u64::from(link.rlc.pdu)
            };
            slower.filter(|format| sent - sent_before < carries(format)).map(|_| current - 1)
        } else {
            None
        };
        if chosen.is_some() {
            self.measured_from = None;
        }
        chosen
    }
}
