#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: killed.sh PROCESSES COMMAND ...
# COMMAND takes long, and has at least PROCESSES children meanwhile. Killed, or interrupted from
# the keyboard, it leaves no process behind that goes on exploring.
set -um # each command is a process group, as from a terminal
least=$1
shift
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
    kill -9 $explorer $children 2>/dev/null
    exit 1
}
all_end() { # PROCESS ...
    local i
    for ((i = 0; i < 100; i++)); do
        one_lives "$@" || return 0
        sleep 0.1
    done
    return 1
}
for signal in '-KILL ' '-INT -'; do # to the process, or to its group
    "$@" >/dev/null 2>&1 &
    explorer=$!
    children=
    for ((i = 0; i < 200 && $(wc -w <<<"$children") < least; i++)); do
        sleep 0.1
        children=$(echo $(offspring $explorer))
    done
    [ "$(wc -w <<<"$children")" -ge "$least" ] || fail "it has not started $least processes"
    kill ${signal}$explorer
    wait $explorer 2>/dev/null
    all_end $children || fail "${signal%% *}: still there: $children"
done
