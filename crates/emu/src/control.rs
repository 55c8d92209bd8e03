//! Wishes from outside: a socket at which a running link can be asked how it is, and told to change.
//!
//! The socket lies in the abstract name space of the network namespace in which the link was started, under
//! `airpath-link-` and the process number: there is no file that could be left behind. A request is a line of JSON, and so
//! is the answer, after which the connection ends.
//!
//! | request | answer |
//! | --- | --- |
//! | `{"status": {}}` | `{"time_s": …, "links": […], "transit_s": {…}, "late_p99_s": …}`: how long the last packet took either way, and how late packets left |
//! | `{"change": {…}}`, with the keys of a scenario's `[[change]]` but for `at` | `{"time_s": …}`: when it took effect |
//!
//! What goes wrong is answered with `{"error": "…"}`. Only the user who runs the link is heard, and root.

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
use serde_json::{Value, json};

use crate::LinkError;
use crate::link::place;
use crate::pump::Pump;

/// What a link's socket is called, with its process number at the end.
pub const NAME: &str = "airpath-link-";

/// A request is a short line, and comes at once.
const LONGEST_REQUEST: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_millis(20);

/// The socket of a running link.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    owner: u32,
}

impl Control {
    /// Opens the socket of this process.
    ///
    /// # Errors
    /// Where there cannot be one.
    pub fn open() -> Result<Self, LinkError> {
        let open = || {
            let address = SocketAddr::from_abstract_name(format!("{NAME}{}", std::process::id()))?;
            let listener = UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = open().map_err(LinkError::host("no control socket can be opened"))?;
        Ok(Self { listener, owner: nix::unistd::geteuid().as_raw() })
    }

    /// Answers those who wait.
    pub fn serve(&self, pump: &mut Pump<'_>, scenario: &Scenario) {
        while let Ok((stream, _)) = self.listener.accept() {
            let owner = |user| user == 0 || user == self.owner;
            if getsockopt(&stream, PeerCredentials).is_ok_and(|peer| owner(peer.uid())) {
                // Whoever asks and goes away gets no answer.
                let _ = answer(&stream, pump, scenario);
            }
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn answer(mut stream: &UnixStream, pump: &mut Pump<'_>, scenario: &Scenario) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line)?;
    let answer = match obey(&line, pump, scenario) {
        Ok(answer) => answer,
        Err(error) => json!({ "error": error }),
    };
    writeln!(stream, "{answer}")
}

fn obey(line: &str, pump: &mut Pump<'_>, scenario: &Scenario) -> Result<Value, String> {
    let request: Value = serde_json::from_str(line).map_err(|error| format!("this is no JSON: {error}"))?;
    let Value::Object(request) = request else { return Err("a request is an object".to_owned()) };
    match (request.get("status"), request.get("change")) {
        (Some(_), None) => Ok(status(pump)),
        (None, Some(wish)) => change(pump, scenario, &wish.to_string()),
        _ => Err("a request is either `status` or `change`".to_owned()),
    }
}

/// Changes the conditions of the link.
fn change(pump: &mut Pump<'_>, scenario: &Scenario, wish: &str) -> Result<Value, String> {
    let now = pump.clock.now();
    for order in scenario.read_orders(wish).map_err(|error| told(&error))? {
        // What is for the bearers of mobiles that are not there is for nobody.
        if let Some(hop) = place(order.hop) {
            pump.way.command(now, hop, &order.command).map_err(|error| error.to_string())?;
        }
    }
    Ok(json!({ "time_s": now.as_secs_f64() }))
}

/// An error without the request, which whoever asked knows.
fn told(error: &ScenarioError) -> String {
    let field = error.field.as_deref().map_or(String::new(), |field| format!("{field}: "));
    let help = error.help.as_deref().map_or(String::new(), |help| format!("; {help}"));
    format!("{field}{}{help}", error.message)
}

fn status(pump: &Pump<'_>) -> Value {
    let links = pump.way.hops().iter().flat_map(|(name, hop)| {
        Direction::BOTH.map(|direction| LinkRow::of(name, direction, 0, &hop.counters(direction)))
    });
    json!({
        "time_s": pump.clock.now().as_secs_f64(),
        "links": links.collect::<Vec<_>>(),
        "transit_s": { "down": pump.transit[0].as_secs_f64(), "up": pump.transit[1].as_secs_f64() },
        "late_p99_s": pump.lateness.percentile(99.0).as_secs_f64(),
    })
}
