//! Retransmissions that turned out to be spurious: an earlier copy had arrived.

use std::collections::VecDeque;

use airpath_core::Instant;

/// Number of stored retransmissions that a later verdict may concern.
const REMEMBERED: usize = 256;

/// How a spurious retransmission was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detector {
    /// It was acknowledged, cumulatively or selectively, before it was retransmitted.
    Acknowledged,
    /// The receiver reports duplicate bytes (RFC 2883, RFC 3708).
    Dsack,
    /// The acknowledgement echoes the timestamp of the first copy (Eifel, RFC 3522).
    Timestamp,
    /// After a timeout, acknowledgements arrive for data that was not retransmitted (F-RTO, RFC
    /// 5682).
    ForwardAcknowledgement,
    /// The acknowledgement arrived earlier than any round trip to the second copy allows.
    TooSoon,
    /// There were more acknowledgements than the necessary segments can cause: one is for a copy
    /// that the receiver already had.
    ExtraAcknowledgement,
    /// An earlier copy was seen at the receiver: in the other end's capture, or in this one if it
    /// was taken there.
    OtherEnd,
}

impl Detector {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Acknowledged,
        Self::Dsack,
        Self::Timestamp,
        Self::ForwardAcknowledgement,
        Self::TooSoon,
        Self::ExtraAcknowledgement,
        Self::OtherEnd,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Dsack => "dsack",
            Self::Timestamp => "timestamp",
            Self::ForwardAcknowledgement => "forward_acknowledgement",
            Self::TooSoon => "too_soon",
            Self::ExtraAcknowledgement => "extra_acknowledgement",
            Self::OtherEnd => "other_end",
        }
    }

    /// Reliability of the verdict.
    pub const fn confidence(self) -> Confidence {
        match self {
            Self::Acknowledged | Self::Timestamp | Self::OtherEnd => Confidence::Certain,
            // A network that duplicates packets looks the same (RFC 3708 §3).
            Self::Dsack => Confidence::High,
            // Inferred from the times, the order and the number of acknowledgements.
            Self::ForwardAcknowledgement | Self::TooSoon | Self::ExtraAcknowledgement => Confidence::Likely,
        }
    }
}

/// Reliability of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// An inference that reordering or a changed route can defeat.
    Likely,
    /// Only a fault of the network (a duplicated packet) looks the same.
    High,
    /// Nothing else explains the observation.
    Certain,
}

/// The verdict that a retransmission was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spurious {
    /// The frame of the retransmission.
    pub frame: u64,
    /// How it was detected.
    pub detector: Detector,
}

/// A retransmission without a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resent {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) frame: u64,
    pub(crate) time: Instant,
    pub(crate) verdict: Option<Detector>,
    /// Whether no trigger was visible, and no acknowledgement requested it: a timer expired.
    pub(crate) unrequested: bool,
    /// Whether a closed window refused the copy before it: only the receiver can show that it was
    /// spurious.
    pub(crate) refused: bool,
}

/// The latest retransmissions of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retransmissions(VecDeque<Resent>);

/// Spurious retransmissions of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpuriousCounts {
    /// By detector, in the order of [`Detector::ALL`].
    pub by_detector: [u64; Detector::ALL.len()],
    /// Those without a visible trigger that no acknowledgement requested: a timer of the sender
    /// expired while the data, or its acknowledgement, was in transit.
    pub by_early_timer: u64,
}

impl SpuriousCounts {
    pub(crate) fn add(&mut self, detector: Detector, unrequested: bool) {
        self.by_detector[detector as usize] += 1;
        self.by_early_timer += u64::from(unrequested);
    }
}

