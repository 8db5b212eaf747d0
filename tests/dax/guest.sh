#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The guest's init: brings persistent memory up and runs the phase that the kernel's
# command line names. Each check ends as one line, "ok NAME" or "not ok NAME", which the
# host counts.
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
exec </dev/console >/dev/console 2>&1
. /guest_tests

check() { # NAME COMMAND ...
    local name=$1 start=$(date +%s)
    shift
    if "$@" >/tmp/output 2>&1; then
        echo "ok $name ($(($(date +%s) - start)) s)"
    else
        echo "not ok $name"
        sed 's/^/# /' /tmp/output | tail -n 40
        return 1
    fi
}

end_phase() {
    echo "end of phase $phase"
    poweroff -f
    sleep 60
}

fails() { # WORDS COMMAND ...: does it fail, and say these words?
    local words=$1
    shift
    "$@" >/tmp/said 2>&1 && return 1
    cat /tmp/said
    grep -q "$words" /tmp/said
}

medium_is() { # MEDIUM POOL
    minl2r info --json "$2" | tee /dev/stderr | grep -q "\"medium\":[[:space:]]*\"$1\""
}

# ---- Memory ----------------------------------------------------------------------

# pmem0 and pmem1 are for file systems, pmem2 is used raw, dax3.0 is device DAX.
make_namespaces() {
    local mode=fsdax n
    for n in 0 1 2 3; do
        [ $n = 3 ] && mode=devdax
        /host/ndctl create-namespace -f -e namespace$n.0 -m $mode -M mem || return 1
    done
}

make_filesystems() {
    local n
    for n in 0 1 2; do
        /host/mke2fs -q -t ext4 -b 4096 /dev/pmem$n || return 1
    done
}

# What is acknowledged is durable: the second file system is mounted sync.
mount_filesystems() {
    mkdir -p /dax /acks /mnt /dev/shm &&
        mount -t ext4 -o dax=always /dev/pmem0 /dax &&
        mount -t ext4 -o dax=always,sync /dev/pmem1 /acks
}

# Tests make their pools in /dev/shm.
put_tests_on_dax() {
    mkdir -p /dax/shm && mount --bind /dax/shm /dev/shm
}

# ---- Checks ------------------------------------------------------------------------

files_on_dax_need_no_msync() { # MEDIUM
    minl2r create --size 8M --require "$1" /dax/pool && medium_is "$1" /dax/pool &&
        minl2r check /dax/pool && rm /dax/pool
}

files_in_memory_are_emulated() {
    minl2r create --size 8M /tmp/pool && medium_is emulated /tmp/pool && rm /tmp/pool
}

files_without_dax_need_msync() {
    mkdir -p /plain && mount -t ext4 -o dax=never /dev/pmem2 /plain &&
        minl2r create --size 8M /plain/pool && medium_is file /plain/pool &&
        fails 'medium "dax" is required' \
            minl2r create --size 8M --require dax /plain/other
    local result=$?
    umount /plain
    return $result
}

# The kernel gives MAP_SYNC to files and to device DAX, not to block devices.
a_raw_block_device_needs_msync() {
    dd if=/dev/zero of=/dev/pmem2 bs=128k count=1 &&
        minl2r create /dev/pmem2 && medium_is file /dev/pmem2 &&
        minl2r check /dev/pmem2 && minl2r recover /dev/pmem2
}

a_full_block_device_is_kept() {
    fails "holds something" minl2r create /dev/pmem2
}

a_mounted_block_device_is_refused() {
    fails "mounted" minl2r create /dev/pmem0 &&
        fails "mounted" minl2r recover /dev/pmem0
}

device_dax_needs_no_msync() { # MEDIUM
    if [ "$phase" = dax ]; then
        a_filesystem_on /dev/dax3.0 || return 1
    fi
    medium_is "$1" /dev/dax3.0 && minl2r check /dev/dax3.0 && pmfs fsck /dev/dax3.0
}

