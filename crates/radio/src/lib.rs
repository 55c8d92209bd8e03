//! Cellular bearers.
