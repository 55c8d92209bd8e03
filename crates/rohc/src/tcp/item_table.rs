//! List compression of TCP options at the compressor (RFC 6846 §6.3): which options the
//! decompressor has in its item table, and how each is sent.

use super::options::{
    EOL, GENERIC, ITEMS, KIND_SACK, KIND_TIMESTAMPS, List, Listed, MOST, MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMPS,
    WINDOW_SCALE, number, split,
};
use crate::lsb::{Shift, Width, Window, low};

/// Packets that carry an item before its index alone is sent.
const REPEATS: u32 = Window::SIZE as u32;
/// Bits of a timestamp in the irregular chain, and the offset of each interval (ts_lsb).
const TIMESTAMP_BITS: [(u32, u32); 4] = [(7, u32::MAX), (14, u32::MAX), (21, 0x0004_0000), (29, 0x0400_0000)];
/// The most bytes of an option.
const LONGEST: usize = 40;

/// The item table.
#[derive(Clone, Debug)]
pub(super) struct ItemTable {
    items: [Item; ITEMS],
    /// Values and echoes of the timestamps sent last.
    timestamps: [Window; 2],
    /// The list of the last packet: index and length of each option.
    structure: [(u8, u8); MOST],
    structure_length: usize,
    /// Numbers the structures, and those of the last packets.
    generation: u32,
    generations: Window,
    packets: u32,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// The option that was sent last.
    option: [u8; LONGEST],
    length: usize,
    /// Packets that carried it as an item since its static part changed, and of these the first
    /// of those without a gap, and the last one.
    sent: u32,
    first_sent: u32,
    last_sent: u32,
    /// Packets in a row that had this option, each bit as it is now.
    unchanged: u32,
    /// The contents of a generic option have changed, so that packets may have to carry them.
    is_variable: bool,
    /// The packet that had it last.
    last_use: u32,
}

impl Item {
    const NONE: Self = Self {
        option: [0; LONGEST],
        length: 0,
        sent: 0,
        first_sent: 0,
        last_sent: 0,
        unchanged: 0,
        is_variable: false,
        last_use: 0,
    };

    fn option(&self) -> &[u8] {
        &self.option[..self.length]
    }

    /// Notes that packet number `packet` carries it.
    fn send(&mut self, packet: u32) {
        if self.sent > 0 && self.last_sent == packet {
            return;
        }
        if self.sent == 0 || self.last_sent.wrapping_add(1) != packet {
            self.first_sent = packet;
        }
        self.sent = self.sent.saturating_add(1);
        self.last_sent = packet;
    }
}

impl Default for ItemTable {
    fn default() -> Self {
        Self {
            items: [Item::NONE; ITEMS],
            timestamps: [Window::default(), Window::default()],
            structure: [(0, 0); MOST],
            structure_length: 0,
            generation: 0,
            generations: Window::default(),
            packets: 0,
        }
    }
}

/// How the options of one packet are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoded {
    /// The compressed list; empty if nothing of it has changed.
    pub(super) list: Vec<u8>,
    /// Their part of the irregular chain.
    pub(super) irregular: Vec<u8>,
    /// The options that the list carries as items: the first one is the lowest bit.
    items: u16,
}

impl ItemTable {
    /// Takes up the options of the next packet, which [`super::options::are_supported`] has
    /// admitted.
    pub(super) fn advance(&mut self, options: &[u8]) -> List {
        self.packets = self.packets.wrapping_add(1);
        let mut list = split(options).expect("only supported options reach the context");
        let mut used = 0;
        for listed in list.as_mut_slice() {
            if listed.index == GENERIC {
                listed.index = self.generic(listed.of(options), used);
                used |= 1_u16 << listed.index;
            }
            self.update(*listed, listed.of(options));
        }
        let structure = list.as_slice().iter().map(|listed| (listed.index, listed.end - listed.start));
        if !structure.clone().eq(self.structure[..self.structure_length].iter().copied()) {
            self.structure_length = list.as_slice().len();
            self.structure.iter_mut().zip(structure).for_each(|(known, new)| *known = new);
            self.generation = self.generation.wrapping_add(1);
        }
        list
    }

