#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What bench-log counts is what the rules of the schemes say: test_log.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

"$program" --dir "$directory" --json "$directory/log.json" >"$directory/table"
tail -1 "$directory/table" | grep -q '^Took: [0-9]* s$' || fail "no time: $(tail -1 "$directory/table")"
"$program" --render "$directory/log.json" | grep -q '^| 4352 | 264 |' ||
    fail "bench-log cannot render its own results"

# Whole blocks and a rest: a pointer for each block of which half or more changes, else the
# bytes that do. BPFS writes whole blocks, and a node when there is more than one.
sed -n -E 's/.*"record_size":([0-9]+),"minl2r_payload":([0-9.]+),.*"bpfs_shadow":([0-9.]+),"bpfs_copied":([0-9.]+),.*/\1 \2 \3 \4/p' \
    "$directory/log.json" | awk '
    {
        rest = $1 % 4096
        blocks = int($1 / 4096) + (rest > 0)
        saved = 8 * int($1 / 4096) + (rest * 2 < 4096 ? rest : 8)
        shadow = 4096 * (blocks + (blocks > 1))
        if ($2 != saved) { print $1 ": saved " $2 ", not " saved; bad = 1 }
        if ($3 != shadow) { print $1 ": shadow blocks " $3 ", not " shadow; bad = 1 }
        if ($4 > shadow - $1) { print $1 ": copied " $4; bad = 1 }
    }
    END { if (NR != 48) print NR " sizes"; exit bad || NR != 48 }' || fail "not by the rules"
[ "$(ls "$directory")" = "$(printf 'log.json\ntable')" ] ||
    fail "files left: $(ls "$directory")"
