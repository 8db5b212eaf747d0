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

for arguments in "--jobs nonsense" "--systems nonsense" "--record-sizes 5k"; do
    status=0
    # shellcheck disable=SC2086
    "$program" $arguments >/dev/null 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "bench-fio $arguments: exit status $status"
done

# Each option has its reason: above it where a file has it first, or among those of common.fio.
python3 - "$(dirname "$(readlink -f "$program")")" <<'END'
import pathlib, re, sys
files = sorted(pathlib.Path(sys.argv[1]).glob("*.fio"))
common = next(file for file in files if file.name == "common.fio")
shared = set()
for names in re.findall(r"^#   ([a-z_]+(?:, [a-z_]+)*)  +\S", common.read_text(), re.M):
    shared.update(name.strip() for name in names.split(","))
assert {"stonewall", "time_based", "filename", "rw", "bs"} <= shared, shared
for file in files:
    seen, before = set(shared), ""
    for line in file.read_text().splitlines():
        option = re.match(r"[a-z_]+", line)
        if option and option[0] != "include" and option[0] not in seen:
            assert before.startswith("#"), f"{file.name}: {line}: no reason"
            seen.add(option[0])
        before = line
END

mkdir "$directory/dir"
claims=durable-random-write,small-random-write,append,random-read,mixed,create
"$program" --quick --runtime 20ms --jobs $claims,sweep --record-sizes 64k --systems pmfs-preload \
    --dir "$directory/dir" --json "$directory/fio.json" >"$directory/table"
python3 - "$directory/fio.json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
found = {(row["job"], row["record_size"], row["sync"], row["system"]) for row in rows}
expected = {("create", None, 0), ("random read", 4096, 0)}
expected |= {(job, size, sync) for sync in (0, 1) for job, size in (
    ("random write", 4096), ("small write", 64), ("append", 4096), ("mixed", 4096))}
expected |= {("sweep " + job, 65536, sync) for sync in (0, 1)
             for job in ("write", "rewrite", "random write")}
expected |= {("sweep " + job, 65536, 0) for job in ("read", "random read")}
expected = {(*row, "pmfs-preload") for row in expected}
assert found == expected, (found - expected, expected - found)
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

# Through the kernel, where it can be: loop devices may be there and not be for us.
can_use_a_loop_device() {
    local device
    [ "$(id -u)" -eq 0 ] && command -v mkfs.ext4 >/dev/null || return 1
    truncate -s 1M "$directory/loop"
    device=$(losetup --find --show "$directory/loop" 2>/dev/null) || return 1
    losetup --detach "$device"
}
expected=
if [ "$(id -u)" -eq 0 ] && [ -w /dev/fuse ]; then
    expected=pmfs-mount
else
    echo "left out: pmfs-mount: needs root and /dev/fuse"
fi
if can_use_a_loop_device; then
    expected="$expected ext4-ordered"
else
    echo "left out: ext4-ordered: needs root, a loop device and mkfs.ext4"
fi
"$program" --quick --runtime 20ms --jobs durable-random-write --systems pmfs-mount,ext4-ordered,tmpfs \
    --dir "$directory/dir" --json "$directory/kernel.json" >"$directory/table" 2>&1
"$program" --render "$directory/kernel.json" >"$directory/rendered"
for system in $expected tmpfs; do
    for sync in 0 1; do
        grep -q "^| random write | 4096 | $sync | $system " "$directory/rendered" ||
            fail "no random writes on $system: $(cat "$directory/table")"
    done
done
case $expected in
*mount*ordered*)
    grep -q 'random writes of 4 KiB with sync, pmfs-mount / ext4-ordered' "$directory/table" ||
        fail "no bar of pmfs-mount and ext4-ordered"
    ;;
esac
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