    /// The index of a generic option: one that has had this kind and length, an unused one, or the
    /// one that was unused for longest.
    fn generic(&self, option: &[u8], used: u16) -> u8 {
        let free = || (GENERIC..ITEMS as u8).filter(|index| used & 1 << index == 0);
        let item = |index: u8| &self.items[usize::from(index)];
        let is_same = |index: &u8| item(*index).length == option.len() && item(*index).option[0] == option[0];
        let oldest = || free().min_by_key(|index| (item(*index).length > 0, item(*index).last_use));
        free().find(is_same).or_else(oldest).expect("a list has at most as many generic options as indexes")
    }

    /// Takes up an option.
    fn update(&mut self, listed: Listed, option: &[u8]) {
        let item = &mut self.items[usize::from(listed.index)];
        item.last_use = self.packets;
        if item.option() == option {
            item.unchanged = item.unchanged.saturating_add(1);
            return;
        }
        item.unchanged = 0;
        let is_same_kind = item.length == option.len() && item.option[0] == option[0];
        match listed.index {
            // What changes in these is irregular.
            TIMESTAMPS if is_same_kind => {}
            SACK if is_same_kind => {}
            GENERIC.. if is_same_kind && item.is_variable => {}
            GENERIC.. => (item.sent, item.is_variable) = (0, is_same_kind),
            _ => item.sent = 0,
        }
        item.option[..option.len()].copy_from_slice(option);
        item.length = option.len();
    }

    /// How the options of this packet are sent; `acknowledgment` is its acknowledgment number, and
    /// `is_acknowledgment_known` whether each reference of the decompressor has the same one.
    pub(super) fn encode(
        &self,
        list: &List,
        options: &[u8],
        acknowledgment: u32,
        is_acknowledgment_known: bool,
    ) -> Encoded {
        let mut encoded = Encoded::default();
        for (position, listed) in list.as_slice().iter().enumerate() {
            let option = listed.of(options);
            let start = encoded.irregular.len();
            let is_established = self.items[usize::from(listed.index)].sent >= REPEATS;
            let is_irregular = is_established
                && self.push_irregular(
                    listed.index,
                    option,
                    acknowledgment,
                    is_acknowledgment_known,
                    &mut encoded.irregular,
                );
            if !is_irregular {
                encoded.irregular.truncate(start);
                encoded.items |= 1 << position;
            }
        }
        if encoded.items != 0 || !self.generations.is_constant(self.generation) {
            self.push_list(list, options, acknowledgment, encoded.items, &mut encoded.list);
        }
        encoded
    }

    /// Appends the list with all of its items, as the dynamic and the replicate chain have it.
    pub(super) fn push_all(&self, list: &List, options: &[u8], acknowledgment: u32, out: &mut Vec<u8>) {
        self.push_list(list, options, acknowledgment, u16::MAX, out);
    }

    /// Notes that the packet was sent with these items.
    pub(super) fn sent(&mut self, list: &List, options: &[u8], encoded: &Encoded) {
        self.sent_items(list, options, encoded.items);
    }

    /// Notes that the packet was sent with the dynamic chain. What it does not contain may be
    /// unknown to a decompressor that needs it.
    pub(super) fn sent_all(&mut self, list: &List, options: &[u8]) {
        let present = list.as_slice().iter().fold(0_u16, |set, listed| set | 1 << listed.index);
        for (index, item) in self.items.iter_mut().enumerate() {
            if present & 1 << index == 0 {
                item.sent = 0;
            }
        }
        self.sent_items(list, options, u16::MAX);
    }

    fn sent_items(&mut self, list: &List, options: &[u8], items: u16) {
        for (position, listed) in list.as_slice().iter().enumerate() {
            if items & 1 << position != 0 {
                self.items[usize::from(listed.index)].send(self.packets);
            }
            if listed.index == TIMESTAMPS {
                let option = listed.of(options);
                self.timestamps[0].push(number(option, 2));
                self.timestamps[1].push(number(option, 6));
            }
        }
        self.generations.push(self.generation);
    }

    /// The first of the last `count` packets has arrived.
    pub(super) fn acknowledge(&mut self, count: u32) {
        self.generations.keep_latest(count as usize);
        let packets = self.packets;
        for item in self.items.iter_mut().filter(|item| item.sent > 0) {
            // All of these packets carried it.
            if item.last_sent == packets && packets.wrapping_sub(item.first_sent) + 1 >= count {
                item.sent = item.sent.max(REPEATS);
            }
        }
    }