impl Retransmissions {
    /// Stores a retransmission.
    pub(crate) fn push(&mut self, resent: Resent) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(resent);
    }

    /// Returns all unused memory.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Marks as spurious all retransmissions sent since `since` with data of `start` to before
    /// `end`, unless that was refused before; returns the last of them. Counts them in `counts`.
    pub(crate) fn verdict(
        &mut self,
        start: i64,
        end: i64,
        since: Instant,
        detector: Detector,
        counts: &mut SpuriousCounts,
    ) -> Option<Spurious> {
        let mut last = None;
        for resent in self.undecided(start, end).filter(|resent| resent.time >= since && !resent.refused) {
            resent.verdict = Some(detector);
            counts.add(detector, resent.unrequested);
            last = Some(Spurious { frame: resent.frame, detector });
        }
        last
    }

    /// The spurious ones among the stored retransmissions.
    pub(crate) fn spurious(&self) -> impl Iterator<Item = Spurious> {
        self.0.iter().filter_map(|resent| Some(Spurious { frame: resent.frame, detector: resent.verdict? }))
    }

    /// The latest.
    pub(crate) fn latest(&self) -> Option<&Resent> {
        self.0.back()
    }

    /// Marks the retransmission in this frame, if it has no verdict yet, and counts it in `counts`.
    pub(crate) fn verdict_of(
        &mut self,
        frame: u64,
        detector: Detector,
        counts: &mut SpuriousCounts,
    ) -> Option<Spurious> {
        // In the order of their frames.
        let place = self.0.binary_search_by_key(&frame, |resent| resent.frame).ok()?;
        let resent = self.0.get_mut(place).filter(|resent| resent.verdict.is_none())?;
        resent.verdict = Some(detector);
        counts.add(detector, resent.unrequested);
        Some(Spurious { frame, detector })
    }

    /// Retransmissions without a verdict and with data of `start` to before `end`, the oldest
    /// first.
    pub(crate) fn undecided(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Resent> {
        self.0.iter_mut().filter(move |sent| sent.verdict.is_none() && sent.start < end && start < sent.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retransmissions of a segment of ten bytes each, in the frames 1, 2, …, each a nanosecond
    /// after the one before.
    fn resent(segments: i64) -> Retransmissions {
        let mut retransmissions = Retransmissions::default();
        for (number, frame) in (0..segments).zip(1..) {
            let (start, end) = (number * 10, number * 10 + 10);
            retransmissions.push(Resent {
                start,
                end,
                frame,
                time: Instant::from_nanos(frame),
                verdict: None,
                unrequested: frame == 2,
                refused: false,
            });
        }
        retransmissions
    }

    #[test]
    fn a_verdict_concerns_retransmissions_with_some_of_its_bytes() {
        let concerned = |start, end, since| {
            let (mut retransmissions, mut counts) = (resent(4), SpuriousCounts::default());
            let last = retransmissions.verdict(start, end, Instant::from_nanos(since), Detector::Dsack, &mut counts);
            let frames: Vec<u64> = retransmissions.spurious().map(|spurious| spurious.frame).collect();
            assert_eq!(last.map(|last| last.frame), frames.last().copied(), "the last of them");
            assert_eq!(counts.by_detector[Detector::Dsack as usize], frames.len() as u64);
            assert_eq!(counts.by_early_timer, u64::from(frames.contains(&2)));
            frames
        };
        assert_eq!(concerned(10, 20, 0), [2]);
        assert_eq!(concerned(9, 21, 0), [1, 2, 3]);
        assert_eq!(concerned(19, 20, 0), [2]);
        assert_eq!(concerned(0, 40, 3), [3, 4], "those sent since then");
        assert!(concerned(40, 50, 0).is_empty());
    }

    #[test]
    fn a_retransmission_has_one_verdict() {
        let (mut retransmissions, mut counts) = (resent(2), SpuriousCounts::default());
        let (dsack, too_soon) = (Detector::Dsack, Detector::TooSoon);
        let first = Some(Spurious { frame: 1, detector: dsack });
        assert_eq!(retransmissions.verdict_of(1, dsack, &mut counts), first);
        assert_eq!(retransmissions.verdict_of(1, too_soon, &mut counts), None);
        assert_eq!(retransmissions.verdict_of(7, too_soon, &mut counts), None, "no such frame");
        let second = Some(Spurious { frame: 2, detector: too_soon });
        assert_eq!(retransmissions.verdict(0, 20, Instant::ZERO, too_soon, &mut counts), second);
        assert_eq!((counts.by_detector[dsack as usize], counts.by_detector[too_soon as usize]), (1, 1));
    }

    #[test]
    fn the_latest_retransmissions_are_stored() {
        let retransmissions = resent(REMEMBERED as i64 + 1);
        assert_eq!(retransmissions.0.len(), REMEMBERED);
        assert_eq!(retransmissions.0[0].frame, 2);
        assert_eq!(retransmissions.latest().map(|latest| latest.frame), Some(REMEMBERED as u64 + 1));
    }
}
