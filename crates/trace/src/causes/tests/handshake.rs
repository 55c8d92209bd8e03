//! The handshake of a connection whose path carries other connections.

use std::fmt::Write;

use super::exchanges::{beside, millis};
use crate::causes::{Account, Cause};

/// An earlier handshake of the client with the same server, of 100 ms, as a capture at the server
/// or at the client has it; then a packet of that connection from `arrow` every 20 ms.
fn busy(at_client: bool, until: u64) -> String {
    let (syn_ack, arrow) = if at_client { (100, '<') } else { (0, '>') };
    let mut exchange = format!("0 > syn mss 1460\n{syn_ack} < syn ack 0 mss 1460\n100 > ack 0\n");
    for at in (1000..until).step_by(20) {
        writeln!(exchange, "{at} {arrow} data 0..1460 ack 0").unwrap();
    }
    exchange
}

/// A connection whose handshake takes 800 ms at `again`, with the lines of others beside it.
fn late(at_client: bool, again: &str, others: &str) -> Account {
    let syn_ack = if at_client { 1800 } else { 1000 };
    let exchange = format!(
        "1000 > syn mss 1460\n{again}{syn_ack} < syn ack 0 mss 1460\n1800 > ack 0\n1800 > psh data 0..100 ack 0\n\
         1900 < psh data 0..500 ack 100\n2000 > at 100 ack 500\n"
    );
    beside(&exchange, others)
}

#[test]
fn a_handshake_in_a_queue_of_others_shares_the_path() {
    for at_client in [false, true] {
        let account = late(at_client, "", &busy(at_client, 1800));
        assert!((680..=700).contains(&millis(&account, Cause::Sharing)), "{at_client}: {account}");
        assert!((100..=120).contains(&millis(&account, Cause::SetUp)), "{at_client}: {account}");
    }
}

#[test]
fn a_late_handshake_on_a_path_that_is_not_full_is_set_up() {
    for at_client in [false, true] {
        for others in [busy(at_client, 0), busy(at_client, 1200)] {
            let account = late(at_client, "", &others);
            assert_eq!(millis(&account, Cause::Sharing), 0, "{at_client}: {account}");
            assert_eq!(millis(&account, Cause::SetUp), 800, "{at_client}: {account}");
        }
    }
}

#[test]
fn a_handshake_that_was_sent_again_waited_for_a_timer() {
    for (at_client, again) in [(true, "1700 > syn mss 1460\n"), (false, "1700 < syn ack 0 mss 1460\n")] {
        let account = late(at_client, again, &busy(at_client, 1800));
        assert_eq!(millis(&account, Cause::Sharing), 0, "{at_client}: {account}");
    }
}
