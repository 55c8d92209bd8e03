//! The control socket of a running link or live proxy: queries its status and changes it.
//!
//! The socket is in the abstract name space of the network namespace in which the link was started,
//! under `airpath-link-` and the process number, so no file can be left behind. A request is a line
//! of JSON, and so is the response, after which the connection ends.
//!
//! | request | response |
//! | --- | --- |
//! | `{"status": {}}` | `{"time_s": …, "links": […], "transit_s": {…}, "late_p99_s": …}`: transit time of the last packet in each direction, and how late packets left. Of a link also `budget_s`, that of the lateness, and `radio`, the state of the radio, if it was started with a live page |
//! | `{"change": {…}}`, with the keys of a scenario's `[[change]]` but for `at` | `{"time_s": …}`: when it took effect |
//! | `{"reload": {}}`, to a live proxy | `{"time_s": …}`: when its configuration was read again |
//! | `{"take_over": {…}}`, to a live proxy | its state ([`crate::live::takeover`]) |
//!
//! The status of a live proxy contains more ([`crate::live`]).
//!
//! An error is answered with `{"error": "…"}`. Only the user who runs the link and root may send
//! requests; others receive `{"error": "…", "refused": true}`. A link in a user namespace of its
//! own does not recognise root: the kernel shows it every other user as the overflow user.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use airpath_core::Direction;
use airpath_result::summary::LinkRow;
use airpath_scenario::{Scenario, ScenarioError};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::LinkError;
use crate::forwarder::Forwarder;
use crate::namespace::is_ambiguous_user;

/// Name of a link's socket, to which the process number is appended.
pub const NAME: &str = "airpath-link-";

/// A request is a short line and must arrive within [`PATIENCE`].
const LONGEST_REQUEST: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_millis(20);

/// The control socket of a running link.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    owner: u32,
}

impl ControlSocket {
    /// Opens the socket of this process.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn open() -> Result<Self, LinkError> {
        let open = || {
            let address = SocketAddr::from_abstract_name(format!("{NAME}{}", std::process::id()))?;
            let listener = UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = open().map_err(LinkError::host("the control socket cannot be opened"))?;
        Ok(Self { listener, owner: nix::unistd::geteuid().as_raw() })
    }

    /// Answers all waiting clients. `carry_out` returns the response to a request; `None` if it has
    /// answered by itself.
    pub fn serve(&self, mut carry_out: impl FnMut(Request, &UnixStream) -> Result<Option<Value>, String>) {
        while let Ok((stream, _)) = self.listener.accept() {
            let Ok(peer) = getsockopt(&stream, PeerCredentials) else { continue };
            // A client that has gone gets no answer.
            let _ = match refusal(peer.uid(), self.owner, is_ambiguous_user(peer.uid())) {
                None => answer(&stream, &mut carry_out),
                Some(reason) => refuse(&stream, reason),
            };
        }
    }
}

/// Why `user` may not control a link of `owner`; `None` if it may.
const fn refusal(user: u32, owner: u32, is_ambiguous: bool) -> Option<&'static str> {
    match (is_ambiguous, user == owner) {
        (false, true) => None,
        (false, false) if user == 0 => None,
        (false, false) => Some("the link belongs to another user; only that user and root can control it"),
        (true, false) => Some(
            "the link belongs to another user; only that user can control it, because the link does not recognise \
             root in its user namespace",
        ),
        (true, true) => Some(
            "the link cannot distinguish its user from others in its user namespace; run the link as another user \
             to control it",
        ),
    }
}

/// Answers a client that may not control the link, without waiting for its request.
fn refuse(mut stream: &UnixStream, reason: &str) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    send(stream, &json!({ "error": reason, "refused": true }))?;
    // Bytes that are unread at the end would reset the connection (unix(7)).
    stream.read(&mut [0; 4096]).map(drop)
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn answer(
    stream: &UnixStream,
    carry_out: &mut impl FnMut(Request, &UnixStream) -> Result<Option<Value>, String>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line)?;
    let answer = match Request::parse(&line).and_then(|request| carry_out(request, stream)) {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(()),
        Err(error) => json!({ "error": error }),
    };
    send(stream, &answer)
}

