#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: strategies.sh PROGRAM BUG ...
# With each BUG in the environment, PROGRAM ends alike, and with the same id, whether states are
# tried eagerly or lazily.
set -u
program=$1
shift
for bug in "$@"; do
    expected=''
    for strategy in eager lazy best; do
        output=$(BUG=$bug "$program" --strategy $strategy --failures 1 2>&1)
        found="exit status $?, $(grep -o 'replay .*' <<<"$output")"
        if [ -n "$expected" ] && [ "$found" != "$expected" ]; then
            echo "$bug: $strategy finds '$found', eager '$expected'" >&2
            exit 1
        fi
        expected=$found
    done
    echo "$bug: $expected"
done
