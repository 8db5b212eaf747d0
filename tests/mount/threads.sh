#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# threads.sh TEST [ARGUMENT ...] - runs it; a report of ThreadSanitizer's in any process is a
# failure. What a daemon in the background has on its standard error is lost.
set -euo pipefail
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

status=0
TSAN_OPTIONS="log_path=$logs/report ${TSAN_OPTIONS:-}" "$@" || status=$?
for report in "$logs"/report*; do
    [ -e "$report" ] || continue
    cat "$report"
    status=1
done
exit "$status"
