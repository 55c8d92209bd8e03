//! Many entities behind one clock: the earliest acts next.

pub(crate) mod due;
pub(crate) mod members;
pub mod path_bearer;
pub(crate) mod paths;
pub(crate) mod tournament;
