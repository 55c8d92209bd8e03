//! The captures of the repository and the shared ones: every file is read, and no segment is
//! missed.

use std::fs::File;
use std::path::Path;

use airpath_capture::decode::{Decoded, Decoder};
use airpath_capture::read::Reader;

#[test]
fn every_segment_of_the_repositorys_captures_is_found() {
    let files = assert_all_found(&airpath_testing::captures(), "README.md");
    assert!(files >= 12, "the index lists {files} of the files that are there");
}

#[test]
fn every_segment_of_the_shared_captures_is_found() {
    let Some(folder) = airpath_testing::shared_captures() else { return };
    let files = assert_all_found(&folder, "INDEX.md");
    assert!(files > 50, "the index lists {files} of the files that are there");
}

/// Reads the captures that an index lists, and compares the number of their segments. The number of
/// the captures.
fn assert_all_found(folder: &Path, index: &str) -> u32 {
    let index = std::fs::read_to_string(folder.join(index)).expect("the folder has an index");
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
    files
}

/// File and number of TCP packets of a row of the index's table.
fn row(line: &str) -> Option<(&str, u64)> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    Some((*cells.get(1)?, cells.get(5)?.parse().ok()?))
}
