#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: test_pmfs_crash.sh CRASHTEST
# Power failures and kills in calls of pmfs: recovery must lead to the tree before the call or
# after it, and fsck must find nothing in it. MINL2R_TEST_LONG=ON: all that the command knows.
set -eu
crashtest=$1

explore() { # OPTION ...
    printf '%s\n' "crashtest pmfs $*"
    "$crashtest" pmfs --budget 256 "$@" 2>/dev/null | tee "$report"
    grep -q 'pmfs: passed; [1-9]' "$report"
}

explore_exactly() { # OPTION ...
    explore "$@"
    grep -q 'coverage: exact' "$report"
}

report=$(mktemp)
trap 'rm -f "$report"' EXIT

if [ "${MINL2R_TEST_LONG:-OFF}" = ON ]; then
    explore_exactly --setting ace --length 2 --nested 8
    explore_exactly --setting extra --nested 8
    explore --setting repair --budget 1024 --nested 4
    explore_exactly --setting remount --length 2 --no-kill --nested 0
    explore_exactly --setting extra --nested 8 --strategy both
    explore --setting lanes --nested 8
    explore --setting metadata --long --no-kill --nested 0
    explore --random 4096 --nested 4
    exit
fi

explore_exactly --setting ace --length 1 --nested 4
# Lazily and eagerly alike, wherever all states can be tried.
explore_exactly --setting ace --length 1 --no-kill --nested 0 --strategy both
explore_exactly --setting extra --no-kill --nested 0
explore --setting extra --operation write-long --operation whiteout-A/foo-A/bar \
    --operation split-whiteout-D --no-kill --nested 0
explore --setting lanes --no-kill --nested 0 --operation creat-foo \
    --operation creat-A/bar --operation unlink-foo --operation rename-foo-A/foo --operation extend-foo \
    --operation overwrite-block-A/bar --operation chmod-foo --operation clear-A/bar
# Repairs that are cut off, and begin once more; and of a killed one the bits that it has set.
explore_exactly --setting repair --no-kill --nested 0
explore_exactly --setting repair --operation repair-free-blocks --nested 1
# Lost blocks that are kept by several transactions: killed, and cut off again in the next repair.
explore_exactly --setting repair --operation repair-lost-run --nested 0
explore --setting repair --operation repair-lost-run --no-kill --nested 1
# What an operation finds that comes first after mounting.
explore_exactly --setting remount --length 2 --no-kill --nested 0 --operation creat-foo \
    --operation creat-A/bar --operation append-foo --operation unlink-foo \
    --operation remove-A/bar --operation rename-foo-A/bar --operation clear-A/bar \
    --operation rename-A-B
# A kill can show early times that a power failure takes back.
explore_exactly --setting ace --length 2 --operation fallocate-foo --nested 4
explore --random 256 --no-kill --nested 0
