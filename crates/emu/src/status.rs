//! A status line in the last row of the terminal, below the output of the command.

use std::cell::Cell;
use std::io::{Stderr, Write, stderr};
use std::rc::Rc;

use airpath_core::{Bytes, Direction, Instant, PacketCounters, Span, UserId};

use crate::forwarder::Forwarder;
use crate::radio_state::RadioState;
use crate::sys;

/// How often the line is drawn.
const PERIOD: Span = Span::from_millis(500);

/// The status line. It reserves the last row of the terminal by excluding that row from the
/// scrolling region.
#[derive(Debug)]
pub struct Status {
    terminal: Stderr,
    rows: u16,
    next: Instant,
    /// When the line was last drawn, and the bytes delivered by then, in the order of
    /// [`Direction::BOTH`].
    before: (Instant, [u64; 2]),
    radio: Rc<Cell<RadioState>>,
}

impl Status {
    /// Reserves the last row of the terminal on standard error; `None` if that is not a terminal,
    /// or too small. The line shows `radio`, which the caller keeps up to date.
    pub fn begin(radio: Rc<Cell<RadioState>>) -> Option<Self> {
        let mut terminal = stderr();
        let (_, rows) = sys::terminal_size(&terminal).filter(|(_, rows)| *rows > 2)?;
        // A new line first, so that no existing text is below the scrolling region (ECMA-48: DECSC,
        // DECSTBM).
        let text = format!("\n\x1b[A\x1b7\x1b[1;{}r\x1b8", rows - 1);
        terminal.write_all(text.as_bytes()).ok()?;
        Some(Self { terminal, rows, next: Instant::ZERO, before: (Instant::ZERO, [0; 2]), radio })
    }

    /// Draws the line if its period has passed; returns the time until the next drawing.
    pub fn show(&mut self, now: Instant, forwarder: &Forwarder<'_>) -> Span {
        if now >= self.next {
            self.next = now + PERIOD;
            self.draw(now, forwarder);
        }
        self.next.since(now)
    }

    fn draw(&mut self, now: Instant, forwarder: &Forwarder<'_>) {
        let Some((columns, rows)) = sys::terminal_size(&self.terminal) else { return };
        let hops: Vec<_> = forwarder.path().hops().collect();
        // Delivered to the end points: by the last hop on the downlink, by the first on the uplink.
        let delivered = |direction| {
            let last = if direction == Direction::Down { hops.last() } else { hops.first() };
            last.map_or(PacketCounters::default(), |(_, hop)| hop.counters(direction)).delivered.bytes
        };
        let queued = |direction| hops.iter().map(|(_, hop)| hop.counters(direction).queued.packets).sum::<u64>();
        let bytes = Direction::BOTH.map(delivered);
        let (then, before) = std::mem::replace(&mut self.before, (now, bytes));
        let rate = |index: usize| {
            let bps = Bytes::new(bytes[index] - before[index]).rate_over(now.since(then)).unwrap_or(0.0);
            format!("{:.0} kbit/s", bps / 1e3)
        };
        let radio = Direction::BOTH.map(|direction| {
            let cell = &hops.last()?.1;
            cell.radio_totals(direction, UserId::new(0)).filter(|totals| totals.pdus > 0)
        });
        let (pdus, repeated) = radio
            .into_iter()
            .flatten()
            .fold((0, 0), |(pdus, repeated), each| (pdus + each.pdus, repeated + each.repeated));
        let radio = (pdus > 0).then(|| format!("{:.1} % repeated", 100.0 * repeated as f64 / pdus as f64));
        let line = fitting(
            [
                format!("airpath {:>6.1} s", now.as_secs_f64()),
                format!("down {} ({} waiting)", rate(0), queued(Direction::Down)),
                format!("up {} ({} waiting)", rate(1), queued(Direction::Up)),
                format!("round trip {:.0} ms", forwarder.transit.into_iter().map(Span::as_secs_f64).sum::<f64>() * 1e3),
                self.radio.get().words(),
                radio.unwrap_or_default(),
                format!("late {:.2} ms", forwarder.lateness.percentile(99.0).as_secs_f64() * 1e3),
            ],
            usize::from(columns),
        );
        // Resizing resets the scrolling region.
        let margin = if rows == self.rows { String::new() } else { format!("\x1b[1;{}r", rows.max(3) - 1) };
        self.rows = rows;
        let text = format!("\x1b7{margin}\x1b[{rows};1H\x1b[2K\x1b[7m{line}\x1b[0m\x1b8");
        let _ = self.terminal.write_all(text.as_bytes());
    }
}

/// The fields in a line, up to the first that does not fit; empty fields are omitted.
fn fitting(fields: impl IntoIterator<Item = String>, columns: usize) -> String {
    let mut line = String::new();
    for field in fields.into_iter().filter(|field| !field.is_empty()) {
        let gap = if line.is_empty() { " " } else { "   " };
        if line.chars().count() + gap.len() + field.chars().count() > columns {
            break;
        }
        line = line + gap + &field;
    }
    line
}

impl Drop for Status {
    /// Releases the row.
    fn drop(&mut self) {
        let text = format!("\x1b7\x1b[r\x1b[{};1H\x1b[2K\x1b8", self.rows);
        let _ = self.terminal.write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_omits_whole_fields() {
        let fields = || ["airpath 1.0 s", "down 7 kbit/s", "", "late 0.1 ms"].map(str::to_owned);
        assert_eq!(fitting(fields(), 80), " airpath 1.0 s   down 7 kbit/s   late 0.1 ms");
        assert_eq!(fitting(fields(), 44), " airpath 1.0 s   down 7 kbit/s   late 0.1 ms");
        assert_eq!(fitting(fields(), 43), " airpath 1.0 s   down 7 kbit/s");
        assert_eq!(fitting(fields(), 9), "");
    }
}
