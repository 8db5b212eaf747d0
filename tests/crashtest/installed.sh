#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: installed.sh PREFIX BINDIR LIBDIR EXAMPLES
# The examples are compiled by the installed crashtest-cc, in C and as a program of two files.
set -euo pipefail
prefix=$1 bin=$1/$2 lib=$1/$3 examples=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$bin/crashtest-cc" -O1 -o log "$examples/log.c" -lpmem
./log
"$bin/crashtest-cc" -O1 -DBUG -c -o log_bug.o "$examples/log.c"
"$bin/crashtest-cc" -o log_bug log_bug.o -lpmem
if ./log_bug; then
    echo "the bug was not found" >&2
    exit 1
fi
"$bin/crashtest-cc" -O1 -I"$prefix/include" -o shop "$examples/shop.c" -L"$lib" \
    -lminl2r_traced -lpmem
./shop --nested 0
for help in -h --help; do
    "$bin/crashtest-cc" $help >help.txt
    grep -q '^Usage:' help.txt
    ./log $help >help.txt
    grep -q '^Usage:' help.txt
    "$bin/crashtest" $help >help.txt
    grep -q '^Usage:' help.txt
done
status=0
"$bin/crashtest-cc" 2>error.txt >help.txt || status=$?
grep -q '^Usage:' error.txt
[ $status -eq 2 ] && [ ! -s help.txt ]
"$bin/crashtest-cc" --version >version.txt
grep -Eq '^crashtest-cc [0-9]+\.[0-9]+' version.txt
grep -q '^gcc' version.txt
"$bin/crashtest" --version | grep -Eq '^crashtest [0-9]+\.[0-9]+$'
