#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# with_mount.sh BIN_DIR SIZE SCRIPT [ARGUMENT ...]
# Sources SCRIPT with a new pool in emulated persistent memory, mounted; fsck after it.
# SCRIPT finds:
#   MOUNT         where it is mounted
#   WORK          an empty directory on tmpfs
#   kills         how often to kill
#   kill_filesystem, mount_filesystem
set -euo pipefail
bin=$1 size=$2 script=$3
shift 3
PMFS_TOOL=$bin/pmfs

if [ ! -w /dev/fuse ] || { [ "$(id -u)" -ne 0 ] && ! command -v fusermount3 >/dev/null; }; then
    echo "skipped: mounting is not possible here: no /dev/fuse, or no fusermount3"
    exit 77
fi
kills=3
if [ "${MINL2R_TEST_LONG:-OFF}" = ON ]; then kills=100; fi
root=$(mktemp -d /dev/shm/pmfs-mount-XXXXXX)
MOUNT=$root/mount WORK=$root/work POOL=$root/pool

# Programs that still use it get errors, and end.
clean_up() {
    if ! "$PMFS_TOOL" umount "$MOUNT" >/dev/null 2>&1; then
        kill_filesystem 2>/dev/null || true
        "$PMFS_TOOL" umount -l "$MOUNT" >/dev/null 2>&1 || true
        wait
    fi
    rm -rf "$root"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

mount_filesystem() {
    "$PMFS_TOOL" mount --pid-file "$root/pid" "$POOL" "$MOUNT" 2>"$root/said" ||
        { cat "$root/said"; exit 1; }
}

# Who has files open gets errors.
kill_filesystem() {
    kill -9 "$(cat "$root/pid")"
}

mkdir "$MOUNT" "$WORK"
"$PMFS_TOOL" mkfs "$POOL" "$size" >"$root/said" || { cat "$root/said"; exit 1; }
mount_filesystem
# shellcheck source=/dev/null
. "$script"
"$PMFS_TOOL" umount "$MOUNT"
"$PMFS_TOOL" fsck "$POOL"
