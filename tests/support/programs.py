"""Unmodified programs with a server and a client each, for the tests of the proxy.

Servers run as root in a mount namespace of their own, where `/run` is empty. So they neither see
nor change those of the machine.
"""

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.link import BROWSER, ENDS, python
from support.needs import require

Need = Callable[..., str]

CONTENT = bytes(range(256)) * 500
CERTIFICATE = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=server"


@dataclass(frozen=True)
class Exchange:
    """A server, and what its client does."""

    serve: str
    """Shell command of the server."""
    port: int
    """Port on which it listens."""
    client: str
    """Shell commands of the mobile."""
    connections: int
    """The least number of connections that they make."""
    check: Callable[[str], object] = lambda out: None
    """Asserts that their output is right."""


def _in_private_run(*commands: str, server: str) -> str:
    """Return the shell command of a server in a mount namespace, after `commands`."""
    require("root")
    require("mount-namespace")
    lines = ["mount -t tmpfs tmpfs /run", *commands, f"exec {server}"]
    return shlex.join(["exec", "unshare", "--mount", "sh", "-ec", "\n".join(lines)])


def _same(*paths: Path) -> None:
    for path in paths:
        assert path.read_bytes() == CONTENT, path.name


def ssh(folder: Path, need: Need, server: str) -> Exchange:
    """An interactive session, in which each line is an answer to the last, and copies both ways."""
    sshd, client, keygen = need("sshd", "openssh-server"), need("ssh", "openssh-client"), need("ssh-keygen")
    for key in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    settings = [
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {folder}/user.pub",
        "StrictModes no",
        "PermitRootLogin prohibit-password",
        "PidFile none",
        "Subsystem sftp internal-sftp",
    ]
    (folder / "sshd.conf").write_text("\n".join([*settings, ""]))
    (folder / "content").write_bytes(CONTENT)
    host = (folder / "host.pub").read_text().split(maxsplit=2)
    (folder / "known").write_text(f"{server} {host[0]} {host[1]}\n")
    options = f"-F none -i {folder}/user -o UserKnownHostsFile={folder}/known -o StrictHostKeyChecking=yes"
    lines = [
        shlex.join([*python("dialogue.py", 20), client, *options.split(), f"root@{server}", "cat"]),
        f"{need('scp', 'openssh-client')} {options} {folder}/content root@{server}:{folder}/sent",
        f"{need('scp', 'openssh-client')} {options} root@{server}:{folder}/sent {folder}/received",
    ]
    return Exchange(
        serve=_in_private_run("mkdir /run/sshd", server=f"{sshd} -D -e -f {folder}/sshd.conf"),
        port=22,
        client="\n".join(lines),
        connections=3,
        check=lambda out: _same(folder / "sent", folder / "received"),
    )


def ftp(folder: Path, need: Need, server: str) -> Exchange:
    """Transfers both ways, in passive and in active mode (the server connects to the mobile)."""
    vsftpd, curl = need("vsftpd"), need("curl")
    settings = [
        *("listen=YES", "background=NO", "seccomp_sandbox=NO", "secure_chroot_dir=/run/empty"),
        *("anonymous_enable=YES", "anon_root=/run/ftp", "no_anon_password=YES"),
        *("write_enable=YES", "anon_upload_enable=YES", "anon_umask=022"),
    ]
    (folder / "vsftpd.conf").write_text("\n".join([*settings, ""]))
    (folder / "content").write_bytes(CONTENT)
    lines, got = [], []
    for name, mode in (("extended", ""), ("passive", "--disable-epsv")):
        path = folder / name
        lines += [
            f"{curl} -sS {mode} -T {folder}/content ftp://{server}/upload/{name}",
            f"{curl} -sS {mode} -o {path} ftp://{server}/upload/{name}",
        ]
        got.append(path)
    # Of curl 7.88 active mode fails where the server's connection and its reply arrive together.
    got.append(folder / "active")
    active = python("ftp_active.py", server, folder / "content", "upload/active", got[-1])
    made = ["mkdir -p /run/empty /run/ftp/upload", "chmod 777 /run/ftp/upload"]
    return Exchange(
        serve=_in_private_run(*made, server=f"{vsftpd} {folder}/vsftpd.conf"),
        port=21,
        client="\n".join([*lines, shlex.join(active)]),
        connections=2 * len(lines) + 3,
        check=lambda out: _same(*got),
    )


