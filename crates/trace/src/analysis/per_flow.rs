//! A value for each open flow, found by its number without hashing.

use std::collections::VecDeque;

use airpath_observe::flows::FlowNumber;

/// Values by flow number. Memory: an `Option<T>` for each number from the oldest flow with a value
/// to the newest.
#[derive(Debug)]
pub struct PerFlow<T> {
    first: u64,
    slots: VecDeque<Option<T>>,
}

impl<T> Default for PerFlow<T> {
    fn default() -> Self {
        Self { first: 0, slots: VecDeque::new() }
    }
}

impl<T> PerFlow<T> {
    /// The value of a flow.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowNumber) -> Option<&mut T> {
        let index = self.index(flow)?;
        self.slots.get_mut(index)?.as_mut()
    }

    /// Gives a flow a value. Flows older than the oldest with a value get none.
    pub fn insert(&mut self, flow: FlowNumber, value: T) {
        if self.slots.is_empty() {
            self.first = flow.0;
        }
        let Some(index) = self.index(flow) else { return };
        while self.slots.len() <= index {
            self.slots.push_back(None);
        }
        self.slots[index] = Some(value);
    }

    /// Replaces the value of a flow by the result of `change`.
    pub fn change(&mut self, flow: FlowNumber, change: impl FnOnce(T) -> T) {
        if let Some(slot) = self.index(flow).and_then(|index| self.slots.get_mut(index)) {
            *slot = slot.take().map(change);
        }
    }

    /// Takes the value of a flow.
    pub fn remove(&mut self, flow: FlowNumber) -> Option<T> {
        let index = self.index(flow)?;
        let value = self.slots.get_mut(index)?.take();
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        value
    }

    fn index(&self, flow: FlowNumber) -> Option<usize> {
        flow.0.checked_sub(self.first).and_then(|index| usize::try_from(index).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_flow_number() {
        let mut values = PerFlow::default();
        for number in [3, 4, 7] {
            values.insert(FlowNumber(number), number * 10);
        }
        assert_eq!(values.get_mut(FlowNumber(4)).copied(), Some(40));
        assert_eq!(values.get_mut(FlowNumber(5)), None);
        values.change(FlowNumber(7), |value| value + 1);
        assert_eq!(values.remove(FlowNumber(3)), Some(30));
        assert_eq!(values.slots.len(), 4, "slots before the oldest are dropped");
        assert_eq!(values.remove(FlowNumber(3)), None);
        assert_eq!(values.remove(FlowNumber(7)), Some(71));
        assert_eq!(values.remove(FlowNumber(4)), Some(40));
        assert!(values.slots.is_empty());
        values.insert(FlowNumber(9), 90);
        assert_eq!(values.get_mut(FlowNumber(9)).copied(), Some(90));
    }
}
