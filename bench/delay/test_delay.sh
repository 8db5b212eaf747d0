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
# Whether it waits as long as it was asked to is for who measures on an idle machine to see.
rows=$(grep -c -E '"ns_asked":[0-9.]+,"ns_got":[0-9.]+,' "$directory/delay.json")
[ "$rows" -ge 40 ] || fail "only $rows rows of what was asked for and got"
