#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pmfs_in_process.sh CMAKE PREFIX LIBDIR OUT: builds a program that uses the installed
# filesystem in-process, once by find_package and once by pkg-config, and runs it.
set -euo pipefail
cmake=$1 prefix=$2 libdir=$3 out=$4
source=$(cd "$(dirname "$0")" && pwd)/pmfs
base=/dev/shm
[ -w $base ] || base=/tmp
dir=$(mktemp -d -p $base minl2r-test-XXXXXX)
trap 'rm -rf "$dir"' EXIT
warnings="-Wall -Wextra -Werror"

rm -rf "$out"
"$cmake" -S "$source" -B "$out" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$warnings"
"$cmake" --build "$out"
# shellcheck disable=SC2046,SC2086 # lists of flags
cc $warnings -o "$out/hello_by_pkg_config" "$source/hello.c" \
    $(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs pmfs)
for hello in hello hello_by_pkg_config; do
    [ "$("$out/$hello" "$dir/$hello")" = world ]
done
