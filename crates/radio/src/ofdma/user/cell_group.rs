//! What a mobile with dual connectivity does in the cell of one of its cell groups: packets move
//! from one cell to the other, which begins and ends to serve it (TS 37.340 §10).

use airpath_core::{Context, Direction, DropCause, Instant, Packet};

use super::User;
use crate::conditions::Sample;
use crate::ofdma::plan::Plan;
use crate::ofdma::rrc::State;

/// The RRC connection of a mobile, without what concerns one cell only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// There is none.
    None,
    /// It is set up until then.
    SetUp(Instant),
    /// It is there. Without a packet, it is released then.
    Until(Instant),
    /// It is always there.
    Always,
}

impl User {
    /// The RRC connection.
    pub(crate) fn connection(&self) -> Connection {
        match self.rrc.state() {
            State::Idle | State::Inactive => Connection::None,
            State::Promotion(until) => Connection::SetUp(until),
            State::Connected => self.rrc.released_at().map_or(Connection::Always, Connection::Until),
        }
    }

    /// A packet crosses the other cell at `now`: the connection stays.
    pub(crate) fn keep_connection(&mut self, now: Instant) {
        self.rrc.active(now);
    }

    /// Why the layers below PDCP have started again since the last call.
    pub(crate) fn take_re_establishment(&mut self) -> Option<DropCause> {
        self.re_established.take()
    }

    /// Whether a cell served it at the last look.
    pub(crate) const fn is_covered(&self) -> bool {
        self.movement.is_covered()
    }

    /// Whether the radio never changes without a command.
    pub(crate) fn is_constant(&self) -> bool {
        self.conditions.constant().is_some()
    }

    /// When it can send again, after an interruption.
    pub(crate) fn sends_from(&self, now: Instant) -> Instant {
        self.movement.served_from(Direction::Up).max(now)
    }

    /// Measures the radio at `now`.
    pub(crate) fn measure(&mut self, now: Instant, plan: &Plan, cx: &mut Context<'_>) -> Sample {
        self.look_around(now, plan, cx)
    }

    /// The cell begins to serve the mobile.
    pub(crate) fn begin_group(&mut self, now: Instant, cx: &mut Context<'_>) {
        if let Some(drx) = &mut self.drx {
            drx.begin(now);
        }
        self.set_connected(Some(now));
        self.tracks.forget();
        self.report_active(now, cx);
    }

    /// The cell ends to serve the mobile: returns the packets of each direction that did not
    /// arrive, in their order.
    pub(crate) fn end_group(&mut self, now: Instant, cx: &mut Context<'_>) -> [Vec<Packet>; 2] {
        self.reset_mac();
        let packets = Direction::BOTH.map(|direction| {
            let rlc = &mut self.channels(direction).data;
            // The acknowledged mode loses nothing.
            rlc.establish_again(now, DropCause::Handover, cx);
            rlc.take_waiting(now)
        });
        self.shared_up = 0;
        self.set_connected(None);
        self.report_drx(now, cx);
        packets
    }

    /// The packets of a direction that no PDU carries yet, in their order. They leave this cell.
    pub(crate) fn take_waiting(&mut self, now: Instant, direction: Direction) -> Vec<Packet> {
        self.channels(direction).data.take_waiting(now)
    }

    /// Takes over packets from the other cell, before all that waits here. The signalling for it
    /// wakes the mobile up.
    pub(crate) fn take_over(
        &mut self,
        now: Instant,
        direction: Direction,
        packets: Vec<Packet>,
        plan: &mut Plan,
        cx: &mut Context<'_>,
    ) {
        self.channels(direction).data.take_over(packets);
        self.active(now, cx);
        self.prepare(now, plan, cx);
    }

    /// Bytes of the uplink that are granted here, and for which no packets are here.
    pub(crate) fn lacks_up(&self) -> u64 {
        self.harq_up.granted().saturating_sub(self.data_volume(Direction::Up))
    }

    /// Bytes of the uplink that wait in the other cell, and may be sent in this one.
    pub(crate) const fn shared_up(&self) -> u64 {
        self.shared_up
    }

    /// The first packets of the uplink that no PDU carries yet, of at least this number of bytes.
    /// They leave this cell.
    pub(crate) fn take_first_up(&mut self, now: Instant, bytes: u64, cx: &mut Context<'_>) -> Vec<Packet> {
        self.up.data.take_first(now, bytes, cx)
    }

    /// Takes packets of the uplink from the other cell, behind those that are here, where this
    /// number of bytes still waits that may be sent in this one: buffer status reports have them,
    /// too (TS 38.323 §5.6).
    pub(crate) fn share_up(
        &mut self,
        now: Instant,
        packets: Vec<Packet>,
        waiting: u64,
        plan: &mut Plan,
        cx: &mut Context<'_>,
    ) {
        self.up.data.append(packets);
        self.shared_up = waiting;
        self.prepare(now, plan, cx);
    }

    /// Bytes that were not sent completely for the first time (data volume, TS 38.323 §5.6).
    pub(crate) fn data_volume(&self, direction: Direction) -> u64 {
        let channels = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        channels.data.backlog().1
    }

    /// The cell carries all packets of the mobile from now on: all states are reported again.
    pub(crate) fn carry_alone(&mut self) {
        self.shared_up = 0;
        self.tracks.forget();
    }
}
