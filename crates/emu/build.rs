//! The build identity: a hash of the sources whose types are in the state that one process of a
//! live proxy hands over to the next.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Relative to this crate.
const SOURCES: [&str; 7] =
    ["src", "../core/src", "../wire/src", "../tcp/src", "../path/src", "../proxy/src", "../scenario/src/live.rs"];

fn main() {
    let mut files = BTreeSet::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    let mut hash = Fnv::default();
    for file in &files {
        hash.add(file.to_string_lossy().as_bytes());
        hash.add(&fs::read(file).expect("a source can be read"));
    }
    println!("cargo::rustc-env=AIRPATH_STATE={:016x}", hash.0);
}

fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) {
    if path.is_file() {
        files.insert(path.to_owned());
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), files);
    }
}

/// FNV-1a: the same in every build, in contrast to the hashers of the standard library.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
