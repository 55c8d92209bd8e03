//! The environments that are shipped, by name: they can be commanded while a link runs.

use serde::Deserialize;

use super::Config;

/// Name and text of each.
const ENVIRONMENTS: [(&str, &str); 6] = [
    ("cell-edge", include_str!("../../../../presets/environments/cell-edge.toml")),
    ("driving", include_str!("../../../../presets/environments/driving.toml")),
    ("indoor", include_str!("../../../../presets/environments/indoor.toml")),
    ("outdoor", include_str!("../../../../presets/environments/outdoor.toml")),
    ("train", include_str!("../../../../presets/environments/train.toml")),
    ("walking", include_str!("../../../../presets/environments/walking.toml")),
];

/// Of the file, only the conditions: the rest is for people.
#[derive(Deserialize)]
struct File {
    conditions: Config,
}

/// The names of all environments, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENVIRONMENTS.iter().map(|(name, _)| *name)
}

/// The environment called `name`, if there is one. Without the network.
pub fn environment(name: &str) -> Option<Config> {
    let (_, text) = ENVIRONMENTS.iter().find(|(other, _)| *other == name)?;
    let file: File = toml::from_str(text).expect("a test reads every environment");
    Some(file.conditions)
}
