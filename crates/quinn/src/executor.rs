//! Tasks, polled on one thread in the order in which they were woken.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// A task.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks of a simulation.
#[derive(Default)]
pub struct Executor {
    tasks: BTreeMap<u64, (Task, Arc<TaskWaker>)>,
    /// Number of tasks that were spawned.
    spawned: u64,
    ready: Arc<ReadyQueue>,
}

/// Numbers of the tasks that were woken.
type ReadyQueue = Mutex<VecDeque<u64>>;

struct TaskWaker {
    number: u64,
    /// Whether the task is in the ready queue.
    is_ready: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.number);
        }
    }
}

impl Executor {
    /// Adds a task, which is ready.
    pub fn spawn(&mut self, task: Task) {
        let number = self.spawned;
        self.spawned += 1;
        let waker = Arc::new(TaskWaker { number, is_ready: AtomicBool::new(false), ready: Arc::clone(&self.ready) });
        waker.wake_by_ref();
        self.tasks.insert(number, (task, waker));
    }

    /// Polls the next ready task; returns `false` if none is ready. A panic of the task goes to the
    /// caller.
    pub fn poll_next(&mut self) -> bool {
        let next = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(number) = next else { return false };
        // A task that has ended may be woken.
        if let Some((task, waker)) = self.tasks.get_mut(&number) {
            waker.is_ready.store(false, Ordering::Relaxed);
            let waker = Waker::from(Arc::clone(waker));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                self.tasks.remove(&number);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Returns once to the executor, ready.
    async fn yield_now() {
        let mut yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return std::task::Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }

    #[test]
    fn tasks_run_in_the_order_in_which_they_were_woken() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let mut executor = Executor::default();
        for name in ["a", "b"] {
            let order = Rc::clone(&order);
            executor.spawn(Box::pin(async move {
                for step in 0..2 {
                    order.borrow_mut().push((name, step));
                    yield_now().await;
                }
            }));
        }
        let polls = std::iter::from_fn(|| executor.poll_next().then_some(())).count();
        assert_eq!(*order.borrow(), [("a", 0), ("b", 0), ("a", 1), ("b", 1)]);
        assert_eq!(polls, 6, "two wakes before a poll are one poll");
    }
}
