//! What programs find around them: names for the two ends of the link, a resolver that is reachable, their own processes.

use std::ffi::CString;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// The hosts file and the resolver of the programs, and what their environment has in addition.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Lines for the hosts file: addresses and names.
    pub hosts: Vec<(IpAddr, String)>,
    /// What the resolver's configuration is to be, if not the host's.
    pub resolver: Option<String>,
    /// Variables for the environment.
    pub variables: Vec<(String, String)>,
}

/// A folder that every Linux has, and that can be covered for a moment while files are made in it.
const WORKSHOP: &str = "/sys";

impl Surroundings {
    /// Moves this process, the first of a PID namespace, into a mount namespace in which all this holds. Nothing of it is
    /// ever seen outside, and nothing is left on any disk.
    ///
    /// What the host does not allow is left out: names may then be unknown, but addresses still work.
    pub fn enter(&self) {
        if unshare(CloneFlags::CLONE_NEWNS).is_err() {
            return;
        }
        let none = None::<&str>;
        if mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none).is_err() {
            return;
        }
        let careful = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), careful, none);
        if mount(Some("airpath"), WORKSHOP, Some("tmpfs"), careful, none).is_ok() {
            let _ = self.replace_files();
            let _ = umount2(WORKSHOP, MntFlags::MNT_DETACH);
        }
    }

    fn replace_files(&self) -> io::Result<()> {
        let mut hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        for (address, name) in &self.hosts {
            hosts.push_str(&format!("\n{address}\t{name}"));
        }
        hosts.push('\n');
        cover(Path::new("/etc/hosts"), &hosts)?;
        match &self.resolver {
            Some(resolver) => cover(Path::new("/etc/resolv.conf"), resolver),
            None => Ok(()),
        }
    }

    /// The environment of a program: ours, and what is added.
    pub fn environment(&self) -> Vec<CString> {
        let added = |name: &std::ffi::OsStr| self.variables.iter().any(|(variable, _)| name == variable.as_str());
        let inherited = std::env::vars_os().filter(|(name, _)| !added(name)).map(|(name, value)| {
            let mut entry = name;
            entry.push("=");
            entry.push(value);
            entry.into_vec()
        });
        let ours = self.variables.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
        inherited.chain(ours).filter_map(|entry| CString::new(entry).ok()).collect()
    }
}

/// Lays a file with this text over that at `path`, in this mount namespace.
fn cover(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let made = Path::new(WORKSHOP).join(path.file_name().unwrap_or_default());
    fs::write(&made, text)?;
    mount(Some(&made), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    Ok(())
}
