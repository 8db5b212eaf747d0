#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fio_verify.sh - fio as it is, with checksums in every block: what it has written
# is right, and right again each time after it was killed while it wrote.
set -euo pipefail
kills=3
if [ "${MINL2R_TEST_LONG:-OFF}" = ON ]; then kills=100; fi

fio_on_pool() {
    LD_PRELOAD=$PRELOAD fio --directory=/pmfs --thread=1 --size=8M --bs=4k \
        --verify=crc32c --verify_fatal=1 --randrepeat=1 --fallocate=none \
        --verify_state_save=0 "$@" \
        >"$WORK/fio.out" 2>&1 || { cat "$WORK/fio.out"; return 1; }
    ! grep -q 'pmfs-preload:' "$WORK/fio.out" || { cat "$WORK/fio.out"; return 1; }
}

for engine in psync pvsync; do
    # Written and read back by one process, then by another.
    fio_on_pool --name="$engine" --ioengine="$engine" --rw=randrw --do_verify=1
    fio_on_pool --name="$engine" --ioengine="$engine" --rw=randwrite --fsync=8 \
        --numjobs=2 --do_verify=1
    fio_on_pool --name="$engine" --ioengine="$engine" --rw=write --numjobs=2
    fio_on_pool --name="$engine" --ioengine="$engine" --rw=read --numjobs=2
done

checksums() {
    for file in /pmfs/psync.0.0 /pmfs/psync.1.0; do
        LD_PRELOAD=$PRELOAD cksum "$file"
    done
}

# Every block has a checksum now; a write that is torn would not.
before=$(checksums)
for ((i = 1; i <= kills; i++)); do
    LD_PRELOAD=$PRELOAD fio --directory=/pmfs --thread=1 --size=8M --bs=4k \
        --verify=crc32c --do_verify=0 --name=psync --ioengine=psync --numjobs=2 \
        --rw=randwrite --randseed="$i" --fallocate=none --time_based --runtime=60 \
        >"$WORK/fio.out" 2>&1 &
    pid=$!
    # Both jobs are threads beside two of fio's own.
    until [ "$(ls "/proc/$pid/task" | wc -l)" -ge 4 ]; do
        kill -0 "$pid"
        sleep 0.02
    done
    sleep "0.$((RANDOM % 4 + 1))"
    kill -9 "$pid"
    if wait "$pid" 2>/dev/null; then
        echo "fio was not killed"
        cat "$WORK/fio.out"
        exit 1
    fi
    "$PMFS_TOOL" fsck "$POOL" >"$WORK/fsck" || { cat "$WORK/fsck"; exit 1; }
    fio_on_pool --name=psync --ioengine=psync --rw=read --numjobs=2
done
[ "$(checksums)" != "$before" ]

# And it would be noticed.
printf wrong | LD_PRELOAD=$PRELOAD dd of=/pmfs/psync.0.0 seek=100000 bs=1 conv=notrunc \
    status=none
if fio_on_pool --name=psync --ioengine=psync --rw=read --numjobs=2 >/dev/null; then
    echo "a wrong block was not noticed"
    exit 1
fi
