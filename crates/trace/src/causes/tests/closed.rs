//! A closed connection without the state of its analysis.

use airpath_observe::testing::play;

use crate::causes::{Account, Cause, Causes, ConnectionCauses, Piece};

/// A request and its reply, the FINs of both ends, and what comes after them.
const EXCHANGE: &str = "
    0 > syn
    0 < syn ack 0
    50 > ack 0
    50 > psh data 0..100 ack 0
    50 < ack 100
    90 < data 0..1000 ack 100
    90 < data 1000..2000 ack 100
    90 < fin psh data 2000..2500 ack 100
    141 > ack 2000
    142 > fin data 100..100 ack 2501
    145 < ack 101";

const LATE: &str = "
    400 > fin data 100..100 ack 2501
    400 < ack 101
    1200 > rst";

/// The pieces and the account; `closes` drops the state after that number of observations.
fn causes(exchange: &str, closes: Option<usize>) -> (Vec<Piece>, Account) {
    let (_, observations) = play(exchange);
    let mut causes = ConnectionCauses::Open(Box::new(Causes::new(None)));
    let mut pieces = Vec::new();
    for (number, observation) in (1..).zip(&observations) {
        causes.observe(observation, &mut |piece| pieces.push(*piece));
        if closes == Some(number) {
            assert!(causes.may_close());
            causes = causes.close();
            assert!(!causes.may_close());
        }
    }
    let account = causes.finish(&mut |piece| pieces.push(*piece));
    (pieces, account)
}

#[test]
fn late_segments_of_a_closed_connection_have_the_same_causes_without_its_analysis() {
    let closed = EXCHANGE.lines().count() - 1;
    for exchange in [EXCHANGE.to_owned(), format!("{EXCHANGE}{LATE}")] {
        let (pieces, account) = causes(&exchange, None);
        assert_eq!(causes(&exchange, Some(closed)), (pieces.clone(), account.clone()));
        let last = pieces.last().expect("there is a piece");
        assert_eq!(last.cause, Cause::Closing, "{pieces:?}");
        assert_eq!(account.of(Cause::Closing), last.end.since(last.begin));
    }
}

/// All data was acknowledged: nothing waits for a copy of it.
#[test]
fn a_late_copy_of_data_is_no_stall() {
    let exchange = format!("{EXCHANGE}\n    900 < data 1000..2000 ack 101\n    950 > ack 2501");
    let (_, account) = causes(&exchange, Some(EXCHANGE.lines().count() - 1));
    assert_eq!((account.stalls.len(), account.of(Cause::Closing).as_nanos()), (0, 808_000_000));
}
