//! Which connection of one capture is which of the other.

use std::collections::BTreeMap;

use airpath_observe::End;

use super::tap::{Packet, Tapped};

/// Packets at a connection's beginning that are looked at where the handshake does not tell.
const LOOKED_AT: usize = 64;

/// Those of them that must be in both captures.
const ALIKE: usize = 3;

/// Pairs the connections of two captures: by the sequence numbers of the two SYNs, which survive the translation of addresses and
/// ports; where a handshake is missing, by addresses and ports; and then by packets with the same numbers.
pub(super) fn matched(first: Vec<Tapped>, second: Vec<Tapped>) -> Vec<(Tapped, Tapped)> {
    let mut second: Vec<Option<Tapped>> = second.into_iter().map(Some).collect();
    let mut partners: Vec<Option<usize>> = vec![None; first.len()];
    partner(&first, &second, &mut partners, handshake);
    partner(&first, &second, &mut partners, |tapped| Some(tapped.route));
    by_packets(&first, &second, &mut partners);
    let pairs = first.into_iter().zip(partners);
    pairs.filter_map(|(one, partner)| Some((one, second.get_mut(partner?)?.take()?))).collect()
}

/// Initial sequence numbers of both ends.
fn handshake(tapped: &Tapped) -> Option<(u32, u32)> {
    let [client, server] = &tapped.directions;
    (client.has_syn && server.has_syn).then_some((client.base, server.base))
}

/// Makes partners of those that have the same key, in the order in which they began.
fn partner<Key: Ord>(
    first: &[Tapped],
    second: &[Option<Tapped>],
    partners: &mut [Option<usize>],
    key: impl Fn(&Tapped) -> Option<Key>,
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
                let at = free.iter().rposition(|at| second[*at].as_ref().is_some_and(|other| are_alike(one, other)))?;
                Some(free.remove(at))
            });
        }
    }
}

/// Makes partners of those whose first packets bear the same numbers.
fn by_packets(first: &[Tapped], second: &[Option<Tapped>], partners: &mut [Option<usize>]) {
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
            let elected = votes.into_iter().filter(|(_, votes)| *votes >= ALIKE).max_by_key(|(_, votes)| *votes);
            partners[at] = elected.map(|(owner, _)| owner).filter(|owner| !partners.contains(&Some(*owner)));
        }
    }
}

/// Sequence and acknowledgment number and length of a packet with data: those of two connections are hardly ever the same.
type Numbers = (u32, u32, u32);

/// The numbers of the packets at a connection's beginning.
fn numbers(tapped: &Tapped) -> impl Iterator<Item = Numbers> + '_ {
    End::BOTH.into_iter().flat_map(|from| {
        let direction = tapped.sent_by(from);
        let with_data = direction.packets.iter().filter(|packet| packet.length > 0).take(LOOKED_AT);
        with_data.map(|packet| (sequence(direction.base, packet), packet.acknowledgment, packet.length))
    })
}

/// The sequence number of a packet of a stream whose offset 0 has the number `base`.
pub(super) const fn sequence(base: u32, packet: &Packet) -> u32 {
    // Modulo 2^32, as sequence numbers are.
    base.wrapping_add(packet.offset as u32)
}

/// Whether two connections with the same key may be one: what both have of their handshakes is the same.
fn are_alike(one: &Tapped, other: &Tapped) -> bool {
    End::BOTH.into_iter().all(|from| {
        let (here, there) = (one.sent_by(from), other.sent_by(from));
        !here.has_syn || !there.has_syn || here.base == there.base
    })
}
