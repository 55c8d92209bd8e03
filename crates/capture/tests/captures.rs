//! The collection of captures beside the repository, if it is there: every file is read, and no segment is missed.

use std::fs::File;
use std::path::{Path, PathBuf};

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;

/// Where the captures are: below `AIRPATH_SHARED`, or in `shared` beside the repository.
fn captures() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("AIRPATH_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let folder = shared.join("data/captures");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no captures in {}; set AIRPATH_SHARED to the folder that holds data/captures", folder.display());
    None
}

#[test]
fn every_segment_of_the_collection_is_found() {
    let Some(folder) = captures() else { return };
    let index = std::fs::read_to_string(folder.join("INDEX.md")).expect("the collection has an index");
    let mut files = 0;
    for (name, expected) in index.lines().filter_map(row) {
        // The index also lists a few files that were not kept.
        let Ok(file) = File::open(folder.join(name)) else { continue };
        let mut reader = Reader::new(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut decoder = Decoder::default();
        let mut found = 0;
        while let Some(record) = reader.next_record() {
            found += u64::from(matches!(decoder.decode(&record), Decoded::Segment(_)));
        }
        let causes = || reader.skipped().iter().chain(decoder.skipped().iter()).collect::<Vec<_>>();
        assert_eq!(found, expected, "{name}: segments in {} frames, without {:?}", reader.frames(), causes());
        files += 1;
    }
    assert!(files > 50, "the index lists {files} of the files that are there");
}

/// File and number of TCP packets of a row of the index's table.
fn row(line: &str) -> Option<(&str, u64)> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    Some((*cells.get(1)?, cells.get(5)?.parse().ok()?))
}
