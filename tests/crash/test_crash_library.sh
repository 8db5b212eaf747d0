#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: test_crash_library.sh CRASHTEST one|rows|lanes|slots
# Power failures and kills in transactions of the library: recovery must lead to all of each
# or nothing of it; of power failures while it runs, every state is tried, but for those of
# slot commits at each other's pauses and of three transactions at once: of 98 crash points
# in a hundred.
# MINL2R_TEST_LONG=ON: rows of three, three at once, and more crashes in recovery.
set -eu
crashtest=$1
long=${MINL2R_TEST_LONG:-OFF}

report=$(mktemp)
trap 'rm -f "$report"' EXIT

explore() { # OPTION ...
    printf '%s\n' "crashtest library $*"
    "$crashtest" library --jobs 2 "$@" 2>/dev/null | tee "$report"
    grep -q 'library: passed; [1-9]' "$report"
}

explore_power_failures() { # OPTION ...
    explore --no-kill --nested 0 "$@"
    grep -q 'library: .* coverage: exact$' "$report"
}

# States of some crash points are more than the budget.
explore_most_power_failures() { # OPTION ...
    explore --no-kill --nested 0 "$@"
    awk '/^library: .* coverage: exact$/ { enough = 1 }
        match($0, /^library: .* coverage: bounded \(/) {
            split(substr($0, RLENGTH + 1), of)
            enough = of[1] * 100 >= of[3] * 98
        }
        END { exit !enough }' "$report"
}

# Those of which longer rows are made.
core_operations() {
    "$crashtest" list library | sed -n 's/^  \([a-z_]*\) \*$/--operation \1/p'
}

# Slot commits, and what changes later what they leave live.
slot_operations=()
for operation in block_whole hole_part block_and_words holes_and_words words \
    many_words word_of_many write_ranges fresh_and_ranges word_of_words \
    store_word_of_words fresh_word_of_words swap_many block_beside_open move_block \
    slot_in_block copy_holder free_holder add_node add_node_and_swap swap_in_node \
    copy_node alloc_and_write_same free_block_of_slot snapshot_and_abort \
    snapshots_same write_more_than_log; do
    slot_operations+=(--operation "$operation")
done

case $2 in
one)
    # Lazily and eagerly alike, wherever all states can be tried.
    explore_power_failures --length 1 --strategy both
    # And where recovery hashes sixteen lines that change: above that is tried lazily only.
    for setting in slots-and-bytes own-lanes; do
        explore_power_failures --length 1 --strategy both --setting $setting \
            --budget 131072 --operation copy
    done
    if [ "$long" = ON ]; then
        explore --length 1 --nested 8
    else
        for setting in small-log slots-and-bytes garbage; do
            explore --length 1 --nested 1 --setting $setting
        done
    fi
    ;;
rows)
    explore_power_failures --length 2 --setting small-log
    # Where an operation before has taken the last block, a transaction changes nothing.
    explore_power_failures --length 2 --setting full
    if [ "$long" = ON ]; then
        explore --length 2 --setting small-log --nested 1
        explore_power_failures --length 2 --setting small-log --strategy both
        explore_power_failures --length 3 --setting small-log
    else
        # The pool is opened anew between two, too.
        explore_power_failures --length 3 --setting small-log --operation write_word \
            --operation alloc_and_store --operation write_ranges
    fi
    ;;
lanes)
    # Words past the cache arrive in any order: a few points have more states than are tried
    # one by one.
    explore_power_failures --lanes 2 --setting small-log --strategy lazy --budget 65536
    explore_power_failures --lanes 2 --setting swap-always --operation write_word \
        --operation blocks_and_ranges --operation alloc_and_free
    # A lane wakes at its first commit, which begins at each pause of another one.
    explore_power_failures --lanes 2 --setting new-lanes --operation words \
        --operation block_and_words --operation hole_part --operation snapshot
    if [ "$long" = ON ]; then
        explore_power_failures --lanes 2 --setting small-log --long --strategy lazy \
            --budget 65536
        # shellcheck disable=SC2046 # options
        explore_most_power_failures --lanes 3 --setting small-log $(core_operations)
    fi
    ;;
slots)
    for setting in slots-and-bytes own-lanes; do
        explore_power_failures --length 2 --setting $setting "${slot_operations[@]}"
    done
    # A lane that is idle is settled before it falls asleep.
    explore_power_failures --length 3 --setting idle-lanes --operation words \
        --operation block_whole --operation word_of_words
    # One wakes at its first commit, and lists nothing while it is awake alone.
    explore_power_failures --length 3 --setting new-lanes --operation words \
        --operation block_whole --operation word_of_words --operation hole_part \
        --operation store_word_of_words --operation fresh_word_of_words \
        --operation move_block --operation snapshot
    # What ends a quarantine, and what does not, although it is long enough.
    explore_power_failures --length 3 --setting slots-and-bytes --operation swap_many \
        --operation write_same --operation block_beside_open
    if [ "$long" = ON ]; then
        explore --length 2 --setting own-lanes --nested 1 "${slot_operations[@]}"
        explore_power_failures --length 3 --setting own-lanes "${slot_operations[@]}"
        explore_power_failures --length 2 --setting new-lanes "${slot_operations[@]}"
        explore_most_power_failures --lanes 2 --setting slots-and-bytes --long \
            "${slot_operations[@]}"
    else
        # What was live when the process ended is finished.
        explore_power_failures --length 3 --setting own-lanes --operation words \
            --operation word_of_words --operation block_and_words
        # A node, what is below it, and the node again.
        explore_power_failures --length 3 --setting own-lanes --operation add_node \
            --operation swap_in_node --operation copy_node
        explore_power_failures --lanes 2 --setting slots-and-bytes --operation words \
            --operation block_and_words --operation hole_part --operation free_run \
            --operation add_node_and_swap
    fi
    # Of three threads, each at every pause of the two others.
    explore_power_failures --lanes 3 --setting slots-and-bytes --operation words \
        --operation block_and_words --operation hole_part --strategy lazy --budget 65536
    ;;
esac
