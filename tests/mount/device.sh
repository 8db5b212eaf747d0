#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# device.sh PMFS - a filesystem on a block device: one that is too small, and one that has
# less behind it than it says, so that what is written fails in the middle.
set -euo pipefail
tool=$1

skip() {
    echo "skipped: $1"
    exit 77
}

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] && [ -c /dev/fuse ] || skip "mounting is not possible here"
dir=$(mktemp -d /dev/shm/pmfs-test-XXXXXX)
device=
clean_up() {
    "$tool" umount "$dir/mount" 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device"
    umount "$dir/small" 2>/dev/null || true
    rm -rf "$dir"
}
trap clean_up EXIT
mkdir "$dir/mount" "$dir/small"
mount -t tmpfs -o size=2M none "$dir/small" || skip "no tmpfs of its own"
truncate -s 64K "$dir/small/file"
device=$(losetup -f --show "$dir/small/file") || skip "no loop devices"

refused() { # WORDS COMMAND ...
    ! "${@:2}" >"$dir/said" 2>&1 || fail "done: ${*:2}"
    grep -q "$1" "$dir/said" || fail "${*:2}: $(cat "$dir/said")"
}

refused "a pool of 65536 bytes" "$tool" mkfs "$device"
refused "has 65536 bytes, not 16777216" "$tool" mkfs "$device" 16M
[ -z "$(tr -d '\0' <"$device")" ] || fail "what was refused has written"

truncate -s 16M "$dir/small/file"
losetup -c "$device"
"$tool" mkfs "$device"
refused "holds something" "$tool" mkfs "$device"
"$tool" mount "$device" "$dir/mount"
written=0
while head -c 100000 /dev/zero | tr '\0' x >"$dir/mount/$written" 2>"$dir/said"; do
    written=$((written + 1))
    [ "$written" -lt 100 ] || fail "a device of 2 MiB holds 10 MB"
done
grep -q "Input/output error" "$dir/said" || fail "not EIO: $(cat "$dir/said")"
! mkdir "$dir/mount/directory" 2>/dev/null || fail "a failed filesystem takes a change"
[ "$(ls "$dir/mount" | wc -l)" -ge "$written" ] || fail "a failed filesystem is not read"
"$tool" umount "$dir/mount"

mount -o remount,size=20M "$dir/small"
"$tool" mount "$device" "$dir/mount"
for ((i = 0; i < written; i++)); do
    [ "$(tr -d x <"$dir/mount/$i" | wc -c) $(stat -c %s "$dir/mount/$i")" = "0 100000" ] ||
        fail "file $i is another"
done
mkdir "$dir/mount/directory"
"$tool" umount "$dir/mount"
"$tool" fsck "$device"
echo "passed"
