#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program bench-crash as its users see it: test_crash.sh PROGRAM
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" --quick --json "$work/crash.json" >"$work/printed"
grep -Eq '^library, eagerly +[a-z-]+ +[1-9][0-9]* +[1-9]' "$work/printed"
tail -1 "$work/printed" | grep -q '^Took: [0-9]* s$'
"$program" --render "$work/crash.json" >"$work/rendered"
grep -Eq '^\| library, eagerly \| [a-z-]+ \| [1-9][0-9]* \| [1-9]' "$work/rendered"
grep -Eq '^\| pmfs, eagerly \| pmfs \| 56 \| [1-9]' "$work/rendered"
