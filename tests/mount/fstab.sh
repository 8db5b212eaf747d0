#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mount(8), umount(8) and fsck(8) with a line of fstab(5): they find mount.pmfs and
# fsck.pmfs in /sbin, which is another one in a mount namespace of this test's own.
set -euo pipefail
tool=$1

skip() {
    echo "SKIPPED: $1"
    exit 77
}

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

if [ "${2:-}" != inside ]; then
    [ "$(id -u)" -eq 0 ] || skip "not root"
    [ -c /dev/fuse ] || skip "no /dev/fuse"
    unshare --mount --propagation private true 2>/dev/null || skip "no mount namespaces"
    exec unshare --mount --propagation private "$0" "$tool" inside
fi

dir=$(mktemp -d /dev/shm/pmfs-test-XXXXXX)
clean_up() {
    "$tool" umount "$dir/mount" 2>/dev/null || true
    rm -rf "$dir"
}
trap clean_up EXIT

mkdir "$dir/mount" "$dir/sbin"
cp "$(command -v fsck)" "$dir/sbin/"
ln -s "$tool" "$dir/sbin/mount.pmfs"
ln -s "$tool" "$dir/sbin/mount.fuse.pmfs"
ln -s "$tool" "$dir/sbin/fsck.pmfs"
ln -s "$tool" "$dir/sbin/mkfs.pmfs"
mount --bind "$dir/sbin" "$(realpath /sbin)"
fstab=$dir/fstab
echo "$dir/pool $dir/mount pmfs noauto,nofail,noatime,x-systemd.automount 0 2" >"$fstab"

"$dir/sbin/mkfs.pmfs" "$dir/pool" 16M
mount -T "$fstab" "$dir/mount" || fail "mount by fstab"
[ "$(findmnt -n -o FSTYPE,SOURCE "$dir/mount" | tr -s ' ')" = "fuse.pmfs $dir/pool" ] ||
    fail "it is not what is mounted"
echo content >"$dir/mount/file"
umount "$dir/mount" || fail "umount"
mount -t pmfs -o ro "$dir/pool" "$dir/mount" || fail "mount -t pmfs"
[ "$(cat "$dir/mount/file")" = content ] || fail "the file is another"
(: >"$dir/mount/other") 2>/dev/null && fail "mounted read-only, it takes a file"
status=0
mount -o remount,ro "$dir/mount" 2>"$dir/error" || status=$?
[ $status -eq 32 ] || fail "remount ends with $status"
grep -q "remount is not supported: unmount first" "$dir/error" || fail "$(cat "$dir/error")"
"$tool" umount "$dir/mount"
# As findmnt names the type, and fstab has it when it is made of that.
mount -t fuse.pmfs "$dir/pool" "$dir/mount" || fail "mount -t fuse.pmfs"
[ "$(cat "$dir/mount/file")" = content ] || fail "the file is another by fuse.pmfs"
umount "$dir/mount" || fail "umount of fuse.pmfs"
mount -t pmfs -o no_such_option "$dir/pool" "$dir/mount" 2>/dev/null &&
    fail "an unknown option is taken"

sed -i s/noauto,nofail,// "$fstab"
mount -a -T "$fstab" || fail "mount -a"
mount -a -T "$fstab" || fail "mount -a of what is mounted"
[ "$(findmnt -n -t fuse.pmfs "$dir/mount" | wc -l)" -eq 1 ] || fail "mounted twice"
echo other >"$dir/mount/file"
umount -a -t fuse.pmfs || fail "umount -a"
mountpoint -q "$dir/mount" && fail "umount -a leaves it mounted"
mount -a -T "$fstab" || fail "mount -a right after umount -a"
[ "$(cat "$dir/mount/file")" = other ] || fail "what was written last is lost"
"$tool" umount "$dir/mount"
FSTAB_FILE=$fstab fsck -T "$dir/mount" || fail "fsck by fstab"
FSTAB_FILE=$fstab fsck -T -A || fail "fsck -A"
fsck -t pmfs -T "$dir/pool" -a || fail "fsck -a"
echo "passed"
