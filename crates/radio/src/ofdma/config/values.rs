//! The values that LTE and NR have for the parameters of both: the enumerations of TS 36.331 and
//! TS 38.331.

use crate::enumeration::Enumeration;

/// The values of a technology.
pub(crate) struct Values {
    /// onDurationTimer.
    pub drx_on: Enumeration,
    /// drx-InactivityTimer.
    pub drx_inactivity: Enumeration,
    /// shortDRX-Cycle.
    pub drx_short: Enumeration,
    /// longDRX-Cycle.
    pub drx_long: Enumeration,
    /// periodicBSR-Timer.
    pub periodic_bsr: Enumeration,
    /// retxBSR-Timer.
    pub retx_bsr: Enumeration,
    /// The period of the PRACH.
    pub random_access: Enumeration,
    /// discardTimer.
    pub discard: Enumeration,
    /// t-PollRetransmit.
    pub poll_retransmit: Enumeration,
    /// t-StatusProhibit.
    pub status_prohibit: Enumeration,
    /// pollPDU.
    pub poll_pdu: Enumeration,
    /// pollByte.
    pub poll_byte: Enumeration,
    /// The paging cycle.
    pub paging: Enumeration,
}

/// maxRetxThreshold of both, and of NB-IoT.
pub(crate) static MAX_RETX: Enumeration =
    Enumeration::numbers(&[1, 2, 3, 4, 6, 8, 16, 32], "maxRetxThreshold, TS 36.331 §6.3.2 and TS 38.331 §6.3.2");

/// T310 of both; in LTE 4 and 6 s are t310-v1330.
pub(crate) static T310: Enumeration =
    Enumeration::millis(&[0, 50, 100, 200, 500, 1000, 2000, 4000, 6000], "t310, TS 36.331 §6.3.2 and TS 38.331 §6.3.2");

/// T311 of both.
pub(super) static T311: Enumeration = Enumeration::millis(
    &[1000, 3000, 5000, 10_000, 15_000, 20_000, 30_000],
    "t311, TS 36.331 §6.3.2 and TS 38.331 §6.3.2",
);

/// dsr-TransMax and sr-TransMax.
pub(super) static SR_MAX_TRANSMISSIONS: Enumeration =
    Enumeration::numbers(&[4, 8, 16, 32, 64], "dsr-TransMax of TS 36.331 §6.3.2, sr-TransMax of TS 38.331 §6.3.2");

impl Values {
    /// Of LTE and LTE-M.
    pub const LTE: Self = Self {
        drx_on: Enumeration::millis(
            &[8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600],
            "onDurationTimer, TS 36.331 §6.3.2",
        )
        .and_runs(&[[1, 6, 1]]),
        drx_inactivity: Enumeration::millis(
            &[8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920, 2560],
            "drx-InactivityTimer, TS 36.331 §6.3.2",
        )
        .and_runs(&[[0, 6, 1]]),
        drx_short: Enumeration::millis(
            &[2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640],
            "shortDRX-Cycle, TS 36.331 §6.3.2",
        ),
        drx_long: Enumeration::millis(
            &[10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560, 5120, 10_240],
            "longDRX-CycleStartOffset, TS 36.331 §6.3.2",
        ),
        periodic_bsr: Enumeration::millis(
            &[5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560],
            "periodicBSR-Timer, TS 36.331 §6.3.2",
        ),
        retx_bsr: Enumeration::millis(&[320, 640, 1280, 2560, 5120, 10_240], "retxBSR-Timer, TS 36.331 §6.3.2"),
        random_access: Enumeration::millis(&[1, 2, 5, 10, 20], "prach-ConfigIndex, TS 36.211 Table 5.7.1-2"),
        discard: Enumeration::millis(&[50, 100, 150, 300, 500, 750, 1500], "discardTimer, TS 36.331 §6.3.2"),
        poll_retransmit: Enumeration::millis(
            &[300, 350, 400, 450, 500, 800, 1000, 2000, 4000],
            "T-PollRetransmit, TS 36.331 §6.3.2",
        )
        .and_runs(&[[5, 250, 5]]),
        status_prohibit: Enumeration::millis(
            &[300, 350, 400, 450, 500, 800, 1000, 1200, 1600, 2000, 2400],
            "T-StatusProhibit, TS 36.331 §6.3.2",
        )
        .and_runs(&[[0, 250, 5]]),
        // Those of PollPDU-v1310 are for longer sequence numbers than the RLC has here.
        poll_pdu: Enumeration::numbers(&[4, 8, 16, 32, 64, 128, 256], "pollPDU, TS 36.331 §6.3.2").or_infinity(),
        // PollByte and PollByte-r14.
        poll_byte: Enumeration::kilobytes(
            &[
                1, 2, 5, 8, 10, 15, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 25_000, 30_000,
                35_000, 40_000,
            ],
            "pollByte, TS 36.331 §6.3.2",
        )
        .and_runs(&[[3000, 8000, 500], [9000, 20_000, 1000]])
        .or_infinity(),
        paging: Enumeration::millis(&[320, 640, 1280, 2560], "defaultPagingCycle, TS 36.331 §6.3.2"),
    };

