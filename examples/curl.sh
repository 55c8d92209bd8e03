#!/bin/sh
# The download of hs-dsch.toml by a real program: curl fetches 1 MB from Python's web server over
# the same bearer, in real time, in half a minute.
#
#   sh examples/curl.sh FOLDER [AIRPATH]
#
# FOLDER receives the result, which `airpath report` can compare with simulated ones. The exit code
# is 1, with a message, if the host allows no link.
set -eu

out=$1
airpath=${2:-airpath}
here=$(dirname "$0")

if ! command -v curl >/dev/null; then
    echo "no real download: curl is not installed (as root: apt-get install curl)" >&2
    exit 1
fi

files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
head -c 1000000 /dev/zero >"$files/file"

# The messages of the link are printed after those of the demo.
if ! "$airpath" link "$here/hs-dsch.toml" --set name="HS-DSCH, real curl" --out "$out" --budget "10 ms" \
    --serve "python3 -m http.server 8000 --directory '$files'" \
    -- curl --silent --show-error --fail --output /dev/null http://server:8000/file 2>"$files/messages"; then
    echo "no real download: this host allows no link, or the link failed; \`airpath doctor\` prints what to do" >&2
    cat "$files/messages" >&2
    exit 1
fi
cat "$files/messages" >&2
