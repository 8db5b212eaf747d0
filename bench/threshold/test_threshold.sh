#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-threshold as its users see it: test_threshold.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

"$program" --quick --dir "$directory" --json "$directory/threshold.json" \
    >"$directory/table"
"$program" --render "$directory/threshold.json" >"$directory/rendered"
for medium in tmpfs optane cxl; do
    for pattern in hot random; do
        # 16 sizes, and a line that sums them up.
        [ "$(grep -c "^| $medium | $pattern |" "$directory/rendered")" -eq 17 ] ||
            fail "$medium, $pattern: not every size is there"
    done
done
# What is logged does not depend on the machine: 1 KiB with a header, or one line.
grep -q '"pattern":"random","size":1024,.*"data_log_bytes":1088,"pointer_log_bytes":64,' \
    "$directory/threshold.json" || fail "1,024 bytes are not logged as they should be"
[ "$(ls "$directory")" = "$(printf 'rendered\ntable\nthreshold.json')" ] ||
    fail "files left: $(ls "$directory")"
