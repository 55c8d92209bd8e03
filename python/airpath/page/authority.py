"""A certificate authority for one run: only the browser of the run trusts it."""

import base64
import hashlib
import ssl
from collections.abc import Iterable
from pathlib import Path

from airpath import extras


def issue(hosts: Iterable[str], folder: Path) -> str:
    """Write `HOST.pem` for each host: its key, its certificate and that of the authority.

    The chain is that of a small site: two certificates with P-256 keys.

    Returns:
        The hash of the authority's public key, as `--ignore-certificate-errors-spki-list` takes it.

    Raises:
        ExtraMissingError: `trustme` is not installed.
    """
    extras.require("page", "trustme")
    import trustme
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509 import load_pem_x509_certificate

    root = trustme.CA()
    authority = root.create_child_ca()
    for host in hosts:
        authority.issue_cert(host).private_key_and_cert_chain_pem.write_to_path(str(path_of(host, folder)))
    key = load_pem_x509_certificate(authority.cert_pem.bytes()).public_key()
    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(encoded).digest()).decode()


def path_of(host: str, folder: Path) -> Path:
    """Return the path of a host's key and certificates."""
    return folder / f"{host.replace(':', '_')}.pem"


def context(host: str, certificates: Path, version: str, protocol: str) -> ssl.SSLContext:
    """Return the TLS settings of a host.

    Args:
        host: The host.
        certificates: Folder with the certificates.
        version: `TLSv1.2` or `TLSv1.3`.
        protocol: The protocol for ALPN, which has no HTTP/1.0.
    """
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    exact = ssl.TLSVersion.TLSv1_2 if version == "TLSv1.2" else ssl.TLSVersion.TLSv1_3
    settings.minimum_version = settings.maximum_version = exact
    if protocol != "http/1.0":
        settings.set_alpn_protocols([protocol])
    settings.load_cert_chain(path_of(host, certificates))
    return settings
