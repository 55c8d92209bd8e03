//! A scenario that is kept with its result finds its files there, wherever it is read from.

use std::fs;
use std::path::{Path, PathBuf};

use airpath_scenario::Scenario;

/// A folder of the test's own, which is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("airpath-archive-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    /// Writes a recorded link with one opportunity at this time in milliseconds.
    fn recorded(&self, file: &str, millis: u32) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder for the test");
        fs::write(path, format!("{millis}\n")).expect("a file for the test");
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(text: &str, folder: &Path) -> Scenario {
    Scenario::read(text, "s.toml", folder, &[]).expect("good")
}

const WIRED: &str = r#"
format = 1
[fixed]
down = { recorded = "one/link" }
[bearer]
model = "wired"
downlink = { recorded = "two/link" }
uplink = { recorded = "one/link" }
"#;

#[test]
fn each_file_is_kept_once_under_a_name_of_its_own() {
    let here = Temporary::new("names");
    here.recorded("one/link", 1);
    here.recorded("two/link", 2);
    let scenario = read(WIRED, &here.0);
    assert_eq!(scenario.files(), [here.0.join("one/link"), here.0.join("two/link")]);
    let out = here.0.join("out");
    let kept = scenario.archive(&out, "inputs");
    assert_eq!(
        kept.files,
        [
            (PathBuf::from("inputs/link"), here.0.join("one/link")),
            (PathBuf::from("inputs/2-link"), here.0.join("two/link")),
        ]
    );
    for (place, file) in &kept.files {
        fs::create_dir_all(out.join("inputs")).unwrap();
        fs::copy(file, out.join(place)).unwrap();
    }
    // Read where it is kept, it is the same scenario, and keeping it there again changes nothing.
    let again = read(&kept.toml, &out);
    assert_eq!(again.files(), [out.join("inputs/2-link"), out.join("inputs/link")]);
    assert_eq!(again.archive(&out, "inputs").toml, kept.toml);
    assert_eq!(
        again.archive(&here.0, "inputs").toml,
        kept.toml,
        "kept elsewhere, the files go there under their names"
    );
}

#[test]
fn what_lies_there_already_does_not_give_way_to_what_comes() {
    let here = Temporary::new("there");
    here.recorded("one/link", 1);
    here.recorded("inputs/link", 2);
    let kept = read(&WIRED.replace("two/", "inputs/"), &here.0).archive(&here.0, "inputs");
    assert_eq!(
        kept.files,
        [
            (PathBuf::from("inputs/link"), here.0.join("inputs/link")),
            (PathBuf::from("inputs/2-link"), here.0.join("one/link")),
        ]
    );
}

/// The parameters of a preset without the key `key` in `table`, which a file replaces. If the file
/// were added to the preset, both would be set.
fn recorded_instead(preset: &str, table: &str, key: &str, file: &str) -> String {
    let whole = read(&format!("format = 1\n[bearer]\npreset = {preset:?}\n"), Path::new("")).to_toml();
    let (before, behind) = whole.split_once(&format!("[{table}]\n")).expect("the preset has it");
    let (above, value) = behind.split_once(&format!("{key} = ")).expect("the table has it");
    let (_, below) = value.split_once('\n').expect("a line has an end");
    format!("{before}[{table}]\nrecorded = {file:?}\n{above}{below}")
}

#[test]
fn the_uplink_and_the_conditions_of_a_cellular_bearer_may_be_recorded_too() {
    let here = Temporary::new("cellular");
    here.recorded("up", 5);
    fs::write(here.0.join("drive"), "time,ci\n0,20\n10,15\n").unwrap();
    for (preset, table, key, file) in [
        ("hs-dsch-384", "bearer.uplink.link", "rate", "up"),
        ("gprs-3+1", "bearer.conditions", "ci", "drive"),
        ("umts-r99-384", "bearer.conditions", "ci", "drive"),
        ("gsm-csd-9600", "bearer.conditions", "ci", "drive"),
    ] {
        let kept = read(&recorded_instead(preset, table, key, file), &here.0).archive(&here.0.join("out"), "inputs");
        assert_eq!(kept.files, [(Path::new("inputs").join(file), here.0.join(file))]);
        assert!(kept.toml.contains(&format!("recorded = \"inputs/{file}\"")), "{}", kept.toml);
    }
}

#[test]
fn so_may_the_conditions_of_some_mobiles() {
    let here = Temporary::new("mobiles");
    fs::write(here.0.join("drive"), "time,ci\n0,20\n10,15\n").unwrap();
    for preset in ["gprs-3+1", "umts-r99-384", "gsm-csd-9600"] {
        let own = "[[mobile]]\nname = \"far\"\nconditions.recorded = \"drive\"\n[[mobile]]\n";
        let scenario = read(&format!("format = 1\nbearer.preset = {preset:?}\n{own}"), &here.0);
        let kept = scenario.archive(&here.0.join("out"), "inputs");
        assert_eq!(kept.files, [(PathBuf::from("inputs/drive"), here.0.join("drive"))], "{preset}");
        assert!(kept.toml.contains("recorded = \"inputs/drive\""), "{}", kept.toml);
    }
}

#[test]
fn conditions_of_a_mobile_hold_for_that_mobile() {
    for preset in ["gprs-3+1", "umts-r99-384", "gsm-csd-9600"] {
        let own = "[[mobile]]\n[[mobile]]\nname = \"far\"\nconditions.recorded = \"not-there\"\n";
        let text = format!("format = 1\nbearer.preset = {preset:?}\n{own}");
        let error = Scenario::read(&text, "s.toml", Path::new(""), &[]).map(drop).unwrap_err().to_string();
        assert!(error.contains("not-there"), "{preset}: {error}");
    }
}