def imap(folder: Path, need: Need, server: str) -> Exchange:
    """A message is stored in a mailbox, listed and fetched."""
    dovecot, curl = need("dovecot", "dovecot-imapd"), need("curl")
    settings = [
        *("protocols = imap", "listen = *, ::", "ssl = no", "disable_plaintext_auth = no"),
        *("base_dir = /run/dovecot", "state_dir = /run/dovecot", "log_path = /dev/stderr"),
        "passdb {\n driver = static\n args = password=secret\n}",
        "userdb {\n driver = static\n args = uid=mail gid=mail home=/run/mail/%u\n}",
        *("mail_location = maildir:/run/mail/%u", "first_valid_uid = 1"),
    ]
    (folder / "dovecot.conf").write_text("\n".join([*settings, ""]))
    text = "".join(f"{line} {'x' * 60}\r\n" for line in range(1000))
    (folder / "message").write_text(f"Subject: a test\r\n\r\n{text}", newline="")
    mailbox = f"imap://mobile:secret@{server}/INBOX"
    lines = [
        f"{curl} -sS -T {folder}/message {mailbox}",
        f"{curl} -sS '{mailbox}?SUBJECT%20test'",
        f"{curl} -sS -o {folder}/fetched '{mailbox};MAILINDEX=1'",
    ]

    def check(out: str) -> None:
        assert "* SEARCH 1" in out
        assert (folder / "fetched").read_bytes() == (folder / "message").read_bytes()

    return Exchange(
        serve=_in_private_run(
            "mkdir -p /run/dovecot /run/mail",
            "chown mail /run/mail",
            server=f"{dovecot} -F -c {folder}/dovecot.conf",
        ),
        port=143,
        client="\n".join(lines),
        connections=len(lines),
        check=check,
    )


def chromium(folder: Path, need: Need, server: str) -> Exchange:
    """A browser loads a page of many objects over HTTPS."""
    nginx, browser = need("nginx", "nginx-light"), need("chromium")
    subprocess.run(
        [need("openssl"), *CERTIFICATE.split(), "-keyout", "key", "-out", "cert"],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    (folder / "files").mkdir()
    made = subprocess.run(python("page.py", folder / "files"), capture_output=True, text=True, check=True)
    page = json.loads(made.stdout)
    secure = "listen 443 ssl;\n ssl_certificate cert;\n ssl_certificate_key key;\n"
    (folder / "nginx.conf").write_text((ENDS / "nginx.conf").read_text().replace("listen 80;", secure))
    profile = f"--user-data-dir={folder / 'profile'}"
    words = [browser, *BROWSER, profile, "--ignore-certificate-errors", "--dump-dom", f"https://{server}/index.html"]

    def check(out: str) -> None:
        # The page writes what its scripts saw.
        assert f'"objects":{page["objects"]}' in out.replace("&quot;", '"'), out[-500:]
        assert f'"bytes":{page["bytes"]}' in out.replace("&quot;", '"'), out[-500:]

    require("root")
    command = [nginx, "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf", "-g", "master_process off;"]
    return Exchange(
        serve=shlex.join(["exec", *map(str, command)]),
        port=443,
        # Without output the browser itself has failed: an error of the network is a page, too.
        client=f'out=$({shlex.join(words)}); [ -n "$out" ] || out=$({shlex.join(words)}); echo "$out"',
        connections=2,
        check=check,
    )


PROGRAMS = {"ssh": ssh, "ftp": ftp, "imap": imap, "chromium": chromium}
"""Each writes its files into a folder and returns what runs on both ends."""
