//! `linklevel table NAME… --seed N --blocks N --out FOLDER`: makes the block error tables.

use std::path::PathBuf;
use std::process::ExitCode;

use airpath_linklevel::{schemes, table};

const USAGE: &str = "usage: linklevel table [SCHEME]… [--seed N] [--blocks N] [--out FOLDER]
  without a scheme: all; without a folder: to standard output";

struct Arguments {
    schemes: Vec<schemes::Scheme>,
    seed: u64,
    blocks: u32,
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|arguments| make(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("linklevel: {message}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    if words.next().as_deref() != Some("table") {
        return Err("the command is `table`".into());
    }
    let mut arguments = Arguments { schemes: Vec::new(), seed: 1, blocks: 20_000, out: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{word}: '{text}' is not a number"));
        match word.as_str() {
            "--seed" => arguments.seed = number(value()?)?,
            "--blocks" => {
                let blocks = number(value()?)?;
                let least = 2 * u64::from(table::LEAST);
                let fits = |blocks: &u32| u64::from(*blocks) >= least;
                arguments.blocks =
                    u32::try_from(blocks).ok().filter(fits).ok_or(format!("--blocks: at least {least}"))?;
            }
            "--out" => arguments.out = Some(value()?.into()),
            name => {
                arguments.schemes.push(schemes::named(name).ok_or_else(|| format!("no scheme is called '{name}'"))?)
            }
        }
    }
    if arguments.schemes.is_empty() {
        arguments.schemes = schemes::all();
    }
    Ok(arguments)
}

fn make(Arguments { schemes, seed, blocks, out }: &Arguments) -> Result<(), String> {
    for scheme in schemes {
        let csv = table::table(scheme, *seed, *blocks);
        match out {
            None => print!("{csv}"),
            Some(folder) => {
                let path = folder.join(format!("{}.csv", scheme.name));
                std::fs::write(&path, csv).map_err(|error| format!("{}: {error}", path.display()))?;
                eprintln!("{}", path.display());
            }
        }
    }
    Ok(())
}
