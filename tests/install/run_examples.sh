#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run_examples.sh BINDIR EXAMPLES: runs what the tutorial shows and compares.
set -euo pipefail
PATH=$1:$2/counter:$2/tour:$2/hashmap:$PATH

parent=/dev/shm
[ -w $parent ] || parent=/tmp
dir=$(mktemp -d $parent/minl2r-examples-XXXXXX)
trap 'rm -rf "$dir"' EXIT

expect() { # WANTED COMMAND ...
    local wanted=$1 got
    shift
    got=$("$@" 2>&1) || true
    if [ "$got" != "$wanted" ]; then
        printf '%s\n  gave:   %s\n  wanted: %s\n' "$*" "$got" "$wanted" >&2
        exit 1
    fi
}

wrong_usage() { # COMMAND ...
    local status=0
    "$@" >/dev/null 2>&1 || status=$?
    if [ $status -ne 2 ]; then
        printf '%s\n  exit status %s, not 2\n' "$*" $status >&2
        exit 1
    fi
}

# Each run remembers the ones before it.
minl2r create --size 1M --layout counter "$dir/counter"
expect 1 counter "$dir/counter"
expect $'2\n3\n4' counter "$dir/counter" 3
minl2r check "$dir/counter" >/dev/null

minl2r create --size 8M --layout tour "$dir/tour"
tour "$dir/tour" | tee "$dir/tour.out"
grep -q '^note: hello$' "$dir/tour.out"
grep -q '^page 0: a few.*in the same block$' "$dir/tour.out"
grep -q '^page 0: y.*in another block$' "$dir/tour.out"
grep -q '^best score: 42$' "$dir/tour.out"
grep -q '^turns: 4000$' "$dir/tour.out"

# Insert, update, delete; a value of many blocks; an empty one.
map=$dir/map
hashmap "$map" put colour red
hashmap "$map" put colour green
hashmap "$map" put shape ""
head -c 20000000 /dev/urandom >"$dir/large"
hashmap "$map" put large - <"$dir/large"
expect green hashmap "$map" get colour
expect "" hashmap "$map" get shape
hashmap "$map" get large | cmp - "$dir/large"
expect 3 hashmap "$map" count
hashmap "$map" del colour
expect "hashmap: get: no such key" hashmap "$map" get colour
expect $'large 20000000\nshape 0' sh -c 'hashmap "$1" list | sort' - "$map"

# A layout that is not its own, and a pool that does not fit the value.
expect 1 sh -c 'counter "$1" >/dev/null 2>&1; echo $?' - "$map"
head -c 200000000 /dev/zero >"$dir/too_large"
expect 1 sh -c 'hashmap "$1" put large - <"$2" >/dev/null 2>&1; echo $?' - "$map" \
    "$dir/too_large"
hashmap "$map" get large | cmp - "$dir/large"
hashmap "$map" check

# Arguments that make no sense change nothing.
for times in x 0 -1 1x ""; do
    wrong_usage counter "$dir/counter" "$times"
done
wrong_usage counter
wrong_usage counter "$dir/counter" 1 1
expect 5 counter "$dir/counter"
wrong_usage tour
for wrong in "" nonsense put "put key" "get key more" "stress 1 1"; do
    # shellcheck disable=SC2086
    wrong_usage hashmap "$dir/new" $wrong
done
[ ! -e "$dir/new" ]
wrong_usage hashmap "$map" stress 1 1 x
wrong_usage hashmap "$map" verify 1 -1
