//! A slice of a connection's time, with the evidence about its cause.

use super::label::{Label, View, Waiting};
use crate::causes::link_load::Load;
use crate::causes::{Confidence, Stamp};

/// Pending time with one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub begin: Stamp,
    pub end: Stamp,
    pub label: Label,
    /// Whether the path carried packets of other connections meanwhile, by the direction of the
    /// data of each view.
    pub shared: [bool; 2],
    /// The load of the link in front of the acknowledgements by data of the connection.
    pub reverse: Load,
    /// The view whose packets fill the link, where that is the cause.
    pub filled: Option<View>,
    /// The packets of the far end that waited behind other connections.
    pub behind: Option<Waiting>,
    /// The highest confidence that its cause can have: less where the capture lacks packets that
    /// could show another.
    pub most: Confidence,
    /// Bytes that were delivered meanwhile, by the end that sent them; at most 4 GiB.
    pub delivered: [u32; 2],
}

impl Slice {
    /// The part from `begin` to `end` with a label.
    pub fn part(self, begin: Stamp, end: Stamp, label: Label) -> Self {
        let length = self.end.time.since(self.begin.time).as_nanos();
        let until = |bytes: u32, at: Stamp| match at.time.since(self.begin.time).as_nanos() {
            _ if bytes == 0 || length == 0 => 0,
            // A short time needs no division of 128 bits.
            short @ 0..=0xffff_ffff => (u64::from(bytes) * short / length) as u32,
            long => (u128::from(bytes) * u128::from(long) / u128::from(length)) as u32,
        };
        let delivered = self.delivered.map(|bytes| until(bytes, end) - until(bytes, begin));
        Self { begin, end, label, delivered, ..self }
    }

    /// The slice with a label; `filled` is the view whose link is full, if that is the cause.
    pub fn with_label(self, label: Label, filled: Option<View>) -> Self {
        let is_full = matches!(label, Label::Known(cause, _) if cause.is_full_link());
        Self { label, filled: filled.filter(|_| is_full), ..self }
    }

    /// The view that has labelled it.
    pub const fn view(self) -> Option<View> {
        match self.label {
            Label::Limited(_, round) => Some(View::of(round)),
            Label::Latency(view, _) => Some(view),
            Label::AcknowledgementGap(_) | Label::SuspectedGap(_) => Some(View::Sender),
            Label::Known(..) => self.filled,
        }
    }
}

/// Adds bytes to sums, by the end that sent them.
pub(super) fn add(sums: &mut [u32; 2], bytes: [u32; 2]) {
    sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
}
