#!/bin/sh
# The download of hs-dsch.toml by a real program: curl takes 1 MB from Python's web server over the same bearer, in real time,
# which takes half a minute.
#
#   sh examples/curl.sh FOLDER [AIRPATH]
#
# FOLDER is where the result goes, beside which `airpath report` puts simulated ones. Ends with 1, and says why, where no
# link can be made.
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

# Its words stay away from those of the demo, unless it fails.
if ! "$airpath" link "$here/hs-dsch.toml" --set name="HS-DSCH, real curl" --out "$out" --budget "10 ms" \
    --serve "python3 -m http.server 8000 --directory '$files'" \
    -- curl --silent --show-error --fail --output /dev/null http://server:8000/file 2>"$files/words"; then
    echo "no real download: this host allows no link, or it did not last; \`airpath doctor\` says what to do" >&2
    cat "$files/words" >&2
    exit 1
fi
cat "$files/words" >&2
