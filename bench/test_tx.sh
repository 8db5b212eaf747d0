#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of the program bench-tx as its users see it: test_tx.sh PROGRAM TEST
set -euo pipefail
program=$1
here=$(dirname "$0")

no_such_case_exits_with_2() {
    local status=0
    "$program" --case nonsense >/dev/null 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "bench-tx --case nonsense: exit status $status"
}

json_has_the_keys_of_the_table() {
    local key
    "$program" --quick --rounds 1 --case store64 --dir "$directory" \
        --json "$directory/tx.json" >"$directory/table"
    for key in case system pattern size ranges changed_pct fences lines_flushed \
        lines_streamed log_payload_bytes log_bytes ns_median ns_min ns_max \
        ratio_libpmemobj ratio_floor; do
        grep -q "\"$key\":" "$directory/tx.json" || fail "no key $key"
    done
    "$program" --render "$directory/tx.json" | grep -q '^| store64 | minl2r | hot ' ||
        fail "bench-tx cannot render its own results"
    [ "$(ls "$directory")" = "$(printf 'table\ntx.json')" ] ||
        fail "files left: $(ls "$directory")"
}

# 2R + 3 in a transaction of R ranges that are small, counted by the second run.
libpmemobj_has_two_fences_per_range() {
    local ranges
    "$program" --quick --rounds 1 --case ranges --dir "$directory" \
        --json "$directory/tx.json" >"$directory/table"
    for ranges in 1 4 16 64; do
        grep '"system":"libpmemobj","pattern":"random","size":8,' "$directory/tx.json" |
            grep -q "\"ranges\":$ranges,.*\"fences\":$((2 * ranges + 3))," ||
            fail "$ranges ranges: not $((2 * ranges + 3)) fences"
    done
}

# In a process group of its own, interrupted while it has files.
interrupt_leaves_no_files() {
    local pid status=0
    setsid "$program" --quick --dir "$directory" --json "$directory/tx.json" >/dev/null 2>&1 &
    pid=$!
    while [ -z "$(ls "$directory")" ]; do
        kill -0 "$pid" || fail "bench-tx ended by itself"
        sleep 0.01
    done
    kill -INT "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || fail "exit status $status"
    [ -z "$(ls "$directory")" ] || fail "files left: $(ls "$directory")"
}

documents_show_the_stored_results() {
    "$here/update-docs.sh" --check "$(dirname "$program")"
}

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT
"$2"
