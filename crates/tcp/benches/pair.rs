//! Cost of both ends of a bulk flow, per data packet: everything but the path itself.

fn main() {}