    /// Of NR.
    pub const NR: Self = Self {
        drx_on: Enumeration::millis(
            &[8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600],
            "drx-onDurationTimer, TS 38.331 §6.3.2",
        )
        .and_runs(&[[1, 6, 1]]),
        drx_inactivity: Enumeration::millis(
            &[8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920, 2560],
            "drx-InactivityTimer, TS 38.331 §6.3.2",
        )
        .and_runs(&[[0, 6, 1]]),
        drx_short: Enumeration::millis(
            &[10, 14, 16, 20, 30, 32, 35, 40, 64, 80, 128, 160, 256, 320, 512, 640],
            "drx-ShortCycle, TS 38.331 §6.3.2",
        )
        .and_runs(&[[2, 8, 1]]),
        drx_long: Enumeration::millis(
            &[10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560, 5120, 10_240],
            "drx-LongCycleStartOffset, TS 38.331 §6.3.2",
        ),
        periodic_bsr: Enumeration::millis(
            &[1, 5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560],
            "periodicBSR-Timer, TS 38.331 §6.3.2",
        ),
        retx_bsr: Enumeration::millis(
            &[10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240],
            "retxBSR-Timer, TS 38.331 §6.3.2",
        ),
        random_access: Enumeration::millis(
            &[1, 2, 5, 10, 20, 40, 80, 160],
            "prach-ConfigurationIndex, TS 38.211 Tables 6.3.3.2-2 to 6.3.3.2-4",
        ),
        // DiscardTimerExt-r16 has those up to 8 ms.
        discard: Enumeration::millis(
            &[1, 2, 4, 6, 8, 10, 20, 30, 40, 50, 60, 75, 100, 150, 200, 250, 300, 500, 750, 1500],
            "discardTimer, TS 38.331 §6.3.2",
        ),
        // Those up to 4 ms came with Release 16, in both timers.
        poll_retransmit: Enumeration::millis(
            &[300, 350, 400, 450, 500, 800, 1000, 2000, 4000],
            "T-PollRetransmit, TS 38.331 §6.3.2",
        )
        .and_runs(&[[1, 4, 1], [5, 250, 5]]),
        status_prohibit: Enumeration::millis(
            &[300, 350, 400, 450, 500, 800, 1000, 1200, 1600, 2000, 2400],
            "T-StatusProhibit, TS 38.331 §6.3.2",
        )
        .and_runs(&[[0, 4, 1], [5, 250, 5]]),
        poll_pdu: Enumeration::numbers(
            &[
                4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 6144, 8192, 12_288, 16_384, 20_480, 24_576, 28_672,
                32_768, 40_960, 49_152, 57_344, 65_536,
            ],
            "pollPDU, TS 38.331 §6.3.2",
        )
        .or_infinity(),
        poll_byte: Enumeration::kilobytes(
            &[
                1, 2, 5, 8, 10, 15, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000, 20_000,
                25_000, 30_000, 40_000,
            ],
            "pollByte, TS 38.331 §6.3.2",
        )
        .and_runs(&[[4000, 7500, 500], [8000, 18_000, 1000]])
        .or_infinity(),
        paging: Enumeration::millis(&[320, 640, 1280, 2560], "defaultPagingCycle, TS 38.331 §6.3.2"),
    };
}
