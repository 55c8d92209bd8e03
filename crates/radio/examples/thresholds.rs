//! Prints from which C/I on each coding scheme delivers more than the one before it: thresholds for
//! `adaptation.ci`.
//!
//! ```sh
//! cargo run -p airpath-radio --example thresholds -- tu50 mcs-1 mcs-5 mcs-6 mcs-7 mcs-8 mcs-9
//! ```

use airpath_radio::conditions::Profile;
use airpath_radio::gsm::gprs::{CodingScheme, crossing};

const USAGE: &str = "usage: thresholds static|tu3|tu3-hopping|tu50 SCHEME SCHEME…
       the schemes from the most robust to the fastest, as cs-1 or mcs-9";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match thresholds(&words) {
        Ok(lines) => lines.iter().for_each(|line| println!("{line}")),
        Err(message) => {
            eprintln!("thresholds: {message}\n{USAGE}");
            std::process::exit(1);
        }
    }
}

fn thresholds(words: &[String]) -> Result<Vec<String>, String> {
    let [profile, schemes @ ..] = words else { return Err("no profile is given".into()) };
    let profile = [Profile::Static, Profile::Tu3, Profile::Tu3Hopping, Profile::Tu50]
        .into_iter()
        .zip(["static", "tu3", "tu3-hopping", "tu50"])
        .find_map(|(each, name)| (name == profile).then_some(each))
        .ok_or_else(|| format!("no profile is called '{profile}'"))?;
    let scheme = |name: &String| {
        let found = CodingScheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| format!("no scheme is called '{name}'"))
    };
    let schemes: Vec<CodingScheme> = schemes.iter().map(scheme).collect::<Result<_, _>>()?;
    if schemes.len() < 2 {
        return Err("at least two schemes are needed".into());
    }
    Ok(schemes.windows(2).map(|pair| format!("{} {:.1} dB", pair[1], crossing(pair[0], pair[1], profile))).collect())
}
