//! TCP settings of a socket: applied, and read back.

use std::fs;
use std::io;

use airpath_core::Bytes;
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};

use crate::tcp_info::{congestion_control, kernel_name};
use crate::work::TcpSettings;

/// A TCP socket with these settings.
///
/// # Errors
/// The kernel rejects a setting. The error names it, and the valid values if they are known.
pub fn tcp_socket(domain: Domain, settings: &TcpSettings) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    apply(&socket, settings)?;
    Ok(socket)
}

/// Applies these settings to `socket`.
///
/// # Errors
/// As [`tcp_socket`].
pub fn apply(socket: &Socket, settings: &TcpSettings) -> io::Result<()> {
    let TcpSettings { mss, send_buffer, receive_buffer, congestion, no_delay } = settings;
    let bytes = |bytes: Bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX);
    let named = |what: String, help: String| {
        move |error: io::Error| io::Error::new(error.kind(), format!("the kernel does not take {what}: {error}{help}"))
    };
    if let Some(mss) = mss {
        socket.set_tcp_mss(*mss).map_err(named(format!("a maximum segment size of {mss} B"), String::new()))?;
    }
    if let Some(size) = send_buffer {
        socket.set_send_buffer_size(bytes(*size)).map_err(named(format!("a send buffer of {size}"), String::new()))?;
    }
    if let Some(size) = receive_buffer {
        let named = named(format!("a receive buffer of {size}"), String::new());
        socket.set_recv_buffer_size(bytes(*size)).map_err(named)?;
    }
    if let Some(name) = congestion {
        let known = sysctl("tcp_allowed_congestion_control").map(|known| format!("; it has {known}"));
        let named = named(format!("the congestion control `{name}`"), known.unwrap_or_default());
        socket.set_tcp_congestion(name.as_bytes()).map_err(named)?;
    }
    if *no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    Ok(())
}

/// TCP settings of this end, in the form of a flow's `tcp` in the summary: read back from the
/// socket and its network namespace. The settings of the sender of the data are added when known.
pub fn in_force(socket: &Socket) -> Value {
    let switch = |name| sysctl(name).map(|value| value != "0");
    json!({
        "profile": kernel_name(),
        "congestion": { "algorithm": congestion_control(socket) },
        "send_buffer": socket.send_buffer_size().ok(),
        "receive_buffer": { "initial": socket.recv_buffer_size().ok() },
        // Linux implements Minshall's variant only.
        "nagle": socket.tcp_nodelay().ok().map(|no_delay| if no_delay { "off" } else { "minshall" }),
        "window_scaling": switch("tcp_window_scaling"),
        "timestamps": switch("tcp_timestamps"),
        "selective_acknowledgement": switch("tcp_sack"),
        "ecn": sysctl("tcp_ecn"),
        "negotiated": null,
    })
}

/// A TCP setting of this network namespace, common to IPv4 and IPv6.
fn sysctl(name: &str) -> Option<String> {
    let value = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read_back() {
        let settings = TcpSettings { send_buffer: Some(Bytes::new(50_000)), no_delay: true, ..TcpSettings::default() };
        let settings_read = in_force(&tcp_socket(Domain::IPV4, &settings).unwrap());
        assert_eq!(settings_read["send_buffer"], 100_000, "Linux doubles it");
        assert_eq!(settings_read["nagle"], "off");
        assert!(settings_read["selective_acknowledgement"].is_boolean());
    }

    #[test]
    fn a_congestion_control_that_is_not_there_is_named() {
        let settings = TcpSettings { congestion: Some("warp".into()), ..TcpSettings::default() };
        let error = tcp_socket(Domain::IPV4, &settings).unwrap_err().to_string();
        assert!(error.contains("does not take the congestion control `warp`") && error.contains("reno"), "{error}");
    }
}
