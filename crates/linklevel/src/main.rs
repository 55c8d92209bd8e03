//! Generates the block error tables of `airpath-radio`, and compares them with the points of the
//! standard.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airpath_linklevel::{compare, schemes, table};

const USAGE: &str = "usage: linklevel table [SCHEME]… [--seed N] [--blocks N] [--out FOLDER]
         without a scheme: all; without a folder: to standard output
         blocks of each profile, if not given: 20000, 5000 where transmissions are combined
       linklevel compare FOLDER
         tables in FOLDER beside the reference points of TS 45.005; writes FOLDER/implementation-loss.csv";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next().as_deref() {
        Some("table") => Arguments::parse(words).and_then(|arguments| arguments.make()),
        Some("compare") => {
            words.next().ok_or("compare needs a folder".into()).and_then(|folder| compare(folder.as_ref()))
        }
        _ => Err("the command is `table` or `compare`".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("linklevel: {message}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    schemes: Vec<schemes::Scheme>,
    seed: u64,
    blocks: Option<u32>,
    out: Option<PathBuf>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { schemes: Vec::new(), seed: 1, blocks: None, out: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: String| text.parse::<u32>().map_err(|_| format!("{word}: '{text}' is not a number"));
            match word.as_str() {
                "--seed" => arguments.seed = number(value()?)?.into(),
                "--blocks" => match number(value()?)? {
                    blocks if blocks >= 2 * table::LEAST => arguments.blocks = Some(blocks),
                    _ => return Err(format!("--blocks: at least {}", 2 * table::LEAST)),
                },
                "--out" => arguments.out = Some(value()?.into()),
                name => {
                    arguments.schemes.push(schemes::named(name).ok_or_else(|| format!("unknown scheme '{name}'"))?);
                }
            }
        }
        if arguments.schemes.is_empty() {
            arguments.schemes = schemes::all();
        }
        Ok(arguments)
    }

    fn make(&self) -> Result<(), String> {
        for scheme in &self.schemes {
            let blocks = self.blocks.unwrap_or(if scheme.attempts > 1 { 5_000 } else { 20_000 });
            let csv = table::table(scheme, self.seed, blocks);
            match &self.out {
                None => print!("{csv}"),
                Some(folder) => write(&folder.join(format!("{}.csv", scheme.name)), &csv)?,
            }
        }
        Ok(())
    }
}

fn compare(folder: &Path) -> Result<(), String> {
    let compared = compare::compare(|scheme| {
        let path = folder.join(format!("{scheme}.csv"));
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    })?;
    println!("{}", compare::markdown(&compared));
    let losses = compare::losses(&compared);
    println!("{losses}");
    write(&folder.join("implementation-loss.csv"), &losses)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("{}", path.display());
    Ok(())
}
