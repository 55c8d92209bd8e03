//! Two ends: captures of the same connections, taken at both, joined.
//!
//! ```text
//! capture A ─► tap ─┐
//!                   ├─► connections matched ─► packets paired ─► clocks fitted ─► what became of each packet
//! capture B ─► tap ─┘
//! ```
//!
//! All times of a [`Joined`] are of the first capture's clock. Unlike the rest of the crate, this keeps every packet of the
//! connections: 80 bytes a packet and capture.

mod clock;
mod compression;
mod connections;
mod pairing;
mod passage;
mod path_log;
mod quantiles;
mod silence;
mod tap;

use airpath_core::Span;

use airpath_observe::End;
use airpath_observe::flows::FlowNumber;
use airpath_wire::segment::Route;

pub use clock::{Clock, Fit};
pub use compression::Compression;
pub use passage::{Direction, Fate, Passage};
pub use quantiles::Quantiles;
pub use silence::{Burst, Silence};
pub use tap::{Packet, Tap};

/// A connection that both captures have.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// Its number in the first capture.
    pub flow: FlowNumber,
    /// Its number in the second.
    pub peer_flow: FlowNumber,
    /// From client to server, as the first capture has it: a translator may have changed addresses and ports between the two.
    pub route: Route,
    /// The same in the second.
    pub peer_route: Route,
    /// Which end the first capture was taken nearer to.
    pub near: End,
    /// What client and server sent.
    pub directions: [Direction; 2],
}

impl Joined {
    /// What `end` sent.
    pub const fn sent_by(&self, end: End) -> &Direction {
        &self.directions[end as usize]
    }
}

/// Two captures joined.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoEnds {
    /// How the second capture's clock is turned into the first's.
    pub clock: Clock,
    /// How the clock was found; `None` where it was given.
    pub fit: Option<Fit>,
    /// The connections that both captures have, in the order of their numbers in the first.
    pub connections: Vec<Joined>,
}

impl TwoEnds {
    /// The connection that has that number in the first capture.
    pub fn connection(&self, flow: FlowNumber) -> Option<&Joined> {
        let at = self.connections.binary_search_by_key(&flow, |joined| joined.flow).ok()?;
        self.connections.get(at)
    }
}

/// What joining needs to be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinOptions {
    /// The second capture's clock where it is known: [`Clock::SAME`] for captures of one machine.
    pub clock: Option<Clock>,
    /// Time without an arrival from which a silence is told of.
    pub silence: Span,
}

impl Default for JoinOptions {
    fn default() -> Self {
        Self { clock: None, silence: Span::from_millis(300) }
    }
}

/// Why captures cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// They share no connection.
    #[error(
        "the captures share no connection: of {first} and {second} none have the same sequence numbers; \
         were they taken at the same time, and is a proxy between them?"
    )]
    NothingShared {
        /// Connections in the first capture.
        first: usize,
        /// Connections in the second.
        second: usize,
    },
    /// Packets of one direction only are in both.
    #[error(
        "the clocks cannot be compared: packets that are in both captures go one way only; say how the clocks differ, or capture both ways"
    )]
    OneWay,
}

/// Joins what two taps took.
///
/// # Errors
/// Where the captures share no connection, or the clocks cannot be compared.
pub fn join(first: Tap, second: Tap, options: &JoinOptions) -> Result<TwoEnds, JoinError> {
    let (first, second) = (first.finish(), second.finish());
    let nothing = JoinError::NothingShared { first: first.len(), second: second.len() };
    let paired: Vec<pairing::Paired> =
        connections::matched(first, second).into_iter().filter_map(|(one, other)| pairing::pair(one, other)).collect();
    if paired.is_empty() {
        return Err(nothing);
    }
    let (clock, fit) = match options.clock {
        Some(clock) => (clock, None),
        None => {
            let fit = clock::fit(&paired).ok_or(JoinError::OneWay)?;
            (fit.clock, Some(fit))
        }
    };
    let connections = paired.into_iter().map(|paired| passage::joined(paired, &clock, options)).collect();
    Ok(TwoEnds { clock, fit, connections })
}

#[cfg(test)]
mod tests;
