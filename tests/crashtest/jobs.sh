#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: jobs.sh ORDERS PROGRAM ...
# However many processes share out the orders of its threads (ORDERS of them; 0: it has one
# thread) or its crash points, and whenever: what PROGRAM reports is the same, but for the time
# it took.
set -u
orders=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
report() { # PROGRAM JOBS
    "$1" --jobs "$2" --json "$work/json" --html "$work/html" 2>&1
    echo "exit status $?"
    cat "$work/json" "$work/html"
}
without_time() { sed -E 's/"seconds": [0-9.]*//; s/[0-9.]+ s(; coverage|<)/\1/g; s/<td>[0-9]+\.[0-9]+<//'; }
for program in "$@"; do
    first=$(report "$program" 1 | without_time)
    for jobs in 2 5; do
        next=$(report "$program" $jobs | without_time)
        if [ "$first" != "$next" ]; then
            printf '%s --jobs %d: differs:\n' "$program" $jobs >&2
            diff <(echo "$first") <(echo "$next") >&2
            exit 1
        fi
    done
    if [ "$orders" -gt 0 ] && ! grep -q "\"seed\": $orders" <<<"$first"; then
        printf '%s: there are no %d orders\n' "$program" "$orders" >&2
        exit 1
    fi
done
