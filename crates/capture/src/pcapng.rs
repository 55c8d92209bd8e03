//! Numbers of the pcapng format, which the reader and the writer share.
//!
//! Source: the IETF draft *pcapng Capture File Format*, draft-ietf-opsawg-pcapng.

/// Type of the block that begins a section: the same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0A0D_0D0A;
/// First word of a section header's body: shows the byte order of the section.
pub const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Major and minor version.
pub const VERSION: [u16; 2] = [1, 0];

// Types of blocks.
pub const INTERFACE_DESCRIPTION: u32 = 1;
pub const OBSOLETE_PACKET: u32 = 2;
pub const SIMPLE_PACKET: u32 = 3;
pub const NAME_RESOLUTION: u32 = 4;
pub const INTERFACE_STATISTICS: u32 = 5;
pub const ENHANCED_PACKET: u32 = 6;
pub const DECRYPTION_SECRETS: u32 = 10;

// Options of every block.
pub const OPTION_END: u16 = 0;
pub const OPTION_COMMENT: u16 = 1;
// Options of a section header block.
pub const SHB_USERAPPL: u16 = 4;
// Options of an interface description block.
pub const IF_NAME: u16 = 2;
pub const IF_DESCRIPTION: u16 = 3;
pub const IF_TSRESOL: u16 = 9;
pub const IF_TSOFFSET: u16 = 14;
// Options of an interface statistics block.
pub const ISB_IFDROP: u16 = 5;
pub const ISB_OSDROP: u16 = 7;
// Options of an enhanced packet block.
pub const EPB_DROPCOUNT: u16 = 4;
