"""The compression ratio of V.42bis for the types of files of the study gsm-csd.

The dictionary of ITU-T V.42bis, with 2,048 codewords and strings of up to 32 characters unless
other numbers are given. `modem.compression` and `radio.compression` take the ratios.

    python tools/v42bis.py [--codewords N] [--longest N] [FILE ...]

Without a file it prints the ratios of the three types: `ABC`, the letters of the alphabet again and
again; `text`, LICENSE-APACHE in lines of 66 characters; and `binary`, evenly distributed octets.
"""

import argparse
import random
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_CODEWORD = 259
"""Below it are three control codewords and the 256 characters."""


class Dictionary:
    """A tree of strings, each a codeword, in which old leaves give way to new ones."""

    def __init__(self, codewords: int, longest: int) -> None:
        self._codewords = codewords
        self._longest = longest
        self._children: dict[tuple[int, int], int] = {}
        """Codeword of a string and a character behind it."""
        self._parent: dict[int, tuple[int, int]] = {}
        """The same by codeword."""
        self._branches: dict[int, int] = {}
        """Strings that continue a codeword's."""
        self._next = FIRST_CODEWORD
        self._newest: int | None = None
        self.bits = 9
        """Of a codeword."""

    def match(self, data: bytes, start: int) -> tuple[int, int]:
        """Return the codeword of the longest string that is known at `start`, and its length."""
        code, length = data[start] + 3, 1
        while start + length < len(data) and length < self._longest:
            longer = self._children.get((code, data[start + length]))
            # The newest string is not used before the next is made.
            if longer is None or longer == self._newest:
                break
            code, length = longer, length + 1
        return code, length

    def add(self, code: int, length: int, character: int) -> None:
        """Add a string: that of a codeword and one more character."""
        if length >= self._longest or (code, character) in self._children:
            self._newest = None
            return
        made = self._next
        if made in self._parent:
            old = self._parent.pop(made)
            del self._children[old]
            self._branches[old[0]] = self._branches.get(old[0], 0) - 1
        self._children[code, character] = made
        self._parent[made] = (code, character)
        self._branches[code] = self._branches.get(code, 0) + 1
        self._newest = made
        self.bits = max(self.bits, made.bit_length())
        self._next = self._leaf_after(made)

    def _leaf_after(self, code: int) -> int:
        while True:
            code = code + 1 if code + 1 < self._codewords else FIRST_CODEWORD
            if not self._branches.get(code):
                return code


def ratio(data: bytes, codewords: int, longest: int) -> float:
    """Return octets before compression over octets after it, at least 1: else it is transparent."""
    dictionary = Dictionary(codewords, longest)
    bits = start = 0
    while start < len(data):
        code, length = dictionary.match(data, start)
        bits += dictionary.bits
        start += length
        if start < len(data):
            dictionary.add(code, length, data[start])
    return max(1.0, 8 * len(data) / bits)


def types() -> dict[str, bytes]:
    """Return a file of each type."""
    words = " ".join((ROOT / "LICENSE-APACHE").read_text(encoding="ascii").split())
    return {
        "ABC": b"ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 4000,
        "text": "\r\n".join(textwrap.wrap(words, 66)).encode(),
        "binary": random.Random(1).randbytes(100_000),
    }


def main() -> None:
    """Print the ratio of each file."""
    parser = argparse.ArgumentParser(description="Compression ratio of V.42bis")
    parser.add_argument("--codewords", type=int, default=2048)
    parser.add_argument("--longest", type=int, default=32)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = {str(path): path.read_bytes() for path in options.files} or types()
    for name, data in files.items():
        print(f"{name}: {ratio(data, options.codewords, options.longest):.2f}")


if __name__ == "__main__":
    main()
