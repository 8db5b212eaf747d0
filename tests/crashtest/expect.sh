#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: expect.sh STATUS PATTERN COMMAND ...
# Runs COMMAND, which must exit with STATUS and print PATTERN (grep -E) in its first line; or,
# where PATTERN begins with "any:", anywhere.
set -u
status=$1
pattern=$2
shift 2
output=$("$@" 2>&1)
actual=$?
printf '%s\n' "$output"
if [ $actual -ne "$status" ]; then
    echo "expect.sh: exit status $actual, not $status" >&2
    exit 1
fi
case $pattern in
any:*) where=$output pattern=${pattern#any:} ;;
*) where=${output%%$'\n'*} ;;
esac
if ! grep -qE -- "$pattern" <<<"$where"; then
    echo "expect.sh: not printed: $pattern" >&2
    exit 1
fi
