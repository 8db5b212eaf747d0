#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: jobs.sh PROGRAM ...
# However many processes share out the orders of its threads, and whenever: what PROGRAM reports
# is the same, but for the time it took.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
report() { # PROGRAM JOBS
    "$1" --jobs "$2" --json "$work/json"
    sed 's/"seconds": [0-9.]*//' "$work/json"
}
for program in "$@"; do
    first=$(report "$program" 1 | sed 's/[0-9.]* s; coverage//')
    for jobs in 1 2 5; do
        next=$(report "$program" $jobs | sed 's/[0-9.]* s; coverage//')
        if [ "$first" != "$next" ]; then
            printf '%s --jobs %d: differs:\n' "$program" $jobs >&2
            diff <(echo "$first") <(echo "$next") >&2
            exit 1
        fi
    done
    if ! grep -q '"seed": 16' <<<"$first"; then
        printf '%s: there are no 16 orders\n' "$program" >&2
        exit 1
    fi
done
