#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# link_statically.sh CMAKE PREFIX BINDIR LIBDIR COUNTER OUT: builds a program with archives of MinL2R and
# libpmem, by find_package and by pkg-config, which have to name what these need; runs it.
set -euo pipefail
cmake=$1 prefix=$2 bindir=$3 libdir=$4 counter=$5 out=$6
source=$(cd "$(dirname "$0")" && pwd)/static
base=/dev/shm
[ -w $base ] || base=/tmp
dir=$(mktemp -d -p $base minl2r-test-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export PKG_CONFIG_PATH=$libdir/pkgconfig

[ -e "$(pkg-config --variable=libdir libpmem)/libpmem.a" ] || {
    echo "SKIPPED: there is no archive of libpmem"
    exit 77
}
rm -rf "$out"
"$cmake" -S "$source" -B "$out" -DCMAKE_PREFIX_PATH="$prefix" -DCOUNTER="$counter"
"$cmake" --build "$out"
# shellcheck disable=SC2046 # a list of flags
cc -o "$out/by_pkg_config" "$counter" $(pkg-config --cflags minl2r) -L"$libdir" \
    -Wl,-Bstatic -lminl2r -lpmem -Wl,-Bdynamic -Wl,--as-needed \
    $(pkg-config --static --libs minl2r)
for program in by_cmake by_pkg_config; do
    ldd "$out/$program"
    ! ldd "$out/$program" | grep -E 'libminl2r|libpmem' || exit 1
    "$bindir/minl2r" create --size 1M --layout counter "$dir/$program" >/dev/null
    "$out/$program" "$dir/$program"
done
