//! What the status line says of the radio: the latest state that the bearer told, listened to on its way to the log.

use std::cell::Cell;
use std::rc::Rc;

use airpath_core::{Aspect, Classes, ComponentId, Direction, Event, Instant, Sink, StateEvent, StateValue};

/// The latest state of the mobile's radio connection, as far as the bearer tells one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioState {
    mode: Option<&'static str>,
    rrc: Option<&'static str>,
    scheme: Option<&'static str>,
    ratio: Option<f64>,
}

impl RadioState {
    /// In a few words: mode, RRC state, coding scheme down and C/I; empty if the bearer told nothing.
    pub fn words(&self) -> String {
        let ratio = self.ratio.map(|ratio| format!("C/I {ratio:.0} dB"));
        let names = [self.mode, self.rrc, self.scheme].into_iter().flatten().map(str::to_owned);
        names.chain(ratio).collect::<Vec<_>>().join(", ")
    }

    fn update(&mut self, event: &StateEvent) {
        // What goes up is of less interest where both have it.
        if event.direction == Some(Direction::Up) {
            return;
        }
        match (event.aspect, event.value) {
            (Aspect::Mode, StateValue::Name(name)) => self.mode = Some(name),
            (Aspect::Rrc, StateValue::Name(name)) => self.rrc = Some(name),
            (Aspect::Scheme, StateValue::Name(name)) => self.scheme = Some(name),
            (Aspect::CarrierToInterference, StateValue::Number(ratio)) => self.ratio = Some(ratio),
            _ => {}
        }
    }
}

/// A sink that keeps the latest state, and passes on what a log wants.
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
    use airpath_core::{Memory, UserId};

    #[test]
    fn the_latest_state_is_kept_and_the_log_gets_all() {
        let latest = Rc::new(Cell::new(RadioState::default()));
        assert_eq!(latest.get().words(), "");
        let mut memory = Memory::default();
        let mut listener = Listener::new(Some(&mut memory), latest.clone());
        let mut tell = |direction, aspect, value| {
            let event = Event::State(StateEvent { user: UserId(0), direction, aspect, value });
            listener.record(Instant::ZERO, ComponentId(0), &event);
        };
        tell(None, Aspect::Mode, StateValue::Name("access"));
        tell(None, Aspect::Mode, StateValue::Name("transfer"));
        tell(Some(Direction::Down), Aspect::Scheme, StateValue::Name("cs-2"));
        tell(Some(Direction::Up), Aspect::Scheme, StateValue::Name("cs-1"));
        tell(None, Aspect::CarrierToInterference, StateValue::Number(12.4));
        tell(Some(Direction::Down), Aspect::Slots, StateValue::Number(3.0));
        assert_eq!(latest.get().words(), "transfer, cs-2, C/I 12 dB");
        assert_eq!(memory.events.len(), 6);
    }
}
