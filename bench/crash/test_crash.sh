#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: test_crash.sh BENCH_CRASH
# What is printed is what is stored; what cannot be read or run is an error.
set -eu
bench=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bench" --quick --json "$work/crash.json" >"$work/printed"
"$bench" --render "$work/crash.json" >"$work/rendered"
diff "$work/printed" "$work/rendered"
grep -Eq '^\| library, eagerly \| [a-z-]+ \| [1-9][0-9]* \| [1-9]' "$work/printed"
grep -Eq '^\| pmfs, eagerly \| pmfs \| 56 \| [1-9]' "$work/printed"
! "$bench" --render "$work/missing" 2>"$work/error"
grep -q 'bench-crash: .*missing' "$work/error"
