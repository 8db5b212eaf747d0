#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pmfs_helpers.sh SBIN PMFS: what mount(8), mkfs(8) and fsck(8) look for is a link in SBIN
# that leads to PMFS, and runs as its name says.
set -euo pipefail
sbin=$1 pmfs=$2

for name in mount.pmfs mount.fuse.pmfs mkfs.pmfs fsck.pmfs; do
    test -L "$sbin/$name" && test "$sbin/$name" -ef "$pmfs" || {
        echo "$sbin/$name is no link to $pmfs" >&2
        exit 1
    }
    case $name in
    mount.*) usage="Usage: mount.pmfs" ;;
    *) usage="Usage: pmfs ${name%.pmfs}" ;;
    esac
    said=$("$sbin/$name" --help)
    [[ $said == "$usage "* ]] || {
        echo "$name: $said" >&2
        exit 1
    }
done
