#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# sqlite_killed.sh - sqlite3 with a rollback journal, killed while it writes: each time
# after that its own check finds nothing, and what it said was committed is there. With
# WAL in exclusive mode, too, which needs no shared memory.
set -euo pipefail
kills=3
if [ "${MINL2R_TEST_LONG:-OFF}" = ON ]; then kills=100; fi

. "$(dirname "$0")/sqlite_pairs.sh"

sql() { # DATABASE, statements on standard input
    LD_PRELOAD=$PRELOAD sqlite3 -batch -bail "/pmfs/$1"
}

run() { # DATABASE PRAGMAS
    committed=0
    echo "$2 create table pairs(number integer primary key, text);" |
        sql "$1" >/dev/null
    for ((i = 1; i <= kills; i++)); do
        transactions "$((committed + 1))" "$2" |
            LD_PRELOAD=$PRELOAD sqlite3 -batch -bail "/pmfs/$1" \
                >"$WORK/said" 2>"$WORK/errors" &
        pid=$!
        until [ "$(wc -l <"$WORK/said")" -ge 5 ]; do
            kill -0 "$pid"
            sleep 0.02
        done
        sleep "0.$((RANDOM % 20 + 10))"
        kill -9 "$pid"
        if wait "$pid" 2>/dev/null; then
            echo "sqlite3 was not killed"
            cat "$WORK/errors"
            exit 1
        fi
        "$PMFS_TOOL" fsck "$POOL" >/dev/null
        [ ! -s "$WORK/errors" ] || { cat "$WORK/errors"; exit 1; }
        acknowledged=$(grep -cE '^[0-9]+$' "$WORK/said" || true)
        check "$1" "$((committed + acknowledged))" "$2"
    done
    echo "$1: $committed transactions, killed $kills times"
    [ "$committed" -gt "$kills" ]
}

full='pragma synchronous=full;'
run delete.db "pragma journal_mode=delete; $full"
run wal.db "pragma locking_mode=exclusive; pragma journal_mode=wal; $full"
