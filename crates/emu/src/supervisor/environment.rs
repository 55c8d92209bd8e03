//! The environment of the programs: host names of the two ends of the link, a reachable resolver,
//! their own `/proc`.

use std::ffi::CString;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// The hosts file, the resolver and additional environment variables of the programs.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Lines for the hosts file: addresses and names.
    pub hosts: Vec<(IpAddr, String)>,
    /// Contents of /etc/resolv.conf, if they differ from the host's.
    pub resolver: Option<String>,
    /// Variables for the environment.
    pub variables: Vec<(String, String)>,
}

/// A folder that every Linux has. It is covered by a temporary file system while files are created
/// in it.
const SCRATCH: &str = "/sys";

/// A folder that every Linux has, in which a program that is about to be executed needs nothing.
const STAGE: &str = "/dev";

/// Folders of sysfs(5) with network interfaces: links, and what they lead to.
const INTERFACES: [&str; 2] = ["class/net", "devices/virtual/net"];

const RESOLVER: &str = "/etc/resolv.conf";

impl Environment {
    /// Moves this process, the first of a PID namespace, into a mount namespace with these files.
    /// They are not visible outside of it, and no file remains on any disk.
    ///
    /// # Errors
    /// Why the host does not permit it: then names are unknown, but addresses still work.
    pub fn enter(&self) -> Result<(), String> {
        let failed = |what: &'static str| move |error: nix::Error| format!("{what}: {}", error.desc());
        unshare(CloneFlags::CLONE_NEWNS).map_err(failed("no mount namespace"))?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)
            .map_err(failed("/ is no mount, as in a chroot, or cannot be made private"))?;
        let careful = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), careful, none);
        mount(Some("airpath"), SCRATCH, Some("tmpfs"), careful, none).map_err(failed("nothing can be mounted"))?;
        let replaced = self.replace_files();
        let _ = umount2(SCRATCH, MntFlags::MNT_DETACH);
        replaced
    }

    fn replace_files(&self) -> Result<(), String> {
        let inherited = fs::read_to_string("/etc/hosts").unwrap_or_default();
        cover("/etc/hosts", &hosts_file(&self.hosts, &inherited))?;
        match &self.resolver {
            // Without the file programs query this host itself, where nothing answers.
            Some(resolver) if Path::new(RESOLVER).exists() => cover(RESOLVER, resolver),
            _ => Ok(()),
        }
    }

    /// Shows the interfaces of this process' network in its `/sys`, which otherwise has those of
    /// the host. The rest stays, such as the control groups. Without permission nothing changes.
    pub fn show_interfaces() {
        let none = None::<&str>;
        let careful = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        // In a container `/sys` may be read-only, and then a new one has to be.
        let mount_in = |flags| mount(Some("sysfs"), STAGE, Some("sysfs"), flags, none);
        if unshare(CloneFlags::CLONE_NEWNS).is_err()
            || mount_in(careful).or_else(|_| mount_in(careful | MsFlags::MS_RDONLY)).is_err()
        {
            return;
        }
        for folder in INTERFACES {
            let (new, old) = (Path::new(STAGE).join(folder), Path::new("/sys").join(folder));
            let _ = mount(Some(&new), &old, none, MsFlags::MS_BIND, none);
        }
        let _ = umount2(STAGE, MntFlags::MNT_DETACH);
    }

    /// The variables of a program: those of this process, and the additional ones.
    pub fn variables(&self) -> Vec<CString> {
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

/// The text of a hosts file: `entries`, then the `inherited` text without their names. Resolvers
/// use the first address of a name, or all of them.
fn hosts_file(entries: &[(IpAddr, String)], inherited: &str) -> String {
    let mut text: String = entries.iter().map(|(address, name)| format!("{address}\t{name}\n")).collect();
    for line in inherited.lines() {
        text.push_str(&without_names(line, |word| entries.iter().any(|(_, name)| name.eq_ignore_ascii_case(word))));
        text.push('\n');
    }
    text
}

/// A line of a hosts file without the names for which `is_removed` holds, and without the address
/// if no name remains. Comments stay.
fn without_names(line: &str, is_removed: impl Fn(&str) -> bool) -> String {
    let (entry, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
    let mut words = entry.split_whitespace();
    let address = words.next();
    if !words.clone().any(&is_removed) {
        return line.to_owned();
    }
    let names: Vec<&str> = words.filter(|word| !is_removed(word)).collect();
    let address = address.filter(|_| !names.is_empty());
    let comment = Some(comment).filter(|comment| !comment.is_empty());
    address.into_iter().chain(names).chain(comment).collect::<Vec<_>>().join(" ")
}

/// Mounts a file with this text over the one at `path`, in this mount namespace.
fn cover(path: &str, text: &str) -> Result<(), String> {
    let cover = || {
        let found = fs::canonicalize(path)?;
        let made = Path::new(SCRATCH).join(found.file_name().unwrap_or_default());
        fs::write(&made, text)?;
        // Also for programs that change their user, whatever the file mode mask is.
        fs::set_permissions(&made, fs::Permissions::from_mode(0o644))?;
        mount(Some(&made), &found, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(io::Error::from)
    };
    cover().map_err(|error| format!("{path} cannot be replaced: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn names_of_the_link_replace_inherited_ones() {
        let server = (Ipv4Addr::new(100, 64, 0, 1).into(), "server".to_owned());
        let inherited = "# server\n127.0.0.1 localhost\n192.0.2.7\tfiles Server  backup # the server\n\
                         192.0.2.8 server\n192.0.2.9 server # old\n::1 localhost";
        let expected = "100.64.0.1\tserver\n# server\n127.0.0.1 localhost\n192.0.2.7 files backup # the server\n\
                        \n# old\n::1 localhost\n";
        assert_eq!(hosts_file(&[server], inherited), expected);
    }
}
