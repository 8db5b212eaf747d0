#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs MinL2R and pmfs on DAX: Debian's kernel in qemu, with emulated NVDIMMs. The machine
# is killed in the middle and booted again on the same memory. Needs no KVM and no
# privileges.
#
# qemu has no model of CPU caches: what was never flushed survives, too. So this tests
# mapping, DAX and recovery; crashtest looks for lines that can be lost. Exit status 77: the
# kernel cannot be had.
set -euo pipefail
# With MINL2R_TEST_LONG=ON it runs more tests, for some minutes.
[ $# -eq 1 ] || { echo "Usage: run.sh BUILD" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1")
memory=/dev/shm
[ -w $memory ] || memory=/tmp
tests=short
[ "${MINL2R_TEST_LONG:-OFF}" != ON ] || tests=long
work=$(mktemp -d "$memory/minl2r-dax-XXXXXX")
qemu_pid=

clean_up() {
    [ -z "$qemu_pid" ] || kill -9 "$qemu_pid" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

start_qemu() { # PHASE PERSISTENCE
    local size backend n=0 devices=()
    for size in 256M 64M 64M 64M; do
        truncate -s "$size" "$work/nvdimm$n"
        backend=memory-backend-file,id=m$n,share=on,size=$size,align=2M
        devices+=(-object "$backend,mem-path=$work/nvdimm$n"
            -device "nvdimm,id=nv$n,memdev=m$n")
        n=$((n + 1))
    done
    : >"$work/console"
    qemu-system-x86_64 -M "q35,nvdimm=on,nvdimm-persistence=$2" \
        -accel tcg,thread=multi -cpu max -smp 2 -m 768M,slots=4,maxmem=4G \
        -nodefaults -display none -serial "file:$work/console" -no-reboot \
        -kernel "$work/vmlinuz" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check phase=$1 tests=$tests" "${devices[@]}" &
    qemu_pid=$!
}

# Waits for the end of a phase, and kills the machine at once if it asks for that.
finish_phase() { # PHASE SECONDS
    local deadline=$((SECONDS + $2)) killed=false
    while kill -0 $qemu_pid 2>/dev/null && [ $SECONDS -lt $deadline ]; do
        if grep -q '^kill me' "$work/console"; then
            kill -9 $qemu_pid
            killed=true
            break
        fi
        sleep 0.1
    done
    kill -9 $qemu_pid 2>/dev/null || true
    wait $qemu_pid 2>/dev/null || true
    qemu_pid=
    tr -d '\r' <"$work/console" >"$work/console-$1"
    if ! $killed && ! grep -q "^end of phase $1" "$work/console-$1"; then
        echo "not ok phase $1 did not come to its end" >>"$work/console-$1"
    fi
}

run_phase() { # PHASE PERSISTENCE
    local start=$SECONDS
    start_qemu "$1" "$2"
    finish_phase "$1" 600
    grep -E '^(ok|not ok|#) ' "$work/console-$1" || true
    echo "# phase $1: $((SECONDS - start)) s"
}

# What comes next needs what the phase before has left.
require_kill() { # PHASE
    grep -q '^kill me' "$work/console-$1" && return
    echo "not ok the machine was killed in phase $1" >>"$work/console-$1"
    report
}

report() {
    passed=$(cat "$work"/console-* | grep -c '^ok ') || true
    failed=$(cat "$work"/console-* | grep -c '^not ok ') || true
    if [ "$failed" -ne 0 ]; then
        tail -n 40 "$work"/console-*
    fi
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

"$here/initramfs.sh" "$build" "$build/dax" "$work"
run_phase dax mem-ctrl
require_kill dax
run_phase eadr cpu
require_kill eadr
run_phase last mem-ctrl
report
