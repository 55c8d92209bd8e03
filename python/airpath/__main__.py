"""`python -m airpath` is the `airpath` command."""

import sys

from airpath.cli import main

if __name__ == "__main__":
    sys.exit(main())
