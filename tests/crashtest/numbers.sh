#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: numbers.sh PROGRAM OPTION
# What is no number is refused: nothing but decimal digits is one, and it has to fit.
set -u
numbers=(-1 +1 ' 1' 0x10 1k 1e3 '' inf)
[ "$2" = seconds ] || numbers+=(1.5 18446744073709551616)
for number in "${numbers[@]}"; do
    output=$("$1" "--$2=$number" 2>&1)
    status=$?
    if [ $status -ne 2 ] || ! grep -qF -- "--$2: not understood: $number" <<<"$output"; then
        printf '%s=%s: exit status %d: %s\n' "--$2" "$number" $status "$output" >&2
        exit 1
    fi
done
