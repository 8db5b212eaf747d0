#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: installed.sh CMAKE PREFIX BINDIR LIBDIR EXAMPLES
# The examples are compiled by the installed crashtest-cc, in C and as a program of two files.
set -euo pipefail
cmake=$1 prefix=$2 bin=$2/$3 lib=$2/$4 examples=$5
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
"$bin/crashtest-cc" -O1 -o shop "$examples/shop.c" -lminl2r_traced -lpmem
./shop --nested 0 --no-kill

# By pkg-config, and by CMake, with crashtest-cc as the compiler.
export PKG_CONFIG_PATH=$lib/pkgconfig
compiler=$(pkg-config --variable=crashtest_cc crashtest)
read -ra flags <<<"$(pkg-config --cflags --libs crashtest minl2r_traced)"
"$compiler" -O1 -DBUG -o shop_bug "$examples/shop.c" "${flags[@]}"
status=0
./shop_bug --nested 0 --no-kill >report.txt || status=$?
grep -q 'shop.c:[0-9]*: "sell 0" can be cut off' report.txt
[ $status -eq 1 ]
cat >CMakeLists.txt <<PROJECT
cmake_minimum_required(VERSION 3.22)
project(shop LANGUAGES C)
find_package(minl2r REQUIRED)
if(NOT EXISTS \${minl2r_CRASHTEST_CC})
    message(FATAL_ERROR "no crashtest-cc: \${minl2r_CRASHTEST_CC}")
endif()
add_executable(log_by_cmake $examples/log.c)
target_link_libraries(log_by_cmake minl2r::crashtest pmem)
add_executable(shop_by_cmake $examples/shop.c)
target_link_libraries(shop_by_cmake minl2r::crashtest minl2r::traced)
PROJECT
"$cmake" -S . -B by_cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$bin/crashtest-cc"
"$cmake" --build by_cmake
by_cmake/log_by_cmake
by_cmake/shop_by_cmake --nested 0 --no-kill

# The hooks are those of gcc.
printf '#!/bin/sh\necho "#define __GNUC__ 4"\necho "#define __clang__ 1"\n' >clang
chmod +x clang
for other in ./clang ./no-compiler; do
    status=0
    CRASHTEST_CC=$other "$bin/crashtest-cc" -c -o log.o "$examples/log.c" 2>error.txt || status=$?
    grep -qF "CRASHTEST_CC=$other: not gcc or g++" error.txt
    [ $status -eq 2 ]
done
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
