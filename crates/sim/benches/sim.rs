//! What whole runs cost: the scenarios of `benches/scenarios`, each from its objects to its end.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use airpath_core::Seed;
use airpath_scenario::Scenario;
use airpath_sim::Setup;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn run(criterion: &mut Criterion, name: &str, sets: &[(&str, &str)], title: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/scenarios").join(name);
    let text = std::fs::read_to_string(&path).expect("the scenarios lie beside the benchmarks");
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::read(&text, name, path.parent().expect("a folder"), &sets).expect("it is valid");
    let setup = || Setup::new(&scenario, Seed::new(scenario.seed)).expect("it can be built");
    let stop = AtomicBool::new(false);
    criterion.bench_function(title, |bencher| {
        bencher.iter_batched(setup, |setup| setup.start(None, None).run(&stop), BatchSize::PerIteration);
    });
}

fn runs(criterion: &mut Criterion) {
    run(criterion, "thesis.toml", &[], "16 MB over a wire");
    run(criterion, "hs-dsch.toml", &[], "16 MB over HS-DSCH");
    run(criterion, "hs-dsch-idle.toml", &[], "16 MB over HS-DSCH beside 1000 idle users");
    run(criterion, "cell-50.toml", &[("duration", "10 s")], "cell of 50 users, 10 s");
    run(criterion, "page-wired.toml", &[], "page of 46 objects over a wire");
    run(criterion, "page-gprs.toml", &[], "page of 46 objects over GPRS");
    run(criterion, "page-umts.toml", &[], "page of 46 objects over UMTS");
    run(criterion, "flows.toml", &[("duration", "1 s")], "1 Gbit/s, 1 s");
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = runs
}
criterion_main!(benches);
