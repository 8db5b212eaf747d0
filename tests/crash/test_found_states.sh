#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: test_found_states.sh CRASHTEST
# States that were wrong once are right now, and wrong with the bug of the self-test that stands
# for what was found; see docs/CRASH_MODEL.md. Without a bug (-): the tester was wrong. An id is of one order of stores: where that has
# changed, `crashtest self-test --json` has the new one.
set -eu
crashtest=$1

replay() { # STATUS WORKLOAD ID OPTION ...
    local status=0 wanted=$1 workload=$2 id=$3
    shift 3
    "$crashtest" "$workload" --replay "$id" "$@" || status=$?
    if [ $status -ne "$wanted" ]; then
        echo "$id $*: exit status $status, not $wanted" >&2
        exit 1
    fi
}

while read -r workload bug id; do
    replay 0 "$workload" "$id"
    [ "$bug" = - ] || replay 1 "$workload" "$id" --bug "$bug"
done <<'END'
library same-value-not-stored slots-and-bytes.words:1:k53:/p36:6440=0.0.1
library magic-not-flushed garbage.format:1:k266:/p34:0=0.0.0
library ended-without-log slots-and-bytes.swap_many+write_same+block_beside_open:1:p1303:/p136:1080=0.0.0
pmfs bits_not_noted pmfs/half/repair-free-blocks:1:k30:/p53:5000=0.0.0
pmfs - pmfs/large/repair-lost-directory+exchange-foo-A/C:1:p1:
END
