#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: killed.sh CRASHTEST
# Who is killed leaves no process behind that goes on exploring.
set -u
offspring() { # PROCESS
    local child
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        echo "$child"
        offspring "$child"
    done
}
one_lives() { # PROCESS ...
    local process
    for process in "$@"; do
        [[ $(cat /proc/"$process"/stat 2>/dev/null || echo ') Z ') != *') Z '* ]] && return
    done
    return 1
}
fail() {
    echo "$*" >&2
    kill -9 $children 2>/dev/null
    exit 1
}
"$1" library --jobs 2 >/dev/null 2>&1 &
explorer=$!
children=
for ((i = 0; i < 100 && $(wc -w <<<"$children") < 2; i++)); do
    sleep 0.1
    children=$(echo $(offspring $explorer))
done
kill -9 $explorer
wait $explorer 2>/dev/null
[ "$(wc -w <<<"$children")" -ge 2 ] || fail "it has started no processes"
for ((i = 0; i < 100; i++)); do
    one_lives $children || exit 0
    sleep 0.1
done
fail "still there: $children"
