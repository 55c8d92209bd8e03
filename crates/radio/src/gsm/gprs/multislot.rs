//! Multislot classes: the number of timeslots of a frame that a mobile can use.

/// What a class allows (3GPP TS 45.002, table B.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Timeslots to receive in.
    pub receive: u8,
    /// Timeslots to send in.
    pub send: u8,
    /// Of both in the same frame.
    pub sum: u8,
}

/// The numbers of timeslots that a mobile uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeslots {
    /// To receive in.
    pub down: u8,
    /// To send in, while it receives.
    pub up: u8,
    /// To send in, while it does not receive.
    pub up_alone: u8,
}

impl Timeslots {
    /// Timeslots in a row that hold those of both directions.
    pub const fn span(self) -> usize {
        let up = if self.up > self.up_alone { self.up } else { self.up_alone };
        if self.down > up { self.down as usize } else { up as usize }
    }

    /// To send in, while it `receives` or not.
    pub const fn up_while(self, receives: bool) -> u8 {
        if receives { self.up } else { self.up_alone }
    }
}

/// The modelled classes, for messages.
pub const MODELLED: &str = "1 to 12, 32 and 33";

impl Class {
    /// The class of this number; `None` for those that are not modelled (above 12 the mobile sends
    /// and receives at the same time or has a smaller sum than its parts).
    pub const fn of(number: u8) -> Option<Self> {
        let (receive, send, sum) = match number {
            1 => (1, 1, 2),
            2 => (2, 1, 3),
            3 => (2, 2, 3),
            4 => (3, 1, 4),
            5 => (2, 2, 4),
            6 => (3, 2, 4),
            7 => (3, 3, 4),
            8 => (4, 1, 5),
            9 => (3, 2, 5),
            10 => (4, 2, 5),
            11 => (4, 3, 5),
            12 => (4, 4, 5),
            32 => (5, 3, 6),
            33 => (5, 4, 6),
            _ => return None,
        };
        Some(Self { receive, send, sum })
    }
}
