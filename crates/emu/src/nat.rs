//! tmp
use std::net::{Ipv4Addr, Ipv6Addr};
/// tmp
#[derive(Debug)]
pub struct Masquerade;
impl Masquerade {
    /// tmp
    pub fn install(_: &str, _: (Ipv4Addr, u8), _: (Ipv6Addr, u8)) -> Result<Self, crate::LinkError> {
        Ok(Self)
    }
}
/// tmp
pub fn forwarding() -> Result<(), crate::LinkError> {
    Ok(())
}
