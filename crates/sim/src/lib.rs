//! The virtual clock: event queue and topology.
