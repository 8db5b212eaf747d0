#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: reports.sh CMAKE JSON_GET PROGRAM PASSING THREADS PAIR
# PROGRAM fails: its reports for scripts and for people say so; PASSING does not. THREADS fails, in
# some orders of its threads. PAIR has the bug that its environment names.
set -euo pipefail
cmake=$1 json_get=$2 program=$3 passing=$4 threads=$5 pair=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() { # FILE KEYS VALUE
    local found
    found=$("$cmake" "-DFILE=$1" "-DKEYS=$2" -P "$json_get" 2>&1)
    if [ "$found" != "$3" ]; then
        echo "$1: $2 is '$found', not '$3'" >&2
        exit 1
    fi
}
contains() { # FILE TEXT
    if ! grep -qF -- "$2" "$1"; then
        echo "$1 does not contain: $2" >&2
        exit 1
    fi
}

"$program" --json "$work/failed.json" --html "$work/failed.html" >"$work/failed.txt" || true
expect "$work/failed.json" 'failures;0;kind' not-flushed
expect "$work/failed.json" 'failures;0;headline' "$(head -1 "$work/failed.txt")"
expect "$work/failed.json" 'failures;0;stores;1;lost' ON
id=$("$cmake" "-DFILE=$work/failed.json" '-DKEYS=failures;0;id' -P "$json_get" 2>&1)
contains "$work/failed.html" "--replay $id"
contains "$work/failed.html" '<mark>'
contains "$work/failed.html" '</html>'
if grep -qE '(src|href|url\(|@import|https?:)' "$work/failed.html"; then
    echo "the page needs something else" >&2
    exit 1
fi

# Every element that is opened is closed, and in order.
well_formed() { # FILE
    local tag name open=()
    while read -r tag; do
        name=${tag#<} name=${name#/} name=${name%%[ >]*}
        case $tag,$name in
        *,meta | '<!'*) ;;
        '</'*)
            if [ "${open[-1]:-}" != "$name" ]; then
                echo "$1: </$name> where <${open[-1]:-nothing}> is open" >&2
                exit 1
            fi
            unset 'open[-1]'
            ;;
        *) open+=("$name") ;;
        esac
    done < <(grep -oE '</?[a-z!][^>]*>' "$1")
    if [ ${#open[@]} -gt 0 ]; then
        echo "$1: <${open[*]}> are not closed" >&2
        exit 1
    fi
}
well_formed "$work/failed.html"

"$passing" --json "$work/passed.json" --html "$work/passed.html"
expect "$work/passed.json" coverage exact
expect "$work/passed.json" failures '[]'
contains "$work/passed.html" Passed
well_formed "$work/passed.html"

"$threads" --json "$work/threads.json" --html "$work/threads.html" >"$work/threads.txt" || true
expect "$work/threads.json" threads 3
expect "$work/threads.json" 'schedules;0;failures' 0
expect "$work/threads.json" 'failures;0;seed' 2
expect "$work/threads.json" 'failures;0;turns;0;operation' 'append 0 of writer 1'
contains "$work/threads.html" 'Who ran before the crash'
contains "$work/threads.html" 'Orders of threads'
well_formed "$work/threads.html"

# What a program says of PM may be any bytes.
BUG='message is no text' "$pair" --json "$work/bytes.json" >/dev/null || true
expect "$work/bytes.json" 'failures;0;message' $'recovery fails: found \xef\xbf\xbd'

# What was stored unseen is said, too.
BUG='unseen store' "$pair" --json "$work/unseen.json" --html "$work/unseen.html" >/dev/null
expect "$work/unseen.json" 'unseen;words' 1
contains "$work/unseen.html" 'Not all was seen'
well_formed "$work/unseen.html"

# What cannot be written is refused before anything is tried, and nothing is left behind.
for option in --json --html; do
    for file in "$work/missing/file" "$work"; do
        status=0
        "$passing" $option "$file" >"$work/output" 2>"$work/error" || status=$?
        contains "$work/error" "$passing: cannot write $file: "
        [ $status -eq 2 ] && [ ! -s "$work/output" ]
    done
    ! "$passing" $option "$work/new" --replay nonsense 2>"$work/error"
    [ ! -e "$work/new" ]
done

# One file cannot take both, however it is named; a pipe can.
touch "$work/there"
for file in "$work/there" "$work/new"; do
    status=0
    "$passing" --json "$file" --html "$work/../${work##*/}/${file##*/}" >"$work/output" 2>"$work/error" ||
        status=$?
    contains "$work/error" "--json and --html name the same file: $file"
    [ $status -eq 2 ] && [ ! -s "$work/output" ]
done
[ ! -e "$work/new" ]
"$passing" --json /dev/null --html /dev/null >/dev/null

# What cannot be written is not passed over.
if [ -e /dev/full ]; then
    for option in --json --html; do
        status=0
        "$passing" $option /dev/full >/dev/null 2>"$work/error" || status=$?
        contains "$work/error" 'cannot write /dev/full: No space left on device'
        [ $status -eq 2 ]
    done
    status=0
    "$passing" >/dev/full 2>"$work/error" || status=$?
    contains "$work/error" 'cannot write to standard output'
    [ $status -eq 2 ]
fi
