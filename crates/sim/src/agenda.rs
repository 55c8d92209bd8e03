//! The event queue: who is to be called next, and when.

use airpath_core::Instant;

/// Wake-ups of nodes, each with at most one that counts.
///
/// A node that finds its next wake-up later than the one on the agenda leaves that in place, is
/// called too early once, and asks again: a timer that is put off with every packet costs nothing
/// until it would have gone off.
#[derive(Debug)]
pub struct Agenda {
    heap: Heap,
    wakeups: Vec<Instant>,
}

impl Agenda {
    /// An empty agenda for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { heap: Heap::default(), wakeups: vec![Instant::FAR_FUTURE; nodes] }
    }

    /// Sees to it that `node` is called at `time` at the latest.
    #[inline]
    pub fn wake(&mut self, node: u32, time: Option<Instant>) {
        let Some(time) = time else { return };
        let wakeup = &mut self.wakeups[node as usize];
        if time < *wakeup {
            *wakeup = time;
            self.heap.push(key(time, node));
        }
    }

    /// The next node to call, and when; its wake-up is then spent.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, u32)> {
        while let Some(key) = self.heap.pop() {
            let (time, node) = (Instant::from_nanos((key >> 32) as u64), key as u32);
            let wakeup = &mut self.wakeups[node as usize];
            if *wakeup == time {
                *wakeup = Instant::FAR_FUTURE;
                return Some((time, node));
            }
        }
        None
    }
}

/// Time first; ties are settled by node number, so that the order never depends on history.
#[inline]
fn key(time: Instant, node: u32) -> u128 {
    u128::from(time.as_nanos()) << 32 | u128::from(node)
}

/// A priority queue with four children to a place, which is half as deep as one with two and reads
/// fewer cache lines. What is popped leaves a hole at the top until the next call: the node that was
/// served nearly always asks for its next wake-up, which then takes the hole.
#[derive(Debug, Default)]
struct Heap {
    keys: Vec<u128>,
    hole: bool,
}

impl Heap {
    #[inline]
    fn push(&mut self, key: u128) {
        if self.hole {
            self.hole = false;
            self.sink(key);
            return;
        }
        let mut place = self.keys.len();
        self.keys.push(key);
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[place] = self.keys[parent];
            place = parent;
        }
        self.keys[place] = key;
    }

    #[inline]
    fn pop(&mut self) -> Option<u128> {
        if std::mem::take(&mut self.hole) {
            let last = self.keys.pop().expect("a heap with a hole is not empty");
            if !self.keys.is_empty() {
                self.sink(last);
            }
        }
        let top = self.keys.first().copied();
        self.hole = top.is_some();
        top
    }

    /// Puts `key` into the hole at the top and lets it sink to its place.
    #[inline]
    fn sink(&mut self, key: u128) {
        let keys = self.keys.as_mut_slice();
        let mut place = 0;
        loop {
            let first = 4 * place + 1;
            let children = first..(first + 4).min(keys.len());
            let Some(least) = children.min_by_key(|child| keys[*child]) else { break };
            if keys[least] >= key {
                break;
            }
            keys[place] = keys[least];
            place = least;
        }
        keys[place] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Instant> {
        Some(Instant::from_nanos(nanos))
    }

    #[test]
    fn calls_in_time_order_and_each_node_once() {
        let mut agenda = Agenda::new(3);
        agenda.wake(2, at(5));
        agenda.wake(1, at(7));
        agenda.wake(0, at(5));
        agenda.wake(1, at(3));
        agenda.wake(1, at(9));
        agenda.wake(0, None);
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(time, node)| (time.as_nanos(), node)).collect();
        assert_eq!(order, [(3, 1), (5, 0), (5, 2)]);
    }

    proptest::proptest! {
        #[test]
        fn the_heap_sorts(keys in proptest::collection::vec(0u128..1000, 0..200), pops in proptest::collection::vec(proptest::bool::ANY, 200)) {
            let (mut heap, mut model) = (Heap::default(), std::collections::BTreeMap::<u128, u32>::new());
            let pop = |heap: &mut Heap, model: &mut std::collections::BTreeMap<u128, u32>| {
                let least = model.first_entry().map(|mut entry| {
                    let key = *entry.key();
                    *entry.get_mut() -= 1;
                    if *entry.get() == 0 {
                        entry.remove();
                    }
                    key
                });
                assert_eq!(heap.pop(), least);
                least
            };
            for (key, also_pop) in keys.into_iter().zip(pops) {
                heap.push(key);
                *model.entry(key).or_default() += 1;
                if also_pop {
                    pop(&mut heap, &mut model);
                }
            }
            while pop(&mut heap, &mut model).is_some() {}
        }
    }

    #[test]
    fn a_node_may_ask_again() {
        let mut agenda = Agenda::new(1);
        agenda.wake(0, at(3));
        assert_eq!(agenda.pop(), at(3).map(|time| (time, 0)));
        agenda.wake(0, at(4));
        assert_eq!(agenda.pop(), at(4).map(|time| (time, 0)));
        assert_eq!(agenda.pop(), None);
    }
}
