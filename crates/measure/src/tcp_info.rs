//! TCP counters of the kernel (`TCP_INFO`, tcp(7), linux/tcp.h).

use std::fs;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use airpath_result::summary::TransferRow;
use nix::sys::socket::getsockopt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use socket2::Socket;

/// One end of a connection. Names that also occur in the summary of a simulation have the same
/// meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Payload bytes of a full segment.
    pub segment_size: u32,
    /// Whether both ends agreed on selective acknowledgements.
    pub selective_acknowledgement: bool,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// Shift of the window that this end offers.
    pub window_scale: u8,
    /// Shift of the window that the peer offers.
    pub peer_window_scale: u8,
    /// Whether both ends use ECN.
    pub ecn: bool,
    /// The congestion control of this end.
    pub congestion_control: String,
    /// Segments with payload sent, including retransmissions (RFC 4898, tcpEStatsPerfDataSegsOut).
    pub data_packets: u64,
    /// Payload bytes in them.
    pub data_bytes: u64,
    /// Retransmitted segments.
    pub retransmitted_packets: u64,
    /// Retransmitted payload bytes.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer; not available before Linux 6.7.
    pub timeouts: Option<u64>,
    /// Least round trip, in the last five minutes (sysctl `tcp_min_rtt_wlen`).
    pub rtt_min_s: Option<f64>,
    /// Smoothed round trip at the end (RFC 6298), which is not a mean over the connection.
    pub smoothed_round_trip_s: Option<f64>,
}

/// Bytes of `struct tcp_info` from Linux 5.5 on: all fields before `tcpi_rcv_wnd`.
const LINUX_5_5: usize = 232;
/// From Linux 6.7 on: including `tcpi_total_rto_time`.
const LINUX_6_7: usize = 248;

mod option {
    #![allow(missing_docs, reason = "the macro makes the types and their documentation")]
    use super::{LINUX_5_5, LINUX_6_7};
    use nix::getsockopt_impl;
    type Short = [u8; LINUX_5_5];
    type Long = [u8; LINUX_6_7];
    nix::sockopt_impl!(
        ShortInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        Short,
        nix::sys::socket::sockopt::GetStruct<Short>
    );
    nix::sockopt_impl!(
        LongInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        Long,
        nix::sys::socket::sockopt::GetStruct<Long>
    );
}

impl TcpInfo {
    /// The kernel's present values; `None` before Linux 5.5 and where there are none.
    pub fn of(socket: &Socket) -> Option<Self> {
        let mut info = if kernel() >= (6, 7) {
            Self::parse(&getsockopt(socket, option::LongInfo).ok()?)?
        } else {
            Self::parse(&short_info(socket)?)?
        };
        info.congestion_control = congestion_control(socket).unwrap_or_default();
        Some(info)
    }

    /// Payload bytes sent, each counted once.
    pub const fn unique_bytes(&self) -> u64 {
        self.data_bytes.saturating_sub(self.retransmitted_bytes)
    }

    /// Adds the fields of this, the sending end, to the row of a transfer.
    pub fn fill(&self, row: TransferRow) -> TransferRow {
        let mut tcp = row.tcp;
        self.add_settings(Arc::make_mut(&mut tcp));
        TransferRow {
            tcp,
            data_packets: Some(self.data_packets),
            data_bytes: Some(self.data_bytes),
            unique_bytes: Some(self.unique_bytes()),
            retransmitted_packets: Some(self.retransmitted_packets),
            retransmitted_bytes: Some(self.retransmitted_bytes),
            timeouts: self.timeouts,
            rtt_min_s: self.rtt_min_s,
            ..row
        }
    }

    /// Adds the settings in force at this end to the `tcp` of a flow.
    pub fn add_settings(&self, tcp: &mut Value) {
        tcp["congestion"] = json!({ "algorithm": self.congestion_control });
        tcp["negotiated"] = json!({
            "segment_size": self.segment_size,
            "selective_acknowledgement": self.selective_acknowledgement,
            "timestamps": self.timestamps,
            "window_scale": self.window_scale,
            "peer_window_scale": self.peer_window_scale,
            "ecn": self.ecn,
            "congestion_control": self.congestion_control,
        });
        tcp["smoothed_round_trip_s"] = json!(self.smoothed_round_trip_s);
    }

    /// Parses a `struct tcp_info` at the fixed offsets of its fields (linux/tcp.h).
    fn parse(info: &[u8]) -> Option<Self> {
        let byte = |at: usize| info.get(at).copied();
        let short = |at: usize| info.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes);
        let word = |at: usize| info.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let long = |at: usize| info.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
        // Without a sample the least round trip is all ones, and the smoothed one is zero.
        let micros = |at| word(at).filter(|micros| (1..u32::MAX).contains(micros)).map(|each| f64::from(each) / 1e6);
        let (options, scales) = (byte(5)?, byte(6)?);
        Some(Self {
            segment_size: word(16)?,
            selective_acknowledgement: options & 2 != 0,
            timestamps: options & 1 != 0,
            // Two bit fields: the first lies in the low bits on little-endian machines.
            window_scale: if cfg!(target_endian = "little") { scales >> 4 } else { scales & 15 },
            peer_window_scale: if cfg!(target_endian = "little") { scales & 15 } else { scales >> 4 },
            ecn: options & 8 != 0,
            congestion_control: String::new(),
            data_packets: word(156)?.into(),
            data_bytes: long(200)?,
            retransmitted_packets: word(100)?.into(),
            retransmitted_bytes: long(208)?,
            timeouts: short(240).map(u64::from),
            rtt_min_s: micros(148),
            smoothed_round_trip_s: micros(68),
        })
    }
}

/// Whether the peer has acknowledged all bytes, and the end after them; `None` before Linux 5.5.
pub fn is_acknowledged(socket: &impl AsFd) -> Option<bool> {
    let info = short_info(socket)?;
    let word = |at: usize| info[at..].first_chunk().copied().map(u32::from_ne_bytes);
    // tcpi_unacked in segments, and tcpi_notsent_bytes.
    Some(word(24)? == 0 && word(144)? == 0)
}

fn short_info(socket: &impl AsFd) -> Option<[u8; LINUX_5_5]> {
    if kernel() < (5, 5) {
        return None;
    }
    getsockopt(socket, option::ShortInfo).ok()
}

/// The congestion control of this connection.
pub fn congestion_control(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The kernel's name and version in the usual form.
pub fn kernel_name() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// The first two numbers of the kernel's version; zeros if unknown.
fn kernel() -> (u32, u32) {
    static KERNEL: OnceLock<(u32, u32)> = OnceLock::new();
    *KERNEL.get_or_init(|| {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(|each: char| !each.is_ascii_digit()).map(|each| each.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_counts_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[7; 5000]).unwrap();
        far.read_exact(&mut [0; 5000]).unwrap();
        assert_ne!(is_acknowledged(&near), Some(false));
        let Some(info) = TcpInfo::of(&near.into()) else { return assert!(kernel() < (5, 5)) };
        assert_eq!((info.data_bytes, info.retransmitted_bytes, info.unique_bytes()), (5000, 0, 5000));
        assert!(info.data_packets > 0 && info.segment_size > 500);
        assert!(!info.congestion_control.is_empty());
        assert!(info.rtt_min_s.is_some_and(|least| least < 1.0));
    }

    #[test]
    fn a_short_structure_is_none() {
        assert_eq!(TcpInfo::parse(&[0; 100]), None);
        assert!(TcpInfo::parse(&[0; LINUX_5_5]).is_some_and(|info| info.timeouts.is_none()));
    }
}
