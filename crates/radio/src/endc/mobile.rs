//! What a mobile has above its two cells.

use airpath_core::{Aspect, CellGroupState, Context, Direction, Instant, Span, UserId, earliest};

use super::config::{CellGroup, Uplink};
use super::filter::Filter;
use super::pdcp::Pdcp;
use super::secondary_group::{Parameters, SecondaryGroup};
use crate::common::log::Tracks;

/// A mobile.
#[derive(Debug)]
pub struct Mobile {
    pub group: SecondaryGroup,
    /// Of the measurements of NR.
    pub filter: Filter,
    /// Of the downlink and of the uplink.
    pub pdcp: [Pdcp; 2],
    /// Packets that have not left, in the cells or behind them.
    pub inside: u64,
    /// Whether it is one of those whose uplink may be split.
    pub is_splitting: bool,
    tracks: Tracks,
}

impl Mobile {
    /// Without a packet.
    pub fn new(user: UserId, t_reordering: Span) -> Self {
        Self {
            group: SecondaryGroup::Absent,
            filter: Filter::default(),
            pdcp: [Pdcp::new(t_reordering), Pdcp::new(t_reordering)],
            inside: 0,
            is_splitting: false,
            tracks: Tracks::new(user),
        }
    }

    /// A connection of LTE is there from `now` on.
    pub fn configure(&mut self, now: Instant, parameters: &Parameters) {
        self.group.configure(now, parameters);
        self.filter = Filter::default();
    }

    /// The cell group that carries a direction, without the split of the uplink.
    pub fn carrier(&self, direction: Direction, uplink: &Uplink) -> CellGroup {
        match direction {
            _ if !self.group.is_active() => CellGroup::Master,
            Direction::Down => CellGroup::Secondary,
            Direction::Up => uplink.primary_path,
        }
    }

    /// A cell has dropped a packet: its direction.
    pub fn withdraw(&mut self, now: Instant, id: u64) -> Option<Direction> {
        Direction::BOTH.into_iter().find(|direction| self.pdcp[*direction as usize].withdraw(now, id))
    }

    /// When something happens outside the cells.
    pub fn next_event(&self) -> Option<Instant> {
        let [down, up] = &self.pdcp;
        earliest([down.next_timer(), up.next_timer(), self.group.next_event()])
    }

    /// Reports the cell group that carries the downlink.
    pub fn report(&mut self, at: Instant, group: CellGroupState, cx: &mut Context<'_>) {
        self.tracks.report(at, None, Aspect::CellGroup, group.into(), cx);
    }
}
