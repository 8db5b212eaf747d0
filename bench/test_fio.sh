#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-fio as its users see it: test_fio.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

# What a command that fails has said is said, not where it was called.
PYTHONPATH=$(dirname "$(readlink -f "$program")")/.. python3 - <<'EOF'
import command
import systems

try:
    systems.run(["ls", "/missing"])
except command.Failure as failure:
    assert "ls /missing: exit status" in str(failure), failure
else:
    raise AssertionError("nothing failed")
EOF

for arguments in "--jobs nonsense" "--systems nonsense"; do
    status=0
    # shellcheck disable=SC2086
    "$program" $arguments >/dev/null 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "bench-fio $arguments: exit status $status"
done

mkdir "$directory/dir"
"$program" --quick --runtime 50ms --jobs durable-random-write,append,create \
    --systems pmfs-preload,tmpfs --dir "$directory/dir" --json "$directory/fio.json" \
    >"$directory/table"
python3 - "$directory/fio.json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
found = {(row["job"], row["record_size"], row["sync"], row["system"]) for row in rows}
for system in "pmfs-preload", "tmpfs":
    for job in "random write", "append":
        for sync in 0, 1:
            assert (job, 4096, sync, system) in found, (job, sync, system)
    assert ("create", None, 0, system) in found, system
for row in rows:
    assert row["iops"] > 0, row
    if row["job"] != "create":
        assert row["mb_s"] > 0 and 0 < row["lat_p50_ns"] <= row["lat_p99_ns"], row
END
"$program" --render "$directory/fio.json" >"$directory/table"
grep -q '^| random write | 4096 | 1 | pmfs-preload ' "$directory/table" ||
    fail "bench-fio cannot render its own results"
for wrong in '{}' '[1]' '[{"system": "tmpfs"}]'; do
    echo "$wrong" >"$directory/wrong.json"
    status=0
    "$program" --render "$directory/wrong.json" >"$directory/table" 2>"$directory/error" || status=$?
    [ "$status" -eq 1 ] || fail "bench-fio --render of $wrong: exit status $status"
    grep -q "^bench-fio: $directory/wrong.json: these are " "$directory/error" ||
        fail "bench-fio --render of $wrong: $(cat "$directory/error")"
    [ ! -s "$directory/table" ] || fail "bench-fio --render of $wrong: printed something"
done
[ -z "$(ls "$directory/dir")" ] || fail "files left: $(ls "$directory/dir")"

# Interrupted, with whatever can be mounted here; mounts and loop devices go, too.
setsid "$program" --jobs durable-random-write --systems pmfs-preload,pmfs-mount,ext4-ordered \
    --dir "$directory/dir" >"$directory/table" 2>&1 &
pid=$!
until grep -q ^Rounds "$directory/table"; do
    kill -0 "$pid" || { cat "$directory/table" >&2; fail "bench-fio ended by itself"; }
    sleep 0.05
done
# What it has started shares its core: who serves a mount, too.
for status in $(grep -lsE "^PPid:[[:space:]]+$pid\$" /proc/[0-9]*/status); do
    grep -Eqs '^Cpus_allowed_list:[[:space:]]+[0-9]+$' "$status" || [ ! -e "$status" ] ||
        fail "$(sed -n 's/^Name:[[:space:]]*//p' "$status") has more than one core"
done
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 130 ] || fail "exit status $status"
[ -z "$(ls "$directory/dir")" ] || fail "files left: $(ls "$directory/dir")"
! grep "$directory" /proc/mounts || fail "left mounted"
if command -v losetup >/dev/null; then
    for ((i = 0; i < 100; i++)); do
        losetup --list --noheadings --output BACK-FILE | grep -q "$directory" || break
        sleep 0.05
    done
    ! losetup --list --noheadings --output BACK-FILE | grep "$directory" ||
        fail "a loop device is left"
fi
