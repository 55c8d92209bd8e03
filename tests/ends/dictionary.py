"""A client that keeps a dictionary (RFC 9842): `dictionary.py ZSTD`.

It fetches `/old.html`, states that it has it, and fetches `/new.html`. The command line of
Zstandard decodes the answer. It prints the bytes of that, decoded and as they came.
"""

import base64
import hashlib
import http.client
import subprocess
import sys
from pathlib import Path

connection = http.client.HTTPConnection("server", 80)


def get(path: str, fields: dict[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
    """Return a response and its content."""
    connection.request("GET", path, headers=fields)
    answer = connection.getresponse()
    return answer, answer.read()


answer, old = get("/old.html", {"Accept-Encoding": "gzip"})
assert answer.headers["Use-As-Dictionary"] == 'match="/old.html"', answer.headers
digest = hashlib.sha256(old).digest()
stated = {"Available-Dictionary": f":{base64.b64encode(digest).decode()}:"}
answer, coded = get("/new.html", stated | {"Accept-Encoding": "gzip, br, dcb, dcz"})
assert answer.headers["Content-Encoding"] == "dcz", answer.headers
assert answer.headers["Vary"] == "Accept-Encoding, Available-Dictionary", answer.headers
assert coded[:8] == bytes([0x5E, 0x2A, 0x4D, 0x18, 0x20, 0, 0, 0]) and coded[8:40] == digest
Path("dictionary").write_bytes(old)
new = subprocess.run([sys.argv[1], "-dcD", "dictionary"], input=coded, capture_output=True, check=True).stdout
assert new == get("/new.html", {})[1]
answer, by_brotli = get("/new.html", stated | {"Accept-Encoding": "gzip, dcb"})
assert answer.headers["Content-Encoding"] == "dcb", answer.headers
assert by_brotli.startswith(bytes([0xFF, 0x44, 0x43, 0x42]) + digest) and len(by_brotli) < 500, len(by_brotli)
for other in ({"Accept-Encoding": "dcz"}, stated | {"Accept-Encoding": "gzip"}):
    answer, _ = get("/new.html", other)
    assert answer.headers["Content-Encoding"] is None, answer.headers
sys.stdout.write(f"{len(new)} {len(coded)}\n")
