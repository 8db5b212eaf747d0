#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# library_alone.sh CMAKE SOURCE OUT: the line of the README that configures the library alone
# does so, without what only the rest needs.
set -euo pipefail
cmake=$1 source=$2 out=$3

line=$(grep '^cmake -S \. -B build-library ' "$source/README.md")
read -ra options <<<"${line#* build-library }"
rm -rf "$out"
"$cmake" -S "$source" -B "$out" "${options[@]}" | tee "$out.log"
if grep -E 'fuse|cmocka|libpmemobj|libpmemblk' "$out.log"; then
    echo "the library alone looks for what it does not need" >&2
    exit 1
fi
"$cmake" --build "$out" --target help | grep minl2r_shared
