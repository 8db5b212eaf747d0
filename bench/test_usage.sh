#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What all benchmarks answer alike: test_usage.sh PROGRAM ...
set -euo pipefail

fail() {
    echo "$name $*" >&2
    exit 1
}

expect() { # STATUS ARGUMENT ...
    local status=0 expected=$1
    shift
    "$program" "$@" >"$directory/out" 2>"$directory/error" || status=$?
    [ "$status" -eq "$expected" ] || fail "$*: exit status $status"
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/dir"
mkfifo "$directory/pipe"
echo nonsense >"$directory/nonsense"

for program; do
    name=$(basename "$program")
    expect 0 --help
    for option in --dir --json --render --help; do
        grep -qe " $option" "$directory/out" || fail "--help: nothing of $option"
    done
    for wrong in --nonsense extra; do
        expect 2 "$wrong"
        grep -qe "$wrong" "$directory/error" || fail "$wrong: $(cat "$directory/error")"
        [ ! -s "$directory/out" ] || fail "$wrong: printed $(cat "$directory/out")"
    done
    for option in --dir --json --render; do
        expect 2 "$option" ""
        grep -qe "$option: n" "$directory/error" || fail "$option '': $(cat "$directory/error")"
        [ ! -s "$directory/out" ] || fail "$option '': printed $(cat "$directory/out")"
    done
    if "$program" --help | grep -q -e --rounds; then
        for rounds in 0 1x 1000000; do
            expect 2 --rounds "$rounds"
        done
    fi
    for file in nonsense missing; do
        expect 1 --render "$directory/$file"
        grep -q "^$name: $directory/$file: " "$directory/error" || fail "$(cat "$directory/error")"
    done
    # Said before anything is measured, and nothing is replaced.
    for file in "$directory/missing/file" "$directory/dir" "$directory/pipe"; do
        expect 1 --dir "$directory/dir" --json "$file"
        grep -q "^$name: $file: " "$directory/error" || fail "$(cat "$directory/error")"
        [ ! -s "$directory/out" ] || fail "--json $file: printed $(cat "$directory/out")"
        [ -z "$(ls "$directory/dir")" ] || fail "left files: $(ls "$directory/dir")"
    done
    [ -p "$directory/pipe" ] || fail "replaced a pipe"
done
