#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# demo - a real tree and busy writers in a filesystem that is killed again and again.
#
# Makes an emulated pool in /dev/shm, mounts a filesystem in it, copies a tree into it, then
# kills the filesystem with SIGKILL while eight threads write, mounts it again and checks that
# nothing acknowledged is lost, nothing is half done and the tree is untouched. Leaves nothing.
set -euo pipefail

bin=$(dirname "$(readlink -f "$0")")
kills=20
tree=
hits_wanted=3
seconds_max=80

usage() {
    cat <<USAGE
Usage: demo [--kills N] [--tree DIRECTORY]

  --kills N           how often to kill the filesystem (20); up to three times as often
                      until $hits_wanted kills have hit inside a commit
  --tree DIRECTORY    what to copy into it (/usr/include, or what fits of it)

Exit status: 0 if every check passed.
USAGE
}

while [ $# -gt 0 ]; do
    case $1 in
    --kills) kills=${2:?} && shift 2 ;;
    --tree) tree=${2:?} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done

# ---- Saying and cleaning up -----------------------------------------------------------------

step() { printf '\n== %s\n' "$*"; }
say() { printf '   %s\n' "$*"; }

# One line that is overwritten; a line every three seconds where there is no terminal.
progress() {
    if [ -t 1 ]; then
        printf '\r   %-70s\r' "$*"
    elif [ "$SECONDS" -ge "$next_progress" ]; then
        say "$*"
        next_progress=$((SECONDS + 3))
    fi
}
next_progress=3

fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    exit 1
}

work=
job= # what runs in the background

clean_up() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [ -n "$job" ]; then
        kill "$job" 2>/dev/null || true
        wait "$job" 2>/dev/null || true
    fi
    if [ -n "$work" ]; then
        cd /
        "$bin/pmfs" umount "$mount" 2>/dev/null || "$bin/pmfs" umount --lazy "$mount" 2>/dev/null || true
        # What is not empty is still a mount: never reach into it.
        rmdir "$mount" || status=1
        rm -f "$pool" "$pid_file" "$work"/{acks,written,output,before,after,stats}
        rmdir "$work" || status=1
    fi
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- The filesystem -------------------------------------------------------------------------

mount_fs() {
    "$bin/pmfs" mount --pid-file "$pid_file" "$pool" "$mount" >"$work/output" 2>&1 ||
        fail "mount: $(cat "$work/output")"
}

unmount_fs() {
    "$bin/pmfs" umount "$mount" || fail "umount"
}

# Works on what a kill has left, too: verifies what the next mount will make of it.
check_fs() {
    flock --timeout 10 "$pool" true || fail "a process still has the pool open"
    "$bin/pmfs" fsck "$pool" >"$work/output" 2>&1 || fail "fsck: $(cat "$work/output")"
}

# What `diff -r` does not look at: types, modes, times and targets.
list_tree() {
    (cd "$1" && find . \( -type d -printf '%P d %m %T@\n' \) -o \
        -printf '%P %y %m %s %T@ %l\n' | LC_ALL=C sort)
}

compare_tree() {
    list_tree "$tree" >"$work/before"
    list_tree "$mount/tree" >"$work/after"
    cmp -s "$work/before" "$work/after" ||
        fail "the tree has changed: $(diff "$work/before" "$work/after" | head -5)"
    diff -r --no-dereference "$tree" "$mount/tree" >"$work/output" 2>&1 ||
        fail "the tree has changed: $(head -5 "$work/output")"
}

# ---- The steps ------------------------------------------------------------------------------

# Sets `tree` and `pool_mib`: the first tree whose pool fits into /dev/shm.
choose_tree() {
    local candidate tree_mib shm_mib
    shm_mib=$(df --output=avail --block-size=1M /dev/shm | tail -1)
    for candidate in ${tree:-/usr/include /usr/include/linux /usr/include/asm-generic}; do
        [ -d "$candidate" ] || continue
        tree_mib=$(du -sm "$candidate" | cut -f1)
        # The writers' files grow to less than 64 MiB.
        pool_mib=$((tree_mib + tree_mib / 2 + 128))
        if [ "$pool_mib" -lt "$shm_mib" ]; then
            tree=$candidate
            return
        fi
    done
    fail "no tree to copy that fits into the $shm_mib MiB free in /dev/shm" \
        "(in a container, make it larger with --shm-size=1g)"
}

