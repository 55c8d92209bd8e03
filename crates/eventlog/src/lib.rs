//! The event log as columnar files, written as the run goes.
