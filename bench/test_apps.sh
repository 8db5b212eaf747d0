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

# What needs the kernel, as far as it is installed.
systems=tmpfs
if [ "$(id -u)" -eq 0 ] && [ -w /dev/fuse ]; then
    systems=pmfs-mount,tmpfs
else
    echo "left out: pmfs-mount: needs root and /dev/fuse"
fi
"$program" --quick --apps git,lmdb --systems $systems --dir "$directory/dir" \
    --json "$directory/kernel.json" >"$directory/table" 2>"$directory/error"
python3 - "$directory/kernel.json" "$directory/error" $systems <<'END'
import ctypes.util, json, shutil, sys
rows = json.load(open(sys.argv[1]))
said = open(sys.argv[2]).read()
found = {(row["app"], row["what"], row["sync"], row["system"]) for row in rows}
work = {("git", "init, add, commit"): (0, 1), ("git", "status"): (0,),
        ("lmdb", "single puts"): (0, 1)}
for app in "git", "lmdb":
    is_there = shutil.which(app) if app == "git" else ctypes.util.find_library(app)
    if not is_there:
        assert f"Left out: {app}: " in said, said
        work = {what: syncs for what, syncs in work.items() if what[0] != app}
expected = {(*what, sync, system) for what, syncs in work.items() for sync in syncs
            for system in sys.argv[3].split(",")}
assert found == expected, (found - expected, expected - found)
assert all(row["ms"] > 0 for row in rows)
END
[ -z "$(ls "$directory/dir")" ] || fail "files left: $(ls "$directory/dir")"
