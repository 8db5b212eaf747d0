# SPDX-License-Identifier: BSD-3-Clause
# fio_killed.sh - by with_mount.sh: fio as it is, with checksums in every block, on a
# mounted filesystem that is killed while it writes: each block is old or new.
fio_on_mount() {
    fio --directory="$MOUNT" --size=8M --bs=4k --verify=crc32c --verify_fatal=1 \
        --verify_state_save=0 --fallocate=none --name=killed --numjobs=2 "$@" >"$WORK/fio" 2>&1
}

written() {
    cksum "$MOUNT"/killed.*
}

fio_on_mount --rw=randrw --do_verify=1 || { cat "$WORK/fio"; exit 1; }
fio_on_mount --rw=write || { cat "$WORK/fio"; exit 1; }
for ((i = 1; i <= kills; i++)); do
    before=$(written)
    fio_on_mount --rw=randwrite --do_verify=0 --randseed="$i" --time_based --runtime=60 &
    pid=$!
    until [ "$(written)" != "$before" ]; do
        kill -0 "$pid" || { cat "$WORK/fio"; exit 1; }
    done
    sleep "0.$((RANDOM % 4))"
    kill_filesystem
    if wait "$pid"; then
        echo "fio noticed nothing"
        exit 1
    fi
    mount_filesystem
    fio_on_mount --rw=read || { echo "after $i kills:"; cat "$WORK/fio"; exit 1; }
done

# And it would be noticed.
printf wrong | dd of="$MOUNT/killed.0.0" seek=100000 bs=1 conv=notrunc status=none
if fio_on_mount --rw=read; then
    echo "a wrong block was not noticed"
    exit 1
fi
