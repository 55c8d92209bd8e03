"""Sends lines to a program that repeats them: `dialogue.py COUNT COMMAND...`.

The next line is sent when the last has come back, so each waits for a whole round trip.
"""

import subprocess
import sys


def main() -> None:
    """Exchange the lines."""
    count, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(int(count)):
            line = f"line {number}\n"
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
            if answer != line:
                sys.exit(f"sent {line!r}, got {answer!r}")
        process.stdin.close()
        if process.stdout.read() != "":
            sys.exit("more came back than was sent")
    sys.exit(process.returncode)


main()
