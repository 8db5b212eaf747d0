#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-fs as its users see it: test_fs.sh PROGRAM TEST
set -euo pipefail
program=$1
here=$(dirname "$0")

fail() {
    echo "$*" >&2
    exit 1
}

bad_usage_exits_with_2() {
    local arguments status
    for arguments in "--medium nonsense" "--workload nonsense" "--size 0" "--threads 3"; do
        status=0
        # shellcheck disable=SC2086
        "$program" $arguments >/dev/null 2>"$directory/error" || status=$?
        [ "$status" -eq 2 ] || fail "bench-fs $arguments: exit status $status"
        head -1 "$directory/error" | grep -qe "${arguments##* }" ||
            fail "bench-fs $arguments: $(head -1 "$directory/error")"
    done
    # Refused, rather than something left out that was asked for.
    for arguments in "--workload append" "--medium optane" "--json $directory/kept"; do
        echo "what was there" >"$directory/kept"
        status=0
        # shellcheck disable=SC2086
        "$program" --counts $arguments >"$directory/out" 2>"$directory/error" || status=$?
        [ "$status" -eq 2 ] || fail "bench-fs --counts $arguments: exit status $status"
        grep -q -e "--counts has no ${arguments%% *}:" "$directory/error" ||
            fail "bench-fs --counts $arguments: $(cat "$directory/error")"
        [ ! -s "$directory/out" ] || fail "bench-fs --counts $arguments: printed something"
        [ "$(cat "$directory/kept")" = "what was there" ] || fail "--counts changed a file"
    done
}

json_has_the_keys_of_the_table() {
    local key scheme
    "$program" --quick --rounds 1 --size 4096 --workload overwrite --medium all \
        --dir "$directory" --json "$directory/fs.json" >"$directory/table" 2>/dev/null
    for key in scheme workload record_size threads medium ns_p50 ns_p99 ns_p999 mb_s \
        log_payload_bytes log_bytes copied_bytes pm_bytes lines_flushed lines_streamed \
        fences ns_reads; do
        grep -q "\"$key\":" "$directory/fs.json" || fail "no key $key"
    done
    for scheme in none minl2r minl2r-auto minl2r-data minl2r-ptr bpfs-ordered bpfs-durable sp sjfs-eager \
        sjfs-lazy journal ordered; do
        for medium in tmpfs optane cxl; do
            grep -q "\"scheme\":\"$scheme\",\"workload\":\"overwrite\",\"record_size\":4096,\"threads\":1,\"medium\":\"$medium\"" \
                "$directory/fs.json" || fail "no $scheme on $medium"
        done
        grep -q "\"scheme\":\"$scheme\",\"workload\":\"overwrite\",\"record_size\":4096,\"threads\":2,\"medium\":\"tmpfs\"" \
            "$directory/fs.json" || fail "no $scheme by two threads"
    done
    grep -q '^Clock: steps of [0-9.]* ns; ' "$directory/table" || fail "nothing of the clock"
    for medium in tmpfs optane cxl; do
        grep -q "\"scheme\":\"minl2r-auto\",\"workload\":\"threshold\",\"record_size\":[0-9]*,\"threads\":1,\"medium\":\"$medium\",\"ns_p50\":null" \
            "$directory/fs.json" || fail "no threshold on $medium"
        grep -q "^  minl2r-auto on $medium .*, minl2r from half of one on" "$directory/table" ||
            fail "no threshold on $medium in words"
        grep -q "^  overwrite on $medium: faster:" "$directory/table" || fail "no half and auto on $medium"
    done
    grep -q ' overwrite on tmpfs, 1 KiB to 4 KiB: ' "$directory/table" || fail "no bar in words"
    # One round of 1 MiB has few calls, all of them enough; a checkpoint is a small share of a call.
    "$program" --quick --rounds 30 --size 1048576 --workload overwrite --threads 1 \
        --dir "$directory" --json "$directory/few.json" >"$directory/table" 2>/dev/null
    ! grep -v '"workload":"threshold"' "$directory/few.json" | grep '"ns_p99":null' >/dev/null ||
        fail "no p99 of 240 calls"
    ! grep '"workload":"overwrite"' "$directory/few.json" | grep -v '"ns_p999":null' >/dev/null ||
        fail "a p99.9 of 240 calls"
    "$program" --quick --rounds 1 --size 64 --workload append --threads 1 \
        --dir "$directory" --json "$directory/few.json" >"$directory/table" 2>/dev/null
    grep -q '"checkpoints":0.0005,' "$directory/few.json" || fail "no checkpoint in 2,000 calls"
    rm "$directory/few.json"
    "$program" --render "$directory/fs.json" >"$directory/rendered"
    grep -q '^| minl2r |' "$directory/rendered" || fail "bench-fs cannot render its own results"
    [ "$(ls "$directory")" = "$(printf 'fs.json\nrendered\ntable')" ] ||
        fail "files left: $(ls "$directory")"
}

