#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# kill_hashmap.sh BINDIR EXAMPLES ROUNDS [SEED]
#
# Kills the hash map's stress mode at random moments. After each kill, every operation that
# was acknowledged must be in the pool, at most one more, and the map must be whole. In the
# end no space may have got lost: cleared, the map has its root and its buckets.
set -euo pipefail
PATH=$1:$2/hashmap:$PATH
rounds=$3
[ "${MINL2R_TEST_LONG:-OFF}" = ON ] && rounds=$((rounds * 10))
seed=${4:-2015}

parent=/dev/shm
[ -w $parent ] || parent=/tmp
dir=$(mktemp -d $parent/minl2r-kill-XXXXXX)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
pool=$dir/pool

used_blocks() {
    minl2r info --json "$pool" | tr -d '",' |
        awk '$1 == "blocks:" { all = $2 } $1 == "blocks_free:" { free = $2 }
             END { print all - free }'
}

RANDOM=$seed
echo "seed $seed"
undone=0
for ((round = 0; round < rounds; round++)); do
    if ((round % 10 == 0)); then # a new map: it grows fast at first
        rm -f "$pool"
        hashmap "$pool" count >/dev/null
        map_seed=$RANDOM
        last=0
    fi
    hashmap "$pool" stress $map_seed $((last + 1)) 1000000000 >"$dir/acknowledged" &
    pid=$!
    sleep "$(printf '0.%03d' $((RANDOM % 150)))"
    kill -9 $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    pid=
    if [ $status -ne 137 ]; then
        echo "round $round: stress ended by itself: $status" >&2
        exit 1
    fi
    # One line each; a line that was cut off was not read by anyone.
    acknowledged=$((last + $(wc -l <"$dir/acknowledged")))
    timeout 60 minl2r check "$pool" >/dev/null
    timeout 60 minl2r recover --json "$pool" >"$dir/recovery"
    last=$(timeout 60 hashmap "$pool" verify $map_seed $acknowledged)
    undone=$((undone + $(grep -c '"undone":.*true' "$dir/recovery" || true)))
    echo "round $round: $acknowledged acknowledged, $last found"
    if ((round % 10 == 9)); then
        hashmap "$pool" clear
        used=$(used_blocks)
        if ((used > 24)); then
            echo "round $round: $used blocks are used by an empty map" >&2
            exit 1
        fi
    fi
done
echo "transactions undone: $undone"
