//! The names of the states of a radio connection, by [`Aspect`]: the only ones that bearers report.

use crate::event::{Aspect, StateValue};

/// What a state does to the packets of its direction, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// They are carried.
    Carries,
    /// Nothing is carried.
    Silent,
    /// Those that wait are delayed. Others may be carried.
    Delays,
}

/// Declares the states of an aspect: variant, name in logs, and an effect if nothing is carried in
/// it, or data is delayed.
macro_rules! states {
    (
        $(#[$doc:meta])*
        $type:ident: $aspect:ident {
            $($(#[$state_doc:meta])* $state:ident = $name:literal $($effect:ident)?,)*
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

            /// What it does to packets.
            pub const fn effect(self) -> Effect {
                match self {
                    $(Self::$state => states!(@effect $($effect)?),)*
                }
            }
        }

        impl From<$type> for StateValue {
            fn from(state: $type) -> Self {
                Self::Name(state.name())
            }
        }
    };
    (@effect) => { Effect::Carries };
    (@effect silent) => { Effect::Silent };
    (@effect delays) => { Effect::Delays };
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
        /// UMTS, LTE and NR: the radio link has failed, and the connection is established again.
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
    /// The cell group that carries the downlink of a mobile with EN-DC (TS 37.340 §4.1).
    CellGroupState: CellGroup {
        /// The LTE cell.
        Master = "master",
        /// The NR cell.
        Secondary = "secondary",
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
    /// Why data of a direction waits in LTE and NR, though there is a connection.
    WaitState: Wait {
        /// None waits, or it is served in its turn.
        None = "none",
        /// Downlink: the mobile sleeps until the next on duration of DRX (TS 36.321 §5.7).
        Drx = "drx" delays,
        /// Uplink: the mobile waits for its next occasion of scheduling requests (TS 36.321
        /// §5.4.4).
        SchedulingRequest = "scheduling-request" delays,
        /// Uplink: requests were not answered, and random access takes their place (TS 36.321
        /// §5.1).
        RandomAccess = "random-access" delays,
        /// Uplink: a request was sent; the grant, or the slot that it is for, has not come. With
        /// configured grants (TS 38.321 §5.8.2): the slot of the next one.
        Grant = "grant" delays,
    }
}

states! {
    /// Hybrid ARQ of a direction in LTE, NR and NB-IoT.
    HarqState: Harq {
        /// No block is sent again.
        None = "none",
        /// A block was not decoded, and will be sent again: from the begin of its first
        /// transmission to that of the one that is decoded. Packets behind it wait for it, too.
        Repeat = "harq-repeat" delays,
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

/// All states: aspect, name, and effect.
pub fn all() -> impl Iterator<Item = (Aspect, &'static str, Effect)> {
    macro_rules! rows {
        ($type:ident) => {
            $type::ALL.iter().map(|state| ($type::ASPECT, state.name(), state.effect()))
        };
    }
    rows!(ModeState)
        .chain(rows!(TbfState))
        .chain(rows!(RrcState))
        // UMTS has the same `idle`.
        .chain(rows!(LteRrcState).skip(1))
        .chain(rows!(CellGroupState))
        .chain(rows!(DrxState))
        .chain(rows!(WaitState))
        .chain(rows!(HarqState))
        .chain(rows!(LinkState))
}