# Each call of pmfs.h, and the row that measures it, or after a dash why there is none.
calls_of_pmfs() {
    cat <<'END'
pmfs_copy_range copy a range
pmfs_create create, open+release
pmfs_errormsg - touches no filesystem
pmfs_fallocate fallocate
pmfs_forget - does nothing in-process: it is for lookups that are counted
pmfs_fsck - of all of a filesystem that is not mounted
pmfs_getattr getattr
pmfs_getxattr getxattr
pmfs_link link
pmfs_listxattr listxattr
pmfs_lookup lookup
pmfs_lookup_open lookup, open+release
pmfs_mkdir mkdir
pmfs_mkfs - makes one
pmfs_mknod create
pmfs_mount - bench-pmfs measures it, by how much there is to mount
pmfs_open open+release
pmfs_path_getattr getattr by path
pmfs_path_link - pmfs_path_parent and pmfs_link
pmfs_path_mkdir - pmfs_path_parent and pmfs_mkdir
pmfs_path_mknod - pmfs_path_parent and pmfs_mknod
pmfs_path_of path of a directory
pmfs_path_open open+release by path
pmfs_path_parent parent of a path
pmfs_path_readlink - pmfs_path_parent and pmfs_readlink
pmfs_path_rename - pmfs_path_parent of both and pmfs_rename
pmfs_path_rename_whiteout - pmfs_path_parent of both and pmfs_rename_whiteout
pmfs_path_rmdir - pmfs_path_parent and pmfs_rmdir
pmfs_path_setattr - pmfs_path_parent and pmfs_setattr
pmfs_path_symlink - pmfs_path_parent and pmfs_symlink
pmfs_path_unlink - pmfs_path_parent and pmfs_unlink
pmfs_place_release parent of a path
pmfs_pool - touches no filesystem
pmfs_read read random
pmfs_read_in_place read in place
pmfs_readdir readdir of 500 names
pmfs_readlink readlink
pmfs_recovery - tells what mounting found
pmfs_release open+release
pmfs_removexattr removexattr
pmfs_rename rename
pmfs_rename_whiteout rename with whiteout
pmfs_repair - of all of a filesystem that is not mounted
pmfs_rmdir rmdir
pmfs_seek seek data
pmfs_setattr chmod
pmfs_setxattr setxattr
pmfs_statfs statfs
pmfs_symlink symlink
pmfs_tmpfile tmpfile+release
pmfs_unlink unlink
pmfs_unmount - bench-pmfs mounts and unmounts by how much there is
pmfs_write append
END
    # What one call does, and rows of several calls.
    printf 'pmfs_%s\n' "setattr truncate" "setattr truncate to more" "setattr chown" \
        "setattr utimens" "fallocate punch a hole" "fallocate zero a range" "seek seek a hole" \
        "rename rename to another directory" "write overwrite random" "write append in a block" \
        "unlink create+unlink" "unlink metadata storm"
}

every_call_of_pmfs_has_a_row() {
    local call row
    # The smallest run that has them.
    "$program" --quick --rounds 1 --size 65536 --threads 1 --dir "$directory" \
        --json "$directory/fs.json" >/dev/null 2>&1
    sed -n 's/.*"scheme":"pmfs","workload":"\([^"]*\)".*/\1/p' "$directory/fs.json" | sort -u \
        >"$directory/rows"
    [ -s "$directory/rows" ] || fail "no rows of pmfs"
    # Declarations begin their line; types of functions that are called back do not count.
    sed -n 's/^\(int\|void\|const char \*\|struct minl2r_pool \*\) *\(pmfs_[a-z_]*\)(.*/\2/p' \
        "$here/../include/pmfs.h" | sort -u >"$directory/calls"
    calls_of_pmfs | cut -d ' ' -f 1 | sort -u | diff "$directory/calls" - ||
        fail "other calls in pmfs.h (<) than listed here (>)"
    while read -r call row; do
        case $row in -*) continue ;; esac
        grep -qxF "$row" "$directory/rows" || fail "$call: no row \"$row\""
    done < <(calls_of_pmfs)
    calls_of_pmfs | cut -d ' ' -f 2- | grep -v '^-' | sort -u | diff "$directory/rows" - ||
        fail "rows (<) that no call is listed for (>)"
}

# Where a change of the library or of a scheme is meant to change them:
#   build/bin/bench-fs --counts --threads 1 >bench/fs/counts.txt
counts_are_those_of_the_golden_table() {
    "$program" --counts --threads 1 --dir "$directory" >"$directory/counts"
    diff "$here/fs/counts.txt" "$directory/counts" ||
        fail "other counts than in bench/fs/counts.txt: see $0"
}

directory=$(mktemp -d /dev/shm/minl2r-test-XXXXXX)
trap 'rm -rf "$directory"' EXIT
"$2"