    /// The compressed list (RFC 6846 §6.3.3); `items` has a bit for each option that it carries.
    fn push_list(&self, list: &List, options: &[u8], acknowledgment: u32, items: u16, out: &mut Vec<u8>) {
        let listed = list.as_slice();
        let is_wide = listed.iter().any(|listed| listed.index >= 8);
        out.push(u8::from(is_wide) << 4 | listed.len() as u8);
        let present = |position: usize| (items >> position & 1) as u8;
        if is_wide {
            let octets = listed.iter().enumerate().map(|(position, listed)| present(position) << 7 | listed.index);
            out.extend(octets);
        } else {
            for (pair, listed) in listed.chunks(2).enumerate() {
                let four = |at: usize| listed.get(at).map_or(0, |listed| present(2 * pair + at) << 3 | listed.index);
                out.push(four(0) << 4 | four(1));
            }
        }
        for (_, listed) in listed.iter().enumerate().filter(|(position, _)| present(*position) != 0) {
            self.push_item(*listed, listed.of(options), acknowledgment, out);
        }
    }

    /// The format of an option whose name ends with `_list_item`.
    fn push_item(&self, listed: Listed, option: &[u8], acknowledgment: u32, out: &mut Vec<u8>) {
        match listed.index {
            NOP | SACK_PERMITTED => {}
            EOL => out.push(8 * (option.len() - 1) as u8),
            MSS | WINDOW_SCALE | TIMESTAMPS => out.extend_from_slice(&option[2..]),
            SACK => push_blocks(option, acknowledgment, out),
            _ => {
                let is_static = !self.items[usize::from(listed.index)].is_variable;
                out.extend_from_slice(&[option[0], u8::from(is_static) << 7 | option.len() as u8]);
                out.extend_from_slice(&option[2..]);
            }
        }
    }

    /// The format of an option whose name ends with `_irregular`; `false` if there is none.
    fn push_irregular(
        &self,
        index: u8,
        option: &[u8],
        acknowledgment: u32,
        is_acknowledgment_known: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let item = &self.items[usize::from(index)];
        let is_unchanged = item.unchanged >= REPEATS;
        match index {
            TIMESTAMPS => {
                debug_assert_eq!(option[0], KIND_TIMESTAMPS);
                push_timestamp(&self.timestamps[0], number(option, 2), out)
                    && push_timestamp(&self.timestamps[1], number(option, 6), out)
            }
            SACK => {
                debug_assert_eq!(option[0], KIND_SACK);
                if is_unchanged && is_acknowledgment_known {
                    out.push(0);
                } else {
                    push_blocks(option, acknowledgment, out);
                }
                true
            }
            GENERIC.. if item.is_variable => {
                if is_unchanged {
                    out.push(0xff);
                } else {
                    out.push(0);
                    out.extend_from_slice(&option[2..]);
                }
                true
            }
            _ => true,
        }
    }
}

/// A timestamp by its lowest bits (ts_lsb).
fn push_timestamp(references: &Window, timestamp: u32, out: &mut Vec<u8>) -> bool {
    let fits = |bits, offset| references.fits(timestamp, bits, Shift::Fixed(offset), Width::ThirtyTwo);
    let Some((bits, _)) = TIMESTAMP_BITS.into_iter().find(|(bits, offset)| fits(*bits, *offset)) else {
        return false;
    };
    crate::lsb::push_sdvl(out, low(timestamp, bits), bits);
    true
}

/// Blocks of SACK, each relative to the end of the last one, the first to the acknowledgment
/// number.
fn push_blocks(option: &[u8], acknowledgment: u32, out: &mut Vec<u8>) {
    out.push((option.len() / 8) as u8);
    let mut reference = acknowledgment;
    for at in (2..option.len()).step_by(4) {
        let edge = number(option, at);
        push_edge(edge.wrapping_sub(reference), out);
        reference = edge;
    }
}

/// An edge of a block (sack_pure_lsb).
fn push_edge(offset: u32, out: &mut Vec<u8>) {
    match offset {
        0..=0x7fff => out.extend_from_slice(&(offset as u16).to_be_bytes()),
        0x8000..=0x003f_ffff => out.extend_from_slice(&(0x80_0000 | offset).to_be_bytes()[1..]),
        0x0040_0000..=0x1fff_ffff => out.extend_from_slice(&(0xc000_0000 | offset).to_be_bytes()),
        _ => {
            out.push(0xff);
            out.extend_from_slice(&offset.to_be_bytes());
        }
    }
}
