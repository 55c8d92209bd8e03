//! The scenes that are shipped, by name: they can be commanded while a link runs.

use serde::Deserialize;

use super::Config;

/// Name and text of each.
const SCENES: [(&str, &str); 4] = [
    ("driving", include_str!("../../../../presets/scenes/driving.toml")),
    ("indoor", include_str!("../../../../presets/scenes/indoor.toml")),
    ("outdoor", include_str!("../../../../presets/scenes/outdoor.toml")),
    ("walking", include_str!("../../../../presets/scenes/walking.toml")),
];

/// Of the file, only the conditions: the rest is for people.
#[derive(Deserialize)]
struct File {
    conditions: Config,
}

/// The names of all scenes, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENES.iter().map(|(name, _)| *name)
}

/// The scene called `name`, if there is one. It says nothing of the network.
pub fn scene(name: &str) -> Option<Config> {
    let (_, text) = SCENES.iter().find(|(other, _)| *other == name)?;
    let file: File = toml::from_str(text).expect("a test reads every scene");
    Some(file.conditions)
}
