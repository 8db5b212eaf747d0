#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: replay.sh PROGRAM
# PROGRAM fails; its report must be the same when it is run again, and when an id is replayed.
set -u
without_time() { grep -v ' s; coverage: '; }
first=$("$1" --failures 1 --no-lint | without_time)
second=$("$1" --failures 1 --no-lint | without_time)
command=$(grep '^  again ' <<<"$first" | sed 's/^  again *//')
replayed=$($command | without_time)
if [ "$first" != "$second" ]; then
    printf 'two runs differ:\n%s\n%s\n' "$first" "$second" >&2
    exit 1
fi
if [ "$first" != "$replayed" ]; then
    printf 'the replay differs:\n%s\n%s\n' "$first" "$replayed" >&2
    exit 1
fi
