//! Selects flows by number, address, port, or address and port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::records::FlowId;
use airpath_observe::flows::FlowNumber;
use airpath_wire::segment::{Endpoint, Route};

/// Prefixes of a number that select a connection of TCP or a QUIC flow.
const CONNECTION: &str = "tcp:";
const QUIC: &str = "quic:";

/// A selection of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The number of a connection of TCP and of a QUIC flow: each kind is counted from 1 in the
    /// order of first packets.
    Number(u64),
    /// The number of a connection of TCP alone.
    Connection(u64),
    /// The number of a QUIC flow alone.
    Quic(u64),
    /// The address of either end; a mobile behind a GTP-U tunnel has its inner address.
    Address(IpAddr),
    /// The port of either end.
    Port(u16),
    /// Both of the same end.
    Endpoint(Endpoint),
}

/// What several selectors select together: each flow that one of them matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(Vec<Selector>);

/// A text that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' selects no flow")]
pub struct SelectorError(String);

impl SelectorError {
    /// What to do about it.
    pub const NEXT_STEP: &str = "give a number (3, or tcp:3 or quic:3), an address (192.0.2.1), a port (:443), or both \
                                 (192.0.2.1:443), and one of these alone";
}

impl Selector {
    /// Whether a flow on that route (in either direction) is selected.
    pub(super) fn matches(&self, flow: FlowId, route: &Route) -> bool {
        let ends = [route.source, route.destination];
        match *self {
            Self::Number(number) => flow.number() == number,
            Self::Connection(number) => flow == FlowId::Connection(FlowNumber(number)),
            Self::Quic(number) => flow == FlowId::Quic(number),
            Self::Address(address) => ends.iter().any(|end| end.address == address),
            Self::Port(port) => ends.iter().any(|end| end.port == port),
            Self::Endpoint(endpoint) => ends.contains(&endpoint),
        }
    }
}

impl Selection {
    /// Parses selectors; `None` if there are none, which selects all flows.
    ///
    /// # Errors
    /// [`SelectorError`] for the first text that is no selector.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Option<Self>, SelectorError> {
        let selectors: Vec<Selector> = texts.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok((!selectors.is_empty()).then_some(Self(selectors)))
    }

    /// The selectors, in the order in which they were given.
    pub fn selectors(&self) -> &[Selector] {
        &self.0
    }

    /// Whether a flow on that route (in either direction) is selected.
    pub(super) fn matches(&self, flow: FlowId, route: &Route) -> bool {
        self.0.iter().any(|selector| selector.matches(flow, route))
    }
}

impl Selector {
    /// Whether it selects by the number of a connection of TCP, which the first segment must show.
    pub(super) const fn is_connection_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Connection(_))
    }

    /// What to do if nothing is selected.
    pub(super) fn advice(&self) -> String {
        let listed = "without --flow all are shown";
        match self {
            Self::Number(port @ 1..=65535) => format!("for a port write :{port}; {listed}"),
            _ => listed.to_owned(),
        }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let wrong = || SelectorError(text.to_owned());
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        if let Some(number) = text.strip_prefix(CONNECTION) {
            return number.parse().map(Self::Connection).map_err(|_| wrong());
        }
        if let Some(number) = text.strip_prefix(QUIC) {
            return number.parse().map(Self::Quic).map_err(|_| wrong());
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::Address(address));
        }
        let (address, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        if address.is_empty() {
            return Ok(Self::Port(port));
        }
        let address = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
        Ok(Self::Endpoint(Endpoint { address: address.parse().map_err(|_| wrong())?, port }))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Connection(number) => write!(formatter, "{CONNECTION}{number}"),
            Self::Quic(number) => write!(formatter, "{QUIC}{number}"),
            Self::Address(address) => write!(formatter, "{address}"),
            Self::Port(port) => write!(formatter, ":{port}"),
            Self::Endpoint(Endpoint { address: IpAddr::V6(address), port }) => write!(formatter, "[{address}]:{port}"),
            Self::Endpoint(Endpoint { address, port }) => write!(formatter, "{address}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_wire::segment::Tunnel;

    #[test]
    fn each_form_is_read_and_printed() {
        for text in ["3", "tcp:3", "quic:12", ":443", "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80"] {
            let selector: Selector = text.parse().expect(text);
            assert_eq!(selector.to_string(), text);
        }
    }

    #[test]
    fn an_invalid_selector_is_named() {
        for text in ["", "client", "quic:", "quic:x", "tcp:-1", "udp:3", "192.0.2.1:http", ":99999", "-1"] {
            let error = text.parse::<Selector>().expect_err(text);
            assert_eq!(error.to_string(), format!("'{text}' selects no flow"));
        }
    }

    #[test]
    fn a_flow_is_met_from_both_ends() {
        let end = |text: &str, port| Endpoint { address: text.parse().expect("an address"), port };
        let route = Route { source: end("10.0.0.1", 5000), destination: end("10.0.0.2", 80), tunnel: Tunnel::None };
        let seventh = FlowId::Connection(FlowNumber(7));
        let meets = |text: &str| text.parse::<Selector>().expect("a selector").matches(seventh, &route);
        assert!(
            meets("7")
                && meets("tcp:7")
                && !meets("quic:7")
                && meets(":80")
                && meets(":5000")
                && meets("10.0.0.2")
                && meets("10.0.0.2:80")
        );
        assert!(!meets("8") && !meets(":443") && !meets("10.0.0.3") && !meets("10.0.0.1:80"));
    }

    #[test]
    fn a_selection_has_the_flows_of_each_of_its_selectors() {
        let end = |text: &str, port| Endpoint { address: text.parse().expect("an address"), port };
        let route = Route { source: end("10.0.0.1", 5000), destination: end("10.0.0.2", 80), tunnel: Tunnel::None };
        let selection = Selection::parse(&["1", ":443", "3"]).expect("selectors").expect("not all flows");
        let selected: Vec<u64> = (1..5).filter(|number| selection.matches(FlowId::Quic(*number), &route)).collect();
        assert_eq!(selected, [1, 3]);
        assert_eq!(Selection::parse::<&str>(&[]), Ok(None));
        assert_eq!(Selection::parse(&["1", "client"]), Err(SelectorError("client".to_owned())));
    }
}
