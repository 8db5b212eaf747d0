#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Puts the stored results docs/bench/NAME.json into docs/BENCHMARKS.md, each between its lines
# <!-- begin NAME --> and <!-- end NAME -->, as rendered by the program bench-NAME.
#
#   bench/update-docs.sh [--check] [BIN_DIRECTORY]
#
# The report, docs/report, is made anew, too: bench-report --check is its test.
#
# What the run said of its machine, if docs/bench/NAME.txt has it, goes before the tables.
#
# --check changes nothing and fails if the document shows something else, or results that
# are not stored. Exit status 77: there is a place without results.
set -euo pipefail
shopt -s nullglob
check=false
if [ "${1:-}" = --check ]; then
    check=true
    shift
fi
docs=$(cd "$(dirname "$0")/../docs" && pwd)
bin=${1:-$docs/../build/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

show_machine() { # TEXT
    sed -n -E 's/^(Command|Code|Compiler|CPU|Cores|Kernel|PMDK|Medium|Clock|Rounds|Took): */- \1: /p' "$1"
    echo
}

cp "$docs/BENCHMARKS.md" "$work/document"
for json in "$docs"/bench/*.json; do
    name=$(basename "$json" .json)
    {
        [ ! -e "${json%.json}.txt" ] || show_machine "${json%.json}.txt"
        "$bin/bench-$name" --render "$json"
    } >"$work/results"
    awk -v begin="<!-- begin $name -->" -v end="<!-- end $name -->" \
        -v results="$work/results" '
        $0 == end { inside = 0; found = 1 }
        !inside { print }
        $0 == begin {
            inside = 1
            while ((getline line < results) > 0)
                print line
        }
        END { exit !found }' "$work/document" >"$work/next" || {
        echo "docs/BENCHMARKS.md has no place for $name" >&2
        exit 1
    }
    mv "$work/next" "$work/document"
done

missing=()
for name in $(sed -n 's/^<!-- begin \(.*\) -->$/\1/p' "$docs/BENCHMARKS.md"); do
    [ -e "$docs/bench/$name.json" ] && continue
    missing+=("$name")
    if sed -n "/^<!-- begin $name -->$/,/^<!-- end $name -->$/p" "$docs/BENCHMARKS.md" |
        grep -qv '^<!-- '; then
        echo "docs/BENCHMARKS.md shows results of $name, but docs/bench/$name.json is missing" >&2
        exit 1
    fi
done

if ! $check; then
    cp "$work/document" "$docs/BENCHMARKS.md"
    "$bin/bench-report" || {
        echo "docs/report is not made anew: ./dev bench report installs what that needs" >&2
        exit 1
    }
    exit
fi
diff -u "$docs/BENCHMARKS.md" "$work/document"
if [ ${#missing[@]} -gt 0 ]; then
    echo "skipped: no results are stored of ${missing[*]}" >&2
    exit 77
fi
