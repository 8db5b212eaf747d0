#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-pmfs as its users see it: test_pmfs.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

"$program" --quick --rounds 1 --dir "$directory" --json "$directory/pmfs.json" \
    >"$directory/table"
for key in op size fences lines_flushed log_bytes ns_median ns_floor ratio_floor; do
    grep -q "\"$key\":" "$directory/pmfs.json" || fail "no key $key"
done
# Fences do not depend on the machine. Once in a while a map grows.
while read -r operation fences; do
    grep "\"op\":\"$operation\",\"size\":.*\"fences\":$fences\(\.0[0-9]*\)\?," "$directory/pmfs.json" \
        >/dev/null || fail "$operation: not $fences fences"
done <<'END'
create 2
unlink 2
rename 2
mkdir 2
link 2
chmod 1
END
grep -q '"op":"overwrite","size":4096,.*"fences":2,' "$directory/pmfs.json" ||
    fail "overwrite of a block: not 2 fences"
"$program" --quick --rounds 1 --threads 2 --dir "$directory" |
    grep '^  overwrite by 2 threads, 4096 B: [0-9.]* times' >/dev/null || fail "no scaling of two threads"
for operation in create "overwrite by 2 threads" "append by 2 threads" "read by 2 threads" "create+unlink by 2 threads" "lookup among" "allocate a block at %"; do
    "$program" --render "$directory/pmfs.json" | grep "^| $operation " >/dev/null ||
        fail "bench-pmfs cannot render its own results: $operation"
done
# --quick leaves out what takes long: that has a row without figures, and its bar says so.
"$program" --render "$directory/pmfs.json" >"$directory/rendered"
while read -r operation; do
    grep -q "\"op\":\"$operation\",\"size\":1000000,.*\"ns_median\":null," "$directory/pmfs.json" ||
        fail "$operation: no row that says that it was left out"
    grep -q "^- $operation, 1000000 .*: not measured$" "$directory/rendered" ||
        fail "$operation: no bar that says that it was not measured"
done <<'END'
lookup among
lookup of none among
mount, 10 GiB
mount, 10 GiB, after a kill
END
grep -q '^- allocate a block at %, 95 %: ns / those at 10 % [0-9.]*, at most 1.50: ' "$directory/rendered" ||
    fail "no bar of allocation"
# The bars of threads, of given times: those of plain memory only where it does less.
scaling() { # NS AND FLOOR BY ONE; NS AND FLOOR OF EACH OF TWO
    python3 - "$directory/pmfs.json" "$@" >"$directory/given.json" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    rows = json.load(file)
for row in rows:
    for threads, (ns, floor) in (("1 thread", sys.argv[2:4]), ("2 threads", sys.argv[4:6])):
        if row["op"] == f"read by {threads}":
            row["ns_median"], row["ns_floor"] = float(ns), float(floor)
json.dump(rows, sys.stdout, separators=(",", ":"))
END
    "$program" --render "$directory/given.json" | grep '^- read by 2 threads'
}
bar="- read by 2 threads, 4096 B: 1.60 times as many as by one, at least"
[ "$(scaling 400 200 500 200)" = "$bar 1.80: MISSED" ] ||
    fail "two threads that read, plain memory twice as much: $(scaling 400 200 500 200)"
[ "$(scaling 400 200 500 250)" = "$bar 1.80: MISSED
$bar 1.60 (plain memory on this machine): met" ] ||
    fail "two threads that read, plain memory 1.6 times as much: $(scaling 400 200 500 250)"
rm "$directory/given.json" "$directory/rendered"
# Nobody reads on: it ends there, and leaves nothing behind.
"$program" --quick --rounds 1 --threads 2 --dir "$directory" | true || true
[ "$(ls "$directory")" = "$(printf 'pmfs.json\ntable')" ] ||
    fail "files left: $(ls "$directory")"
