# SPDX-License-Identifier: BSD-3-Clause
# sqlite_killed.sh - by with_mount.sh: sqlite3 on a mounted filesystem that is killed under
# it, with a rollback journal and with a write-ahead log and its shared memory. Each time
# after that its own check finds nothing, and what it said was committed is there.
. "$(dirname "${BASH_SOURCE[0]}")/../preload/sqlite_pairs.sh"

sql() { # DATABASE, statements on standard input
    sqlite3 -batch -bail "$MOUNT/$1"
}

run() { # DATABASE PRAGMAS
    local i pid acknowledged
    committed=0
    echo "$2 create table pairs(number integer primary key, text);" | sql "$1" >/dev/null
    for ((i = 1; i <= kills; i++)); do
        # An error ends it, or a signal, where it touches shared memory.
        transactions "$((committed + 1))" "$2" 2>/dev/null |
            sqlite3 -batch -bail "$MOUNT/$1" >"$WORK/said" 2>"$WORK/errors" &
        pid=$!
        until [ "$(wc -l <"$WORK/said")" -ge 5 ]; do
            kill -0 "$pid"
            sleep 0.02
        done
        sleep "0.$((RANDOM % 20 + 10))"
        kill_filesystem
        if wait "$pid" 2>/dev/null; then
            echo "sqlite3 noticed nothing"
            exit 1
        fi
        mount_filesystem
        # The last line may have been cut.
        acknowledged=$(grep -cE '^[0-9]+$' "$WORK/said" || true)
        check "$1" "$((committed + acknowledged))" "$2"
    done
    echo "$1: $committed transactions, killed $kills times"
    [ "$committed" -gt "$kills" ]
}

full='pragma synchronous=full;'
run delete.db "pragma journal_mode=delete; $full"
run wal.db "pragma journal_mode=wal; $full"
