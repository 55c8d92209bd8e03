//! Cost of timed wake-ups of a program on this host: the lower bound of the processor time of any
//! emulator that sleeps until packets are due.

use std::io;
use std::time::Duration;

use nix::poll::ppoll;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Wakes up `per_second` times a second and does nothing else. Prints the processor time of a
/// wake-up, in microseconds, the share of a core in per cent, and the mean lateness of a wake-up.
pub fn wake(per_second: u64, seconds: u64) -> io::Result<()> {
    if per_second == 0 || seconds == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it wakes up at least once"));
    }
    // As `airpath link` does: otherwise the kernel delays timers.
    nix::sys::prctl::set_timerslack(1)?;
    let (gap, count) = (Duration::from_secs(1) / u32::try_from(per_second).unwrap_or(u32::MAX), per_second * seconds);
    let time = |clock: ClockId| clock_gettime(clock).map(Duration::from);
    let (cpu, mut due) = (time(ClockId::CLOCK_THREAD_CPUTIME_ID)?, time(ClockId::CLOCK_MONOTONIC)?);
    let mut late = Duration::ZERO;
    for _ in 0..count {
        due += gap;
        let patience = due.saturating_sub(time(ClockId::CLOCK_MONOTONIC)?);
        ppoll(&mut [], Some(TimeSpec::from(patience)), None)?;
        late += time(ClockId::CLOCK_MONOTONIC)?.saturating_sub(due);
    }
    let each = (time(ClockId::CLOCK_THREAD_CPUTIME_ID)? - cpu).as_secs_f64() / count as f64;
    let late = late.as_secs_f64() / count as f64;
    println!("cpu_us={:.2} share={:.2} late_us={:.2}", 1e6 * each, 100.0 * each * per_second as f64, 1e6 * late);
    Ok(())
}
