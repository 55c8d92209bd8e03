//! What a bearer costs by itself: no simulator, no sink, full buffers, polled at its wake-ups. Each
//! name has the simulated time that it covers; 343 s are what 16 MB take at 384 kbit/s.

use std::hint::black_box;
use std::time::Duration;

use airpath_core::{ComponentId, Context, Decibel, Direction, Ecn, FlowId, Instant, Packet, Seed, Slot, Span, UserId};
use airpath_link::Bearer;
use airpath_radio::common::link_adaptation::{Block, Coding, Combining, Decoder, Modulation, SoftBuffer};
use airpath_radio::conditions::Profile;
use airpath_radio::gsm::block_errors::Curve;
use airpath_radio::gsm::gprs::{self, Gprs};
use airpath_radio::study::dch_simple::{self, DchSimple};
use airpath_radio::study::hs_dsch_simple::{self, HsDschSimple};
use airpath_radio::umts::hsdpa::{self, Hsdpa};
use airpath_radio::umts::r99::{self, Umts};
use criterion::{Criterion, criterion_group, criterion_main};

const GPRS: &str = include_str!("../../../presets/gprs-3+1.toml");
const HS_DSCH: &str = include_str!("../../../presets/hs-dsch-384.toml");
const HSDPA: &str = include_str!("../../../presets/hsdpa-cat10.toml");
const CELL: &str = include_str!("../../../presets/hs-dsch-classes-abc.toml");
const PACKET: &str = include_str!("../../../presets/umts-r99-384.toml");
const DCH: &str = include_str!("../../../presets/umts-dch-384.toml");

fn bearers(criterion: &mut Criterion) {
    let hs_dsch: hs_dsch_simple::Config = parameters(HS_DSCH, |_| ());
    criterion.bench_function("hs-dsch-384, 343 s", |bencher| {
        bencher.iter(|| {
            let mut cell = HsDschSimple::new(&hs_dsch, &[None], Seed::new(1), "cell").expect("sound parameters");
            full_buffers(black_box(&mut cell), 1, Span::from_secs(343))
        });
    });

    let dch: dch_simple::Config = parameters(DCH, |_| ());
    criterion.bench_function("umts-dch-384, 343 s", |bencher| {
        bencher.iter(|| {
            let mut bearer = DchSimple::new(&dch, 1, Seed::new(1), "cell").expect("sound parameters");
            full_buffers(black_box(&mut bearer), 1, Span::from_secs(343))
        });
    });

    let gprs: gprs::Config = parameters(GPRS, |_| ());
    for users in [1, 50] {
        criterion.bench_function(&format!("gprs-3+1, {users} mobiles, 60 s"), |bencher| {
            bencher.iter(|| {
                let mut cell = Gprs::new(&gprs, users.into(), Seed::new(1), "cell").expect("sound parameters");
                full_buffers(black_box(&mut cell), users, Span::from_secs(60))
            });
        });
    }

    let packet: r99::Config = parameters(PACKET, |_| ());
    criterion.bench_function("umts-r99-384, 343 s", |bencher| {
        bencher.iter(|| {
            let mut bearer = Umts::new(&packet, 1, Seed::new(1), "cell").expect("sound parameters");
            full_buffers(black_box(&mut bearer), 1, Span::from_secs(343))
        });
    });

    let hsdpa: hsdpa::Config = parameters(HSDPA, |_| ());
    for users in [1, 50] {
        criterion.bench_function(&format!("hsdpa-cat10, {users} users, 60 s"), |bencher| {
            bencher.iter(|| {
                let mut cell = Hsdpa::new(&hsdpa, users, Seed::new(1), "cell").expect("sound parameters");
                full_buffers(black_box(&mut cell), users as u16, Span::from_secs(60))
            });
        });
    }

    for scheduler in ["round-robin", "maximum-ci", "proportional-fair", "least-attained-service", "run2c"] {
        let config: hs_dsch_simple::Config = parameters(CELL, |downlink| {
            downlink.insert("scheduler".to_owned(), scheduler.into());
            // Rates of a cell, not of 50 cells.
            downlink["levels"].as_table_mut().expect("a table").insert("rate_share".to_owned(), "cell".into());
        });
        let classes: Vec<_> = ["a", "b", "c"].iter().cycle().take(50).map(|class| Some((*class).to_owned())).collect();
        criterion.bench_function(&format!("cell of 50 users, {scheduler}, 60 s"), |bencher| {
            bencher.iter(|| {
                let mut cell = HsDschSimple::new(&config, &classes, Seed::new(1), "cell").expect("sound parameters");
                full_buffers(black_box(&mut cell), 50, Span::from_secs(60))
            });
        });
    }
}

