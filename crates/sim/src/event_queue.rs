//! The event queue: which node is called next, and when.

use airpath_core::Instant;

/// Wake-ups of nodes, at most one valid entry for each.
///
/// An entry is valid while it equals the node's time in `wakeups`; [`pop`](Self::pop) skips others.
/// A node whose next wake-up moves to a later time keeps the earlier one: it is called too early
/// once and then sets the new one. So a timer that every packet postpones costs nothing until its
/// first time has come.
#[derive(Debug)]
pub struct EventQueue {
    heap: Heap,
    wakeups: Vec<Instant>,
}

impl EventQueue {
    /// An empty queue for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { heap: Heap::default(), wakeups: vec![Instant::FAR_FUTURE; nodes] }
    }

    /// Schedules a call of `node` at `time`, unless one at an earlier time is scheduled.
    #[inline]
    pub fn wake(&mut self, node: u32, time: Option<Instant>) {
        let Some(time) = time else { return };
        let wakeup = &mut self.wakeups[node as usize];
        if time < *wakeup {
            *wakeup = time;
            self.heap.push(key(time, node));
        }
    }

    /// Removes and returns the next wake-up and its node.
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

/// Time first, then the number of the node, so that the order of ties does not depend on history.
#[inline]
fn key(time: Instant, node: u32) -> u128 {
    u128::from(time.as_nanos()) << 32 | u128::from(node)
}

/// A 4-ary heap, which is half as deep as a binary one. Siblings share a cache line. The popped key
/// leaves a hole at the top until the next call: the node that was called nearly always sets its
/// next wake-up, which then fills the hole.
///
/// The children of index i are the four keys of line i − [`TOP`] + 1: the top is the last key of
/// the first line, whose other keys stay empty, and the second line has its children.
#[derive(Debug)]
struct Heap {
    /// Keys; behind the last index, and before the top, [`EMPTY`].
    lines: Vec<Line>,
    /// The index behind the last key.
    end: usize,
    hole: bool,
}

/// The index of the least key.
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
    fn key(&mut self, index: usize) -> &mut u128 {
        &mut self.lines[index / 4].0[index % 4]
    }

    #[inline]
    fn push(&mut self, key: u128) {
        if self.hole {
            self.hole = false;
            self.sift_down(key);
            return;
        }
        let mut index = self.end;
        self.end += 1;
        if index / 4 == self.lines.len() {
            self.lines.push(Line([EMPTY; 4]));
        }
        while index > TOP {
            let parent = index / 4 + TOP - 1;
            let above = *self.key(parent);
            if above <= key {
                break;
            }
            *self.key(index) = above;
            index = parent;
        }
        *self.key(index) = key;
    }

    #[inline]
    fn pop(&mut self) -> Option<u128> {
        if std::mem::take(&mut self.hole) {
            self.end -= 1;
            let last = std::mem::replace(self.key(self.end), EMPTY);
            if self.end > TOP {
                self.sift_down(last);
            }
        }
        self.hole = self.end > TOP;
        self.hole.then(|| *self.key(TOP))
    }

    /// Puts `key` into the hole at the top and sifts it down.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let lines = self.lines.as_mut_slice();
        let mut index = TOP;
        while let Some(Line(children)) = lines.get(index - TOP + 1) {
            // The two halves are compared independently, for instruction-level parallelism.
            let [a, b, c, d] = *children;
            let (left, right) = (if b < a { (b, 1) } else { (a, 0) }, if d < c { (d, 3) } else { (c, 2) });
            let (least, child) = if right.0 < left.0 { right } else { left };
            if least >= key {
                break;
            }
            lines[index / 4].0[index % 4] = least;
            index = 4 * (index - TOP + 1) + child;
        }
        lines[index / 4].0[index % 4] = key;
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
        let mut queue = EventQueue::new(3);
        queue.wake(2, at(5));
        queue.wake(1, at(7));
        queue.wake(0, at(5));
        queue.wake(1, at(3));
        queue.wake(1, at(9));
        queue.wake(0, None);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(time, node)| (time.as_nanos(), node)).collect();
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
    fn a_node_can_be_scheduled_again() {
        let mut queue = EventQueue::new(1);
        queue.wake(0, at(3));
        assert_eq!(queue.pop(), at(3).map(|time| (time, 0)));
        queue.wake(0, at(4));
        assert_eq!(queue.pop(), at(4).map(|time| (time, 0)));
        assert_eq!(queue.pop(), None);
    }
}
