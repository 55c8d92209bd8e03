//! TCP as the kernel lets it be set, and as it then has it.

use std::fs;
use std::io;

use airpath_core::Bytes;
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};

use crate::order::TcpSettings;
use crate::tcp_info::{congestion_control, kernel_name};

/// A TCP socket with these settings.
///
/// # Errors
/// Where the kernel does not take one of them: says which, and what it would take where that is
/// known.
pub fn tcp_socket(domain: Domain, settings: &TcpSettings) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    apply(&socket, settings)?;
    Ok(socket)
}

/// Gives `socket` these settings.
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

/// TCP as it is at this end, in the form of a flow's `tcp` in the summary: read back from the
/// socket, and as its network namespace has it. What the sender of the data had in force is added
/// when it is known.
pub fn in_force(socket: &Socket) -> Value {
    let switch = |name| sysctl(name).map(|value| value != "0");
    json!({
        "profile": kernel_name(),
        "congestion": { "algorithm": congestion_control(socket) },
        "send_buffer": socket.send_buffer_size().ok(),
        "receive_buffer": { "initial": socket.recv_buffer_size().ok() },
        // Linux has no other variant than Minshall's.
        "nagle": socket.tcp_nodelay().ok().map(|no_delay| if no_delay { "off" } else { "minshall" }),
        "window_scaling": switch("tcp_window_scaling"),
        "timestamps": switch("tcp_timestamps"),
        "selective_acknowledgement": switch("tcp_sack"),
        "ecn": sysctl("tcp_ecn"),
        "negotiated": null,
    })
}

/// A setting of TCP of this network namespace, for IPv4 and IPv6 alike.
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
        let told = in_force(&tcp_socket(Domain::IPV4, &settings).unwrap());
        assert_eq!(told["send_buffer"], 100_000, "Linux doubles it");
        assert_eq!(told["nagle"], "off");
        assert!(told["selective_acknowledgement"].is_boolean());
    }

    #[test]
    fn a_congestion_control_that_is_not_there_is_named() {
        let settings = TcpSettings { congestion: Some("warp".into()), ..TcpSettings::default() };
        let error = tcp_socket(Domain::IPV4, &settings).unwrap_err().to_string();
        assert!(error.contains("does not take the congestion control `warp`") && error.contains("reno"), "{error}");
    }
}
