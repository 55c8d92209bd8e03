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

/// A priority queue with four children to a place, which is half as deep as one with two. Siblings share a cache line.
/// What is popped leaves a hole at the top until the next call: the node that was served nearly always asks for its
/// next wake-up, which then takes the hole.
///
/// Places are counted so that the children of place p are the four of line p − [`TOP`] + 1: the top is the last place of
/// the first line, whose other places stay empty, and the second line has its children.
#[derive(Debug)]
struct Heap {
    /// Keys; beyond the last place, and before the top, [`EMPTY`].
    lines: Vec<Line>,
    /// The place behind the last.
    end: usize,
    hole: bool,
}

/// The place of the least key.
const TOP: usize = 3;

/// Later than any key.
const EMPTY: u128 = u128::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u128; 4]);

impl Default for Heap {
    fn default() -> Self {
        Self { lines: vec![Line([EMPTY; 4])], end: TOP, hole: false }
    }
}

impl Heap {
    #[inline]
    fn key(&mut self, place: usize) -> &mut u128 {
        &mut self.lines[place / 4].0[place % 4]
    }

    #[inline]
    fn push(&mut self, key: u128) {
        if self.hole {
            self.hole = false;
            self.sink(key);
            return;
        }
        let mut place = self.end;
        self.end += 1;
        if place / 4 == self.lines.len() {
            self.lines.push(Line([EMPTY; 4]));
        }
        while place > TOP {
            let parent = place / 4 + TOP - 1;
            let above = *self.key(parent);
            if above <= key {
                break;
            }
            *self.key(place) = above;
            place = parent;
        }
        *self.key(place) = key;
    }

    #[inline]
    fn pop(&mut self) -> Option<u128> {
        if std::mem::take(&mut self.hole) {
            self.end -= 1;
            let last = std::mem::replace(self.key(self.end), EMPTY);
            if self.end > TOP {
                self.sink(last);
            }
        }
        self.hole = self.end > TOP;
        self.hole.then(|| *self.key(TOP))
    }

    /// Puts `key` into the hole at the top and lets it sink to its place.
    #[inline]
    fn sink(&mut self, key: u128) {
        let lines = self.lines.as_mut_slice();
        let mut place = TOP;
        while let Some(Line(children)) = lines.get(place - TOP + 1) {
            // Both halves first, so that the two comparisons do not wait for each other.
            let [a, b, c, d] = *children;
            let (left, right) = (if b < a { (b, 1) } else { (a, 0) }, if d < c { (d, 3) } else { (c, 2) });
            let (least, child) = if right.0 < left.0 { right } else { left };
            if least >= key {
                break;
            }
            lines[place / 4].0[place % 4] = least;
            place = 4 * (place - TOP + 1) + child;
        }
        lines[place / 4].0[place % 4] = key;
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
