#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# systemd.sh PMFS EXAMPLES - the units that are examples: systemd has nothing to say about
# them, if it is here, and what pmfs@.service runs does what it should.
set -euo pipefail
tool=$1 examples=$2

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] && [ -c /dev/fuse ] || {
    echo "skipped: mounting is not possible here"
    exit 77
}
dir=$(mktemp -d /dev/shm/pmfs-test-XXXXXX)
clean_up() {
    "$tool" umount "$dir/mount" 2>/dev/null || true
    rm -rf "$dir"
}
trap clean_up EXIT

service=$dir/pmfs@example.service
sed "s#/usr/bin/pmfs#$tool#" "$examples/pmfs@.service" >"$service"
cp "$examples/srv-data.mount" "$dir"
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no "$service" "$dir/srv-data.mount" ||
        fail "systemd refuses the units"
fi

# The command of a line of the unit, as systemd fills it in, as words for the shell.
command_of() { # DIRECTIVE [OPTIONS]
    sed -n "s/^$1=//p" "$service" |
        sed "s#\${POOL}#$dir/pool#; s#\${DIRECTORY}#$dir/mount#; s#\${OPTIONS}#${2:-allow_other}#" |
        sed 's#\$\$#$#g'
}

mkdir "$dir/mount"
"$tool" mkfs "$dir/pool" 16M >/dev/null
eval "check=($(command_of ExecStartPre))"
eval "start=($(command_of ExecStart))"
eval "stop=($(command_of ExecStop))"

# Repaired is well; whatever else fsck says is not.
for status in 0 1 4 8 16; do
    printf '#!/bin/sh\n[ "$1 $2 $3" = "fsck -a %s" ] || exit 99\nexit %d\n' \
        "$dir/pool" $status >"$dir/fsck_says"
    chmod +x "$dir/fsck_says"
    result=0
    "${check[@]//$tool/$dir/fsck_says}" || result=$?
    [ $((result == 0)) -eq $((status <= 1)) ] || fail "fsck says $status, ExecStartPre $result"
done
# A wrong option is a failure, which is final.
eval "wrong=($(command_of ExecStart nonsense))"
result=0
"${wrong[@]}" 2>/dev/null || result=$?
[ $result -ne 0 ] || fail "a wrong option is taken"
grep -q '^SuccessExitStatus' "$service" && fail "a failure is taken for success"
grep -qx "RestartPreventExitStatus=$result" "$service" || fail "a wrong option is tried again"

start_service() {
    "${check[@]}" || fail "ExecStartPre"
    "${start[@]}" &
    pid=$!
    until [ "$(findmnt -n -o FSTYPE "$dir/mount" | tail -n 1)" = fuse.pmfs ] &&
        stat -f "$dir/mount" >/dev/null 2>&1; do
        kill -0 "$pid" || fail "ExecStart"
        sleep 0.02
    done
}

start_service
echo content >"$dir/mount/file"
# It is started again, and clears away what is left.
kill -9 "$pid"
wait "$pid" 2>/dev/null && fail "it was not killed"
start_service
[ "$(cat "$dir/mount/file")" = content ] || fail "the file is lost"
"${stop[@]}" || fail "ExecStop"
wait "$pid" || fail "stopped, it ends with $?"
mountpoint -q "$dir/mount" && fail "stopped, it leaves a mount"
echo "passed"
