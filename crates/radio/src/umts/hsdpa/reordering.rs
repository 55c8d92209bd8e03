//! MAC-hs at the mobile: blocks go up in the order of their numbers, and one that does not come is
//! not waited for longer than the window and the timer T1 allow (TS 25.321 §11.6.2.3).

use std::collections::VecDeque;

use airpath_core::{Instant, Span};

use super::unit::Block;

/// The reordering of one mobile.
#[derive(Debug)]
pub struct Reordering {
    window: u64,
    timer: Span,
    /// next_expected_TSN.
    next: u64,
    /// What has come from `next` on.
    waiting: VecDeque<Option<Block>>,
    /// When T1 expires, and the number up to which it waits: T1_TSN.
    running: Option<(Instant, u64)>,
}

impl Reordering {
    /// Nothing has come.
    pub const fn new(window: u64, timer: Span) -> Self {
        Self { window, timer, next: 0, waiting: VecDeque::new(), running: None }
    }

    /// When T1 expires.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        self.running.map(|(expires, _)| expires)
    }

    /// Takes a block that was decoded; gives those that go up to `deliver`. One that is not waited
    /// for any more is given back.
    pub fn take(&mut self, now: Instant, block: Block, mut deliver: impl FnMut(Block)) -> Option<Block> {
        if block.number < self.next {
            return Some(block);
        }
        let number = block.number;
        let place = (number - self.next) as usize;
        if self.waiting.len() <= place {
            self.waiting.resize_with(place + 1, || None);
        }
        self.waiting[place] = Some(block);
        // The window moves up with the highest number, and what falls out of it goes up.
        self.go_on_from((number + 1).saturating_sub(self.window), &mut deliver);
        self.watch(now);
        None
    }

    /// Handles the expiry of T1: the missing blocks are skipped.
    pub fn expire(&mut self, now: Instant, mut deliver: impl FnMut(Block)) {
        if let Some((_, number)) = self.running.take_if(|(expires, _)| *expires <= now) {
            self.go_on_from(number, &mut deliver);
            self.watch(now);
        }
    }

    /// MAC-hs restarts with block `number`: received blocks go up (TS 25.321 §11.6.2.4).
    pub fn reset(&mut self, number: u64, mut deliver: impl FnMut(Block)) {
        self.go_on_from(number, &mut deliver);
        self.running = None;
    }

    /// Does not wait for anything below `number` any more, and delivers what is complete then.
    fn go_on_from(&mut self, number: u64, deliver: &mut impl FnMut(Block)) {
        while self.next < number {
            if let Some(block) = self.waiting.pop_front().flatten() {
                deliver(block);
            }
            self.next += 1;
        }
        while let Some(block) = self.waiting.front_mut().and_then(Option::take) {
            self.waiting.pop_front();
            deliver(block);
            self.next += 1;
        }
    }

    /// Starts T1 if something is missing, and stops it if what it waited for has gone up.
    fn watch(&mut self, now: Instant) {
        if self.running.is_some_and(|(_, number)| number < self.next) {
            self.running = None;
        }
        if self.running.is_none() && !self.waiting.is_empty() {
            // The highest number that has come.
            self.running = Some((now + self.timer, self.next + self.waiting.len() as u64 - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> Block {
        Block { number, units: Vec::new() }
    }

    #[test]
    fn blocks_go_up_in_their_order() {
        let at = Instant::ZERO;
        let mut reordering = Reordering::new(8, Span::from_millis(50));
        let mut up = Vec::new();
        for number in [0, 2, 3, 1, 5, 4] {
            assert!(reordering.take(at, block(number), |block| up.push(block.number)).is_none());
        }
        assert_eq!(up, [0, 1, 2, 3, 4, 5]);
        assert_eq!(reordering.next_timer(), None);
    }

    #[test]
    fn the_timer_gives_up_what_is_missing() {
        let at = |millis: u64| Instant::ZERO + Span::from_millis(millis);
        let mut reordering = Reordering::new(8, Span::from_millis(50));
        let mut up = Vec::new();
        reordering.take(at(0), block(1), |block| up.push(block.number));
        reordering.take(at(10), block(3), |block| up.push(block.number));
        assert_eq!(reordering.next_timer(), Some(at(50)));
        reordering.expire(at(50), |block| up.push(block.number));
        assert_eq!((&up[..], reordering.next_timer()), (&[1][..], Some(at(100))));
        let late = reordering.take(at(60), block(0), |block| up.push(block.number));
        assert_eq!(late.map(|block| block.number), Some(0));
        reordering.expire(at(100), |block| up.push(block.number));
        assert_eq!((&up[..], reordering.next_timer()), (&[1, 3][..], None));
    }

    #[test]
    fn the_window_gives_up_what_falls_out_of_it() {
        let mut reordering = Reordering::new(4, Span::from_secs(1));
        let mut up = Vec::new();
        for number in [1, 2, 4, 6] {
            reordering.take(Instant::ZERO, block(number), |block| up.push(block.number));
        }
        assert_eq!(up, [1, 2], "6 moves the window to 3 to 6");
        reordering.reset(10, |block| up.push(block.number));
        assert_eq!(up, [1, 2, 4, 6]);
    }
}
