#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build_by_make.sh LIBDIR EXAMPLES OUT: builds each example with pkg-config.
set -euo pipefail
libdir=$1 examples=$2 out=$3

rm -rf "$out"
mkdir -p "$out"
for example in counter tour hashmap; do
    cp -r "$examples/$example" "$out/"
    PKG_CONFIG_PATH="$libdir/pkgconfig" LDFLAGS="-Wl,-rpath,$libdir" make -C "$out/$example" \
        CFLAGS="-O2 -g -Wall -Wextra -Werror"
done
