//! Profile 0x0006: TCP and IP (RFC 6846).
//!
//! | module | what | RFC 6846 |
//! | --- | --- | --- |
//! | [`formats`] | base headers of compressed packets, as a table that both ends use | §8.2 |
//! | [`options`] | options of a header and their indexes | §6.3.4 |
//! | [`compressor`] | the context at the compressor | §5.2 |
//! | [`emit`] | the packets that a compressor sends | §7, §8 |
//! | [`replication`] | the IR-CR packet, which derives a new context from another one | §7.2, RFC 4164 |
//! | [`item_table`] | list compression of options at the compressor | §6.3 |
//! | [`decompressor`] | the context at the decompressor | §5.3 |
//! | [`option_reader`] | lists of options at the decompressor | §6.3 |

pub(crate) mod compressor;
pub(crate) mod decompressor;
mod emit;
mod formats;
mod item_table;
mod option_reader;
pub(crate) mod options;
mod replication;

/// RST, SYN and FIN as an index of two bits (rsf_index_enc); `None` if more than one is set.
const fn reset_syn_fin_index(flags: u8) -> Option<u8> {
    match flags {
        0 => Some(0),
        4 => Some(1),
        2 => Some(2),
        1 => Some(3),
        _ => None,
    }
}

/// The flags that [`reset_syn_fin_index`] gives an index.
const fn reset_syn_fin_flags(index: u8) -> u8 {
    match index & 0x03 {
        1 => 4,
        2 => 2,
        3 => 1,
        _ => 0,
    }
}
