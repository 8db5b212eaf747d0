#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# every_call.sh LIBRARY TEST... - each call that the library defines is named in a test.
# Names of one address (open, open64) are one call.
set -euo pipefail
library=$1
shift

nm -D --defined-only "$library" | awk -v tests="cat $*" '
    BEGIN {
        while ((tests | getline line) > 0) {
            count = split(line, words, /[^a-zA-Z0-9_]+/)
            for (i = 1; i <= count; i++)
                named[words[i]] = 1
        }
    }
    $2 == "T" {
        calls[$1] = calls[$1] " " $3
        done[$1] = done[$1] || $3 in named
    }
    END {
        for (address in calls) {
            total++
            if (!done[address]) {
                print "no test:" calls[address]
                missing = 1
            }
        }
        print total " calls"
        exit missing || total < 100
    }'
