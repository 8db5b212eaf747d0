#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-fs as its users see it: test_fs.sh PROGRAM TEST
set -euo pipefail
program=$1
here=$(dirname "$0")

fail() {
    echo "$*" >&2
    exit 1
}

bad_usage_exits_with_2() {
    local arguments status
    for arguments in "--medium nonsense" "--workload nonsense" "--size 0" "--threads 3"; do
        status=0
        # shellcheck disable=SC2086
        "$program" $arguments >/dev/null 2>"$directory/error" || status=$?
        [ "$status" -eq 2 ] || fail "bench-fs $arguments: exit status $status"
        head -1 "$directory/error" | grep -qe "${arguments##* }" ||
            fail "bench-fs $arguments: $(head -1 "$directory/error")"
    done
    # Refused, rather than something left out that was asked for.
    for arguments in "--workload append" "--medium optane" "--json $directory/kept"; do
        echo "what was there" >"$directory/kept"
        status=0
        # shellcheck disable=SC2086
        "$program" --counts $arguments >"$directory/out" 2>"$directory/error" || status=$?
        [ "$status" -eq 2 ] || fail "bench-fs --counts $arguments: exit status $status"
        grep -q -e "--counts has no ${arguments%% *}:" "$directory/error" ||
            fail "bench-fs --counts $arguments: $(cat "$directory/error")"
        [ ! -s "$directory/out" ] || fail "bench-fs --counts $arguments: printed something"
        [ "$(cat "$directory/kept")" = "what was there" ] || fail "--counts changed a file"
    done
}

json_has_the_keys_of_the_table() {
    local key scheme
    "$program" --quick --rounds 1 --size 4096 --workload overwrite --medium all \
        --dir "$directory" --json "$directory/fs.json" >"$directory/table" 2>/dev/null
    for key in scheme workload record_size threads medium ns_p50 ns_p99 ns_p999 mb_s \
        log_payload_bytes log_bytes copied_bytes pm_bytes lines_flushed lines_streamed \
        fences; do
        grep -q "\"$key\":" "$directory/fs.json" || fail "no key $key"
    done
    for scheme in none minl2r minl2r-data minl2r-ptr bpfs-ordered bpfs-durable sp sjfs-eager \
        sjfs-lazy journal ordered; do
        for medium in tmpfs optane cxl; do
            grep -q "\"scheme\":\"$scheme\",\"workload\":\"overwrite\",\"record_size\":4096,\"threads\":1,\"medium\":\"$medium\"" \
                "$directory/fs.json" || fail "no $scheme on $medium"
        done
    done
    grep -q '^Clock: steps of [0-9.]* ns; ' "$directory/table" || fail "nothing of the clock"
    grep -q ' overwrite on tmpfs, 1 KiB to 4 KiB: ' "$directory/table" || fail "no bar in words"
    # One round of 1 MiB has few calls, all of them enough; a checkpoint is a small share of a call.
    "$program" --quick --rounds 30 --size 1048576 --workload overwrite --threads 1 \
        --dir "$directory" --json "$directory/few.json" >"$directory/table" 2>/dev/null
    ! grep -q '"ns_p99":null' "$directory/few.json" || fail "no p99 of 240 calls"
    grep -q '"ns_p999":null' "$directory/few.json" || fail "a p99.9 of 240 calls"
    "$program" --quick --rounds 1 --size 64 --workload append --threads 1 \
        --dir "$directory" --json "$directory/few.json" >"$directory/table" 2>/dev/null
    grep -q '"checkpoints":0.0005,' "$directory/few.json" || fail "no checkpoint in 2,000 calls"
    rm "$directory/few.json"
    "$program" --render "$directory/fs.json" >"$directory/rendered"
    grep -q '^| minl2r |' "$directory/rendered" || fail "bench-fs cannot render its own results"
    [ "$(ls "$directory")" = "$(printf 'fs.json\nrendered\ntable')" ] ||
        fail "files left: $(ls "$directory")"
}

# Where a change of the library or of a scheme is meant to change them:
#   build/bin/bench-fs --counts --threads 1 >bench/fs/counts.txt
counts_are_those_of_the_golden_table() {
    "$program" --counts --threads 1 --dir "$directory" >"$directory/counts"
    diff "$here/fs/counts.txt" "$directory/counts" ||
        fail "other counts than in bench/fs/counts.txt: see $0"
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT
"$2"
