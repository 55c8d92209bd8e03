//! Work to put on a path.
