#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-mount as its users see it: test_mount.sh PROGRAM
set -euo pipefail
program=$1

fail() {
    echo "$*" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] && [ -w /dev/fuse ] || { echo "skipped: needs root and /dev/fuse"; exit 77; }
directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT

"$program" --quick --rounds 1 --dir "$directory" --json "$directory/mount.json" \
    >"$directory/table" 2>"$directory/errors" ||
    { cat "$directory/errors" >&2; fail "bench-mount failed"; }
[ ! -s "$directory/errors" ] || { cat "$directory/errors" >&2; fail "errors"; }
for key in op size requests ns_empty ns_pmfs ns_above; do
    grep -q "\"$key\":" "$directory/mount.json" || fail "no key $key"
done
# What the kernel asks does not depend on the machine.
grep -q '"op":"write","size":4096,"requests":1,' "$directory/mount.json" ||
    fail "a write is not one request"
grep -q '"op":"read","size":4096,"requests":1,' "$directory/mount.json" ||
    fail "a read is not one request"
grep -q '"op":"fdatasync","size":null,"requests":0,' "$directory/mount.json" ||
    fail "fdatasync is not free"
# A copy is what a large one has to do; and each row has a bar, of the request it is about.
grep -q '"op":"write","size":65536,.*"ns_copy":[0-9.]*,"ns_own":[-0-9.]*,"asked":"1 write"' "$directory/mount.json" ||
    fail "no copy of 64 KiB"
grep -q '"op":"write","size":4096,.*"ns_copy":null,' "$directory/mount.json" || fail "a copy of a block"
for job in create:mknod rename:rename unlink:unlink mkdir:mkdir rmdir:rmdir symlink:symlink link:link \
    truncate:setattr fallocate:fallocate lookup:lookup getattr:getattr; do
    grep -q "\"op\":\"${job%:*}\",.*\"ns_own\":[-0-9.]*,\"asked\":\".*1 ${job#*:}" "$directory/mount.json" ||
        fail "${job%:*}: no request ${job#*:}"
done
rows=$(grep -c '"op":' "$directory/mount.json")
bars=$(grep -c ', at most 2000: \(met\|MISSED\)$' "$directory/table")
[ "$rows" -eq "$bars" ] || fail "$rows rows and $bars bars"
"$program" --render "$directory/mount.json" >"$directory/table"
grep -q '^| write | 4096 ' "$directory/table" ||
    fail "bench-mount cannot render its own results"
rm "$directory"/{mount.json,table,errors}
[ -z "$(ls "$directory")" ] || fail "files left: $(ls "$directory")"

# In a process group of its own, interrupted while it has both mounted, or killed.
for signal in INT KILL; do
    setsid "$program" --dir "$directory" >/dev/null 2>&1 &
    pid=$!
    until [ "$(grep -c " $directory/" /proc/mounts)" -eq 2 ]; do
        kill -0 "$pid" || fail "bench-mount ended by itself"
        sleep 0.01
    done
    kill "-$signal" "$pid"
    if wait "$pid"; then fail "SIG$signal did not end it"; fi
    for ((i = 0; i < 500; i++)); do
        grep -q " $directory/" /proc/mounts || break
        sleep 0.01
    done
    ! grep " $directory/" /proc/mounts || fail "left mounted after SIG$signal"
    [ "$signal" = KILL ] || [ -z "$(ls "$directory")" ] ||
        fail "files left: $(ls "$directory")"
done
