#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-apps as its users see it: test_apps.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

for arguments in "--apps nonsense" "--systems nonsense"; do
    status=0
    # shellcheck disable=SC2086
    "$program" $arguments >/dev/null 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "bench-apps $arguments: exit status $status"
done

mkdir "$directory/dir"
"$program" --quick --apps sqlite3,tar --systems pmfs-preload,tmpfs --dir "$directory/dir" \
    --json "$directory/apps.json" >"$directory/table"
python3 - "$directory/apps.json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
found = {(row["app"], row["what"], row["sync"], row["system"]) for row in rows}
for system in "pmfs-preload", "tmpfs":
    for sync in 0, 1:
        for work in (("sqlite3", "single rows, journal"), ("sqlite3", "bulk, journal"),
                     ("tar", "unpack"), ("tar", "pack")):
            assert (*work, sync, system) in found, (work, sync, system)
assert all(row["ms"] > 0 for row in rows)
END
"$program" --render "$directory/apps.json" >"$directory/table"
grep -q '^| tar | unpack | 1 | pmfs-preload ' "$directory/table" ||
    fail "bench-apps cannot render its own results"
for wrong in '{}' '[1]' '[{"system": "tmpfs"}]'; do
    echo "$wrong" >"$directory/wrong.json"
    status=0
    "$program" --render "$directory/wrong.json" >"$directory/table" 2>"$directory/error" || status=$?
    [ "$status" -eq 1 ] || fail "bench-apps --render of $wrong: exit status $status"
    grep -q "^bench-apps: $directory/wrong.json: these are " "$directory/error" ||
        fail "bench-apps --render of $wrong: $(cat "$directory/error")"
    [ ! -s "$directory/table" ] || fail "bench-apps --render of $wrong: printed something"
done
[ -z "$(ls "$directory/dir")" ] || fail "files left: $(ls "$directory/dir")"
