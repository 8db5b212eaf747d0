#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# random_hashmap.sh HASHMAP: random operations in several runs, compared each time.
set -euo pipefail
hashmap=$1
seed=7

parent=/dev/shm
[ -w $parent ] || parent=/tmp
dir=$(mktemp -d $parent/minl2r-random-XXXXXX)
trap 'rm -rf "$dir"' EXIT

echo "seed $seed"
for ((last = 5000; last <= 20000; last += 5000)); do
    "$hashmap" "$dir/map" stress $seed $((last - 4999)) $last >/dev/null
    found=$("$hashmap" "$dir/map" verify $seed $last)
    [ "$found" -eq $last ]
done
"$hashmap" "$dir/map" clear
[ "$("$hashmap" "$dir/map" count)" -eq 0 ]
"$hashmap" "$dir/map" check