/// A look-up for each block of 20 ms, over a C/I that moves up and down.
fn block_errors(criterion: &mut Criterion) {
    let curve = Curve::of("mcs-6", Profile::Tu50, 1);
    criterion.bench_function("block errors, 1000 look-ups", |bencher| {
        bencher.iter(|| (0..1000).map(|i| curve.at(black_box(f64::from(i % 40))).get()).sum::<f64>());
    });
}

/// Block errors of LTE and NR, once for each block, and all four transmissions of one.
fn link_adaptation(criterion: &mut Criterion) {
    let decoder = Decoder::new(Coding::Ldpc);
    let block = Block { modulation: Modulation::Qam64, bits: 60_456, symbols: 51 * 132 * 2 };
    let snr = |i: i32| Decibel::new(black_box(f64::from(i % 40))).expect("finite");
    criterion.bench_function("normal approximation, 1000 blocks", |bencher| {
        bencher.iter(|| (0..1000).map(|i| decoder.errors(&block, snr(i)).get()).sum::<f64>());
    });
    criterion.bench_function("incremental redundancy, 1000 blocks of 4 transmissions", |bencher| {
        let one = |i| {
            let mut buffer = SoftBuffer::new(decoder, Combining::IncrementalRedundancy, block);
            (0..4).map(|_| buffer.receive(block.symbols, snr(i)).get()).sum::<f64>()
        };
        bencher.iter(|| (0..1000).map(one).sum::<f64>());
    });
}

/// The parameters of a preset, and what `set` makes of its downlink.
fn parameters<C: serde::de::DeserializeOwned>(preset: &str, set: impl Fn(&mut toml::Table)) -> C {
    let preset: toml::Table = preset.parse().expect("a shipped preset");
    let mut bearer = preset["bearer"].as_table().expect("a table").clone();
    bearer.remove("model");
    set(bearer["downlink"].as_table_mut().expect("a table"));
    bearer.try_into().expect("sound parameters")
}

/// Keeps 20 packets of 1500 bytes of each of `users` inside for `time`; returns how many got
/// through.
fn full_buffers(bearer: &mut impl Bearer, users: u16, time: Span) -> u64 {
    let mut lost = Vec::new();
    let mut cx = Context::new(None, &mut lost, ComponentId(0));
    let packet = |user| Packet { id: 0, size: 1500, flow: FlowId(0), user, ecn: Ecn::NotEct, slot: Slot(0) };
    for user in (0..users).map(|user: u16| UserId::new(user.into())) {
        (0..20).for_each(|_| _ = bearer.push(Instant::ZERO, Direction::Down, packet(user), &mut cx));
    }
    let mut delivered = 0;
    while let Some(now) = bearer.next_wakeup().filter(|now| *now <= Instant::ZERO + time) {
        while let Some((_, departure)) = bearer.pop(now, &mut cx) {
            delivered += 1;
            bearer.push(now, Direction::Down, packet(departure.packet.user), &mut cx);
        }
    }
    delivered
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_millis(500));
    targets = bearers, block_errors, link_adaptation
}
criterion_main!(benches);
