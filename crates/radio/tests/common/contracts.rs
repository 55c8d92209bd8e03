//! The contracts of bearers under random traffic of both directions.

use airpath_core::{Direction, Instant, Span};
use airpath_link::Bearer;
use airpath_link::testing::{Commands, Script, Traffic, contracts, idle_sleeps, order_kept};

/// Traffic of this number of mobiles, in both directions, with this mean time between bursts.
pub fn traffic(packets: usize, users: u16, gap: Span) -> Traffic {
    Traffic { packets, gap, users, directions: &Direction::BOTH, ..Traffic::default() }
}

/// Checks the contracts of a bearer to the end, which comes `rest` after the last packet, and cut
/// off while packets are inside; without commands, and with commands up to there.
pub fn keeps_contracts<B: Bearer>(
    make: impl Fn() -> B + Copy,
    traffic: &Traffic,
    seed: u64,
    rest: Span,
    keeps_order: bool,
) {
    let arrivals = traffic.arrivals(seed);
    let horizon = arrivals[traffic.packets - 1].at + rest;
    let middle = arrivals[traffic.packets * 2 / 3].at;
    let commands = Commands { commands: 8, until: middle, users: traffic.users, classes: &[], reorder: false };
    let commands = commands.draw(middle.as_nanos());
    for commands in [&[][..], &commands] {
        let script = Script { arrivals: &arrivals, commands };
        contracts(make, script, horizon);
        contracts(make, script, middle);
        if keeps_order {
            order_kept(make, script, horizon);
        }
    }
    idle_sleeps(make, &arrivals, horizon);
}

/// Checks the contracts of a cell of HSDPA.
pub fn keeps_contracts_of_hsdpa<B: Bearer>(
    make: impl Fn() -> B + Copy,
    users: u16,
    gap: Span,
    seed: u64,
    end: Instant,
) {
    let arrivals = traffic(60, users, gap).arrivals(seed);
    contracts(make, &arrivals, end);
    idle_sleeps(make, &arrivals, end);
    order_kept(make, &arrivals, end);
}

/// The same while its conditions change, without the order of packets.
pub fn keeps_contracts_with_commands<B: Bearer>(make: impl Fn() -> B + Copy, users: u16, seed: u64, end: Instant) {
    let arrivals = traffic(60, users, Span::from_millis(50)).arrivals(seed);
    let until = Instant::from_nanos(4_000_000_000);
    let commands = Commands { commands: 12, until, users, classes: &[], reorder: false }.draw(seed);
    contracts(make, Script { arrivals: &arrivals, commands: &commands }, end);
}
