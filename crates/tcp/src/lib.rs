//! A TCP end point without I/O.
