#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-delay as its users see it: test_delay.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

"$program" --quick --dir "$directory" --json "$directory/delay.json" >"$directory/table"
for medium in optane cxl; do
    "$program" --render "$directory/delay.json" |
        grep -q "^| $medium | read | 64 |" || fail "$medium is not measured"
done
# What has to be waited for is waited for, whatever the machine does besides.
sed -n -E 's/.*"ns_asked":([0-9.]*),"ns_got":([0-9.]*),.*/\1 \2/p' "$directory/delay.json" |
    awk '$2 < 0.9 * $1 { print "asked for " $1 " ns, got " $2; bad = 1 }
         END { exit bad || NR < 40 }' || fail "too fast"
[ "$(ls "$directory")" = "$(printf 'delay.json\ntable')" ] ||
    fail "files left: $(ls "$directory")"
