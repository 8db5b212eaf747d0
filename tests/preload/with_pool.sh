#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# with_pool.sh BIN_DIR SIZE COMMAND [ARGUMENT ...]
# Runs COMMAND with a new pool in emulated persistent memory, and fsck after it. COMMAND
# finds in its environment:
#   PMFS_PRELOAD  /pmfs=POOL
#   PRELOAD       the library, for LD_PRELOAD; set it where it is wanted
#   PMFS_TOOL     the program pmfs
#   WORK          an empty directory on tmpfs
#   POOL          the pool
set -euo pipefail
bin=$1 size=$2
shift 2
root=$(mktemp -d /dev/shm/pmfs-preload-XXXXXX)
trap 'rm -rf "$root"' EXIT
export PMFS_TOOL=$bin/pmfs PRELOAD=$bin/libpmfs-preload.so
export POOL=$root/pool WORK=$root/work
export PMFS_PRELOAD=/pmfs=$POOL
mkdir "$WORK"
"$PMFS_TOOL" mkfs "$POOL" "$size" >"$root/mkfs" || { cat "$root/mkfs"; exit 1; }
"$@"
"$PMFS_TOOL" fsck "$POOL"
