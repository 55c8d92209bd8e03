//! Round trips from a capture point to the far end and back, by the spin bit (RFC 9000 §17.4): the
//! far end turns its bit when a turn of the near end reaches it.

use airpath_core::{Instant, Span};

/// Observes the turns of both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpinRoundTrips {
    /// The bit of the near end.
    bit: Option<bool>,
    /// Whether it was different before: else the ends may not use the bit.
    has_turned: bool,
    /// When the near end turned its bit, until the far end answers that.
    turned: Option<Instant>,
    /// The last round trip since the data began.
    latest: Option<Span>,
    /// The last round trip of all.
    last: Option<Span>,
    samples: u32,
    /// Turns that came before the other end's: the bits are random, or datagrams were reordered.
    irregular: u32,
}

impl SpinRoundTrips {
    /// Takes the bit of a datagram of the near end. The first one of a client begins to turn.
    pub(super) fn sent(&mut self, bit: bool, is_client: bool, now: Instant) {
        let before = self.bit.replace(bit);
        if before.is_some_and(|before| before == bit) || before.is_none() && !is_client {
            return;
        }
        self.has_turned |= before.is_some();
        self.irregular += u32::from(self.turned.is_some());
        self.turned = Some(now);
    }

    /// Takes the bit of a datagram of the far end; returns the round trip that it ends. The server
    /// repeats the bit of the client, and the client turns that of the server.
    pub(super) fn arrived(&mut self, bit: bool, is_client: bool, now: Instant) -> Option<Span> {
        if self.bit? == (bit ^ is_client) {
            let round_trip = now.since(self.turned.take()?);
            self.samples += 1;
            (self.latest, self.last) = (Some(round_trip), Some(round_trip));
            return self.latest;
        }
        None
    }

    /// Whether the ends turn their bits once a round trip.
    pub(super) const fn is_known(&self) -> bool {
        self.has_turned && self.samples > 0 && self.irregular * 4 <= self.samples
    }

    /// The last round trip, also if a pause followed it.
    pub(super) fn last_sample(&self) -> Option<Span> {
        self.last.filter(|_| self.is_known())
    }

    /// The last round trip since the data began, or the present one, if it already takes longer;
    /// `None` before the first, and where the bits show none.
    pub(super) fn latest(&self, now: Instant) -> Option<Span> {
        let latest = self.latest.filter(|_| self.is_known())?;
        Some(self.turned.map_or(latest, |turned| latest.max(now.since(turned))))
    }

    /// Nothing was outstanding for a while: the next turn shows how long the ends waited.
    pub(super) const fn skip_turn(&mut self) {
        self.turned = None;
    }

    /// The ends send nothing for longer than a round trip.
    pub(super) const fn restart(&mut self) {
        self.skip_turn();
        self.latest = None;
    }
}
