//! Matches the connections of two captures.

use std::collections::BTreeMap;

use airpath_observe::End;

use super::digest::{ConnectionDigest, PacketDigest};

/// Packets at a connection's beginning that are compared where the handshake is missing.
const COMPARED_PACKETS: usize = 64;

/// Packets of them, at least, that must be in both captures.
const LEAST_EQUAL_PACKETS: usize = 3;

/// Pairs the connections of two captures: by the initial sequence numbers with addresses and ports,
/// then by the former alone, which survive address and port translation; without a handshake by
/// addresses and ports; else by packets with equal numbers.
pub(super) fn matched(
    first: Vec<ConnectionDigest>,
    second: Vec<ConnectionDigest>,
) -> Vec<(ConnectionDigest, ConnectionDigest)> {
    let mut second: Vec<Option<ConnectionDigest>> = second.into_iter().map(Some).collect();
    let mut partners: Vec<Option<usize>> = vec![None; first.len()];
    partner(&first, &second, &mut partners, |digest| Some((handshake(digest)?, digest.route)));
    partner(&first, &second, &mut partners, handshake);
    partner(&first, &second, &mut partners, |digest| Some(digest.route));
    by_packets(&first, &second, &mut partners);
    let pairs = first.into_iter().zip(partners);
    pairs.filter_map(|(one, partner)| Some((one, second.get_mut(partner?)?.take()?))).collect()
}

/// Initial sequence numbers of both ends.
fn handshake(digest: &ConnectionDigest) -> Option<(u32, u32)> {
    let [client, server] = &digest.directions;
    (client.has_syn && server.has_syn).then_some((client.base, server.base))
}

/// Pairs connections with equal keys, in the order in which they began.
fn partner<Key: Ord>(
    first: &[ConnectionDigest],
    second: &[Option<ConnectionDigest>],
    partners: &mut [Option<usize>],
    key: impl Fn(&ConnectionDigest) -> Option<Key>,
) {
    let mut free: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (at, other) in second.iter().enumerate().rev() {
        if let Some(key) = other.as_ref().and_then(&key).filter(|_| !partners.contains(&Some(at))) {
            free.entry(key).or_default().push(at);
        }
    }
    for (one, partner) in first.iter().zip(partners) {
        if partner.is_none() {
            *partner = key(one).and_then(|key| free.get_mut(&key)).and_then(|free| {
                let at =
                    free.iter().rposition(|at| second[*at].as_ref().is_some_and(|other| may_be_same(one, other)))?;
                Some(free.remove(at))
            });
        }
    }
}

/// Pairs connections whose first packets have equal numbers.
fn by_packets(first: &[ConnectionDigest], second: &[Option<ConnectionDigest>], partners: &mut [Option<usize>]) {
    let mut owners: BTreeMap<Numbers, usize> = BTreeMap::new();
    for (at, other) in second.iter().enumerate().filter(|(at, _)| !partners.contains(&Some(*at))) {
        owners.extend(other.iter().flat_map(numbers).map(|numbers| (numbers, at)));
    }
    for at in 0..first.len() {
        if partners[at].is_none() {
            let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
            for owner in numbers(&first[at]).filter_map(|numbers| owners.get(&numbers)) {
                *votes.entry(*owner).or_default() += 1;
            }
            let elected =
                votes.into_iter().filter(|(_, votes)| *votes >= LEAST_EQUAL_PACKETS).max_by_key(|(_, votes)| *votes);
            partners[at] = elected.map(|(owner, _)| owner).filter(|owner| !partners.contains(&Some(*owner)));
        }
    }
}

/// Sequence number, acknowledgment number and length of a data packet: rarely equal in two
/// connections.
type Numbers = (u32, u32, u32);

/// The numbers of the packets at a connection's beginning.
fn numbers(digest: &ConnectionDigest) -> impl Iterator<Item = Numbers> + '_ {
    End::BOTH.into_iter().flat_map(|from| {
        let direction = digest.sent_by(from);
        let with_data = direction.packets.iter().filter(|packet| packet.length > 0).take(COMPARED_PACKETS);
        with_data.map(|packet| (sequence(direction.base, packet), packet.acknowledgment, packet.length))
    })
}

/// The sequence number of a packet of a stream whose offset 0 has the number `base`.
pub(super) const fn sequence(base: u32, packet: &PacketDigest) -> u32 {
    // Modulo 2^32, as sequence numbers are.
    base.wrapping_add(packet.offset as u32)
}

/// Whether two connections with equal keys may be one: the SYNs that both captures have are equal.
fn may_be_same(one: &ConnectionDigest, other: &ConnectionDigest) -> bool {
    End::BOTH.into_iter().all(|from| {
        let (here, there) = (one.sent_by(from), other.sent_by(from));
        !here.has_syn || !there.has_syn || here.base == there.base
    })
}
