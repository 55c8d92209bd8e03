//! tmp
#![allow(missing_docs, clippy::unwrap_used)]
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
pub struct Netlink;
fn ip(args: &str) -> io::Result<String> {
    let out = std::process::Command::new("ip").args(args.split_whitespace()).output()?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        Err(io::Error::other(format!("ip {args}: {}", String::from_utf8_lossy(&out.stderr))))
    }
}
impl Netlink {
    pub fn open() -> io::Result<Self> {
        Ok(Self)
    }
    pub fn index_of(&mut self, name: &str) -> io::Result<u32> {
        ip(&format!("-o link show {name}"))?.split(':').next().unwrap().trim().parse().map_err(io::Error::other)
    }
    fn name(&self, index: u32) -> io::Result<String> {
        let t = ip("-o link")?;
        t.lines()
            .find(|l| l.starts_with(&format!("{index}:")))
            .map(|l| l.split(':').nth(1).unwrap().trim().split('@').next().unwrap().to_owned())
            .ok_or(io::ErrorKind::NotFound.into())
    }
    pub fn hardware_address(&mut self, index: u32) -> io::Result<[u8; 6]> {
        let n = self.name(index)?;
        let t = ip(&format!("-o link show {n}"))?;
        let m = t.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
        let mut a = [0; 6];
        for (x, y) in a.iter_mut().zip(m.split(':')) {
            *x = u8::from_str_radix(y, 16).unwrap();
        }
        Ok(a)
    }
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let n = self.name(index)?;
        ip(&format!("link set {n} up")).map(drop)
    }
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        let n = self.name(index)?;
        ip(&format!("link set {n} mtu {mtu}")).map(drop)
    }
    pub fn set_no_arp(&mut self, index: u32) -> io::Result<()> {
        let n = self.name(index)?;
        ip(&format!("link set {n} arp off")).map(drop)
    }
    pub fn add_address(&mut self, index: u32, a: IpAddr, p: u8) -> io::Result<()> {
        let n = self.name(index)?;
        let nodad = if a.is_ipv6() { "nodad" } else { "" };
        ip(&format!("addr add {a}/{p} dev {n} {nodad}")).map(drop)
    }
    pub fn add_default_route(&mut self, index: u32, a: IpAddr) -> io::Result<()> {
        let n = self.name(index)?;
        let f = if a.is_ipv6() { "-6" } else { "-4" };
        ip(&format!("{f} route add default dev {n}")).map(drop)
    }
    pub fn add_veth(&mut self, a: &str, b: &str) -> io::Result<()> {
        ip(&format!("link add {a} type veth peer name {b}")).map(drop)
    }
    pub fn move_to(&mut self, index: u32, ns: BorrowedFd<'_>) -> io::Result<()> {
        let n = self.name(index)?;
        ip(&format!("link set {n} netns /proc/{}/fd/{}", std::process::id(), ns.as_raw_fd())).map(drop)
    }
}
