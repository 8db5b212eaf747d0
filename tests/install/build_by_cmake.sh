#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build_by_cmake.sh CMAKE PREFIX EXAMPLES OUT: builds each example with find_package.
set -euo pipefail
cmake=$1 prefix=$2 examples=$3 out=$4

rm -rf "$out"
for example in counter tour hashmap; do
    "$cmake" -S "$examples/$example" -B "$out/$example" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS="-Wall -Wextra -Werror"
    "$cmake" --build "$out/$example"
done
