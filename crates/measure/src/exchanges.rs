//! The client's end of exchanges over a real TCP connection.

use std::io;

use airpath_app::Transport;
use airpath_app::exchanges::{Application, ClientStep};
use airpath_core::AppStep;
use serde_json::Value;

use crate::clock::{now, wait_for_any};
use crate::record::Record;
use crate::stream::{Stream, closed_early};
use crate::tcp_info::TcpInfo;

/// Runs `client` over `stream` until its work is over, or the record stops. `all` is the number of
/// its exchanges. `acted` is called after each of its steps. Adds the counters of TCP to `tcp`.
///
/// # Errors
/// The connection is lost before all responses are complete.
pub fn run_client<A: Application>(
    stream: &mut Stream,
    client: &mut A,
    all: u64,
    tcp: &mut Value,
    record: &mut Record<'_>,
    acted: &mut dyn FnMut(&mut Stream, &A) -> io::Result<()>,
) -> io::Result<()> {
    let mut delivered = 0;
    while !record.is_stopped() {
        let had_all = client.exchanges().is_complete();
        let mut moved = match stream.exchange() {
            // Nothing is missing.
            Err(_) if had_all => false,
            moved => moved?,
        };
        loop {
            let step = client.step(now(), &mut stream.end);
            acted(stream, client)?;
            match step {
                ClientStep::Nothing => break,
                ClientStep::Request => {}
                ClientStep::Connected => record.note(now(), AppStep::Connected, delivered),
                ClientStep::Response(sequence, delay) => {
                    let exchange = &client.exchanges().script().exchanges[sequence as usize];
                    delivered += u64::from(exchange.response);
                    record.note(now(), AppStep::Arrived { sequence, delay }, delivered);
                    record.progress(u64::from(sequence) + 1, all);
                }
            }
            moved = true;
        }
        let has_all = client.exchanges().is_complete();
        if has_all
            && !had_all
            && let Some(info) = TcpInfo::of(stream.socket())
        {
            info.add_settings(tcp);
        }
        if client.is_complete() {
            record.note(now(), AppStep::Finished, delivered);
            // Sends the FIN; the kernel completes the connection. Nothing is missing if it is lost.
            let _ = stream.exchange();
            return Ok(());
        }
        if stream.end.peer_closed() && !has_all {
            return Err(closed_early());
        }
        if !moved && stream.end.peer_closed() {
            // Only the clock is waited for.
            wait_for_any(&mut [], client.next_wakeup());
        } else if !moved {
            stream.wait(client.next_wakeup());
        }
    }
    Ok(())
}
