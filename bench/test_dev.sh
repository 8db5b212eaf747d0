#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What ./dev bench answers before it installs or builds anything: test_dev.sh DEV BENCH ...
set -euo pipefail

dev=$1
shift

fail() {
    echo "$*: $(cat "$directory"/out "$directory"/error)" >&2
    exit 1
}

expect() { # STATUS ARGUMENT ...
    local status=0 expected=$1
    shift
    PATH=$directory:$PATH "$dev" "$@" >"$directory/out" 2>"$directory/error" || status=$?
    [ "$status" -eq "$expected" ] || fail "$*: exit status $status"
    [ ! -e "$directory/called" ] || fail "$*: called $(cat "$directory/called")"
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT
for program in apt-get cmake; do
    printf '#!/bin/sh\necho %s >>%s/called\nexit 1\n' "$program" "$directory" >"$directory/$program"
    chmod +x "$directory/$program"
done

for wrong in "" t. tpyo; do
    expect 2 bench "$wrong"
    grep -q "there is no bench $wrong;" "$directory/error" || fail "bench $wrong"
done
for program; do
    name=${program##*/bench-}
    grep -qw -e "$name" "$directory/error" || fail "not named: $program"
done
for name in fio apps crash report; do
    expect 0 bench "$name" --help
    grep -q "^usage: bench-$name" "$directory/out" || fail "bench $name --help"
done
expect 0 bench --help
grep -q '^Usage: ./dev' "$directory/out" || fail "bench --help"
