//! Devices for reading packets from the kernel and sending them back.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use super::Check;
use super::attempt::{Place, Tried, in_child, words};
use super::namespaces::{NO_NETWORK, NO_NETWORK_STEP};
use crate::sys;
use crate::testbed::{Device, FarEnd, Plan, Testbed};

/// TUN interfaces, and virtual Ethernet pairs with packet sockets. Links need one of them.
pub fn both(has_networks: bool) -> [Check; 2] {
    let try_it = |device| if has_networks { build_testbed(device) } else { Err(NO_NETWORK.to_owned()) };
    let (tun, ethernet) = (try_it(Device::Tun), try_it(Device::Ethernet));
    let verdict = |name, tried: Tried, instead: &Tried, meaning: &str, other: &str, next_step| match tried {
        Ok(_) => Check::ok(name, "a link can be made with them", meaning),
        Err(error) if instead.is_ok() => Check::limited(name, error, format!("links use {other}"), next_step),
        Err(error) => Check::missing(name, error, format!("no link can be made but with {other}"), next_step),
    };
    let (tun_name, ethernet_name) = ("TUN interfaces", "virtual Ethernet pairs");
    let step = |step| if has_networks { step } else { NO_NETWORK_STEP };
    let load = step("load the modules veth and af_packet (as root: modprobe veth af_packet)");
    [
        verdict(tun_name, tun.clone(), &ethernet, "links use them", ethernet_name, step(device_step())),
        verdict(ethernet_name, ethernet, &tun, "links use them where there is no TUN", tun_name, load),
    ]
}

/// Builds both ends of a link and removes them.
fn build_testbed(device: Device) -> Tried {
    in_child(Place::Here, || {
        let plan = Plan {
            far_end: FarEnd::Server,
            device,
            offload: true,
            mtu: 1500,
            parameters: &[],
            hosts: &[],
            proxy: None,
            second: false,
            mptcp: false,
        };
        Testbed::build(&plan).map_err(words)?;
        Ok(String::new())
    })
}

/// The next step for the TUN device.
pub(super) fn device_step() -> &'static str {
    match fs::metadata("/dev/net/tun") {
        Err(_) => "as root: modprobe tun; a container gets it by --device /dev/net/tun",
        Ok(device) if !device.file_type().is_char_device() || is_another_device() => {
            "/dev/net/tun is not the character device 10, 200: create it again, or add it to the container"
        }
        Ok(_) if !sys::has_tun() => "let this user open it, as root: chmod 666 /dev/net/tun",
        Ok(_) => "allow user namespaces to use it, or run airpath as root",
    }
}

/// Whether the device file can be opened, but is not a TUN device.
fn is_another_device() -> bool {
    fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_ok() && !sys::has_tun()
}
