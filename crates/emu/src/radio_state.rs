//! The latest radio state that a bearer reported, for the status line.

use std::cell::Cell;
use std::rc::Rc;

use airpath_core::{Aspect, Classes, ComponentId, Direction, Event, Instant, Sink, StateEvent, StateValue, UserId};

/// The latest reported state of the mobile's radio connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioState {
    mode: Option<&'static str>,
    rrc: Option<&'static str>,
    cell_group: Option<&'static str>,
    scheme: Option<&'static str>,
    ratio: Option<f64>,
}

impl RadioState {
    /// Mode, RRC state, cell group, downlink coding scheme and C/I as text; empty if nothing was
    /// reported.
    pub fn words(&self) -> String {
        let ratio = self.ratio.map(|ratio| format!("C/I {ratio:.0} dB"));
        let names = [self.mode, self.rrc, self.cell_group, self.scheme].into_iter().flatten().map(str::to_owned);
        names.chain(ratio).collect::<Vec<_>>().join(", ")
    }

    fn update(&mut self, event: &StateEvent) {
        // Where both directions report, the line shows the downlink; with two bearers, the first.
        if event.direction == Some(Direction::Up) || event.user != UserId::new(0) {
            return;
        }
        match (event.aspect, event.value) {
            (Aspect::Mode, StateValue::Name(name)) => self.mode = Some(name),
            (Aspect::Rrc, StateValue::Name(name)) => self.rrc = Some(name),
            (Aspect::CellGroup, StateValue::Name(name)) => self.cell_group = Some(name),
            (Aspect::Scheme, StateValue::Name(name)) => self.scheme = Some(name),
            (Aspect::CarrierToInterference, StateValue::Number(ratio)) => self.ratio = Some(ratio),
            _ => {}
        }
    }
}

/// A sink that keeps the latest state and forwards events to the log.
pub struct Listener<'a> {
    log: Option<&'a mut dyn Sink>,
    latest: Rc<Cell<RadioState>>,
}

impl<'a> Listener<'a> {
    /// A listener in front of `log`, which keeps the state in `latest`.
    pub fn new(log: Option<&'a mut dyn Sink>, latest: Rc<Cell<RadioState>>) -> Self {
        Self { log, latest }
    }
}

impl Sink for Listener<'_> {
    fn wants(&self) -> Classes {
        self.log.as_ref().map_or(Classes::NONE, |log| log.wants()).with(Classes::STATE)
    }

    fn record(&mut self, time: Instant, at: ComponentId, event: &Event) {
        if let Event::State(event) = event {
            let mut latest = self.latest.get();
            latest.update(event);
            self.latest.set(latest);
        }
        if let Some(log) = &mut self.log {
            let is_wanted = !matches!(event, Event::State(_)) || log.wants().intersects(Classes::STATE);
            if is_wanted {
                log.record(time, at, event);
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.has_failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Memory;

    #[test]
    fn the_latest_state_is_kept_and_the_log_gets_all_events() {
        let latest = Rc::new(Cell::new(RadioState::default()));
        assert_eq!(latest.get().words(), "");
        let mut memory = Memory::default();
        let mut listener = Listener::new(Some(&mut memory), latest.clone());
        let mut report = |direction, aspect, value| {
            let event = Event::State(StateEvent { user: UserId::new(0), direction, aspect, value });
            listener.record(Instant::ZERO, ComponentId(0), &event);
        };
        report(None, Aspect::Mode, StateValue::Name("access"));
        report(None, Aspect::Mode, StateValue::Name("transfer"));
        report(Some(Direction::Down), Aspect::Scheme, StateValue::Name("cs-2"));
        report(Some(Direction::Up), Aspect::Scheme, StateValue::Name("cs-1"));
        report(None, Aspect::CarrierToInterference, StateValue::Number(12.4));
        report(Some(Direction::Down), Aspect::Slots, StateValue::Number(3.0));
        assert_eq!(latest.get().words(), "transfer, cs-2, C/I 12 dB");
        assert_eq!(memory.events.len(), 6);
    }
}
