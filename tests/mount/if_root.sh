#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# if_root.sh COMMAND [ARGUMENT ...] - runs it, or skips it where it would not work: for who
# cannot mount, or cannot give files away.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || [ ! -w /dev/fuse ]; then
    echo "skipped: needs root and /dev/fuse"
    exit 77
fi
exec "$@"
