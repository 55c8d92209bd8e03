//! The names of the states of a radio connection, by [`Aspect`]: the only ones that bearers report.

use crate::event::{Aspect, StateValue};

/// Declares the states of an aspect: variant, name in logs, and whether nothing is carried in it.
macro_rules! states {
    (
        $(#[$doc:meta])*
        $type:ident: $aspect:ident {
            $($(#[$state_doc:meta])* $state:ident = $name:literal $($silent:ident)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$state_doc])* $state,)*
        }

        impl $type {
            /// All, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$state,)*];
            /// The aspect whose states they are.
            pub const ASPECT: Aspect = Aspect::$aspect;

            /// The name under which it is logged.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$state => $name,)*
                }
            }

            /// Whether nothing is carried in it.
            pub const fn is_silent(self) -> bool {
                match self {
                    $(Self::$state => states!(@silent $($silent)?),)*
                }
            }
        }

        impl From<$type> for StateValue {
            fn from(state: $type) -> Self {
                Self::Name(state.name())
            }
        }
    };
    (@silent) => { false };
    (@silent silent) => { true };
}

states! {
    /// What a mobile does as a whole.
    ModeState: Mode {
        /// Nothing is sent or waits.
        Idle = "idle",
        /// GPRS: a TBF is being established, or the mobile is paged.
        Access = "access",
        /// GPRS: a TBF carries data.
        Transfer = "transfer",
        /// UMTS: data can be sent.
        Connected = "connected",
        /// GSM circuit-switched data: the call stands.
        Call = "call",
        /// GPRS: it changes its cell by itself.
        Reselection = "reselection" silent,
        /// It changes its cell as the network commands.
        Handover = "handover" silent,
        /// UMTS: the radio link has failed, and a new connection is set up.
        ReEstablishment = "re-establishment" silent,
        /// No cell serves it.
        NoCoverage = "no-coverage" silent,
    }
}

states! {
    /// The temporary block flow (TBF) of GPRS in one direction (TS 44.060 §5.2).
    TbfState: Tbf {
        /// There is none.
        None = "none",
        /// It has been requested or assigned, and does not yet carry data.
        Establishment = "establishment" silent,
        /// The network pages the mobile for it.
        Paging = "paging" silent,
        /// It carries data, or is kept for more (delayed release).
        Transfer = "transfer",
    }
}

states! {
    /// The RRC connection of UMTS (TS 25.331 §7.1).
    RrcState: Rrc {
        /// No connection.
        Idle = "idle",
        /// CELL_PCH or URA_PCH: a connection without a channel.
        CellPch = "cell-pch",
        /// CELL_FACH: the common channels.
        CellFach = "cell-fach",
        /// CELL_DCH: a dedicated channel.
        CellDch = "cell-dch",
    }
}

states! {
    /// The RRC connection of LTE and NR (TS 36.331 §4.2.1, TS 38.331 §4.2.1).
    LteRrcState: Rrc {
        /// No connection.
        Idle = "idle",
        /// An idle mobile waits for its paging occasion.
        Paging = "paging" silent,
        /// The connection is being set up.
        Promotion = "promotion" silent,
        /// There is a connection.
        Connected = "connected",
        /// NR: the connection is suspended.
        Inactive = "inactive",
    }
}

states! {
    /// Discontinuous reception of a connected mobile (TS 36.321 §5.7, TS 38.321 §5.7).
    DrxState: Drx {
        /// It listens all the time: its inactivity timer runs.
        Active = "active",
        /// It listens once in each short cycle.
        Short = "short",
        /// It listens once in each long cycle.
        Long = "long",
    }
}

states! {
    /// The acknowledged link of data link control (RLP, RLC).
    LinkState: Link {
        /// There is none.
        Disconnected = "disconnected" silent,
        /// A call is being set up.
        SetUp = "set-up" silent,
        /// It carries data.
        Connected = "connected",
        /// RLP: a poll waits for its answer.
        Recovering = "recovering",
        /// It is being reset.
        Reset = "reset" silent,
        /// RLC: there is data, and the full transmission window is why no new block or PDU is sent.
        Stalled = "stalled",
        /// GPRS: it waits for ever; only a new connection ends that.
        Stuck = "stuck" silent,
        /// UMTS: it is lost, and set up again.
        Failed = "failed" silent,
    }
}

/// All states: aspect, name, and whether nothing is carried in it.
pub fn all() -> impl Iterator<Item = (Aspect, &'static str, bool)> {
    macro_rules! rows {
        ($type:ident) => {
            $type::ALL.iter().map(|state| ($type::ASPECT, state.name(), state.is_silent()))
        };
    }
    rows!(ModeState)
        .chain(rows!(TbfState))
        .chain(rows!(RrcState))
        // UMTS has the same `idle`.
        .chain(rows!(LteRrcState).skip(1))
        .chain(rows!(DrxState))
        .chain(rows!(LinkState))
}