/// Sends a line of JSON with one call. Many small ones fill the buffer of the socket.
pub fn send(mut stream: &UnixStream, message: &Value) -> io::Result<()> {
    stream.write_all(format!("{message}\n").as_bytes())
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The status.
    Status,
    /// A change of conditions: a JSON object with the keys of `[[change]]`.
    Change(String),
    /// Read the configuration again.
    Reload,
    /// Hand over to the process at the other end.
    TakeOver(Offer),
}

/// What a process offers that wants to take over from a live proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The version and a hash of the sources.
    pub build: String,
    /// Its configuration as TOML, with every default.
    pub configuration: String,
}

impl Request {
    fn parse(line: &str) -> Result<Self, String> {
        let request: Value = serde_json::from_str(line).map_err(|error| format!("this is not JSON: {error}"))?;
        let Value::Object(request) = request else { return Err("a request must be a JSON object".to_owned()) };
        match ["status", "change", "reload", "take_over"].map(|key| request.get(key)) {
            [Some(_), None, None, None] => Ok(Self::Status),
            [None, Some(change), None, None] => Ok(Self::Change(change.to_string())),
            [None, None, Some(_), None] => Ok(Self::Reload),
            [None, None, None, Some(offer)] => {
                let offer = Offer::deserialize(offer).map_err(|error| format!("take_over: {error}"))?;
                Ok(Self::TakeOver(offer))
            }
            _ => Err("a request must have one of `status`, `change`, `reload` and `take_over`".to_owned()),
        }
    }
}

/// Changes the conditions of the link.
pub fn change(forwarder: &mut Forwarder<'_>, scenario: &Scenario, request: &str) -> Result<Value, String> {
    let now = forwarder.clock.now();
    for order in scenario.read_orders(request).map_err(|error| describe(&error))? {
        // A link has the first mobile only: commands to the bearers of others have no effect.
        if let Some(hop) = order.hop.index(forwarder.path().route()) {
            forwarder.command(now, hop, &order.command).map_err(|error| error.to_string())?;
        }
    }
    Ok(json!({ "time_s": now.as_secs_f64() }))
}

/// An error without the text of the request, which the client has.
fn describe(error: &ScenarioError) -> String {
    let field = error.field.as_deref().map_or(String::new(), |field| format!("{field}: "));
    let help = error.help.as_deref().map_or(String::new(), |help| format!("; {help}"));
    format!("{field}{}{help}", error.message)
}

/// The status: time, counters of the hops, transit times and lateness.
pub fn status(forwarder: &Forwarder<'_>) -> Value {
    let links = forwarder.path().hops().flat_map(|(name, hop)| {
        Direction::BOTH.map(|direction| LinkRow::of(name, direction, 0, &hop.counters(direction)))
    });
    json!({
        "time_s": forwarder.clock.now().as_secs_f64(),
        "links": links.collect::<Vec<_>>(),
        "transit_s": { "down": forwarder.transit[0].as_secs_f64(), "up": forwarder.transit[1].as_secs_f64() },
        "late_p99_s": forwarder.lateness.percentile(99.0).as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_control_a_link() {
        for (user, owner) in [(1000, 1000), (0, 1000), (65_534, 65_534)] {
            assert_eq!(refusal(user, owner, false), None, "user {user} of a link of {owner}");
        }
        assert!(refusal(1001, 1000, false).is_some());
    }

    #[test]
    fn the_overflow_user_is_never_the_owner() {
        for owner in [1000, 65_534] {
            assert!(refusal(65_534, owner, true).is_some(), "a link of {owner}");
        }
    }
}