make_fs() {
    choose_tree
    work=$(mktemp -d /dev/shm/pmfs-demo.XXXXXX)
    pool=$work/pool mount=$work/mount pid_file=$work/pid
    mkdir "$mount"
    step "Making a filesystem in an emulated pool of $pool_mib MiB in /dev/shm"
    "$bin/pmfs" mkfs "$pool" "${pool_mib}M" >"$work/output" || fail "mkfs"
    mount_fs
    mkdir "$mount/writers"
    "$bin/pmfs" stat "$mount" | sed 's/^/   /'
}

copy_tree() {
    local files begun=$EPOCHREALTIME
    files=$(find "$tree" | wc -l)
    step "Copying $tree: $files files, $(du -sm "$tree" | cut -f1) MiB"
    cp -a "$tree" "$mount/tree" &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        progress "$(stat --file-system --format='%c %d' "$mount" |
            { read -r total free && echo $((total - free)); }) of $files files"
        sleep 0.2
    done
    wait "$job" || fail "cp"
    job=
    say "copied in $(seconds_since "$begun") s; each call was durable when it returned"
    "$bin/pmfs" stats "$mount" >"$work/stats"
    compare_tree
    say "identical: names, types, modes, times, contents"
}

seconds_since() {
    local now=$EPOCHREALTIME
    printf '%d.%d' $(((${now/./} - ${1/./}) / 1000000)) $(((${now/./} - ${1/./}) / 100000 % 10))
}

undone_count=0 undone_records=0 undone_bytes=0 undone_blocks=0
kill_count=0 hit_count=0 acked_count=0 unasked_count=0

# Adds up what mounting said that it undid, and tells in `undone`.
read_recovery() {
    local pattern='undid ([0-9]+) transactions?: ([0-9]+) records, ([0-9]+) bytes, ([0-9]+) blocks'
    undone="nothing to undo"
    if [[ $(cat "$work/output") =~ $pattern ]]; then
        undone=${BASH_REMATCH[0]}
        hit_count=$((hit_count + 1))
        undone_count=$((undone_count + BASH_REMATCH[1]))
        undone_records=$((undone_records + BASH_REMATCH[2]))
        undone_bytes=$((undone_bytes + BASH_REMATCH[3]))
        undone_blocks=$((undone_blocks + BASH_REMATCH[4]))
    fi
}

kill_once() {
    local acked verdict whole unasked lost undone delay_ms=$((50 + RANDOM % 250))
    "$bin/demo-writer" run "$mount/writers" "$work/acks" >"$work/written" &
    job=$!
    sleep "$(printf '0.%03d' "$delay_ms")"
    kill -KILL "$(cat "$pid_file")" || fail "the daemon was gone before it was killed"
    wait "$job" || fail "a writer met an error other than a dead filesystem"
    job=
    acked=$(<"$work/written")
    check_fs
    mount_fs
    read_recovery
    verdict=$("$bin/demo-writer" verify "$mount/writers" "$work/acks") || fail "$verdict"
    read -r whole unasked lost <<<"$verdict"
    kill_count=$((kill_count + 1))
    acked_count=$((acked_count + acked))
    unasked_count=$((unasked_count + unasked))
    say "$(printf 'kill %2d after %3d ms: %5d writes acknowledged, %5d records whole, %d lost or torn; %s' \
        "$kill_count" "$delay_ms" "$acked" "$whole" "$lost" "$undone")"
}

kill_often() {
    step "Killing the filesystem (SIGKILL) while 8 threads overwrite, append and rename"
    while [ "$kill_count" -lt "$kills" ] ||
        { [ "$hit_count" -lt "$hits_wanted" ] && [ "$kill_count" -lt $((3 * kills)) ] &&
            [ "$SECONDS" -lt "$seconds_max" ]; }; do
        kill_once
    done
}

report() {
    step "Result"
    compare_tree
    say "the tree is identical after $kill_count kills"
    unmount_fs
    check_fs
    say "fsck: $(tail -1 "$work/output" | sed "s,^$pool: ,,")"
    say "$acked_count writes were acknowledged: every one is there, none is half done"
    say "of those under way when the filesystem died, $unasked_count had become durable and are whole;"
    say "the others left no trace"
    say "kills that hit inside a commit: $hit_count of $kill_count; what recovery undid: transactions" \
        "$undone_count, records $undone_records, bytes $undone_bytes, blocks $undone_blocks"
    step "What copying the tree cost"
    sed 1d "$work/stats"
    step "All checks passed in $SECONDS s"
}

[ -e /dev/fuse ] || fail "no /dev/fuse: load the fuse module, or give the container --device /dev/fuse and SYS_ADMIN"
make_fs
copy_tree
kill_often
report
