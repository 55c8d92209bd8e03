//! Scenarios and presets: typed TOML in, objects out.
