//! The events of two cells that serve one mobile: each packet is reported once, and the tracks are
//! those of the cell that carries it.

use airpath_core::{Aspect, Classes, ComponentId, Context, Direction, Event, Instant, PacketStep, Sink, StateEvent};

use super::config::CellGroup;

/// Passes the events of one cell on. [`EnDc`](super::EnDc) itself reports where packets end.
pub struct OfCell<'a, 'b, F> {
    pub cx: &'a mut Context<'b>,
    pub group: CellGroup,
    /// The cell that carries a direction of a mobile.
    pub carrier: F,
}

impl<F: Fn(usize, Direction) -> CellGroup> OfCell<'_, '_, F> {
    /// Whether a state is one of the mobile, rather than of a cell that does not carry it now.
    fn concerns(&self, state: &StateEvent) -> bool {
        let carrier = (self.carrier)(state.user.index(), state.direction.unwrap_or(Direction::Down));
        match state.aspect {
            Aspect::Rrc => self.group == CellGroup::Master,
            Aspect::Mode => self.group == CellGroup::Master || self.group == carrier,
            _ => self.group == carrier,
        }
    }
}

impl<F: Fn(usize, Direction) -> CellGroup> Sink for OfCell<'_, '_, F> {
    fn wants(&self) -> Classes {
        self.cx.wanted()
    }

    fn record(&mut self, time: Instant, _: ComponentId, event: &Event) {
        match event {
            Event::Packet(event) => {
                if let PacketStep::Queued { .. } = event.step {
                    self.cx.direction = event.direction;
                    self.cx.packet(time, event.packet, || event.step);
                }
            }
            Event::State(state) if self.concerns(state) => self.cx.state(time, || *state),
            Event::Radio(event) => self.cx.radio(time, || *event),
            _ => {}
        }
    }
}