a_filesystem_on() { # DEVICE
    if [ -b "$1" ]; then
        dd if=/dev/zero of="$1" bs=128k count=1 || return 1
    fi
    pmfs mkfs "$1" && { [ ! -b "$1" ] || pmfs mkfs -f "$1"; } &&
        pmfs mount "$1" /mnt &&
        cp /bin/busybox /mnt/ && cmp /bin/busybox /mnt/busybox &&
        pmfs umount /mnt && pmfs fsck "$1"
}

run_tests() { # TEST ...
    local test
    for test in "$@"; do
        check "$test" timeout 100 "/tests/$test"
    done
}

make_and_mount_pmfs() { # MEDIUM
    pmfs mkfs --require "$1" /dax/pmfs 128M && pmfs mount /dax/pmfs /mnt &&
        mkdir /mnt/writers
}

remount_pmfs() { # MEDIUM
    pmfs mount -o require="$1" /dax/pmfs /mnt
}

every_acknowledged_write_is_there() {
    [ -s /acks/acks ] && demo-writer verify /mnt/writers /acks/acks
}

the_filesystem_is_consistent() {
    pmfs umount /mnt && pmfs fsck /dax/pmfs
}

# The host kills this machine when it reads "kill me".
write_until_killed() { # ACKS
    local end=$(($(stat -c %s /acks/acks 2>/dev/null || echo 0) + $1 * 16))
    sync
    demo-writer run /mnt/writers /acks/acks &
    while [ "$(stat -c %s /acks/acks 2>/dev/null || echo 0)" -lt $end ]; do
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    kill -0 $! && echo "kill me"
    wait
}

# ---- Phases ------------------------------------------------------------------------

phase=$(sed 's/.*phase=\([^ ]*\).*/\1/' /proc/cmdline)
long=$(grep -c 'tests=long' /proc/cmdline)
ulimit -c 0
ip link set lo up
for module in $(cat /modules/order); do
    insmod "/modules/$module" || echo "# no module $module"
done
case $phase in
dax)
    check namespaces make_namespaces
    check filesystems make_filesystems
    check "file systems mount with DAX" mount_filesystems || end_phase
    check "files on ext4 with DAX need no msync" files_on_dax_need_no_msync dax
    check "files in memory are emulated" files_in_memory_are_emulated
    check "files on ext4 without DAX need msync" files_without_dax_need_msync
    check "a raw block device needs msync" a_raw_block_device_needs_msync
    check "a block device that holds something is kept" a_full_block_device_is_kept
    check "a mounted block device is refused" a_mounted_block_device_is_refused
    check "device DAX needs no msync" device_dax_needs_no_msync dax
    check "a filesystem on a block device" a_filesystem_on /dev/pmem2
    check "tests make their pools on DAX" put_tests_on_dax
    run_tests $guest_tests_dax
    [ "$long" = 0 ] || run_tests $guest_tests_long
    check "a filesystem on DAX" make_and_mount_pmfs dax
    write_until_killed 300
    ;;
eadr)
    check "file systems mount after the machine was killed" mount_filesystems || end_phase
    check "files on ext4 with eADR need no flush" files_on_dax_need_no_msync eadr
    check "device DAX needs no flush with eADR" device_dax_needs_no_msync eadr
    check "the filesystem mounts after the machine was killed" remount_pmfs eadr
    check "every acknowledged write is there" every_acknowledged_write_is_there
    check "the filesystem is consistent" the_filesystem_is_consistent
    check "tests make their pools with eADR" put_tests_on_dax
    run_tests $guest_tests_eadr
    check "the filesystem mounts again" remount_pmfs eadr
    write_until_killed 300
    ;;
last)
    check "file systems mount after the machine was killed again" mount_filesystems ||
        end_phase
    check "the filesystem mounts after the machine was killed again" remount_pmfs dax
    check "every acknowledged write is there again" every_acknowledged_write_is_there
    check "the filesystem is consistent again" the_filesystem_is_consistent
    ;;
esac
end_phase
